// How many bits must I send: the limit of the class, what operators claim, and what they were measured to send.

import { short, spread, text } from "./format.js";
import { plot, say } from "./panel.js";
import { ask, catalogueAt, measuredNear } from "./server.js";

const GRIDS = {
  omega: spread(1e-3, 1e4, 41),
  alpha: [...spread(1e-4, 0.5, 22), ...spread(0.5, 0.01, 20).slice(1).map((rest) => 1 - rest)],
};
const KINDS = { omega: "unbiased", alpha: "contractive" };
const LETTERS = { omega: "ω", alpha: "α" };

export async function showBits(v, signal) {
  const level = v.kind;
  const limit = await ask("bits", { d: v.d, [level]: v[level] }, signal);
  const answer = `${text(limit.value > 1e3 ? Math.ceil(limit.value) : limit.value)} bits`;
  say("bits", answer, `${limit.advice}.`, limit.explanation);
  const d = Number(v.d);
  const grid = GRIDS[level];
  const [curve, operators, records] = await Promise.all([
    ask("bits", { d: v.d, [level]: grid }, signal), catalogueAt(v.d), measuredNear(d),
  ]);
  const within = (constant) => constant >= grid[0] && constant <= grid.at(-1);
  const claims = operators.filter((o) => o.kind === KINDS[level] && o.bits && within(o.constant));
  const measured = records.filter((point) => point.kind === KINDS[level] && within(point.nmse));
  plot("bits", {
    question: "How many bits must I send?", answer,
    x: `distortion ${LETTERS[level]}`, y: "bits per coordinate", here: [Number(v[level]), limit.value / d],
    series: [{ name: "limit of the class", kind: "s0", best: true, points: grid.map((x, i) => [x, curve.value[i] / d]) }],
    marks: [...claims.map((operator) => claimed(operator, d, LETTERS[level])), ...measured.map(observed)],
    legend: [
      ["dot", "claimed by operators of the catalogue"],
      ...(measured.length ? [["diamond", `measured on Gaussian vectors, d = ${text(measured[0].d)}`]] : []),
      ["ring", "your choice"],
    ],
    summary: `At ${LETTERS[level]} = ${v[level]} the limit is ${short(limit.value / d)} bits per coordinate; `
      + `${claims.length} claims and ${measured.length} measured operators are marked.`,
  });
}

function shortened(operator) {
  return operator.replace(/(\.\d{3})\d+/g, "$1");
}

function claimed(operator, d, letter) {
  const name = shortened(operator.operator);
  const bits = operator.bits / d;
  return {
    shape: "dot", name, label: name, x: operator.constant, y: bits,
    said: `${name} claims ${letter} = ${short(operator.constant)} with ${short(bits)} bits per coordinate`,
  };
}

function observed(point) {
  const name = shortened(point.operator);
  const [bits, half] = [point.bits / point.d, point.bits_half_width / point.d];
  return {
    shape: "diamond", name, x: point.nmse, y: bits, from: [point.constant, (point.stated_bits ?? point.bits) / point.d],
    said: `${name} measured: NMSE ${short(point.nmse)} ± ${short(point.nmse_half_width)}, ${short(bits)} ± ${short(half)} `
      + `bits per coordinate (${point.n} vectors, 95 %); it claims ${short(point.constant)}`,
  };
}
