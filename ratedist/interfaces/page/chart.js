// A chart drawn as SVG: lines, marks and the user's choice; logarithmic axes, of which x may be linear.

import { decimalTicks, linearAxis, logarithmicAxis, tickText } from "./axis.js";
import { boxAround, labelMarks, pathBoxes } from "./labels.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 62, right: 14, top: 12, bottom: 44 };
const DIAMOND = 5;
const places = new WeakMap();

// What was drawn last: its content, and where its numbers lie.
export const placeOf = (svg) => places.get(svg);
export const remember = (svg, place) => places.set(svg, place);

export function node(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// series: {name, kind, best, filled, points: [[x, y]]}; marks: {shape, name, label, x, y, from, said}; here: [x, y].
export function draw(svg, content) {
  const { width, height } = svg.getBoundingClientRect();
  if (!width) return;
  const area = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const { series, marks = [], here } = content;
  const pairs = [...series.flatMap((s) => s.points), ...marks.flatMap((m) => [[m.x, m.y], ...(m.from ? [m.from] : [])])];
  if (here) pairs.push(here);
  const axis = content.isLinear ? linearAxis : logarithmicAxis;
  const xAxis = axis(pairs.map((p) => p[0]), 0.5, area.left, area.right);
  const yAxis = logarithmicAxis(pairs.map((p) => p[1]), 0.3, area.bottom, area.top);
  const at = ([x, y]) => [xAxis.place(x), yAxis.place(y)];
  const drawn = series.map((s) => ({ ...s, path: s.points.filter((p) => (content.isLinear || p[0] > 0) && p[1] > 0).map(at) }));
  const points = marks.map((m) => ({ ...m, point: at([m.x, m.y]), start: m.from && at(m.from) }));
  const taken = [...drawn.flatMap((s) => pathBoxes(s.path)), ...points.map((m) => boxAround(m.point, 6)),
    ...points.flatMap((m) => (m.start ? pathBoxes([m.start, m.point]) : []))];
  if (here) taken.push(boxAround(at(here), 10));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", content.summary);
  svg.replaceChildren(
    ...grid(xAxis, yAxis, area, width, height), ...axisNames(content, area, height),
    ...drawn.flatMap((s) => line(s, area)), ...points.flatMap(markNodes), ...labelMarks(points, taken, area, node),
    ...(here ? [ring(at(here))] : []),
  );
  places.set(svg, { content, at, area });
}

function grid(xAxis, yAxis, area, width, height) {
  const ticks = xAxis.isLinear ? decimalTicks(xAxis, width / 70) : xAxis.ticks(width / 70);
  return [
    ...ticks.flatMap((value) => {
      const x = xAxis.place(value);
      return [
        node("line", { class: "grid", x1: x, x2: x, y1: area.top, y2: area.bottom }),
        node("text", { x, y: area.bottom + 16, "text-anchor": "middle" }, tickText(value)),
      ];
    }),
    ...yAxis.ticks(height / 40).flatMap((value) => {
      const y = yAxis.place(value);
      return [
        node("line", { class: "grid", x1: area.left, x2: area.right, y1: y, y2: y }),
        node("text", { x: area.left - 6, y: y + 4, "text-anchor": "end" }, tickText(value)),
      ];
    }),
  ];
}

function axisNames({ x, y }, area, height) {
  const middle = (area.top + area.bottom) / 2;
  return [
    node("text", { x: (area.left + area.right) / 2, y: height - 6, "text-anchor": "middle" }, x),
    node("text", { x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }, y),
  ];
}

function line({ kind, best, filled, path }, area) {
  if (!path.length) return [];
  const middle = path.map((point) => point.join(",")).join("L");
  const drawn = node("path", { class: `${kind} ${best ? "best" : ""}`, d: `M${middle}` });
  if (!filled) return [drawn];
  const corners = [...path, [path.at(-1)[0], area.bottom], [path[0][0], area.bottom]];
  return [node("polygon", { class: `region ${kind}`, points: corners.map((point) => point.join(",")).join(" ") }), drawn];
}

function markNodes({ shape, point, start }) {
  const joined = start ? [node("line", { class: "joined", x1: start[0], y1: start[1], x2: point[0], y2: point[1] })] : [];
  return [...joined, shapeNode(shape, point)];
}

export function shapeNode(shape, [x, y]) {
  if (shape === "ring") return ring([x, y]);
  if (shape === "rule") return node("line", { class: "rule", x1: x, x2: x, y1: y - 8, y2: y + 8 });
  if (shape === "dot") return node("circle", { class: "dot", cx: x, cy: y, r: 5 });
  const corners = [[0, -DIAMOND], [DIAMOND, 0], [0, DIAMOND], [-DIAMOND, 0]].map(([dx, dy]) => `${x + dx},${y + dy}`);
  return node("polygon", { class: "diamond", points: corners.join(" ") });
}

function ring([x, y]) {
  return node("circle", { class: "here", cx: x, cy: y, r: 8 });
}
