/** The page of one method. */

import { choice } from "#site/choice.js";
import { data, methodAt } from "#site/data.js";
import { filters } from "#site/filters.js";
import { duration, named, score } from "#site/format.js";
import { dot, strip, tint } from "#site/marks.js";
import { to } from "#site/route.js";
import { estimate, ranked, seconds } from "#site/stats.js";
import { redraw } from "#site/widgets.js";
import { h } from "#web/dom.js";

const ROLES = {
  leg: "retrieves",
  transform: "changes the vectors",
  fusion: "joins two lists",
  reranker: "reorders the list",
};

export function method([text]) {
  const m = methodAt(text);
  if (m < 0) return { title: "Unknown method", view: h("p", { class: "lead" }, `This run has no method “${text}”.`) };
  const own = data.methods[m];
  const view = h("div", {});
  const render = () =>
    redraw(view, heading(own, m), parts(own), filters(render, { datasets: false }), results(own, m), times(m));
  render();
  return { title: own.title, view };
}

function heading(own, m) {
  const order = ranked(data.headline, { ...choice, metric: data.headline });
  const rival = order.find((other) => other !== m);
  return h(
    "div",
    { class: "title" },
    h("h1", {}, dot(own), own.title),
    h(
      "p",
      { class: "lead" },
      `${own.family} · ${standing(data.places[own.text], order.indexOf(m), order.length)} by ${data.headline} · `,
      h("code", {}, own.text),
    ),
    h(
      "p",
      {},
      `Labels it reads: ${own.labels}. `,
      own.chosen_on.length > 0
        ? `Datasets that were in sight when its settings were chosen: ${own.chosen_on.join(", ")}.`
        : "None of the datasets was in sight when its settings were chosen.",
      own.retained !== null && ` On unseen assets it keeps ${own.retained_interval} of what is beyond chance.`,
      own.cpu_seconds !== null && ` One task takes ${duration(own.cpu_seconds)} of a processor (${data.cost_task}).`,
    ),
    rival !== undefined && data.cases.length > 0 &&
      h(
        "p",
        {},
        h(
          "a",
          { class: "action", href: to(["cases"], { a: own.text, b: data.methods[rival].text }) },
          `See its cases beside ${data.methods[rival].title}`,
        ),
      ),
  );
}

/** The place among those that read the same labels; where there is none, where it stands in the order. */
export const standing = (placed, at, count) =>
  placed ? `place ${placed.place} of the ${placed.of} that read the same labels` : `${at + 1} of ${count} in the order of means`;

function parts(own) {
  if (!own.stages.length) return null;
  const items = own.stages.map(({ role, title, summary, parameters }) =>
    h(
      "li",
      {},
      h("strong", {}, title),
      h("span", { class: "role" }, ROLES[role]),
      h("p", {}, summary),
      parameters.length > 0 &&
        h("p", { class: "parameters" }, parameters.map(([key, value]) => h("code", {}, `${key} = ${value}`))),
    )
  );
  return h("section", {}, h("h2", {}, "What it is made of"), h("ol", { class: "stages" }, items));
}

function results(own, m) {
  const rows = data.datasets.map((dataset, d) => {
    const at = { datasets: [d], budget: choice.budget };
    const levels = data.levels.map((_, level) => estimate(choice.metric, m, { ...at, level }));
    const all = data.methods.map((_, other) => estimate(choice.metric, other, { ...at, level: choice.level }).mean);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: to(["dataset", dataset.name]) }, named(dataset))),
      levels.map(({ mean, half }) =>
        h("td", { class: "number" }, score(mean), half !== null && h("small", {}, ` ± ${score(half)}`))
      ),
      h("td", { class: "minor drawn" }, strip(all, all[m], tint(own))),
    );
  });
  const head = [
    h("th", { scope: "col" }, "Dataset"),
    data.levels.map((rho) => h("th", { scope: "col", class: "number" }, `ρ = ${rho} %`)),
  ];
  return h(
    "section",
    {},
    h("h2", {}, "Results"),
    h(
      "div",
      { class: "frame" },
      h(
        "table",
        {},
        h(
          "caption",
          {},
          `${choice.metric.replace("_", "-")} with 95 % intervals; right, among all methods at ρ = ${
            data.levels[choice.level]
          } %, from 0 to 1`,
        ),
        h("thead", {}, h("tr", {}, head, h("th", { scope: "col", class: "minor" }, "Among all"))),
        h("tbody", {}, rows),
      ),
    ),
  );
}

function times(m) {
  const rows = data.datasets.map((dataset, d) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, named(dataset)),
      data.stages.map((_, stage) => h("td", { class: "number" }, duration(data.seconds[stage][d][m]))),
      h("td", { class: "number" }, h("strong", {}, duration(seconds(m, [d])))),
    )
  );
  return h(
    "section",
    {},
    h("h2", {}, "Time"),
    h(
      "div",
      { class: "frame" },
      h(
        "table",
        {},
        h(
          "caption",
          {},
          "Wall time of one corpus with all its queries, as measured when it was computed; what was in the cache costs nothing",
        ),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Dataset"),
            [...data.stages, "all"].map((stage) => h("th", { scope: "col", class: "number" }, stage)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
  );
}
