// The parts of a panel: its answer, its chart, its table, and what it rests on.

import { draw } from "./chart.js";
import { dress } from "./figure.js";

const charts = new Map();

export const part = (id, selector) => document.querySelector(`#${id} ${selector}`);

export function say(id, answer, explanation, theorem) {
  part(id, ".value").textContent = answer;
  part(id, ".explanation").textContent = explanation;
  if (theorem !== undefined) part(id, ".theorem p").textContent = theorem;
}

export function plot(id, content, drawing = draw) {
  charts.set(id, [content, drawing]);
  const figure = document.getElementById(id).matches("figure") ? document.getElementById(id) : part(id, "figure");
  dress(figure, id, content);
  drawing(figure.querySelector(".chart"), content);
}

export function redraw() {
  charts.forEach(([content, drawing], id) => drawing(part(id, ".chart"), content));
}

export function element(name, content, className = "") {
  const made = document.createElement(name);
  made.className = className;
  made.append(content);
  return made;
}

// One line for every constant that is assumed, with a button that leads to its field.
export function sayAssumed(id, lines) {
  part(id, ".assumed").replaceChildren(...lines.map(([name, line]) => {
    const symbol = document.querySelector(`label[for="${name}"] i`).textContent;
    const button = Object.assign(element("button", "give it"), { type: "button" });
    button.setAttribute("aria-label", `give ${symbol}`);
    button.addEventListener("click", () => {
      document.getElementById("inputs").open = true;
      document.getElementById(name).focus();
    });
    const item = element("li", `${line.replaceAll(name, symbol)} `);
    item.append(button);
    return item;
  }));
}
