// Values read off a chart: by pointing, by touch, or with the arrow keys.

import { node, placeOf } from "./chart.js";
import { short } from "./format.js";

const REACH = 14; // pixels from a mark
export const HINT = "Point at the chart, or use the arrow keys, to read its values.";

// The places of a chart that can be read: its marks, and every x of its lines with all their values there.
function stops({ content, at }) {
  const { series, marks = [], x, y } = content;
  const single = marks.map((m) => ({ x: m.x, points: [at([m.x, m.y])], isMark: true, said: m.said }));
  const columns = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].map((value) => {
    const met = series.flatMap((s) => s.points.filter((p) => p[0] === value).map((p) => [s.name, p]));
    const values = met.map(([name, p]) => `${name} ${short(p[1])}`).join(", ");
    return { x: value, points: met.map(([, p]) => at(p)), isMark: false, said: `${x} ${short(value)}: ${values} (${y})` };
  });
  return [...single, ...columns].sort((a, b) => a.x - b.x);
}

function nearest(all, [px, py]) {
  const away = (stop) => Math.hypot(stop.points[0][0] - px, stop.points[0][1] - py);
  const best = (some, distance) => some.reduce((least, stop) => (least && distance(least) <= distance(stop) ? least : stop), null);
  const mark = best(all.filter((stop) => stop.isMark), away);
  if (mark && away(mark) <= REACH) return mark;
  return best(all.filter((stop) => !stop.isMark), (stop) => Math.abs(stop.points[0][0] - px)) ?? mark;
}

export function watch(svg, readout) {
  let index = -1;
  const clear = () => {
    svg.querySelector(".reading")?.remove();
    readout.textContent = HINT;
  };
  const show = (stop) => {
    clear();
    if (!stop) return;
    const { area } = placeOf(svg);
    const group = node("g", { class: "reading" });
    const [px] = stop.points[0];
    if (!stop.isMark) group.append(node("line", { x1: px, x2: px, y1: area.top, y2: area.bottom }));
    for (const [cx, cy] of stop.points) group.append(node("circle", { cx, cy, r: stop.isMark ? 9 : 4 }));
    svg.append(group);
    readout.textContent = stop.said;
  };
  const point = (event) => {
    const place = placeOf(svg);
    if (!place) return;
    const box = svg.getBoundingClientRect();
    const all = stops(place);
    const stop = nearest(all, [event.clientX - box.left, event.clientY - box.top]);
    index = all.indexOf(stop);
    show(stop);
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") clear(); });
  svg.addEventListener("blur", clear);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !placeOf(svg)) return;
    event.preventDefault();
    const all = stops(placeOf(svg));
    index = Math.max(0, Math.min(all.length - 1, index + step));
    show(all[index]);
  });
  clear();
}
