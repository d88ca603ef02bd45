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
