/** Where in a recording it began, without the page: steps, places, keys and words. */

import { timeOf } from "#service/clock.js";

/** Shares of a recording that a key moves the line by. */
const FINE = 0.005;
const COARSE = 0.05;

const within = (step, steps) => Math.min(steps - 1, Math.max(0, step));

/** The step at a share of the recording; 0 is no onset, and at least one step is left for the window. */
export const stepAt = (share, steps) => within(Math.round(share * (steps - 1)), steps);

/** The share of the recording at which a step lies. */
export const shareOf = (step, steps) => step / Math.max(1, steps - 1);

/** Where the line is put first: where a long recording begins to depart from normal; else nothing is marked. */
export const proposed = ({ long, onset, signals: { steps } }) => (long ? stepAt(onset ?? 0, steps) : 0);

/** The step after a key; null for a key that does not move the line. With shift, arrows move it step by step. */
export function keyed({ key, shiftKey }, step, steps) {
  const by = (share) => Math.max(1, Math.round(share * steps));
  const fine = shiftKey ? 1 : by(FINE);
  const moves = {
    ArrowLeft: -fine,
    ArrowDown: -fine,
    ArrowRight: fine,
    ArrowUp: fine,
    PageDown: -by(COARSE),
    PageUp: by(COARSE),
    Home: -steps,
    End: steps,
  };
  return Object.hasOwn(moves, key) ? within(step + moves[key], steps) : null;
}

/** What the line says. */
export function words(step, recording) {
  const { steps, clock } = recording.signals;
  if (!step) return `No onset marked: all ${steps} steps are the window.`;
  const time = timeOf(step, clock);
  return `Began at step ${step}${time ? `, ${time}` : ""}: ${step} steps before, ${steps - step} in the window.`;
}
