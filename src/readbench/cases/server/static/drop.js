/** A file that is dropped anywhere on the form is sent at once; in a long one its sender first marks when it began. */

import { h } from "#web/dom.js";
import { show } from "#web/plot.js";
import { keyed, proposed, shareOf, stepAt, words } from "#service/onset.js";

const MOST = 8;
const EDGE = 4; // of a plot without ticks
const form = document.getElementById("drop");
const input = document.getElementById("file");
const said = document.getElementById("said");
const mark = document.getElementById("mark");
const whole = document.getElementById("whole");
const onset = document.getElementById("onset");
const marked = document.getElementById("marked");
const line = h("div", { class: "onset", role: "slider", tabindex: 0, "aria-label": "Onset", "aria-valuemin": 0 });
let recording = null;
let painters = [];

function send() {
  said.textContent = `Looking at ${input.files[0].name} …`;
  form.requestSubmit();
}

/** The recording as the service draws it; null where it cannot be read, which the answer to the form will say. */
async function drawn() {
  const body = new FormData();
  for (const name of ["asset", "time", "zone", "first", "last"]) body.append(name, form.elements[name].value);
  body.append("file", input.files[0]);
  const answer = await fetch("/preview", { method: "POST", body });
  return answer.ok ? answer.json() : null;
}

function place(step) {
  const { steps } = recording.signals;
  const share = shareOf(step, steps);
  onset.value = step || "";
  line.style.setProperty("--share", share);
  line.setAttribute("aria-valuenow", step);
  line.setAttribute("aria-valuetext", words(step, recording));
  marked.value = words(step, recording);
  for (const paint of painters) paint(share);
}

function plot(channel) {
  const canvas = h("canvas", { role: "img", "aria-label": channel.name });
  const { values, mean, deviation } = channel;
  painters.push((share) => show(canvas, {
    lines: [{ values, paint: "blue", width: 1.4 }],
    band: deviation ? [mean - 2 * deviation, mean + 2 * deviation] : null,
    shade: share ? { from: 0, to: share, paint: "earlier" } : null,
    steps: recording.signals.steps,
  }));
  return h("figure", {}, h("figcaption", {}, channel.name), canvas);
}

function ask(found) {
  recording = found;
  painters = [];
  const { channels, steps } = found.signals;
  const left = channels.length - MOST;
  line.setAttribute("aria-valuemax", steps - 1);
  document.getElementById("others").textContent = left > 0 ? `And ${left} channels that depart less.` : "";
  mark.hidden = false;
  whole.replaceChildren(...channels.slice(0, MOST).map(plot), line);
  place(proposed(found));
  mark.scrollIntoView({ block: "nearest" });
}

function forget() {
  recording = null;
  onset.value = "";
  mark.hidden = true;
}

/** Look at the file that was chosen; `atOnce` sends a short one without a question. */
async function consider(atOnce) {
  forget();
  const file = input.files[0];
  said.textContent = `Reading ${file.name} …`;
  const found = await drawn();
  if (file !== input.files[0]) return;
  said.textContent = file.name;
  if (found && (found.long || !atOnce)) ask(found);
  if (atOnce && !found?.long) send();
  else if (found) line.focus({ preventScroll: true });
}

const follow = (event) => {
  const box = whole.getBoundingClientRect();
  const share = (event.clientX - box.left - EDGE) / Math.max(1, box.width - 2 * EDGE);
  place(stepAt(Math.min(1, Math.max(0, share)), recording.signals.steps));
};
whole.addEventListener("pointerdown", (event) => {
  whole.setPointerCapture(event.pointerId);
  follow(event);
  line.focus({ preventScroll: true });
  event.preventDefault();
});
whole.addEventListener("pointermove", (event) => { if (whole.hasPointerCapture(event.pointerId)) follow(event); });
line.addEventListener("keydown", (event) => {
  const step = keyed(event, Number(line.getAttribute("aria-valuenow")), recording.signals.steps);
  if (step === null) return;
  event.preventDefault();
  place(step);
});
document.getElementById("unmark").addEventListener("click", () => place(0));

for (const name of ["dragenter", "dragover"]) {
  form.addEventListener(name, (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
}
for (const name of ["dragleave", "drop"]) form.addEventListener(name, () => form.classList.remove("over"));
form.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length !== 1) {
    said.textContent = "Drop one file.";
    return;
  }
  input.files = event.dataTransfer.files;
  consider(true);
});
input.addEventListener("change", () => { if (input.files.length) consider(false); });
for (const name of ["asset", "time", "zone", "first", "last"]) {
  form.elements[name].addEventListener("change", () => { if (recording) consider(false); });
}
form.addEventListener("submit", () => { if (input.files.length) said.textContent = `Looking at ${input.files[0].name} …`; });

document.getElementById("sample")?.addEventListener("click", async (event) => {
  event.preventDefault();
  const answer = await fetch(event.target.href);
  const files = new DataTransfer();
  files.items.add(new File([await answer.blob()], "sample.csv", { type: "text/csv" }));
  input.files = files.files;
  consider(true);
});
