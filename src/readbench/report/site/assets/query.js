/** The query: what it is, and its series. */

import { data } from "site/data";
import { h } from "site/dom";
import { measured } from "site/format";
import { draw } from "site/plot";

export function queryPanel({ dataset, cases, query, order, asked, channel, kept, render, step }) {
  const { id, group, asset } = cases.windows;
  const own = cases.series(asked, channel);
  const units = data.datasets.find(({ name }) => name === dataset)?.units ?? {};
  const unit = units[channel] ? ` in ${units[channel]}` : "";
  const canvas = own && h("canvas", { class: "large", role: "img", "aria-label": described(own, channel, unit) });
  const thumbs = cases.channels(asked).map((name) => thumb(cases, asked, name, name === channel, kept, render));
  const element = h(
    "section",
    { class: "asked", "aria-label": "Query" },
    h(
      "header",
      {},
      h(
        "div",
        {},
        h("p", { class: "kicker" }, `Query ${query + 1} of ${cases.queries.length}`),
        h("h2", {}, cases.label(asked)),
        h("p", { class: "origin" }, origin(id[asked], group[asked], asset[asked])),
      ),
      h(
        "div",
        { class: "steps" },
        h("button", {
          type: "button",
          "aria-label": "Previous query",
          disabled: order[0] === query,
          onclick: () => step(-1),
        }, "‹"),
        h("button", {
          type: "button",
          "aria-label": "Next query",
          disabled: order.at(-1) === query,
          onclick: () => step(1),
        }, "›"),
      ),
    ),
    own &&
      h(
        "figure",
        {},
        canvas,
        h(
          "figcaption",
          {},
          h("span", {}, `${channel}${unit}`),
          h("span", {}, `${measured(own.low)} to ${measured(own.high)}`),
          h("span", {}, `${own.length} steps`),
          own.partly && h("span", { class: "shaded" }, "fault"),
        ),
      ),
    thumbs.length > 1 && own &&
      h("div", { class: "thumbs", role: "group", "aria-label": "Channel" }, thumbs.map((one) => one.element)),
  );
  const paint = () => {
    if (own) draw(canvas, [{ series: own, paint: "ink", width: 1.6, range: [own.low, own.high] }], own);
    thumbs.forEach((one) => one.paint());
  };
  return { element, paint };
}

function thumb(cases, window, name, pressed, kept, render) {
  const series = cases.series(window, name);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const choose = () => {
    kept.channel = name;
    render();
  };
  const element = h(
    "button",
    { type: "button", "aria-pressed": String(pressed), onclick: choose, title: name },
    canvas,
    h("span", {}, name),
  );
  return {
    element,
    paint: () => series && draw(canvas, [{ series, paint: "ink", width: 1, range: [series.low, series.high] }], series),
  };
}

const described = (series, channel, unit) =>
  `Query, channel ${channel}: ${series.length} steps between ${measured(series.low)} and ${
    measured(series.high)
  }${unit}` +
  (series.to > series.from
    ? `, the fault from ${Math.round(series.from * 100)} to ${Math.round(series.to * 100)} percent of the window`
    : "");

/** Where a window comes from, each name once. */
const origin = (...names) => [...new Set(names.filter(Boolean))].join(" · ");
