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

/** The name of a dataset in tables, with the marks of what is simulated or partial. */
export const named = ({ title, marks }) => (marks ? `${title.replace(" (simulated)", "")} ${marks}` : title);

/** How many datasets, and how many of them are of which origin; origins are [name, mark]. */
export function kinds(datasets, origins) {
  const found = origins
    .map(([origin, mark]) => [datasets.filter((dataset) => dataset.origin === origin).length, origin + mark])
    .filter(([number]) => number > 0);
  const words = found.length === 1 ? found[0][1] : found.map((pair) => pair.join(" ")).join(", ");
  return `${count(datasets.length, "dataset")} (${words})`;
}
