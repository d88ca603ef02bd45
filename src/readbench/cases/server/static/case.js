/** The page of a case: small multiples, the chosen case laid over them, and the keyboard. */

import { h } from "#web/dom.js";
import { reading } from "#web/format.js";
import { show } from "#web/plot.js";
import { far, laidOver, moved, plotOf, question } from "#service/signals.js";

const DIGITS = 6;
const MANY = 16;
const plots = document.getElementById("plots");
const signals = JSON.parse(document.getElementById("signals").textContent);
const hits = [...document.querySelectorAll(".hit")];
const otherName = document.getElementById("other-name");
const drawn = new Map();
const known = new Map();
let chosen = -1;

function draw(channel) {
  const beside = h("span", { class: "soft number" }, far(channel));
  const canvas = h("canvas", { role: "img", "aria-label": `${channel.name}: ${far(channel)}` });
  const figure = h("figure", {}, h("figcaption", {}, h("span", {}, channel.name), beside), canvas);
  const read = (found) => beside.replaceChildren(found ? reading(found, DIGITS) : far(channel));
  const paint = (other) => show(canvas, plotOf(channel, signals, other, read));
  drawn.set(channel.name, { channel, figure, paint });
  plots.append(figure);
  paint(null);
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

async function choose(place) {
  hits.forEach((hit, i) => hit.setAttribute("aria-current", i === place));
  chosen = place;
  otherName.hidden = place < 0;
  if (place < 0) {
    clear();
    return;
  }
  const hit = hits[place];
  hit.closest("details")?.setAttribute("open", "");
  hit.scrollIntoView({ block: "nearest" });
  otherName.textContent = hit.dataset.case;
  const found = await evidence(hit.dataset.case);
  if (chosen !== place) return;
  const shared = new Map(found.channels.map((channel) => [channel.name, channel]));
  for (const [name, { channel, figure, paint }] of drawn) {
    const own = shared.get(name);
    paint(own && channel.deviation ? laidOver(found.path, own, channel) : null);
    figure.classList.toggle("alike", Boolean(own?.same_way));
  }
  plots.dataset.chosen = hit.dataset.case;
}

function clear() {
  delete plots.dataset.chosen;
  for (const { figure, paint } of drawn.values()) {
    paint(null);
    figure.classList.remove("alike");
  }
}

function say(same) {
  const button = hits[chosen]?.querySelector(`.verdict button[value="${same}"]`);
  if (button) button.form.requestSubmit(button);
}

const step = (by) => () => choose(moved(chosen, by, hits.length));
const KEYS = {
  j: step(1),
  k: step(-1),
  ArrowDown: step(1),
  ArrowUp: step(-1),
  y: () => say(true),
  n: () => say(false),
  Escape: () => choose(-1),
  Enter: () => { if (chosen >= 0) hits[chosen].querySelector("a").click(); },
};

document.addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, textarea, select, button, a");
  if (busy || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key] || !hits.length) return;
  event.preventDefault();
  KEYS[event.key]();
});
hits.forEach((hit, place) => {
  hit.addEventListener("click", () => choose(place));
  hit.addEventListener("focus", () => choose(place));
});
plots.classList.toggle("many", signals.channels.length > MANY);
signals.channels.forEach(draw);
if (hits.length) choose(0);
