// How often must I synchronise: tau*, the constants that it rests on, and the bound against time.

import { spread } from "./format.js";
import { part, plot, say, sayAssumed } from "./panel.js";
import { ask, checkDimension, unlessRefused } from "./server.js";
import { ASSUMED, DEFAULTS, partsOf } from "./state.js";

const TIME_POINTS = 15;
const DENSE_BITS = 32;

const OF_A_NODE = ["bandwidth_bit_per_s", "latency_s"]; // what the link between nodes stands for

export function cluster(v) {
  const kept = partsOf("cluster").filter((name) => v.between === "" || !OF_A_NODE.includes(name));
  const stated = kept.filter((name) => v[name] !== "" || DEFAULTS[name] !== ""); // some may be empty
  return Object.fromEntries(stated.map((name) => [name, v[name]]));
}

export async function showTau(v, signal) {
  await checkDimension(v.d, signal);
  const bits = DENSE_BITS * Number(v.d);
  const constants = Object.keys(ASSUMED).filter((name) => v[name]).map((name) => [name, v[name]]);
  const problem = { ...Object.fromEntries(constants), eta: v.eta, cluster: cluster(v), bits };
  const best = await ask("tau", { ...problem, time_s: v.time_s }, signal);
  const answer = best.verdict;
  say("tau", answer, `${best.advice}.`, best.explanation);
  sayAssumed("tau", Object.keys(ASSUMED).filter((name) => !v[name]).map((name) => [
    name, best.assumptions.find((line) => line.startsWith(`${name} = `)) ?? `${name} is assumed`,
  ]));
  const T = Number(v.time_s);
  const cap = best.cap ?? 0;
  const used = best.recommended ?? best.tau;
  const wanted = [1, Math.round(used / 4), used, best.tau, 4 * used];
  const taus = [...new Set(wanted.filter((t) => t >= 1 && t <= cap))].sort((a, b) => a - b);
  const grid = spread(T / 30, T * 30, TIME_POINTS);
  const steps = taus.length ? await ask("runtime", { cluster: problem.cluster, bits, tau: taus }, signal) : null;
  const holding = (i) => grid.filter((t) => t > taus[i] * Number(steps.value[i]) * (1 + 1e-9)); // at least one round
  const curves = await Promise.all(taus.map((tau, i) => curve({ ...problem, tau }, holding(i), signal)));
  const series = taus.map((tau, i) => ({
    name: `τ = ${tau}`, kind: `s${i % 5}`, best: tau === used,
    points: curves[i],
  })).filter((s) => s.points.length);
  const here = curves[taus.indexOf(used)]?.find(([t]) => t === grid[(TIME_POINTS - 1) / 2]);
  part("tau", "figure").hidden = !series.length;
  if (series.length) {
    plot("tau", {
      question: "How often must I synchronise?", answer,
      x: "seconds of wall-clock", y: "error, at most", series: [...series].sort((a, b) => b.best - a.best), here,
      legend: here ? [["ring", `τ = ${used} at your time budget`]] : [],
      summary: `Error against time for tau = ${taus.join(", ")}; the heavy line is tau = ${used}.`,
    });
  }
}

async function curve(problem, times, signal) {
  const bound = times.length ? await ask("error", { ...problem, time_s: times }, signal).catch(unlessRefused) : null;
  return bound ? times.map((t, k) => [t, Number(bound.value[k])]) : [];
}
