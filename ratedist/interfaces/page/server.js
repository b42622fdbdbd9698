// Questions to the server, whose refusals are errors in words.

export async function ask(path, body, signal) {
  const response = await fetch(`v1/${path}`, body === undefined ? { signal } : {
    method: "POST", signal, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) {
    const [{ msg, loc }] = answer.detail;
    throw Object.assign(new Error(msg), { status: response.status, field: loc.at(-1) });
  }
  return answer;
}

// Refuse a dimension in the words of the limit, which every panel shares.
export async function checkDimension(d, signal) {
  if (!(Number(d) >= 1)) await ask("bits", { d, omega: 1 }, signal);
}

export function unlessRefused(error) {
  if (error.status !== 422) throw error;
  return null; // a point or a curve that no theorem covers is left out
}

const catalogue = { asked: null, operators: [] };

export async function catalogueAt(d) {
  if (catalogue.asked !== d) {
    Object.assign(catalogue, await ask(`operators?d=${encodeURIComponent(d)}`), { asked: d });
  }
  return catalogue.operators;
}

let records = null;

// What was measured at the recorded dimension that is nearest to d.
export async function measuredNear(d) {
  records ??= fetch("page/measured.json").then((response) => response.json());
  const { points } = await records;
  const away = (point) => Math.abs(Math.log(point.d / d));
  const nearest = Math.min(...points.map(away));
  return points.filter((point) => away(point) === nearest);
}
