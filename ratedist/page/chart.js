// A chart with two logarithmic axes, drawn as SVG.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 62, right: 14, top: 12, bottom: 44 };
const LABEL_HEIGHT = 14;
const CHARACTER = 6.7;

function node(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function range(values, least) {
  const good = values.filter((v) => v > 0 && Number.isFinite(v)).map(Math.log10);
  let [low, high] = [Math.min(...good), Math.max(...good)];
  if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
  return [low - 0.04 * (high - low), high + 0.04 * (high - low)];
}

function ticks([low, high], most) {
  const every = Math.max(1, Math.ceil((high - low) / most));
  const found = [];
  for (let k = Math.ceil(low); k <= high; k += 1) if (k % every === 0) found.push(k);
  if (found.length > 1) return found;
  const fine = [];
  for (let k = Math.floor(low); k <= high; k += 1) {
    for (const digit of [1, 2, 5]) {
      const at = k + Math.log10(digit);
      if (at >= low && at <= high) fine.push(at);
    }
  }
  return fine;
}

function tickText(power) {
  const value = 10 ** power;
  if (value >= 0.01 && value < 1e4) return String(Number(value.toPrecision(2)));
  return Number(value.toPrecision(1)).toExponential().replace("e+", "e");
}

// series: {name, kind, best, points: [[x, y]]}; dots: {name, x, y}; here: [x, y]; labels are dropped where they collide.
export function draw(svg, { x, y, series, dots = [], here, summary }) {
  const { width, height } = svg.getBoundingClientRect();
  if (!width) return;
  const pairs = [...series.flatMap((s) => s.points), ...dots.map((dot) => [dot.x, dot.y]), ...(here ? [here] : [])];
  const xs = range(pairs.map((p) => p[0]), 0.5);
  const ys = range(pairs.map((p) => p[1]), 0.3);
  const right = width - MARGIN.right;
  const bottom = height - MARGIN.bottom;
  const toX = (v) => MARGIN.left + ((Math.log10(v) - xs[0]) / (xs[1] - xs[0])) * (right - MARGIN.left);
  const toY = (v) => bottom - ((Math.log10(v) - ys[0]) / (ys[1] - ys[0])) * (bottom - MARGIN.top);
  const parts = [];
  for (const t of ticks(xs, width / 70)) {
    const at = toX(10 ** t);
    parts.push(node("line", { class: "grid", x1: at, x2: at, y1: MARGIN.top, y2: bottom }));
    parts.push(node("text", { x: at, y: bottom + 16, "text-anchor": "middle" }, tickText(t)));
  }
  for (const t of ticks(ys, height / 40)) {
    const at = toY(10 ** t);
    parts.push(node("line", { class: "grid", x1: MARGIN.left, x2: right, y1: at, y2: at }));
    parts.push(node("text", { x: MARGIN.left - 6, y: at + 4, "text-anchor": "end" }, tickText(t)));
  }
  parts.push(node("text", { x: (MARGIN.left + right) / 2, y: height - 6, "text-anchor": "middle" }, x));
  const middle = (MARGIN.top + bottom) / 2;
  parts.push(node("text", { x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }, y));
  const taken = here ? [box(toX(here[0]) - 8, toY(here[1]) + 8, 16)] : [];
  for (const { name, kind, best, points } of series) {
    const path = points.filter((p) => p[0] > 0 && p[1] > 0).map((p) => `${toX(p[0])},${toY(p[1])}`).join("L");
    parts.push(node("path", { class: `${kind} ${best ? "best" : ""}`, d: `M${path}` }));
    if (name) label(parts, taken, name, points.map((p) => [toX(p[0]), toY(p[1])]), kind, right);
  }
  for (const dot of dots) {
    const made = node("circle", { class: "dot", cx: toX(dot.x), cy: toY(dot.y), r: 5 });
    made.append(node("title", {}, `${dot.name}: ${dot.y.toPrecision(4)} bits a coordinate at ${dot.x.toPrecision(4)}`));
    parts.push(made);
    taken.push(box(toX(dot.x) - 5, toY(dot.y) + 5, 10));
  }
  for (const dot of dots) dotLabel(parts, taken, dot.name, toX(dot.x), toY(dot.y), right);
  if (here) parts.push(node("circle", { class: "here", cx: toX(here[0]), cy: toY(here[1]), r: 8 }));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", summary);
  svg.replaceChildren(...parts);
}

function box(left, bottom, width) {
  return { left, bottom, right: left + width, top: bottom - LABEL_HEIGHT };
}

function free(taken, wanted) {
  return !taken.some((b) => wanted.left < b.right && wanted.right > b.left && wanted.top < b.bottom && wanted.bottom > b.top);
}

function label(parts, taken, name, points, kind, right) {
  const width = name.length * CHARACTER;
  for (const share of [0.04, 0.1, 0.96, 0.88, 0.18, 0.8, 0.28, 0.4, 0.55, 0.7]) {
    const [px, py] = points[Math.floor(share * (points.length - 1))];
    const wanted = box(Math.min(px + 6, right - width), py - 4, width);
    if (wanted.top < MARGIN.top || !free(taken, wanted)) continue;
    taken.push(wanted);
    parts.push(node("text", { class: kind, x: wanted.left, y: wanted.bottom - 3 }, name));
    return;
  }
}

function dotLabel(parts, taken, name, px, py, right) {
  const width = name.length * CHARACTER;
  for (const [dx, dy] of [[8, 4], [-8 - width, 4], [-width / 2, -8], [-width / 2, 20]]) {
    const wanted = box(px + dx, py + dy, width);
    if (wanted.left < MARGIN.left || wanted.right > right || wanted.top < MARGIN.top || !free(taken, wanted)) continue;
    taken.push(wanted);
    parts.push(node("text", { class: "name", x: wanted.left, y: wanted.bottom - 2 }, name));
    return;
  }
}
