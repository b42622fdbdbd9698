// What a pilot predicts: a plan from a file of one's own, which goes to this server for the answer and is kept nowhere.

import { offerTable } from "./figure.js";
import { seconds, short, text } from "./format.js";
import { drawIntervals } from "./intervals.js";
import { element, part, plot } from "./panel.js";
import { ask } from "./server.js";
import { cluster } from "./tau.js";

const PANEL = "pilot-plan";
const MOST_BYTES = 1e6;
const MOST_ROWS = 12;
const MEASURED = ["step_s", "compute"]; // of the cluster, by the pilot
const COLUMNS = ["operator", "exchange", "tau", "overlap", "parts", "in_flight", "buckets", "ratio", "low", "high", "seconds_per_step", "progress", "limits", "relative_cost"];
const WAYS = { sum: "summed", gather: "gathered", two_shot: "in two shots", node_gather: "gathered between nodes", node_two_shot: "in two shots between nodes" };

const pilot = { record: null, fault: "" };

export function takePilots(changed) {
  const file = document.getElementById("pilot-file");
  const pasted = document.getElementById("pilot-text");
  const recorded = document.getElementById("pilot-recorded");
  const take = (content) => {
    Object.assign(pilot, read(content));
    changed();
  };
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    pasted.value = recorded.value = "";
    take(chosen.size > MOST_BYTES ? null : await chosen.text());
  });
  pasted.addEventListener("input", () => {
    file.value = recorded.value = "";
    take(pasted.value);
  });
  recorded.addEventListener("change", () => {
    file.value = pasted.value = "";
    Object.assign(pilot, { record: recorded.value || null, fault: "" });
    changed();
  });
  document.getElementById("pilot-forget").addEventListener("click", () => {
    file.value = pasted.value = recorded.value = "";
    take("");
  });
}

function read(content) {
  if (content === null || content.length > MOST_BYTES) {
    return { record: null, fault: `A pilot must have at most ${text(MOST_BYTES)} characters: take fewer moments.` };
  }
  if (!content.trim()) return { record: null, fault: "" };
  try {
    return { record: JSON.parse(content), fault: "" };
  } catch {
    return { record: null, fault: "This is no JSON: give the file that gpu_validation.pilot has written." };
  }
}

export async function showPilot(v, signal) {
  const section = document.getElementById(PANEL);
  section.classList.toggle("empty", !pilot.record);
  if (pilot.fault) throw new Error(pilot.fault);
  if (!pilot.record) {
    part(PANEL, ".value").textContent = "";
    return "no pilot given";
  }
  const own = typeof pilot.record !== "string";
  const stated = Object.fromEntries(Object.entries(cluster(v)).filter(([name]) => !(own && MEASURED.includes(name))));
  const plan = await ask("plan", { pilot: pilot.record, cluster: stated, ...(own ? {} : { d: v.d }) }, signal);
  const [first, ...others] = plan.explanation.replace(/\.$/, "").split(".  ");
  part(PANEL, ".value").textContent = `${first}.`;
  part(PANEL, ".explanation").replaceChildren(...others.map((sentence) => element("li", `${sentence}.`)));
  part(PANEL, ".changes").replaceChildren(...plan.limits.changes.map(
    ({ part: better, saved_share: share }) => element("li", `${better}, twice as good: saves ${percent(share)} of the time`),
  ));
  part(PANEL, ".unknown").replaceChildren(...plan.prediction.unknown.map((line) => element("li", line)));
  part(PANEL, ".assumptions").replaceChildren(...plan.assumptions.map((line) => element("li", line)));
  const best = plan.ranking.filter(({ operator }, i, all) => all.findIndex((each) => each.operator === operator) === i);
  const rows = best.filter((choice) => choice.feasible).slice(0, MOST_ROWS);
  showIntervals(rows, first);
  part(PANEL, "tbody").replaceChildren(...best.map(tableRow));
  offerTable(PANEL, COLUMNS, plan.ranking.map(flat));
  const { value } = plan.ranking[0].time_ratio ?? {};
  return value === undefined ? "nothing is predicted" : `${plan.ranking[0].operator}, ${short(value)} × the time`;
}

function showIntervals(choices, answer) {
  const rows = choices.map((choice) => {
    const { value, interval } = choice.time_ratio;
    const [low, high] = [Number(interval.lo), Number(interval.hi)];
    return { name: named(choice), value, low, high, said: `${named(choice)}: ${ratio(choice)}` };
  });
  plot(PANEL, {
    question: document.getElementById(`${PANEL}-title`).textContent, answer, rows, line: 1,
    x: "time to a loss, over synchronous training's", y: "operators",
    series: [], legend: [["dot", "predicted"], ["rule", "as fast as synchronous training"]],
    summary: `Predicted time to a loss over that of synchronous training, with its interval: ${rows.map((row) => row.said).join("; ")}`,
  }, drawIntervals);
}

function named({ operator, exchange, tau, parts, in_flight: flight, buckets }) {
  const way = exchange === "sum" || !exchange ? "" : `, ${WAYS[exchange]}`;
  const cut = parts > 1 ? ` in ${parts} fragments` : "";
  const during = buckets > 1 ? `, in ${buckets} buckets during the backward pass` : "";
  const flying = flight ? `, overlapped with ${flight === 1 ? "a step" : `${flight} steps`}` : "";
  const name = operator === "binary32" ? "uncompressed" : operator;
  return `${name}${way}, ${tau === 1 ? "every step" : `every ${tau} steps`}${cut}${flying}${during}`;
}

function ratio({ time_ratio: { value, interval, level } }) {
  const ends = [interval.lo, interval.hi].map((end) => (end === "Infinity" ? "any" : short(end)));
  return `${short(value)}, from ${ends[0]} to ${ends[1]} (${Math.round(100 * level)} %)`;
}

function tableRow(choice) {
  const row = document.createElement("tr");
  row.append(element("td", named(choice)));
  if (!choice.feasible) {
    row.append(Object.assign(element("td", choice.reason, "none"), { colSpan: 4 }));
    return row;
  }
  const cells = [ratio(choice), seconds(choice.seconds_per_step.value), short(choice.progress_per_step.value), choice.limits];
  row.append(...cells.map((content) => element("td", content)));
  return row;
}

function flat(choice) {
  const estimate = choice.time_ratio ?? { value: "", interval: { lo: "", hi: "" } };
  return {
    ...choice, ratio: estimate.value, low: estimate.interval.lo, high: estimate.interval.hi,
    seconds_per_step: choice.seconds_per_step?.value ?? "", progress: choice.progress_per_step?.value ?? "",
  };
}

function percent(share) {
  return `${short(100 * share)} %`;
}
