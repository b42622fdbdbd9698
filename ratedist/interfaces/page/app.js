// Asks the server whenever a field changes; every panel shows its own part of the answers.

import { showBits } from "./bits.js";
import { showOuter } from "./outer.js";
import { part, redraw } from "./panel.js";
import { showPilot, takePilots } from "./pilot.js";
import { showPlan } from "./plan.js";
import { build, DEFAULTS, fromAddress, markWrong, read, remember, remembered, toAddress, write } from "./state.js";
import { showSums } from "./sums.js";
import { showTau } from "./tau.js";

const PAUSE_MS = 120;
const PANELS = { bits: showBits, tau: showTau, "outer-step": showOuter, sums: showSums, plan: showPlan, "pilot-plan": showPilot };
const NARROW = matchMedia("(max-width: 54rem)");
let pending = null;
let timer = 0;

async function update() {
  const own = new AbortController();
  pending = own;
  const values = read();
  toAddress(values);
  remember(values);
  markWrong(null);
  for (const level of ["omega", "alpha"]) {
    for (const shown of document.querySelectorAll(`.only-${level}`)) shown.hidden = values.kind !== level;
  }
  for (const shown of document.querySelectorAll(".only-given")) shown.hidden = values.codec !== "given";
  document.body.dataset.state = "busy";
  await Promise.all(Object.entries(PANELS).map(([id, show]) => guarded(id, show, values, own.signal)));
  if (!own.signal.aborted) document.body.dataset.state = "ready";
}

async function guarded(id, show, values, signal) {
  const section = document.getElementById(id);
  section.classList.add("busy");
  section.setAttribute("aria-busy", "true");
  section.classList.remove("refused");
  let brief;
  try {
    brief = await show(values, signal);
    if (!signal.aborted) section.classList.add("answered");
  } catch (error) {
    if (signal.aborted) return;
    section.classList.add("refused");
    markWrong(error.field);
    const kept = section.classList.contains("answered") ? " The charts are those of the last answer." : "";
    part(id, ".value").textContent = `${error.message}.${kept}`;
  }
  if (signal.aborted) return;
  section.classList.remove("busy");
  section.removeAttribute("aria-busy");
  const link = document.querySelector(`#summary a[href="#${id}"]`);
  link.classList.toggle("refused", section.classList.contains("refused"));
  link.querySelector("b").textContent = brief ?? part(id, ".value").textContent;
}

function changed() {
  clearTimeout(timer);
  pending?.abort(); // its answers are none to what is asked now
  document.body.dataset.state = "busy";
  timer = setTimeout(update, PAUSE_MS);
}

function goTo(event) {
  event.preventDefault(); // the address holds the fields, not a place on the page
  const target = document.querySelector(event.currentTarget.getAttribute("href"));
  target.scrollIntoView();
  target.focus({ preventScroll: true });
}

function fold() {
  document.getElementById("inputs").open = !NARROW.matches; // on a phone the answers come first
}

build(changed);
takePilots(changed);
const last = location.hash ? {} : remembered();
write(location.hash ? fromAddress() : last);
if (Object.keys(last).length) document.getElementById("copied").textContent = "The cluster is that of your last visit.";
fold();
NARROW.addEventListener("change", fold);
for (const link of document.querySelectorAll('a[href^="#"]')) link.addEventListener("click", goTo);
document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("reset").addEventListener("click", () => { write(DEFAULTS); changed(); });
document.getElementById("copy").addEventListener("click", async () => {
  const note = document.getElementById("copied");
  try {
    const address = location.hash ? location.href : `${location.href}#workers=${read().workers}`; // never the reader's own cluster
    await navigator.clipboard.writeText(address);
    note.textContent = "copied";
  } catch {
    note.textContent = "copy it from the address bar";
  }
});
addEventListener("hashchange", () => { write(fromAddress()); changed(); });
addEventListener("resize", redraw);
update();
