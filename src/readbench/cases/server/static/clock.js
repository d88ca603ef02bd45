/** When the steps of a window were, in words and as marks of an axis. A clock is { start, rate, zone, shift }. */

import { ticks } from "#web/plot.js";

const DATES_S = 1e8;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Seconds between the marks of an axis of dates. */
const ROUND = [
  1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR,
  6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY,
];

const dated = ({ start, rate }) => start !== null && rate !== null && start >= DATES_S;
/** Date and time of day by the clock of the recording. */
const local = (seconds, { shift }) => new Date(1000 * (seconds + shift)).toISOString().slice(0, 23).replace("T", " ");

/** The time of a step: a date, or seconds where the recording counts from its beginning; "" where it has no times. */
export function timeOf(step, clock) {
  const { start, rate, zone } = clock;
  if (start === null || rate === null) return "";
  const time = start + step / rate;
  if (!dated(clock)) return `${Number(time.toPrecision(6))} s`;
  return `${local(time, clock).slice(0, rate > 1 ? 23 : 19)}${zone ? ` ${zone}` : ""}`;
}

/** A step as the page names it: its time of day where that is known, else its time, else its number. */
export function stepWords(step, clock) {
  if (dated(clock)) return local(clock.start + step / clock.rate, clock).slice(11, clock.rate > 1 ? 23 : 19);
  return timeOf(step, clock) || `step ${step}`;
}

/** At most `most` marks along the steps `first` to `last`: [[step, text], ...]. */
export function marks([first, last], clock, most) {
  const { start, rate, shift } = clock;
  if (start === null || rate === null) return ticks([first, last], most).map((step) => [step, String(step)]);
  const [from, to] = [start + first / rate, start + last / rate];
  if (!dated(clock)) return ticks([from, to], most).map((time) => [(time - start) * rate, `${time} s`]);
  const gap = ROUND.find((step) => (to - from) / step <= most);
  if (!gap || to - from < most) {
    return ticks([0, to - from], most).map((late) => [first + late * rate, stepWords(first + late * rate, clock)]);
  }
  const found = [];
  for (let time = Math.ceil((from + shift) / gap) * gap; time <= to + shift; time += gap) {
    const text = local(time - shift, clock);
    found.push([(time - shift - start) * rate, gap >= DAY ? text.slice(0, 10) : text.slice(11, gap < MINUTE ? 19 : 16)]);
  }
  return found;
}

/** A view of a window after a zoom by a factor around its middle, or a shift by a part of its width; null is all. */
export function moveView(view, { factor = 1, shift = 0 }, steps) {
  const [from, to] = view ?? [0, 1];
  const least = Math.min(1, 8 / Math.max(1, steps - 1));
  const width = Math.min(1, Math.max(least, (to - from) * factor));
  const middle = (from + to) / 2 + shift * (to - from);
  const start = Math.min(1 - width, Math.max(0, middle - width / 2));
  return width >= 1 ? null : [start, start + width];
}
