/** The list of datasets, and the page of one. */

import { nameOf } from "#site/board.js";
import { choice } from "#site/choice.js";
import { data, datasetAt } from "#site/data.js";
import { filters } from "#site/filters.js";
import { count, named, score } from "#site/format.js";
import { axisOf, tint, whisker } from "#site/marks.js";
import { to } from "#site/route.js";
import { estimate, ranked } from "#site/stats.js";
import { redraw } from "#site/widgets.js";
import { h } from "#web/dom.js";

const MOST_METHODS = 6;

export function datasets() {
  const cards = data.datasets.map((own) =>
    h(
      "li",
      {},
      h(
        "a",
        { href: to(["dataset", own.name]) },
        h("h2", {}, named(own)),
        h("p", { class: "domain" }, own.domain ?? ""),
        h("p", {}, summary(own)),
      ),
    )
  );
  return {
    title: "Datasets",
    view: h("div", {}, h("div", { class: "title" }, h("h1", {}, "Datasets")), h("ul", { class: "cards" }, cards)),
  };
}

function summary({ sizes, classes: known }) {
  const faults = known.filter(({ queries }) => queries > 0).length;
  return [
    sizes.queries && `${sizes.queries} queries`,
    sizes.corpus && `${sizes.corpus[0]} cases`,
    faults && count(faults, "fault"),
    sizes.channels && `${sizes.channels} channels`,
  ]
    .filter(Boolean)
    .join(" · ");
}

export function dataset([name]) {
  const d = datasetAt(name);
  if (d < 0) return { title: "Unknown dataset", view: h("p", { class: "lead" }, `This run has no dataset “${name}”.`) };
  const own = data.datasets[d];
  const view = h("div", {});
  const render = () =>
    redraw(view, heading(own), facts(own), filters(render, { datasets: false }), methods(d), classes(own, d));
  render();
  return { title: own.title, view };
}

function heading(own) {
  return h(
    "div",
    { class: "title" },
    h("h1", {}, named(own)),
    h("p", { class: "lead" }, [own.domain, own.origin, summary(own)].filter(Boolean).join(" · ")),
    own.description && h("p", { class: "prose" }, own.description),
    data.cases.some((task) => task.dataset === own.name) &&
      h("p", {}, h("a", { class: "action", href: to(["cases"], { dataset: own.name }) }, "Browse its cases")),
  );
}

function facts({ sizes, licence, citation, url, files, split_unit: split, asset_unit: asset, notes }) {
  const pairs = [
    ["Corpus", sizes.corpus && `${sizes.corpus.join(" / ")} windows, from the cleanest to the most polluted`],
    ["Relevant", sizes.relevant_per_query && `${sizes.relevant_per_query} items a query on average`],
    ["Imbalance", sizes.imbalance && `${sizes.imbalance} : 1 between the largest and the smallest class`],
    ["Window", sizes.length && `${sizes.length} steps of ${sizes.channels} channels`],
    ["Split by", split],
    ["Asset", asset],
    ["Official files", files],
    ["Licence", licence],
    ["Source", citation],
    ["Address", url],
    ["Notes", notes.join(" ")],
  ];
  return h(
    "dl",
    { class: "facts" },
    pairs.filter(([, value]) => value).map(([key, value]) =>
      h("div", { class: value.length > 80 && "wide" }, h("dt", {}, key), h("dd", {}, value))
    ),
  );
}

function methods(d) {
  const at = { ...choice, datasets: [d] };
  const order = ranked(choice.metric, at);
  const estimates = order.map((m) => estimate(choice.metric, m, at));
  const axis = axisOf(estimates);
  const rows = order.map((m, place) =>
    h(
      "tr",
      {},
      h("td", { class: "number place" }, place + 1),
      h("th", { scope: "row" }, nameOf(data.methods[m])),
      h("td", { class: "minor knowledge" }, data.methods[m].labels),
      h(
        "td",
        { class: "number" },
        h("strong", {}, score(estimates[place].mean)),
        estimates[place].half !== null && h("small", {}, ` ± ${score(estimates[place].half)}`),
      ),
      h("td", { class: "minor drawn" }, whisker(estimates[place], axis, estimates[0].mean, tint(data.methods[m]))),
    )
  );
  const head = ["#", "Method", "Labels", choice.metric.replace("_", "-"), "95 % interval"].map((title, i) =>
    h("th", { scope: "col", class: ["number place", "", "minor", "number", "minor"][i] }, title)
  );
  const caption = `${choice.metric.replace("_", "-")} at ρ = ${data.levels[choice.level]} %`;
  return h(
    "section",
    {},
    h("h2", {}, "Methods"),
    h(
      "div",
      { class: "frame" },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
    ),
  );
}

function classes(own, d) {
  const asked = own.classes.filter(({ queries }) => queries > 0);
  if (!asked.length) return null;
  const shown = ranked(data.headline, { ...choice, datasets: [d] }).slice(0, MOST_METHODS);
  const rows = asked.map(({ name, queries, corpus, telling }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name, telling && h("small", { class: "telling" }, `drawn in ${telling}`)),
      h("td", { class: "number" }, queries),
      h("td", { class: "number minor" }, corpus[0] === corpus[1] ? corpus[0] : `${corpus[0]}–${corpus[1]}`),
      shown.map((m) => heat(own.by_class[name]?.[choice.level][choice.budget][m])),
    )
  );
  const head = [
    h("th", { scope: "col" }, "Class"),
    h("th", { scope: "col", class: "number" }, "queries"),
    h("th", { scope: "col", class: "number minor" }, "corpus"),
    shown.map((m) => h("th", { scope: "col", class: "number narrow" }, data.methods[m].title)),
  ];
  const caption = `${data.headline} by class at ρ = ${data.levels[choice.level]} %, ${
    count(shown.length, "best method")
  }; queries of all split seeds`;
  return h(
    "section",
    {},
    h("h2", {}, "Classes"),
    h(
      "div",
      { class: "frame" },
      h("table", { class: "heat" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
    ),
  );
}

const heat = (value) =>
  h("td", {
    class: "number",
    style: value === null || value === undefined ? {} : { "--share": `${Math.round(value * 100)}%` },
  }, score(value));
