/** The controls above a table: metric, pollution level, label budget, datasets. */

import { choice } from "#site/choice.js";
import { data } from "#site/data.js";
import { named } from "#site/format.js";
import { choose, segments } from "#site/widgets.js";
import { h } from "#web/dom.js";

/** All controls that this run has a choice for; `changed` is called after each change. */
export function filters(changed, { datasets = true } = {}) {
  const set = (name) => (value) => {
    choice[name] = value;
    changed();
  };
  return h(
    "form",
    { class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    choose("Metric", data.metrics.map((name) => [name, name.replace("_", "-")]), choice.metric, set("metric")),
    data.levels.length > 1 &&
      segments("Normals in the corpus (ρ)", data.levels.map((rho, i) => [i, `${rho} %`]), choice.level, set("level")),
    data.budgets.length > 1 &&
      choose(
        "Known labels",
        data.budgets.map((own, i) => [i, own.words]),
        choice.budget,
        (value) => set("budget")(Number(value)),
      ),
    datasets && data.datasets.length > 1 && datasetFilter(changed),
  );
}

/** Positions with one more, or one less where it was among them; without any left, all of them. */
export function toggled(positions, position, count) {
  const rest = positions.filter((own) => own !== position);
  const next = rest.length < positions.length ? rest : [...rest, position].sort((a, b) => a - b);
  return next.length ? next : Array.from({ length: count }, (_, own) => own);
}

function datasetFilter(changed) {
  const toggle = (d) => () => {
    choice.datasets = toggled(choice.datasets, d, data.datasets.length);
    changed();
  };
  const chips = data.datasets.map((dataset, d) =>
    h("button", {
      type: "button",
      class: "chip",
      "aria-pressed": String(choice.datasets.includes(d)),
      onclick: toggle(d),
    }, named(dataset))
  );
  return h(
    "div",
    { class: "field wide" },
    h("span", {}, "Datasets"),
    h("div", { class: "chips", role: "group", "aria-label": "Datasets" }, chips),
  );
}
