// How are compressed vectors summed: seconds and error by schedule, against the number of workers.

import { seconds, short } from "./format.js";
import { plot, say } from "./panel.js";
import { ask, checkDimension, unlessRefused } from "./server.js";
import { partsOf } from "./state.js";

const LONGEST = 2 ** 31; // entries of a message
const WORKERS = [2, 4, 16, 64, 512, 4096];
const SCHEDULES = { gather: "gather", two_shot: "two shots", sum: "float32" };
const DENSE = { operator: "identity", codec: "free" };
const ASKED = [["gather", "gather"], ["two shots", "two_shot"], ["float32", "auto", DENSE]];

export function coding(v) {
  const given = Object.fromEntries(partsOf("codec").map((name) => [`${name}_per_coordinate`, v[name]]));
  return v.codec === "given" ? given : v.codec;
}

export async function showSums(v, signal) {
  await checkDimension(v.d, signal);
  const pieces = Math.ceil(v.d / LONGEST);
  const common = {
    d: Math.ceil(v.d / pieces), operator: `tcdq:omega=${v.omega}`, bandwidth_bit_per_s: v.bandwidth_bit_per_s,
    latency_s: v.latency_s, codec: coding(v),
  };
  const averaging = (m, exchange, changes) => ask("allreduce", { ...common, m, exchange, ...changes }, signal);
  const [best, plain] = await Promise.all([averaging(v.workers, "auto"), averaging(v.workers, "auto", DENSE)]);
  const answers = await Promise.all(
    ASKED.map(([, exchange, changes]) => Promise.all(
      WORKERS.map((m) => (m <= common.d ? averaging(m, exchange, changes).catch(unlessRefused) : null)), // a coordinate a rank
    )),
  );
  const name = SCHEDULES[best.exchange];
  const answer = `${name}: ${seconds(pieces * best.seconds)}`;
  say(
    "sums", answer,
    `Of ${best.operator} among ${v.workers} workers, ${name} sends less: ${short(best.sent_bits / best.d)} bits per `
    + `coordinate and rank, with an error of the mean of at most ${short(best.nmse)} of its squared length where the `
    + `vectors are independent. A float32 ring takes ${seconds(pieces * plain.seconds)}.`
    + (best.limit_bits === null ? "" : ` No exchange can receive fewer than ${short(best.limit_bits)} bits per coordinate `
      + `at this error, and none fewer than ${short(best.exact_bits)} for an exact sum of 32-bit words.`)
    + (best.nmse >= 1 ? " Sending nothing leaves an error of 1." : "")
    + (pieces > 1 ? ` The vector travels in ${pieces} pieces.` : ""),
  );
  const question = "How are compressed vectors summed?";
  const legend = [["ring", "your cluster"]];
  const lines = (value) => ASKED.map(([label], i) => ({
    name: label, kind: `s${i}`, best: name === label,
    points: answers[i].flatMap((a, k) => (a ? [[WORKERS[k], Number(value(a))]] : [])),
  }));
  plot("sums-seconds", {
    question, answer, legend,
    x: "workers", y: "seconds", series: lines((a) => pieces * a.seconds), here: [Number(v.workers), pieces * best.seconds],
    summary: `Seconds of an averaging among ${WORKERS.join(", ")} workers, gathered, in two shots and in float32.`,
  });
  const equal = lines((a) => a.aligned_nmse).slice(0, 2)
    .map((line, i) => ({ ...line, name: `${line.name}, equal vectors`, kind: `s${3 + i}`, best: false }));
  const nothing = { name: "nothing sent", kind: "s2", best: false, points: WORKERS.map((m) => [m, 1]) };
  plot("sums-error", {
    question, answer: `${name}: error of the mean at most ${short(best.nmse)}`, legend,
    x: "workers", y: "error of the mean, at most", here: [Number(v.workers), best.nmse],
    series: [...lines((a) => a.nmse).slice(0, 2).reverse(), ...equal, nothing],
    summary: `Error of the mean of ${WORKERS.join(", ")} vectors, gathered and in two shots.`,
  });
}
