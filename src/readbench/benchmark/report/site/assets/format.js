/** Numbers as text. */

export const MISSING = "–";

/** A score with three digits, without the leading zero's company: 0.873. */
export const score = (value) => (value === null || value === undefined ? MISSING : value.toFixed(3));

export const signed = (value) => (value === null ? MISSING : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`);

/** Seconds in a unit that reads well. */
export function duration(value) {
  if (value === null || value === undefined) return MISSING;
  if (value < 1) return `${(value * 1000).toPrecision(2) * 1} ms`;
  return value < 120 ? `${value.toPrecision(2) * 1} s` : `${(value / 60).toPrecision(2) * 1} min`;
}

export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** The name of a dataset in tables: simulated ones are marked by a dagger, partial ones by a double one. */
export const named = ({ title, simulated, partial }) =>
  (simulated ? `${title.replace(" (simulated)", "")} †` : title) + (partial ? " ‡" : "");
