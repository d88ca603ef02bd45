/**
 * Lines on a canvas: several series, a band, a shaded stretch, ticks, and the reading under the pointer.
 *
 * A plot is { lines, range, band, shade, ticks, along, view, steps, read, select }; all but `lines` may be missing.
 *   lines  { values, paint, width, dash, range, main }, drawn one over the other. `values` are evenly spaced numbers;
 *          a line with `points`, [[share, value], ...], says itself where along the window each lies. A null is a gap.
 *          `paint` is a colour of the style sheet; a line with its own `range` fills the height with that; the `main`
 *          one (the first by default) is read under the pointer.
 *   range  [low, high] that fills the height; by default what holds all lines, and the band where it does not flatten
 *          them.
 *   band   [low, high] across the whole width.
 *   shade  { from, to, depth, paint }: a stretch of the window in shares of it, `depth` pixels high (all by default).
 *   ticks  how many values at most are written beside the plot.
 *   along  [[share, text], ...] written below the plot.
 *   view   [from, to] shares of the window that fill the width; all of it by default.
 *   steps  of the window, which may be more than there are points.
 *   read   is given { value, step } of the main line under the pointer, and null when the pointer leaves.
 *   select is given [from, to] shares of the window that the pointer was drawn across, and null at a double click.
 *
 * Series of more steps than points come thinned to the least and the greatest value of each stretch
 * (`readbench.engine.preparation`); joined by lines they draw the envelope, spikes and all.
 */

const EDGE = 4;
const TEXT = 10;
const BELOW = TEXT + 4;
const LEAST_DRAG = 6;
const WHOLE = [0, 1];
const shown = new WeakMap();
let sizes = null;

/** The range of some numbers. */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** The range that holds several ranges. */
export const union = (ranges) => extent(ranges.flat());

/** A range widened by as much of a band as does not flatten what is drawn: at most its own height each way. */
export function beside([low, high], [bottom, top]) {
  const [rim, room] = [(top - bottom) / 20, Math.max(high - low, (top - bottom) / 4)];
  return [
    Math.min(low, Math.max(bottom - rim, low - room)),
    Math.max(high, Math.min(top + rim, high + room)),
  ];
}

/** From a value in [low, high] to a place between `start` and `end`; a range of no height lies in the middle. */
export const scale = ([low, high], start, end) => (value) =>
  high > low ? start + ((value - low) / (high - low)) * (end - start) : (start + end) / 2;

/** At most `most` round values within a range. */
export function ticks([low, high], most) {
  if (!(high > low) || most < 1) return [];
  const least = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10, 20]) {
    const step = factor * power;
    const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
    if (last - first < most) {
      return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
    }
  }
  return [];
}

/** Places and values of a line: [[share of the window, value], ...]. */
export function pointsOf({ values, points }) {
  if (points) return points;
  const last = Math.max(1, values.length - 1);
  return Array.from(values, (value, i) => [i / last, value]);
}

/** The part of a line that a view shows, cut off at its edges: [[[share, value], ...], ...], a list for each piece. */
export function pieces(points, [from, to]) {
  const found = [[]];
  const cut = ([a, low], [b, high], at) => [at, low + ((high - low) * (at - a)) / (b - a)];
  points.forEach((own, i) => {
    const before = i ? points[i - 1] : null;
    if (own[1] === null) {
      if (found.at(-1).length) found.push([]);
      return;
    }
    const joined = before !== null && before[1] !== null;
    if (joined && before[0] < from && own[0] > from) found.at(-1).push(cut(before, own, from));
    if (own[0] >= from && own[0] <= to) found.at(-1).push(own);
    else if (joined && before[0] < to && own[0] > to) found.at(-1).push(cut(before, own, to));
  });
  return found.filter((piece) => piece.length);
}

/** The point of a line nearest to a share of the window: { share, value, step }, or null where there is none. */
export function nearest(line, share, steps) {
  const points = pointsOf(line).filter(([, value]) => value !== null);
  if (!points.length) return null;
  const [at, value] = points.reduce((best, own) => (Math.abs(own[0] - share) < Math.abs(best[0] - share) ? own : best));
  return { share: at, value, step: Math.round(at * ((steps ?? pointsOf(line).length) - 1)) };
}

/** The range that a plot fills its height with. */
export function rangeOf({ lines, range, band, view = WHOLE }) {
  if (range) return range;
  const seen = lines.map((line) => line.range ?? extent(pieces(pointsOf(line), view).flat().map(([, value]) => value)));
  const some = seen.filter(([low, high]) => low <= high);
  const own = some.length ? union(some) : (band ?? WHOLE);
  return band ? beside(own, band) : own;
}

/** Show a plot on a canvas: at once where it stands on the page, and whenever its size or the theme changes. */
export function show(canvas, plot) {
  const known = shown.get(canvas);
  shown.set(canvas, { ...known, plot });
  if (!known) {
    sizes ??= watch();
    sizes.observe(canvas);
    if (plot.read) follow(canvas);
    if (plot.select) brush(canvas);
  }
  paint(canvas);
}

/** Draw the plots on a part of the page anew. */
export function repaint(root) {
  for (const canvas of root.querySelectorAll("canvas")) paint(canvas);
}

function watch() {
  addEventListener("theme", () => repaint(document));
  return new ResizeObserver((entries) => {
    for (const { target } of entries) if (!fits(target)) paint(target);
  });
}

function follow(canvas) {
  const at = (pointer) => {
    shown.get(canvas).pointer = pointer;
    paint(canvas);
  };
  canvas.addEventListener("pointermove", (event) => at(event.offsetX));
  canvas.addEventListener("pointerleave", () => at(null));
}

/** Let the pointer be drawn across a plot to choose a part of the window. */
function brush(canvas) {
  const own = () => shown.get(canvas);
  const at = (event) => own().across?.(event.offsetX);
  const end = (event) => {
    const { from, plot } = own();
    own().from = null;
    own().brushed = null;
    if (from === null || from === undefined) return;
    const parts = [from, event.offsetX].sort((a, b) => a - b);
    if (event.type === "pointerup" && parts[1] - parts[0] >= LEAST_DRAG) plot.select(parts.map((x) => own().across(x)));
    else paint(canvas);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    own().from = event.offsetX;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const { from } = own();
    if (from === null || from === undefined) return;
    own().brushed = [own().across(from), at(event)].sort((a, b) => a - b);
    paint(canvas);
  });
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("dblclick", () => own().plot.select(null));
}

const pixels = (canvas) => {
  const ratio = window.devicePixelRatio || 1;
  return [canvas.clientWidth, canvas.clientHeight].map((length) => Math.round(length * ratio));
};

const fits = (canvas) => {
  const [width, height] = pixels(canvas);
  return shown.get(canvas)?.painted && canvas.width === width && canvas.height === height;
};

function paint(canvas) {
  const own = shown.get(canvas);
  if (!own || !canvas.clientWidth || !canvas.clientHeight) return;
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = pixels(canvas);
  own.painted = true;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.lineJoin = "round";
  const plot = { ...own.plot, brushed: own.brushed };
  const found = draw(pen, plot, canvas.clientWidth, canvas.clientHeight, colour, own.pointer ?? null, (across) => {
    own.across = across;
  });
  own.plot.read?.(found);
}

/**
 * Draw a plot with a pen of a canvas, and give back what is under the pointer (in pixels from the left), or null.
 *
 * `tell` is given what turns pixels from the left into shares of the window.
 */
export function draw(pen, plot, width, height, colourOf, pointer = null, tell = null) {
  const view = plot.view ?? WHOLE;
  const range = rangeOf(plot);
  const rim = plot.ticks ? TEXT / 2 + 1 : EDGE;
  const floor = height - (plot.along ? BELOW : 0);
  const up = (own) => scale(own ?? range, floor - rim, rim);
  const y = up();
  const left = plot.ticks ? labels(pen, ticks(range, plot.ticks), y, width, colourOf) : EDGE;
  const x = scale(view, left, width - EDGE);
  const across = (place) => Math.min(view[1], Math.max(view[0], scale([left, width - EDGE], ...view)(place)));
  tell?.(across);
  const within = (part) => ({ ...part, from: Math.max(part.from, view[0]), to: Math.min(part.to, view[1]) });
  if (plot.shade && within(plot.shade).from < within(plot.shade).to) {
    shade(pen, within(plot.shade), x, floor, colourOf);
  }
  if (plot.band) {
    const [top, bottom] = [y(plot.band[1]), y(plot.band[0])].map((place) => Math.min(floor, Math.max(0, place)));
    pen.fillStyle = colourOf("band");
    pen.fillRect(left, top, width - EDGE - left, Math.max(1, bottom - top));
  }
  if (plot.along) below(pen, plot.along, x, height, colourOf, [left, width]);
  for (const line of plot.lines) trace(pen, line, x, up(line.range), colourOf, view);
  if (plot.brushed) shade(pen, { from: plot.brushed[0], to: plot.brushed[1], paint: "brush" }, x, floor, colourOf);
  if (pointer === null) return null;
  const main = plot.lines.find((line) => line.main) ?? plot.lines[0];
  const seen = { points: pieces(pointsOf(main), view).flat() };
  const found = nearest(seen, across(pointer), plot.steps ?? pointsOf(main).length);
  if (found) mark(pen, x(found.share), up(main.range)(found.value), floor, colourOf(main.paint), colourOf("soft"));
  return found;
}

/** Times below a plot, each with a short line; those that would not fit within it are left out. */
function below(pen, along, x, height, colourOf, [left, right]) {
  pen.font = `${TEXT}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  let free = left - EDGE;
  for (const [share, text] of along) {
    const half = pen.measureText(text).width / 2;
    if (x(share) - half < free || x(share) + half > right) continue;
    free = x(share) + half + 8;
    pen.fillStyle = colourOf("line");
    pen.fillRect(Math.round(x(share)), height - BELOW - 3, 1, 4);
    pen.fillStyle = colourOf("soft");
    pen.fillText(text, x(share), height - 2);
  }
}

/** Round values with a thin line each; gives back where the plot itself begins. */
function labels(pen, values, y, width, colourOf) {
  pen.font = `${TEXT}px system-ui, sans-serif`;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const texts = values.map(String);
  const left = EDGE + Math.max(0, ...texts.map((text) => pen.measureText(text).width)) + 5;
  values.forEach((value, i) => {
    const place = Math.round(y(value)) + 0.5;
    pen.fillStyle = colourOf("line");
    pen.fillRect(left, place - 0.5, width - EDGE - left, 1);
    pen.fillStyle = colourOf("soft");
    pen.fillText(texts[i], left - 5, place);
  });
  return left;
}

function shade(pen, { from, to, depth = Infinity, paint: name }, x, height, colourOf) {
  const deep = Math.min(depth, height);
  pen.fillStyle = colourOf(name);
  pen.fillRect(x(from), height - deep, x(to) - x(from), deep);
}

function trace(pen, line, x, y, colourOf, view) {
  pen.strokeStyle = colourOf(line.paint);
  pen.lineWidth = line.width ?? 1.4;
  pen.setLineDash(line.dash ?? []);
  pen.beginPath();
  for (const piece of pieces(pointsOf(line), view)) {
    piece.forEach(([share, value], i) => {
      if (i) pen.lineTo(x(share), y(value));
      else pen.moveTo(x(share), y(value));
    });
  }
  pen.stroke();
}

function mark(pen, x, y, height, dot, rule) {
  pen.fillStyle = rule;
  pen.fillRect(x - 0.5, 0, 1, height);
  pen.fillStyle = dot;
  pen.beginPath();
  pen.arc(x, y, 3, 0, 2 * Math.PI);
  pen.fill();
}

/** A colour of the style sheet in the theme of the moment: `light-dark()` is resolved in elements only. */
function colour(name) {
  let probe = document.getElementById("probe");
  if (!probe) {
    probe = document.createElement("i");
    probe.id = "probe";
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
