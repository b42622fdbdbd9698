// What stands around a chart: its legend, a line that says the value read, and buttons that save it.

import { node, shapeNode } from "./chart.js";
import { saveCsv, savePng } from "./save.js";
import { HINT, watch } from "./reading.js";

const SWATCH = { width: 28, height: 16 };
const figures = new WeakMap();
const tables = new Map();

export function dress(figure, id, content) {
  if (!figures.has(figure)) furnish(figure, id);
  figures.set(figure, content);
  figure.querySelector(".readout").textContent = HINT;
  figure.querySelector(".legend").replaceChildren(...legendOf(content).map(({ swatch, name }) => {
    const item = document.createElement("li");
    item.append(swatch, name);
    return item;
  }));
}

export function legendOf({ series, legend = [] }) {
  const swatch = (child) => {
    const svg = node("svg", { class: "chart-key", "aria-hidden": "true", viewBox: `0 0 ${SWATCH.width} ${SWATCH.height}` });
    svg.append(child);
    return svg;
  };
  const middle = SWATCH.height / 2;
  return [
    ...series.map(({ name, kind, best }) => ({
      name, swatch: swatch(node("path", { class: `${kind} ${best ? "best" : ""}`, d: `M0,${middle}L${SWATCH.width},${middle}` })),
    })),
    ...legend.map(([shape, name]) => ({ name, swatch: swatch(shapeNode(shape, [SWATCH.width / 2, middle])) })),
  ];
}

function furnish(figure, id) {
  const svg = figure.querySelector(".chart");
  const legend = document.createElement("ul");
  legend.className = "legend";
  const readout = Object.assign(document.createElement("p"), { className: "readout" });
  readout.setAttribute("role", "status");
  readout.id = `${id}-readout`;
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("aria-describedby", readout.id);
  const question = document.querySelector(`#${id} h2`)?.textContent ?? svg.getAttribute("aria-label");
  const save = buttons(question, {
    PNG: () => savePng(id, svg, figures.get(figure), legendOf(figures.get(figure))),
    CSV: () => saveCsv(id, curvesOf(figures.get(figure))),
  });
  svg.before(legend);
  svg.after(readout, save);
  watch(svg, readout);
}

function buttons(question, actions) {
  const line = Object.assign(document.createElement("p"), { className: "save" });
  line.append("Save: ", ...Object.entries(actions).map(([format, act]) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: format });
    button.setAttribute("aria-label", `save as ${format}: ${question}`);
    button.addEventListener("click", act);
    return button;
  }));
  return line;
}

function curvesOf({ series, rows, marks = [], here, legend = [], x, y }) {
  if (rows) return [["name", x, "low", "high"], ...rows.map(({ name, value, low, high }) => [name, value, low, high])];
  const called = Object.fromEntries(legend);
  return [
    ["kind", "name", x, y],
    ...series.flatMap((s) => s.points.map((point) => ["line", s.name, ...point])),
    ...marks.map((mark) => [called[mark.shape] ?? mark.shape, mark.name, mark.x, mark.y]),
    ...(here ? [[called.ring ?? "chosen", "", ...here]] : []),
  ];
}

// Let the records behind a panel's table be saved; of every record the fields named.
export function offerTable(id, columns, records) {
  const isNew = !tables.has(id);
  tables.set(id, [columns, ...records.map((record) => columns.map((name) => record[name] ?? ""))]);
  if (!isNew) return;
  const section = document.getElementById(id);
  const question = section.querySelector("h2").textContent;
  section.querySelector(".scroll").after(buttons(`table, ${question}`, { CSV: () => saveCsv(`${id}-table`, tables.get(id)) }));
}
