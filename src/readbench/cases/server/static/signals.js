/** What the page of a case draws, without the page: channels, the chosen case over them, and where the choice goes. */

import { marks } from "#service/clock.js";

const MARKS = 4;

/** A channel and its unit, where that is known. */
export const titled = ({ name, unit }) => (unit ? `${name} [${unit}]` : name);

/** How far a channel is from normal, in words; nothing where normal is not known. */
export const far = ({ deviation, departure }) => (deviation ? `${departure.toFixed(1)} sd` : "");

/** The points of a part of a window that was drawn closer: [[share, value], ...]. */
export function closerPoints({ first, last, values }, name, steps) {
  const readings = values[name] ?? [];
  const width = (last - 1 - first) / Math.max(1, readings.length - 1);
  return readings.map((value, i) => [(first + i * width) / Math.max(1, steps - 1), value]);
}

/**
 * A channel as a plot; `other` are the points of the chosen case, or null; `view` is the part that is shown, null for
 * all; `closer` are its points, where they came already.
 */
export function plotOf({ values, mean, deviation }, { span, steps, clock }, other, { read, select, view, closer } = {}) {
  const shown = { ...(closer ? { points: closer } : { values }), paint: "blue", width: 1.5, main: true };
  const last = Math.max(1, steps - 1);
  const along = marks((view ?? [0, 1]).map((share) => share * last), clock, MARKS);
  return {
    view: view ?? undefined,
    along: along.map(([step, text]) => [step / last, text]),
    select,
    lines: other ? [{ points: other, paint: "orange", width: 1.6 }, shown] : [shown],
    band: deviation ? [mean - 2 * deviation, mean + 2 * deviation] : null,
    shade: span ? { from: span[0], to: span[1], paint: "span" } : null,
    ticks: 3,
    steps,
    read,
  };
}

/**
 * The case's departures on the steps of the window, in the window's own units: [[share, value], ...].
 *
 * Where the alignment lays several steps of the case on one step of the window, their mean is shown.
 */
export function laidOver(path, { window_series: window, case_series: series }, { mean, deviation }) {
  const last = Math.max(1, window.length - 1);
  const sums = new Map();
  for (const [i, j] of path) {
    const [sum, count] = sums.get(i) ?? [0, 0];
    sums.set(i, [sum + series[j], count + 1]);
  }
  return [...sums].map(([i, [sum, count]]) => [i / last, mean + (deviation * sum) / count]);
}

/** What asks why a case is like this window: by its name where it is kept, else by its readings. */
export function question(name, asset, channels, like) {
  if (name) return { case: name, like };
  const window = { channels: channels.map(({ name: id }) => id), values: channels.map(({ asked }) => asked), asset };
  if (channels.some(({ asked_before: before }) => before?.length)) window.before = channels.map((channel) => channel.asked_before);
  return { window, like };
}

/** The place in a list of `count` after a step; it stays within the list. */
export const moved = (place, by, count) => Math.min(count - 1, Math.max(0, place + by));
