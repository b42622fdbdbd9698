// Asks the server whenever a field changes, and shows its numbers, curves and reasons.

import { draw } from "./chart.js";
import { ASSUMED, build, DEFAULTS, fromAddress, partsOf, read, toAddress, write } from "./state.js";

const PAUSE_MS = 120;
const CURVE_POINTS = 41;
const TIME_POINTS = 15;
const DENSE_BITS = 32;
const LONGEST = 2 ** 31; // entries of a message
const WORKERS = [2, 4, 16, 64, 512, 4096];
const SCHEDULES = { gather: "gather", two_shot: "two shots", sum: "float32" };
const charts = new Map();
const catalogue = { asked: null, operators: [] };
let pending = null;
let timer = 0;

const part = (id, selector) => document.querySelector(`#${id} ${selector}`);

async function ask(path, body, signal) {
  const response = await fetch(`v1/${path}`, body === undefined ? { signal } : {
    method: "POST", signal, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  const found = await response.json();
  if (!response.ok) throw Object.assign(new Error(found.detail[0].msg), { status: response.status });
  return found;
}

function spread(low, high, points) {
  return Array.from({ length: points }, (_, i) => Number((low * (high / low) ** (i / (points - 1))).toPrecision(6)));
}

function text(value) {
  const number = Number(value);
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return number.toLocaleString("en").replaceAll(",", " ");
  return String(Number(number.toPrecision(6)));
}

function cluster(v) {
  return Object.fromEntries(partsOf("cluster").map((name) => [name, v[name]]));
}

async function catalogueAt(d) {
  if (catalogue.asked !== d) {
    Object.assign(catalogue, await ask(`operators?d=${encodeURIComponent(d)}`), { asked: d });
  }
  return catalogue.operators;
}

function plot(id, content) {
  charts.set(id, content);
  draw(part(id, ".chart"), content);
}

async function showBits(v, signal) {
  const level = v.kind;
  const found = await ask("bits", { d: v.d, [level]: v[level] }, signal);
  part("bits", ".value").textContent = `${text(found.value > 1e3 ? Math.ceil(found.value) : found.value)} bits`;
  part("bits", ".explanation").textContent = found.explanation;
  const d = Number(v.d);
  const grid = level === "omega" ? spread(1e-3, 1e4, CURVE_POINTS)
    : [...spread(1e-4, 0.5, 22), ...spread(0.5, 0.01, 20).slice(1).map((rest) => 1 - rest)];
  const [curve, operators] = await Promise.all([ask("bits", { d: v.d, [level]: grid }, signal), catalogueAt(v.d)]);
  const kind = level === "omega" ? "unbiased" : "contractive";
  const dots = operators
    .filter((o) => o.kind === kind && o.bits && o.constant >= grid[0] && o.constant <= grid.at(-1))
    .map((o) => ({ name: o.operator.replace(/(\.\d{3})\d+/, "$1"), x: o.constant, y: o.bits / d }));
  const letter = level === "omega" ? "ω" : "α";
  plot("bits", {
    x: `distortion ${letter}`, y: "bits a coordinate", dots, here: [Number(v[level]), found.value / d],
    series: [{ name: "limit", kind: "s0", best: true, points: grid.map((x, i) => [x, curve.value[i] / d]) }],
    summary: `At ${letter} = ${v[level]} the limit is ${(found.value / d).toPrecision(3)} bits a coordinate; `
      + `${dots.length} operators of the catalogue are marked.`,
  });
}

async function showTau(v, signal) {
  const bits = Number(v.d) > 0 ? DENSE_BITS * Number(v.d) : v.d;
  const constants = Object.keys(ASSUMED).filter((name) => v[name]).map((name) => [name, v[name]]);
  const problem = { ...Object.fromEntries(constants), eta: v.eta, cluster: cluster(v), bits };
  const found = await ask("tau", { ...problem, time_s: v.time_s }, signal);
  const ends = `from ${text(found.lo)} to ${found.hi === "Infinity" ? "any number" : text(found.hi)}`;
  part("tau", ".value").textContent = found.certified ? `τ* = ${text(found.tau)}` : `τ* ≈ ${text(found.tau)}, ${ends}`;
  part("tau", ".explanation").textContent = found.explanation;
  const T = Number(v.time_s);
  const cap = found.cap ?? 0;
  const wanted = [1, Math.round(found.tau / 4), found.tau, found.sharp ?? 0, 4 * found.tau];
  const taus = [...new Set(wanted.filter((t) => t >= 1 && t <= cap))].sort((a, b) => a - b);
  const grid = spread(T / 30, T * 30, TIME_POINTS);
  const steps = taus.length ? await ask("runtime", { cluster: problem.cluster, bits, tau: taus }, signal) : null;
  const holding = (i) => grid.filter((t) => t > taus[i] * Number(steps.value[i]) * (1 + 1e-9)); // at least one round
  const curves = await Promise.all(taus.map((tau, i) => curve({ ...problem, tau }, holding(i), signal)));
  const series = taus.map((tau, i) => ({
    name: tau === found.tau ? `τ* = ${tau}` : `τ = ${tau}`, kind: `s${i % 5}`, best: tau === found.tau,
    points: curves[i],
  })).filter((s) => s.points.length);
  const at = taus.indexOf(found.tau);
  const here = curves[at]?.find(([t]) => t === grid[(TIME_POINTS - 1) / 2]);
  part("tau", "figure").hidden = !series.length;
  if (series.length) {
    plot("tau", {
      x: "seconds of wall-clock", y: "error, at most", series: [...series].sort((a, b) => b.best - a.best), here,
      summary: `Error against time for tau = ${taus.join(", ")}; the heavy line is tau = ${found.tau}.`,
    });
  }
}

async function curve(problem, times, signal) {
  const found = times.length ? await ask("error", { ...problem, time_s: times }, signal).catch(quiet) : null;
  return found ? times.map((t, k) => [t, Number(found.value[k])]) : [];
}

function quiet(error) {
  if (error.status !== 422) throw error;
  return null; // a curve that no theorem covers is left out
}

async function showSums(v, signal) {
  const pieces = Math.ceil(v.d / LONGEST);
  const common = {
    d: Math.ceil(v.d / pieces), operator: `tcdq:omega=${v.omega}`, bandwidth_bit_per_s: v.bandwidth_bit_per_s, latency_s: v.latency_s, codec: coding(v),
  };
  const averaging = (m, exchange, changes) => ask("allreduce", { ...common, m, exchange, ...changes }, signal);
  const dense = { operator: "identity", codec: "free" };
  const [found, plain] = await Promise.all([averaging(v.workers, "auto"), averaging(v.workers, "auto", dense)]);
  const schedules = [["gather", "gather"], ["two shots", "two_shot"], ["float32", "auto", dense]];
  const answers = await Promise.all(
    schedules.map(([, exchange, changes]) => Promise.all(
      WORKERS.map((m) => averaging(m, exchange, changes).catch(quiet)), // two shots need a coordinate for each worker
    )),
  );
  const name = SCHEDULES[found.exchange];
  part("sums", ".value").textContent = `${name}: ${seconds(pieces * found.seconds)}`;
  part("sums", ".explanation").textContent = `Of ${found.operator} among ${v.workers} workers, ${name} sends less: `
    + `${text((found.sent_bits / found.d).toPrecision(3))} bits a coordinate and rank, with an error of the mean of at `
    + `most ${text(found.nmse.toPrecision(3))} of its squared length where the vectors are independent. `
    + `A float32 ring takes ${seconds(pieces * plain.seconds)}.`
    + (pieces > 1 ? ` The vector travels in ${pieces} pieces.` : "");
  const lines = (value) => schedules.map(([label], i) => ({
    name: label, kind: `s${i}`, best: SCHEDULES[found.exchange] === label,
    points: answers[i].flatMap((a, k) => (a ? [[WORKERS[k], Number(value(a))]] : [])),
  }));
  plot("sums-seconds", {
    x: "workers", y: "seconds", series: lines((a) => pieces * a.seconds), here: [Number(v.workers), pieces * found.seconds],
    summary: `Seconds of an averaging among ${WORKERS.join(", ")} workers, gathered, in two shots and in float32.`,
  });
  const equal = lines((a) => a.aligned_nmse).slice(0, 2)
    .map((line, i) => ({ ...line, name: `${line.name}, equal vectors`, kind: `s${3 + i}`, best: false }));
  const nothing = { name: "nothing sent", kind: "s2", best: false, points: WORKERS.map((m) => [m, 1]) };
  plot("sums-error", {
    x: "workers", y: "error of the mean, at most", here: [Number(v.workers), found.nmse],
    series: [...lines((a) => a.nmse).slice(0, 2).reverse(), ...equal, nothing],
    summary: `Error of the mean of ${WORKERS.join(", ")} vectors, gathered and in two shots.`,
  });
}

function seconds(value) {
  return `${text(Number(value).toPrecision(3))} s`;
}

function coding(v) {
  const given = Object.fromEntries(partsOf("codec").map((name) => [`${name}_per_coordinate`, v[name]]));
  return v.codec === "given" ? given : v.codec;
}

async function showPlan(v, signal) {
  const asked = v.operators.split(/[\s;]+|,(?=\s|[a-z_0-9]+(?::|,|$|\s))/).filter(Boolean);
  const request = { d: v.d, cluster: cluster(v), operators: asked, target: v.target, codec: coding(v) };
  const unknown = v.problem === "smooth" ? Object.keys(ASSUMED).filter((name) => !v[name]) : [];
  const smooth = Object.fromEntries(Object.entries(ASSUMED).map(([name, value]) => [name, v[name] || value]));
  const constants = v.problem === "smooth" ? smooth : { condition: v.condition };
  part("plan", ".formula").hidden = v.problem === "smooth";
  const found = await ask("plan", { ...request, ...constants }, signal);
  part("plan", ".value").textContent = found.explanation.replace(/ \(.*\)$/, "");
  const assumed = unknown.length ? [`${unknown.join(", ")} = ${ASSUMED[unknown[0]]}: assumed, not known; measure them`] : [];
  part("plan", ".assumptions").replaceChildren(...[...assumed, ...found.assumptions].map((line) => cell("li", line)));
  part("plan", "tbody").replaceChildren(...found.ranking.flatMap(rows));
}

function cell(name, content, className = "") {
  const made = document.createElement(name);
  made.className = className;
  made.append(content);
  return made;
}

function rows(choice) {
  const row = document.createElement("tr");
  const why = document.createElement("tr");
  row.append(cell("td", choice.operator));
  if (choice.feasible) {
    const bar = cell("td", "", "bar");
    const share = Math.min(1, 1 / choice.relative_cost);
    const meter = Object.assign(document.createElement("meter"), { value: share });
    meter.setAttribute("aria-label", `${choice.operator}: speed relative to the best`);
    bar.append(meter, `${text(Number(choice.relative_cost.toPrecision(3)))}×`);
    const round = [choice.compute_s, choice.encode_s, choice.communicate_s, choice.decode_s];
    const numbers = [choice.rounds, choice.tau, ...round.map((n) => Number(n.toPrecision(3)))].map((n) => cell("td", text(n)));
    row.append(cell("td", `${text(Number(choice.seconds.toPrecision(4)))} s`), bar, ...numbers);
  } else {
    row.append(Object.assign(cell("td", "not covered by a proved theorem", "none"), { colSpan: 8 }));
  }
  why.append(Object.assign(cell("td", choice.reasons.join("; "), "why"), { colSpan: 9 }));
  return [row, why];
}

async function update() {
  const own = new AbortController();
  pending = own;
  const values = read();
  toAddress(values);
  for (const level of ["omega", "alpha"]) {
    for (const shown of document.querySelectorAll(`.only-${level}`)) shown.hidden = values.kind !== level;
  }
  for (const shown of document.querySelectorAll(".only-given")) shown.hidden = values.codec !== "given";
  document.body.dataset.state = "busy";
  const shows = { bits: showBits, tau: showTau, sums: showSums, plan: showPlan };
  await Promise.all(Object.entries(shows).map(([id, show]) => guarded(id, show, values, own.signal)));
  if (!own.signal.aborted) document.body.dataset.state = "ready";
}

async function guarded(id, show, values, signal) {
  const section = document.getElementById(id);
  section.classList.add("busy");
  section.classList.remove("refused");
  try {
    await show(values, signal);
  } catch (error) {
    if (signal.aborted) return;
    section.classList.add("refused");
    part(id, ".value").textContent = error.message;
    if (id !== "plan") part(id, ".explanation").textContent = "";
  }
  if (!signal.aborted) section.classList.remove("busy");
}

function changed() {
  clearTimeout(timer);
  pending?.abort(); // its answers are none to what is asked now
  document.body.dataset.state = "busy";
  timer = setTimeout(update, PAUSE_MS);
}

build(changed);
write(fromAddress());
document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("reset").addEventListener("click", () => { write(DEFAULTS); changed(); });
document.getElementById("copy").addEventListener("click", async () => {
  const note = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(location.href);
    note.textContent = "copied";
  } catch {
    note.textContent = "copy it from the address bar";
  }
});
addEventListener("hashchange", () => { write(fromAddress()); changed(); });
addEventListener("resize", () => charts.forEach((content, id) => draw(part(id, ".chart"), content)));
update();
