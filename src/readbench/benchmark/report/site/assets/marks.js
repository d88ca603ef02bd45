/** Small drawings inside tables. The numbers stand beside them, so screen readers pass over these. */

import { h, svg } from "#web/dom.js";

const [WIDTH, HEIGHT, EDGE] = [130, 20, 6];

/** The colour of a family; black follows the theme. */
export const tint = (method) => (method.colour === "#000000" ? "var(--ink)" : method.colour);

/** A dot of the family's colour before the name of a method. */
export const dot = (method) => h("span", { class: "dot", style: { background: tint(method) }, "aria-hidden": "true" });

/** The text of a composed method, which may break before its joints. */
export const breakable = (title) =>
  title.split(/(?=[|+])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

/** A mean with its interval on an axis that all rows share; `best` is marked by a line. */
export function whisker({ mean, half }, axis, best, paint) {
  if (mean === null) return null;
  const x = (value) => EDGE + ((value - axis.low) / (axis.high - axis.low || 1)) * (WIDTH - 2 * EDGE);
  const middle = HEIGHT / 2;
  const line = (x1, x2, y1, y2, name) => svg("line", { x1, x2, y1, y2, class: name });
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, class: "whisker", "aria-hidden": "true" },
    best !== null && line(x(best), x(best), 0, HEIGHT, "best"),
    half !== null && [
      line(x(mean - half), x(mean + half), middle, middle, "bar"),
      line(x(mean - half), x(mean - half), middle - 4, middle + 4, "bar"),
      line(x(mean + half), x(mean + half), middle - 4, middle + 4, "bar"),
    ],
    svg("circle", { cx: x(mean), cy: middle, r: 4.5, fill: paint, class: "mean" }),
  );
}

/** The axis that holds all estimates. */
export function axisOf(estimates) {
  const known = estimates.filter(({ mean }) => mean !== null);
  const low = Math.min(...known.map(({ mean, half }) => mean - (half ?? 0)));
  const high = Math.max(...known.map(({ mean, half }) => mean + (half ?? 0)));
  return known.length ? { low, high } : { low: 0, high: 1 };
}

/** All methods as ticks on one axis, one of them as a dot. */
export function strip(values, own, paint) {
  const x = (value) => EDGE + value * (WIDTH - 2 * EDGE);
  const ticks = values.filter((value) => value !== null);
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, class: "whisker", "aria-hidden": "true" },
    svg("line", { x1: EDGE, x2: WIDTH - EDGE, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "axis" }),
    ticks.map((value) => svg("line", { x1: x(value), x2: x(value), y1: 4, y2: HEIGHT - 4, class: "tick" })),
    own !== null && svg("circle", { cx: x(own), cy: HEIGHT / 2, r: 4.5, fill: paint, class: "mean" }),
  );
}
