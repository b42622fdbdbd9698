// A chart of intervals: a row each with its name above its line, on one logarithmic axis.

import { logarithmicAxis, tickText } from "./axis.js";
import { node, remember } from "./chart.js";

const MARGIN = { left: 14, right: 14, top: 8, bottom: 40 };
const ROW = 40; // pixels
const END = 5;
const CHARACTER = 6.7;

// rows: {name, value, low, high, said}, of which high may be infinite; line: where a rule stands, and its name.
export function drawIntervals(svg, content) {
  const { rows, line, x } = content;
  const { width } = svg.getBoundingClientRect();
  if (!width) return;
  const height = MARGIN.top + ROW * rows.length + MARGIN.bottom;
  const area = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const ends = rows.flatMap(({ value, low, high }) => [value, low, high]);
  const axis = logarithmicAxis([...ends, line], 0.5, area.left, area.right);
  const middle = (i) => area.top + ROW * i + 0.72 * ROW;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", content.summary);
  svg.style.aspectRatio = `${width} / ${height}`;
  svg.style.maxHeight = "none";
  svg.replaceChildren(
    ...axis.ticks(width / 70).flatMap((tick) => [
      node("line", { class: "grid", x1: axis.place(tick), x2: axis.place(tick), y1: area.top, y2: area.bottom }),
      node("text", { x: axis.place(tick), y: area.bottom + 16, "text-anchor": "middle" }, tickText(tick)),
    ]),
    node("line", { class: "rule", x1: axis.place(line), x2: axis.place(line), y1: area.top, y2: area.bottom }),
    node("text", { x: (area.left + area.right) / 2, y: height - 6, "text-anchor": "middle" }, x),
    ...rows.flatMap((row, i) => interval(row, axis, area, middle(i), i === 0)),
  );
  const marks = rows.map((row, i) => ({ x: i, y: row.value, said: row.said, place: [axis.place(row.value), middle(i)] }));
  remember(svg, { content: { ...content, marks, series: [] }, at: ([i]) => marks[i].place, area });
}

function interval({ name, value, low, high }, axis, area, y, isBest) {
  const start = low > 0 ? Math.max(area.left, axis.place(low)) : area.left;
  const stop = Number.isFinite(high) ? Math.min(area.right, axis.place(high)) : area.right;
  const kind = `interval s0 ${isBest ? "best" : ""}`;
  const close = (x, isOpen, way) => (isOpen
    ? `M${x - way * END},${y - END}L${x},${y}L${x - way * END},${y + END}` // goes on for ever
    : `M${x},${y - END}L${x},${y + END}`);
  return [
    node("text", { class: "name", x: area.left, y: y - 12 }, cut(name, (area.right - area.left) / CHARACTER)),
    node("path", { class: kind, d: `M${start},${y}L${stop},${y}${close(start, !(low > 0), -1)}${close(stop, !Number.isFinite(high), 1)}` }),
    node("circle", { class: "dot", cx: axis.place(value), cy: y, r: 5 }),
  ];
}

// What does not fit is left out; the readout and the table have all of it.
function cut(name, most) {
  return name.length <= most ? name : `${name.slice(0, Math.floor(most) - 1)}…`;
}
