/** A range of a source: an overview, a part of it drawn closer, and the line that marks when it began. */

import { h } from "#web/dom.js";
import { show } from "#web/plot.js";
import { marks, timeOf } from "#service/clock.js";
import { keyed, shareOf, stepAt } from "#service/onset.js";
import { titled } from "#service/signals.js";

const MOST = 8;
const EDGE = 4; // of a plot without ticks
const form = document.getElementById("range");

function build() {
  const fields = form.elements;
  const said = document.getElementById("said");
  const mark = document.getElementById("mark");
  const whole = document.getElementById("whole");
  const marked = document.getElementById("marked");
  const back = document.getElementById("back");
  const line = h("div", { class: "onset", role: "slider", tabindex: 0, "aria-label": "Onset", "aria-valuemin": 0 });
  const wider = [];
  let range = null;
  let painters = [];
  let looks = 0;

  const query = () => {
    const asked = new URLSearchParams();
    for (const name of ["source", "asset", "start", "end"]) asked.set(name, fields[name].value);
    return asked;
  };
  const clockOf = () => range.recording.signals.clock;
  const stepsOf = () => range.recording.signals.steps;
  const iso = (seconds) => new Date(1000 * seconds).toISOString();
  const at = (step) => range.start + (step / (stepsOf() - 1)) * (range.end - range.start);

  function place(step) {
    const share = shareOf(step, stepsOf());
    fields.onset.value = step ? iso(at(step)) : "";
    line.style.setProperty("--share", share);
    line.setAttribute("aria-valuenow", step);
    const words = step ? `Began at ${timeOf(step, clockOf())}.` : "No onset marked: all of the range is the window.";
    line.setAttribute("aria-valuetext", words);
    marked.value = words;
    for (const paint of painters) paint(share);
  }

  function plot(channel) {
    const canvas = h("canvas", { role: "img", "aria-label": titled(channel) });
    const { values, mean, deviation } = channel;
    const last = stepsOf() - 1;
    const along = marks([0, last], clockOf(), 6).map(([step, text]) => [step / last, text]);
    painters.push((share) => show(canvas, {
      lines: [{ values, paint: "blue", width: 1.4 }],
      band: deviation ? [mean - 2 * deviation, mean + 2 * deviation] : null,
      shade: share ? { from: 0, to: share, paint: "earlier" } : null,
      steps: stepsOf(),
      along,
      select: closer,
    }));
    return h("figure", {}, h("figcaption", {}, titled(channel)), canvas);
  }

  /** Read the part that was drawn across; null goes back to the range before. */
  function closer(part) {
    if (!part) {
      const before = wider.pop();
      if (!before) return;
      [fields.start.value, fields.end.value] = before;
    } else {
      wider.push([fields.start.value, fields.end.value]);
      const [from, to] = part.map((share) => range.start + share * (range.end - range.start));
      [fields.start.value, fields.end.value] = [iso(from), iso(to)];
    }
    back.hidden = !wider.length;
    look();
  }

  function ask(found) {
    range = found;
    painters = [];
    const { channels, steps } = found.recording.signals;
    const left = channels.length - MOST;
    [fields.start.value, fields.end.value] = [iso(found.start), iso(found.end)];
    line.setAttribute("aria-valuemax", steps - 1);
    document.getElementById("others").textContent = left > 0 ? `And ${left} channels that depart less.` : "";
    mark.hidden = false;
    whole.replaceChildren(...channels.slice(0, MOST).map(plot), line);
    const given = Date.parse(fields.onset.value || "") / 1000 || Number(fields.onset.value);
    const share = given ? (given - found.start) / (found.end - found.start) : found.recording.onset ?? 0;
    place(share > 0 && share < 1 ? stepAt(share, steps) : 0);
    mark.dataset.drawn = `${found.start}-${found.end}`;
    said.textContent = `${found.words[0]} to ${found.words[1]}`;
  }

  /** What the service answers; null where it refuses or is away, which is said, or where another look began since. */
  async function get(address) {
    const turn = ++looks;
    said.textContent = "Reading …";
    const [found, why] = await fetch(address).then(
      async (answer) => (answer.ok ? [await answer.json(), ""] : [null, (await answer.json()).detail]),
    ).catch(() => [null, "The service does not answer. Is it running?"]);
    if (turn !== looks) return null;
    said.textContent = why;
    return found;
  }

  async function look() {
    const found = await get(`/ranges/signals?${query()}`);
    if (found) ask(found);
  }

  async function list() {
    const assets = await get(`/ranges/assets?source=${encodeURIComponent(fields.source.value)}`);
    if (!assets) return;
    document.getElementById("assets").replaceChildren(...assets.map((asset) => h("option", { value: asset })));
    if (!fields.asset.value && assets.length) fields.asset.value = assets[0];
    await look();
  }

  const follow = (event) => {
    const box = whole.getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE) / Math.max(1, box.width - 2 * EDGE);
    place(stepAt(Math.min(1, Math.max(0, share)), stepsOf()));
  };
  line.addEventListener("pointerdown", (event) => {
    line.setPointerCapture(event.pointerId);
    line.focus({ preventScroll: true });
    event.preventDefault();
  });
  line.addEventListener("pointermove", (event) => { if (line.hasPointerCapture(event.pointerId)) follow(event); });
  line.addEventListener("keydown", (event) => {
    const step = keyed(event, Number(line.getAttribute("aria-valuenow")), stepsOf());
    if (step === null) return;
    event.preventDefault();
    place(step);
  });
  document.getElementById("unmark").addEventListener("click", () => place(0));
  back.addEventListener("click", () => closer(null));
  document.getElementById("show").addEventListener("click", look);
  fields.source.addEventListener("change", () => {
    fields.asset.value = "";
    list();
  });
  fields.asset.addEventListener("change", look);
  list();
}

if (form) build();
