// The fields that the server has made from its calls: their defaults, sliders beside them, the permalink in the address.

const FIELDS = [...document.querySelectorAll("#controls :is(input, select, textarea)")];
const NAMES = FIELDS.map((element) => element.id);
const CONTROLS = [...document.querySelectorAll(".control[data-name]")];
const field = (name) => document.getElementById(name);

const chosen = (element) => [...element.options].find((option) => option.defaultSelected) ?? element.options[0];

export const DEFAULTS = Object.fromEntries(FIELDS.map((element) => [element.id, element.defaultValue ?? chosen(element).value]));
export const partsOf = (name) => CONTROLS.filter((element) => element.dataset.partOf === name).map((element) => element.dataset.name);
export const ASSUMED = Object.fromEntries( // where a field of them is empty: the calculator says so
  CONTROLS.filter((element) => element.dataset.assumed).map((element) => [element.dataset.name, element.dataset.assumed]),
);

function shorten(value, whole) {
  if (whole) return value < 1e6 ? String(Math.round(value)) : exponent(value);
  return value >= 1e-3 && value < 1e5 ? String(Number(value.toPrecision(3))) : exponent(value);
}

function exponent(value) {
  return Number(value.toPrecision(3)).toExponential().replace("e+", "e");
}

function addSlider(control, changed) {
  const { name, low, high, whole } = control.dataset;
  const text = field(name);
  const slider = Object.assign(document.createElement("input"), {
    type: "range", id: `${name}-slider`, min: low, max: high, step: "0.01",
  });
  const label = control.querySelector("label").textContent.trim().replace(/\s+/g, " ");
  slider.setAttribute("aria-label", `${label}, slider`);
  slider.addEventListener("input", () => {
    text.value = shorten(10 ** Number(slider.value), whole);
    follow(name);
    changed();
  });
  text.addEventListener("input", () => { follow(name); changed(); });
  control.append(slider);
}

function follow(name) {
  const slider = field(`${name}-slider`);
  const value = Number(field(name).value);
  if (!slider) return;
  if (value > 0 && document.activeElement !== slider) slider.value = String(Math.log10(value));
  slider.setAttribute("aria-valuetext", field(name).value);
}

export function build(changed) {
  for (const control of CONTROLS.filter((element) => element.dataset.low)) addSlider(control, changed);
  for (const name of NAMES) {
    if (!field(`${name}-slider`)) field(name).addEventListener("input", changed);
  }
}

export function read() {
  return Object.fromEntries(NAMES.map((name) => [name, field(name).value.trim()]));
}

export function write(values) {
  for (const name of NAMES) {
    field(name).value = values[name] ?? DEFAULTS[name];
    if (field(name).selectedIndex === -1) field(name).value = DEFAULTS[name];
    follow(name);
  }
}

export function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(NAMES.filter((name) => given.has(name)).map((name) => [name, given.get(name).slice(0, 400)]));
}

export function toAddress(values) {
  const stated = NAMES.filter((name) => values[name] !== DEFAULTS[name]).map((name) => [name, values[name]]);
  const text = new URLSearchParams(stated).toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

// Mark the field that the server refuses; none for null.
export function markWrong(name) {
  for (const element of FIELDS) {
    if (name === null) element.removeAttribute("aria-invalid");
    else if (element.id === name) element.setAttribute("aria-invalid", "true");
  }
}

const CLUSTER = "cluster"; // what the browser keeps for the next visit

export function remember(values) {
  const stated = partsOf(CLUSTER).filter((name) => values[name] !== DEFAULTS[name]).map((name) => [name, values[name]]);
  try {
    if (stated.length) localStorage.setItem(CLUSTER, JSON.stringify(Object.fromEntries(stated)));
    else localStorage.removeItem(CLUSTER);
  } catch { /* a browser that keeps nothing */ }
}

export function remembered() {
  try {
    const kept = JSON.parse(localStorage.getItem(CLUSTER)) ?? {};
    return Object.fromEntries(partsOf(CLUSTER).filter((name) => typeof kept[name] === "string").map((name) => [name, kept[name]]));
  } catch {
    return {};
  }
}
