/** What the case browser shows: dataset, seed, level, the two methods, and how they are drawn. */

import { choice } from "#site/choice.js";
import { data } from "#site/data.js";
import { named } from "#site/format.js";
import { caseAddress, go } from "#site/route.js";
import { choose, segments } from "#site/widgets.js";
import { h } from "#web/dom.js";

export function caseControls({ dataset, seed, level, methods, cases, kept, render, open }) {
  const texts = methods.map((m) => data.methods[m].text);
  const visit = (name, number) => go(caseAddress(name, number, data.levels[level], "", ...texts));
  const names = [...new Set(data.cases.map((task) => task.dataset))];
  const seeds = data.cases.filter((task) => task.dataset === dataset).map((task) => task.seed);
  const flip = (key) => (event) => {
    kept[key] = event.target.checked;
    render();
  };
  return h(
    "form",
    { class: "filters", "aria-label": "What to show", onsubmit: (event) => event.preventDefault() },
    choose(
      "Dataset",
      names.map((own) => [own, named(data.datasets.find((one) => one.name === own))]),
      dataset,
      (own) => visit(own, data.cases.find((task) => task.dataset === own).seed),
    ),
    seeds.length > 1 && choose("Split seed", seeds.map((own) => [own, own]), seed, (own) => visit(dataset, own)),
    data.levels.length > 1 &&
      segments(
        "Normals in the corpus (ρ)",
        data.levels.map((rho, i) => [i, `${rho} %`]),
        level,
        (own) => open({ level: own }),
      ),
    data.budgets.length > 1 &&
      choose("Known labels", data.budgets.map((own, i) => [i, own.words]), choice.budget, (own) => {
        choice.budget = Number(own);
        render();
      }),
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", checked: kept.overlay, onchange: flip("overlay") }),
      "query over cards",
    ),
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", checked: kept.shared, onchange: flip("shared") }),
      "one scale for all",
    ),
    !cases.windows.points.some(Boolean) &&
      h(
        "p",
        { class: "notice" },
        "The licence of this source does not let its series be shown; lists and classes are.",
      ),
  );
}
