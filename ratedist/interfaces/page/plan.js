// Which compressor pays: the ranking, each with its theorem.

import { offerTable } from "./figure.js";
import { seconds, short, text } from "./format.js";
import { element, part, sayAssumed } from "./panel.js";
import { ask } from "./server.js";
import { ASSUMED } from "./state.js";
import { coding } from "./sums.js";
import { cluster } from "./tau.js";

const COLUMNS = [
  "operator", "feasible", "seconds", "relative_cost", "rounds", "tau", "compute_s", "encode_s", "communicate_s", "decode_s",
];

export async function showPlan(v, signal) {
  const asked = v.operators.split(/[\s;]+|,(?=\s|[a-z_0-9]+(?::|,|$|\s))/).filter(Boolean);
  const request = { d: v.d, cluster: cluster(v), operators: asked, target: v.target, codec: coding(v) };
  const unknown = v.problem === "smooth" ? Object.keys(ASSUMED).filter((name) => !v[name]) : [];
  const smooth = Object.fromEntries(Object.entries(ASSUMED).map(([name, value]) => [name, v[name] || value]));
  const constants = v.problem === "smooth" ? smooth : { condition: v.condition };
  part("plan", ".formula").hidden = v.problem === "smooth";
  const plan = await ask("plan", { ...request, ...constants }, signal);
  part("plan", ".value").textContent = plan.verdict;
  sayAssumed("plan", unknown.map((name) => [name, `${name} = ${ASSUMED[name]} is assumed, not known; measure it`]));
  part("plan", ".assumptions").replaceChildren(...plan.assumptions.map((line) => element("li", line)));
  part("plan", "tbody").replaceChildren(...plan.ranking.flatMap(rows));
  offerTable("plan", COLUMNS, plan.ranking);
  const [first] = plan.ranking;
  part("plan", ".explanation").textContent = first.limits ? limited(first.limits) : "";
  return first.feasible ? `${first.operator}, ${seconds(first.seconds)}` : undefined;
}

// What takes most of the best choice's round, and which part of the cluster to make faster first.
function limited({ limit, shares, changes: [change] }) {
  const percent = (share) => `${Math.round(100 * share)} %`;
  const most = `Most of a round is ${limit}, ${percent(shares[limit])} of its seconds.`;
  const saved = change && `Twice as fast, ${change.part} would save ${seconds(change.saved_s)} (${percent(change.saved_share)}) of this plan.`;
  return [most, saved].filter(Boolean).join(" ");
}

function rows(choice) {
  const row = document.createElement("tr");
  const why = document.createElement("tr");
  row.append(element("td", choice.operator));
  if (choice.feasible) {
    const bar = element("td", "", "bar");
    const meter = Object.assign(document.createElement("meter"), { value: Math.min(1, 1 / choice.relative_cost) });
    meter.setAttribute("aria-label", `${choice.operator}: speed relative to the best`);
    bar.append(meter, `${short(choice.relative_cost)}×`);
    const round = [choice.compute_s, choice.encode_s, choice.communicate_s, choice.decode_s];
    const numbers = [text(choice.rounds), text(choice.tau), ...round.map(short)].map((number) => element("td", number));
    row.append(element("td", seconds(choice.seconds)), bar, ...numbers);
  } else {
    row.append(Object.assign(element("td", "not covered by a proved theorem", "none"), { colSpan: 8 }));
  }
  why.append(Object.assign(element("td", reasons(choice.reasons), "why"), { colSpan: 9 }));
  return [row, why];
}

// The theorem stands in sight, the rest of the reasons behind it.
function reasons([first, ...rest]) {
  if (!rest.length) return first;
  const folded = element("details", element("summary", first));
  folded.append(rest.join("; "));
  return folded;
}
