// Which outer step can a round bear: the stable region, the best step, the user's own, and what libraries start from.

import { short } from "./format.js";
import { element, part, plot, say, sayAssumed } from "./panel.js";
import { offerTable } from "./figure.js";
import { ask } from "./server.js";
import { ASSUMED } from "./state.js";

const MOMENTA = [...Array.from({ length: 25 }, (_, i) => i / 25), 0.98];
const PANEL = "outer-step";

export async function showOuter(v, signal) {
  const L = v.L ? v.L.split(":")[0] : ASSUMED.L; // of an estimate its value
  const mu = String(Number((Number(L) / Number(v.condition)).toPrecision(12)));
  const optional = Object.fromEntries([["merge", v.merge], ["outer", v.outer_step]].filter(([, given]) => given));
  const round = { eta: v.eta, tau: v.round_steps, L, mu, delay: v.delay, workers: v.workers, ...optional };
  const advice = await ask("outer", { ...round, momenta: MOMENTA }, signal);
  const { best, rows } = advice;
  const sign = v.L ? "=" : "≈";
  const answer = `ν ${sign} ${short(best.lr)}, β ${sign} ${short(best.momentum)}: error × ${factor(best)} a round`;
  const brief = answer.split(":")[0];
  const averaging = rows.find((row) => row.name === "plain averaging");
  const own = rows.find((row) => row.name === "asked");
  say(
    PANEL, answer,
    [
      `Plain averaging: ${fate(averaging)}.`,
      best.noise === null ? "" : `The fastest step leaves ${short(best.noise)} times the gradient noise of plain averaging.`,
      own ? `Your step ν = ${short(own.lr)}, β = ${short(own.momentum)}: ${fate(own)}${noise(own)}.` : "",
      `Exact on quadratics with curvature from μ = L/κ = ${short(mu)} to L = ${short(L)}, and known nowhere else.`,
    ].filter(Boolean).join(" "),
    `${advice.about}. Not known: Adam or momentum inside, data that differ between workers, several averages in flight at once.`,
  );
  sayAssumed(PANEL, v.L ? [] : [["L", `L = ${ASSUMED.L} is assumed, nothing was said: the step depends on ηL and κ alone`]]);
  const line = advice.limits.map(({ momentum, lr }) => [momentum, lr]).filter(([, lr]) => Number.isFinite(lr) && lr > 0);
  plot(PANEL, {
    question: "Which outer step can a round bear?", answer,
    x: "outer momentum β (Nesterov)", y: "outer learning rate ν", isLinear: true, here: [best.momentum, best.lr],
    series: line.length ? [{ name: "stable below this rate", kind: "s0", best: true, filled: true, points: line }] : [],
    marks: [...defaults(rows), ...(own ? [mark(own, "diamond", "your step")] : [])],
    legend: [["ring", "contracts fastest"], ["dot", "libraries' defaults, as remembered"], ...(own ? [["diamond", "your step"]] : [])],
    summary: `Largest stable outer rate against the momentum; the best step is rate ${short(best.lr)} with momentum ${short(best.momentum)}.`,
  });
  const table = [best, ...rows];
  part(PANEL, "tbody").replaceChildren(...table.map(tableRow));
  offerTable(PANEL, ["name", "lr", "momentum", "merge", "fate", "factor", "noise"], table);
  return brief;
}

// Libraries that choose alike share one mark.
function defaults(rows) {
  const alike = new Map();
  for (const row of rows.filter(({ name }) => !["plain averaging", "asked"].includes(name))) {
    const place = `${row.lr}:${row.momentum}`;
    alike.set(place, [...(alike.get(place) ?? []), row]);
  }
  return [...alike.values()].map((same) => mark(same[0], "dot", same.map((row) => row.name).join(", "), same));
}

function mark(row, shape, name, same = [row]) {
  const fates = [...new Set(same.map(fate))].join("; ");
  return { shape, name, label: name, x: row.momentum, y: row.lr, said: `${name}: ν = ${row.lr}, β = ${row.momentum}: ${fates}` };
}

function factor(row) {
  return String(Number(row.factor.toPrecision(4)));
}

function fate(row) {
  if (row.fate === "contracts") return `error × ${factor(row)} a round`;
  return row.fate === "not known" ? "not known with late averages" : row.fate;
}

function noise(row) {
  return row.noise === null ? "" : `, noise × ${short(row.noise)}`;
}

function tableRow(row) {
  const line = document.createElement("tr");
  const numbers = [short(row.lr), short(row.momentum), row.merge, row.fate === "contracts" ? `× ${factor(row)}` : fate(row), row.noise === null ? "" : `× ${short(row.noise)}`];
  line.append(element("td", row.name === "asked" ? "your step" : row.name), ...numbers.map((content) => element("td", content)));
  return line;
}
