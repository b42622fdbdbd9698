// The fields of the page: defaults, sliders beside text fields, and the permalink in the address.

export const DEFAULTS = {
  d: "25600000", kind: "omega", omega: "1", alpha: "0.1",
  workers: "16", bandwidth_bit_per_s: "1e10", latency_s: "5e-5", step_s: "0.08", compute: "exponential",
  eta: "0.01", time_s: "600", target: "0.1", L: "", sigma2: "", gap: "", condition: "100", problem: "condition",
  codec: "given", encode_s: "8.5e-9", decode_s: "4.3e-9",
  operators: "tcdq:omega=1, tcdq:omega=0.1, identity, natural, randomk:0.1, qsgd:4096, topk:0.01",
};
export const ASSUMED = "1"; // an empty field of L, sigma2 or gap: assumed by the calculator, which says so
const NAMES = Object.keys(DEFAULTS);
const field = (name) => document.getElementById(name);

function shorten(value, whole) {
  if (whole) return value < 1e6 ? String(Math.round(value)) : exponent(value);
  return value >= 1e-3 && value < 1e5 ? String(Number(value.toPrecision(3))) : exponent(value);
}

function exponent(value) {
  return Number(value.toPrecision(3)).toExponential().replace("e+", "e");
}

function addSlider(control, changed) {
  const { name, low, high, whole } = control.dataset;
  const text = Object.assign(document.createElement("input"), {
    type: "text", id: name, inputMode: "decimal", autocomplete: "off", spellcheck: false,
    placeholder: DEFAULTS[name] === "" ? `${ASSUMED}, assumed` : "",
  });
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
  control.append(text, slider);
}

function follow(name) {
  const slider = field(`${name}-slider`);
  const value = Number(field(name).value);
  if (!slider) return;
  if (value > 0 && document.activeElement !== slider) slider.value = String(Math.log10(value));
  slider.setAttribute("aria-valuetext", field(name).value);
}

export function build(changed) {
  for (const control of document.querySelectorAll(".control[data-name]")) addSlider(control, changed);
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
