/**
 * Lines on a canvas: several series, a band, a shaded stretch, ticks, and the reading under the pointer.
 *
 * A plot is { lines, range, band, shade, ticks, steps, read }; all but `lines` may be missing.
 *   lines  { values, paint, width, dash, range, main }, drawn one over the other. `values` are evenly spaced numbers;
 *          a line with `points`, [[share, value], ...], says itself where along the window each lies. `paint` is a
 *          colour of the style sheet; a line with its own `range` fills the height with that; the `main` one (the
 *          first by default) is read under the pointer.
 *   range  [low, high] that fills the height; by default what holds all lines, and the band where it does not flatten
 *          them.
 *   band   [low, high] across the whole width.
 *   shade  { from, to, depth, paint }: a stretch of the window in shares of it, `depth` pixels high (all by default).
 *   ticks  how many values at most are written beside the plot.
 *   steps  of the window, which may be more than there are points.
 *   read   is given { value, step } of the main line under the pointer, and null when the pointer leaves.
 *
 * Series of more steps than points come thinned to the least and the greatest value of each stretch
 * (`readbench.engine.preparation`); joined by lines they draw the envelope, spikes and all.
 */

const EDGE = 4;
const TEXT = 10;
const shown = new WeakMap();
let sizes = null;

/** The range of some numbers. */
export function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
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

/** The point of a line nearest to a share of the window: { share, value, step }, or null where there is none. */
export function nearest(line, share, steps) {
  const points = pointsOf(line);
  if (!points.length) return null;
  const [at, value] = points.reduce((best, own) => (Math.abs(own[0] - share) < Math.abs(best[0] - share) ? own : best));
  return { share: at, value, step: Math.round(at * ((steps ?? points.length) - 1)) };
}

/** The range that a plot fills its height with. */
export function rangeOf({ lines, range, band }) {
  if (range) return range;
  const own = union(lines.map((line) => line.range ?? extent(pointsOf(line).map(([, value]) => value))));
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
  const found = draw(pen, own.plot, canvas.clientWidth, canvas.clientHeight, colour, own.pointer ?? null);
  own.plot.read?.(found);
}

/** Draw a plot with a pen of a canvas, and give back what is under the pointer (in pixels from the left), or null. */
export function draw(pen, plot, width, height, colourOf, pointer = null) {
  const range = rangeOf(plot);
  const rim = plot.ticks ? TEXT / 2 + 1 : EDGE;
  const up = (own) => scale(own ?? range, height - rim, rim);
  const y = up();
  const left = plot.ticks ? labels(pen, ticks(range, plot.ticks), y, width, colourOf) : EDGE;
  const x = scale([0, 1], left, width - EDGE);
  if (plot.shade) shade(pen, plot.shade, x, height, colourOf);
  if (plot.band) {
    const [top, bottom] = [y(plot.band[1]), y(plot.band[0])].map((place) => Math.min(height, Math.max(0, place)));
    pen.fillStyle = colourOf("band");
    pen.fillRect(x(0), top, x(1) - x(0), Math.max(1, bottom - top));
  }
  for (const line of plot.lines) trace(pen, line, x, up(line.range), colourOf);
  if (pointer === null) return null;
  const main = plot.lines.find((line) => line.main) ?? plot.lines[0];
  const found = nearest(main, Math.min(1, Math.max(0, (pointer - left) / (width - EDGE - left))), plot.steps);
  if (found) mark(pen, x(found.share), up(main.range)(found.value), height, colourOf(main.paint), colourOf("soft"));
  return found;
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

function trace(pen, line, x, y, colourOf) {
  pen.strokeStyle = colourOf(line.paint);
  pen.lineWidth = line.width ?? 1.4;
  pen.setLineDash(line.dash ?? []);
  pen.beginPath();
  pointsOf(line).forEach(([share, value], i) => {
    if (i) pen.lineTo(x(share), y(value));
    else pen.moveTo(x(share), y(value));
  });
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
