/** The page of a case: small multiples, the chosen case laid over them, and the keyboard. */

import { h } from "#web/dom.js";
import { measured } from "#web/format.js";
import { show } from "#web/plot.js";
import { moveView, stepWords } from "#service/clock.js";
import { readLink, writeLink } from "#service/links.js";
import { closerPoints, far, laidOver, moved, plotOf, question, titled } from "#service/signals.js";

const DIGITS = 6;
const MANY = 16;
const plots = document.getElementById("plots");
const signals = JSON.parse(document.getElementById("signals").textContent);
const hits = [...document.querySelectorAll(".hit")];
const otherName = document.getElementById("other-name");
const whole = document.getElementById("whole");
const shownPart = document.getElementById("shown");
const hint = shownPart.value;
const drawn = new Map();
const known = new Map();
let chosen = -1;
let laid = "";
let view = null;
let closer = null;

function draw(channel) {
  const beside = h("span", { class: "soft number" }, far(channel));
  const canvas = h("canvas", { role: "img", "aria-label": `${channel.name}: ${far(channel)}` });
  const figure = h("figure", {}, h("figcaption", {}, h("span", {}, titled(channel)), beside), canvas);
  const unit = channel.unit ? ` ${channel.unit}` : "";
  const words = ({ value, step }) => `${measured(value, DIGITS)}${unit} at ${stepWords(step, signals.clock)}`;
  const read = (found) => beside.replaceChildren(found ? words(found) : far(channel));
  let over = null;
  const paint = (other = over) => {
    over = other;
    const points = closer && closerPoints(closer, channel.name, signals.steps);
    show(canvas, plotOf(channel, signals, other, { read, select: look, view, closer: points }));
  };
  drawn.set(channel.name, { channel, figure, paint });
  plots.append(figure);
  paint(null);
}

/** Show a part of the window, [from, to] shares of it, in all plots; null for all of it. */
async function look(part) {
  view = part;
  closer = null;
  note();
  whole.hidden = !part;
  const steps = (part ?? []).map((share) => Math.round(share * (signals.steps - 1)));
  shownPart.value = part ? steps.map((step) => stepWords(step, signals.clock)).join(" to ") : hint;
  for (const { paint } of drawn.values()) paint();
  if (!part) return;
  const { case: name, file } = plots.dataset;
  const asked = new URLSearchParams({ case: name, file, first: steps[0], last: steps[1] + 1 });
  const answer = await fetch(`/signals?${asked}`);
  if (!answer.ok || view !== part) return;
  closer = await answer.json();
  for (const { paint } of drawn.values()) paint();
  plots.dataset.closer = `${closer.first} ${closer.last}`;
}

async function evidence(like) {
  if (known.has(like)) return known.get(like);
  const answer = await fetch("/api/v1/explain", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question(plots.dataset.case, plots.dataset.asset, signals.channels, like)),
  });
  if (!answer.ok) throw new Error((await answer.json()).detail);
  const found = await answer.json();
  known.set(like, found);
  return found;
}

/** Keep the address what the page shows, so that it can be passed on. */
function note() {
  const hash = writeLink({ like: laid, view });
  history.replaceState(history.state, "", hash || location.pathname + location.search);
}

async function choose(place, { scroll = true, noted = true } = {}) {
  hits.forEach((hit, i) => hit.setAttribute("aria-current", i === place));
  chosen = place;
  if (place < 0) {
    laid = "";
    otherName.hidden = true;
    clear();
    note();
    return;
  }
  const hit = hits[place];
  hit.closest("details")?.setAttribute("open", "");
  if (scroll) hit.scrollIntoView({ block: "nearest" });
  await layOver(hit.dataset.case, { noted });
}

/** Lay a case over the signals, one of the hits or any other. */
async function layOver(like, { noted = true } = {}) {
  laid = like;
  if (noted) note();
  otherName.hidden = false;
  otherName.textContent = like;
  const found = await evidence(like);
  if (laid !== like) return;
  const shared = new Map(found.channels.map((channel) => [channel.name, channel]));
  for (const [name, { channel, figure, paint }] of drawn) {
    const match = shared.get(name);
    paint(match && channel.deviation ? laidOver(found.path, match, channel) : null);
    figure.classList.toggle("alike", Boolean(match?.same_way));
    figure.classList.toggle("against", Boolean(match?.against));
  }
  plots.dataset.chosen = like;
}

function clear() {
  delete plots.dataset.chosen;
  for (const { figure, paint } of drawn.values()) {
    paint(null);
    figure.classList.remove("alike", "against");
  }
}

function say(same) {
  const button = hits[chosen]?.querySelector(`.verdict button[value="${same}"]`);
  if (button) button.form.requestSubmit(button);
}

const step = (by) => () => { if (hits.length) choose(moved(chosen, by, hits.length)); };
const KEYS = {
  j: step(1),
  k: step(-1),
  ArrowDown: step(1),
  ArrowUp: step(-1),
  y: () => say(true),
  n: () => say(false),
  Escape: () => (view ? look(null) : choose(-1)),
  Enter: () => { if (chosen >= 0) hits[chosen].querySelector("a").click(); },
  u: () => document.querySelector("#revert button")?.click(),
  "+": () => look(moveView(view, { factor: 0.5 }, signals.steps)),
  "-": () => look(moveView(view, { factor: 2 }, signals.steps)),
  "[": () => look(moveView(view, { shift: -0.5 }, signals.steps)),
  "]": () => look(moveView(view, { shift: 0.5 }, signals.steps)),
};

document.addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, textarea, select, button, a");
  if (busy || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
hits.forEach((hit, place) => {
  hit.addEventListener("click", () => choose(place));
  hit.addEventListener("focus", () => choose(place));
});
plots.classList.toggle("many", signals.channels.length > MANY);
signals.channels.forEach(draw);
whole.addEventListener("click", () => look(null));
const asked = readLink(location.hash);
const linked = hits.findIndex((hit) => hit.dataset.case === asked.like);
if (linked >= 0) choose(linked);
else if (asked.like) layOver(asked.like);
else if (hits.length) choose(0, { scroll: false, noted: false });
if (asked.view) look(asked.view);
