// The page of a case: small multiples, the chosen case laid over them, and the keyboard.
import { repaintAll, show } from "./plot.js";

const plots = document.getElementById("plots");
const signals = JSON.parse(document.getElementById("signals").textContent);
const hits = [...document.querySelectorAll(".hit")];
const otherName = document.getElementById("other-name");
const canvases = new Map();
const known = new Map();
const MANY = 16;
let chosen = -1;

function draw(channel) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const name = document.createElement("span");
  const reading = document.createElement("span");
  const canvas = document.createElement("canvas");
  name.textContent = channel.name;
  reading.textContent = far(channel);
  reading.className = "soft number";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${channel.name}: ${far(channel)}`);
  caption.append(name, reading);
  figure.append(caption, canvas);
  plots.append(figure);
  canvases.set(channel.name, { canvas, channel, figure, reading });
  canvas.addEventListener("mousemove", (event) => {
    const share = Math.min(1, Math.max(0, event.offsetX / canvas.clientWidth));
    const last = channel.values.length - 1;
    reading.textContent = `${channel.values[Math.round(share * last)]} at ${Math.round(share * (signals.steps - 1))}`;
  });
  canvas.addEventListener("mouseleave", () => { reading.textContent = far(channel); });
  show(canvas, { ...channel, span: signals.span });
}

function far(channel) {
  return channel.deviation ? `${channel.departure.toFixed(1)} sd` : "";
}

async function evidence(like) {
  if (known.has(like)) return known.get(like);
  const own = plots.dataset.case;
  const window = {
    channels: signals.channels.map((channel) => channel.name),
    values: signals.channels.map((channel) => channel.asked),
    asset: plots.dataset.asset,
  };
  const answer = await fetch("/api/v1/explain", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(own ? { case: own, like } : { window, like }),
  });
  if (!answer.ok) throw new Error((await answer.json()).detail);
  const found = await answer.json();
  known.set(like, found);
  return found;
}

// The case's departures on the steps of the window, in the window's own units.
function laidOver(evidence, channel, own) {
  const last = Math.max(1, channel.window_series.length - 1);
  const sums = new Map();
  for (const [i, j] of evidence.path) {
    const [sum, count] = sums.get(i) ?? [0, 0];
    sums.set(i, [sum + channel.case_series[j], count + 1]);
  }
  return [...sums].map(([i, [sum, count]]) => [i / last, own.mean + (own.deviation * sum) / count]);
}

async function choose(place) {
  hits.forEach((hit, i) => hit.setAttribute("aria-selected", i === place));
  chosen = place;
  otherName.hidden = place < 0;
  if (place < 0) return clear();
  const hit = hits[place];
  hit.scrollIntoView({ block: "nearest" });
  otherName.textContent = hit.dataset.case;
  const found = await evidence(hit.dataset.case);
  if (chosen !== place) return;
  const shared = new Map(found.channels.map((channel) => [channel.name, channel]));
  for (const [name, { canvas, channel, figure }] of canvases) {
    const own = shared.get(name);
    const other = own && channel.deviation ? laidOver(found, own, channel) : null;
    show(canvas, { ...channel, span: signals.span, other });
    figure.classList.toggle("alike", Boolean(own?.same_way));
  }
  plots.dataset.chosen = hit.dataset.case;
}

function clear() {
  delete plots.dataset.chosen;
  for (const { canvas, channel, figure } of canvases.values()) {
    show(canvas, { ...channel, span: signals.span });
    figure.classList.remove("alike");
  }
}

function say(same) {
  const button = hits[chosen]?.querySelector(`.verdict button[value="${same}"]`);
  if (button) button.form.requestSubmit(button);
}

const KEYS = {
  j: () => choose(Math.min(hits.length - 1, chosen + 1)),
  k: () => choose(Math.max(0, chosen - 1)),
  ArrowDown: () => choose(Math.min(hits.length - 1, chosen + 1)),
  ArrowUp: () => choose(Math.max(0, chosen - 1)),
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
window.addEventListener("theme", () => repaintAll(plots));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaintAll(plots));
plots.classList.toggle("many", signals.channels.length > MANY);
signals.channels.forEach(draw);
if (hits.length) choose(0);
