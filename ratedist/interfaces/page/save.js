// Charts and tables as files: made in the browser, sent nowhere.

import { node } from "./chart.js";

const LOOKS = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "font-family",
  "font-size", "font-weight", "text-anchor",
];
const SCALE = 2; // pixels of the picture for one of the page
const LINE = 20;
const MARGIN = 14;
const CHARACTER = 7.2;

function saveAs(name, blob) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `ratedist-${name}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function saveCsv(name, rows) {
  const quoted = (content) => (/[",\n]/.test(content) ? `"${String(content).replaceAll('"', '""')}"` : String(content));
  saveAs(`${name}.csv`, new Blob([rows.map((row) => row.map(quoted).join(",")).join("\n"), "\n"], { type: "text/csv" }));
}

// A copy that looks the same without the page's style sheet.
function plainCopy(original) {
  const copy = original.cloneNode(true);
  const pairs = [[original, copy]];
  original.querySelectorAll("*").forEach((element, i) => pairs.push([element, copy.querySelectorAll("*")[i]]));
  for (const [element, twin] of pairs) {
    const style = getComputedStyle(element);
    for (const look of LOOKS) twin.setAttribute(look, style.getPropertyValue(look));
  }
  copy.querySelector(".reading")?.remove();
  return copy;
}

function wrapped(text, width) {
  return text.match(new RegExp(`.{1,${Math.floor(width / CHARACTER)}}(?:\\s|$)|\\S+`, "g")) ?? [];
}

function picture(svg, { question, answer }, keys) {
  const { width, height } = svg.getBoundingClientRect();
  const page = getComputedStyle(document.body);
  const ground = getComputedStyle(svg.closest("section")).backgroundColor;
  const heads = [...wrapped(question, width - 2 * MARGIN), ...wrapped(answer, width - 2 * MARGIN)];
  const top = MARGIN + LINE * heads.length;
  const whole = [width, top + height + LINE * keys.length + MARGIN];
  const made = node("svg", { xmlns: "http://www.w3.org/2000/svg", width: whole[0], height: whole[1], "font-family": page.fontFamily });
  const words = (text, x, y, weight) => node("text", { x, y, "font-size": 14, "font-weight": weight, fill: page.color }, text.trim());
  const chart = plainCopy(svg);
  for (const [key, value] of Object.entries({ x: 0, y: top, width, height })) chart.setAttribute(key, value);
  made.append(
    node("rect", { width: whole[0], height: whole[1], fill: ground }),
    ...heads.map((line, i) => words(line, MARGIN, MARGIN + LINE * (i + 0.7), i ? 400 : 700)), chart,
  );
  svg.parentElement.querySelectorAll(".legend svg").forEach((key, i) => {
    const swatch = plainCopy(key);
    const y = top + height + LINE * i;
    for (const [name, value] of Object.entries({ x: MARGIN, y, width: 28, height: 16, overflow: "visible" })) swatch.setAttribute(name, value);
    made.append(swatch, words(keys[i].name, MARGIN + 36, y + 13, 400));
  });
  return { text: new XMLSerializer().serializeToString(made), whole };
}

export async function savePng(name, svg, content, keys) {
  const { text, whole } = picture(svg, content, keys);
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: SCALE * whole[0], height: SCALE * whole[1] });
  const pen = canvas.getContext("2d");
  pen.scale(SCALE, SCALE);
  pen.drawImage(image, 0, 0);
  canvas.toBlob((blob) => saveAs(`${name}.png`, blob));
}
