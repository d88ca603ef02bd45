/** Which datasets, pollution level, label budget and metric all pages show; kept in the address. */

import { data, datasetAt } from "#site/data.js";

const everything = () => data.datasets.map((_, d) => d);

export const choice = {
  datasets: everything(),
  level: 0,
  budget: data.budgets.length - 1,
  metric: data.headline,
};

/** Take over what an address says. Where it says nothing the choice stays as it is. */
export function adopt(said) {
  const names = said.get("datasets")?.split(";").map(datasetAt).filter((d) => d >= 0);
  if (names?.length) choice.datasets = names;
  const level = data.levels.indexOf(Number(said.get("rho") ?? NaN));
  if (level >= 0) choice.level = level;
  const budget = data.budgets.findIndex((own) => own.text === said.get("labels"));
  if (budget >= 0) choice.budget = budget;
  if (data.metrics.includes(said.get("metric"))) choice.metric = said.get("metric");
}

/** What an address must say to give this choice again. */
export function parameters() {
  const found = {};
  if (choice.datasets.length < data.datasets.length) {
    found.datasets = choice.datasets.map((d) => data.datasets[d].name).join(";");
  }
  if (choice.level) found.rho = data.levels[choice.level];
  if (choice.budget !== data.budgets.length - 1) found.labels = data.budgets[choice.budget].text;
  if (choice.metric !== data.headline) found.metric = choice.metric;
  return found;
}
