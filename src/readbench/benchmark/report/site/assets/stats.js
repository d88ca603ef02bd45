/** Means over chosen datasets and how sure they are. A choice is { datasets, level, budget }, all positions. */

import { data } from "#site/data.js";

const Z = 1.959964;
const sum = (values) => values.reduce((total, value) => total + value, 0);
const known = (values) => values.every((value) => value !== null && value !== undefined && !Number.isNaN(value));

/** Mean of a metric over the datasets, and half the width of its 95 % interval; null where a cell is missing. */
export function estimate(metric, method, { datasets, level, budget }) {
  const means = datasets.map((d) => data.values[metric][d][level][budget][method]);
  const errors = datasets.map((d) => data.errors[metric]?.[d][level][budget][method]);
  return {
    mean: known(means) ? sum(means) / means.length : null,
    half: known(errors) ? (Z * Math.sqrt(sum(errors.map((error) => error ** 2)))) / errors.length : null,
  };
}

/** Headline metric of one method minus another's on the same queries, with half its interval; null where unknown. */
export function difference(one, other, choice, joint) {
  const [a, b] = [one, other].map((method) => estimate(data.headline, method, choice).mean);
  if (!joint || a === null || b === null) return null;
  const [levels, budgets, methods] = [data.levels.length, data.budgets.length, data.methods.length];
  const variances = choice.datasets.map((d) => {
    const start = ((d * levels + choice.level) * budgets + choice.budget) * methods * methods;
    const at = (i, j) => joint[start + i * methods + j];
    return at(one, one) + at(other, other) - 2 * at(one, other);
  });
  if (!known(variances)) return null;
  const half = (Z * Math.sqrt(Math.max(0, sum(variances)))) / variances.length;
  return { mean: a - b, half, told: Math.abs(a - b) > half };
}

const RESAMPLES = 10000;
const FEWEST = 3;

/**
 * Headline metric of one method minus another's, mean over the datasets, with the 95 % percentile interval when datasets
 * are drawn anew (`bootstrap_datasets` of readbench.benchmark.metrics); null with few datasets or a missing cell.
 */
export function overDatasets(one, other, choice) {
  const means = [one, other].map((m) =>
    choice.datasets.map((d) => data.values[data.headline][d][choice.level][choice.budget][m])
  );
  if (choice.datasets.length < FEWEST || !means.every(known)) return null;
  const differences = means[0].map((value, d) => value - means[1][d]);
  const draw = generator();
  const drawn = Float64Array.from(
    { length: RESAMPLES },
    () => sum(differences.map(() => differences[Math.floor(draw() * differences.length)])) / differences.length,
  ).sort();
  const [low, high] = [0.025, 0.975].map((share) => drawn[Math.round(share * (RESAMPLES - 1))]);
  return { mean: sum(differences) / differences.length, low, high, told: low > 0 || high < 0 };
}

/** Numbers from 0 to 1, the same each time (mulberry32), so that a page shows the same interval whenever it is read. */
function generator() {
  let state = 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The real ones of datasets (positions) of both kinds; none where all are real, or none is. */
export function real(datasets) {
  const found = datasets.filter((d) => data.datasets[d].origin === "real");
  return found.length < datasets.length ? found : [];
}

/** Wall time of a cell in seconds, all stages, mean over the datasets. */
export function seconds(method, datasets) {
  const totals = datasets.map((d) => {
    const stages = data.seconds.map((stage) => stage[d][method]);
    return known(stages) ? sum(stages) : null;
  });
  return known(totals) ? sum(totals) / totals.length : null;
}

/** Methods from best to worst by a metric; those without a value last. */
export function ranked(metric, choice) {
  const sign = smallerIsBetter(metric) ? -1 : 1;
  const worth = data.methods.map((_, m) => {
    const { mean } = estimate(metric, m, choice);
    return mean === null || mean === undefined ? -Infinity : sign * mean;
  });
  const later = (a, b) => (worth[a] === worth[b] ? a - b : worth[b] - worth[a]);
  return data.methods.map((_, m) => m).sort(later);
}

/** Whether a metric counts errors, so that less of it is better. */
export const smallerIsBetter = (metric) => (data.smaller_is_better ?? []).includes(metric);
