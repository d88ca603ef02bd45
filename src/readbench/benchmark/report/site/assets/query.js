/** The query: what it is, and its series. */

import { data } from "#site/data.js";
import { h } from "#web/dom.js";
import { measured, reading } from "#web/format.js";
import { show } from "#web/plot.js";

const MOST_TICKS = 4;

export function queryPanel({ dataset, cases, query, order, asked, channel, kept, render, step }) {
  const { id, group, asset } = cases.windows;
  const own = cases.series(asked, channel);
  const units = data.datasets.find(({ name }) => name === dataset)?.units ?? {};
  const unit = units[channel] ? ` in ${units[channel]}` : "";
  const canvas = own && h("canvas", { class: "large", role: "img", "aria-label": described(own, channel, unit) });
  const whole = own && `${measured(own.low)} to ${measured(own.high)}`;
  const beside = h("span", { class: "number" }, whole);
  if (own) {
    show(canvas, {
      lines: [{ values: own.values, paint: "ink", width: 1.6 }],
      range: [own.low, own.high],
      shade: own.partly ? { from: own.from, to: own.to, paint: "span" } : null,
      ticks: MOST_TICKS,
      steps: own.length,
      read: (found) => beside.replaceChildren(found ? reading(found) : whole),
    });
  }
  const thumbs = cases.channels(asked).map((name) => thumb(cases, asked, name, name === channel, kept, render));
  return h(
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
          h("span", {}, `${own.length} steps`),
          own.partly && h("span", { class: "shaded" }, "fault"),
          beside,
        ),
      ),
    thumbs.length > 1 && own &&
      h("div", { class: "thumbs", role: "group", "aria-label": "Channel" }, thumbs),
  );
}

function thumb(cases, window, name, pressed, kept, render) {
  const series = cases.series(window, name);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const choose = () => {
    kept.channel = name;
    render();
  };
  if (series) show(canvas, { lines: [{ values: series.values, paint: "ink", width: 1 }] });
  return h(
    "button",
    { type: "button", "aria-pressed": String(pressed), onclick: choose, title: name },
    canvas,
    h("span", {}, name),
  );
}

function described({ from, to, length, low, high }, channel, unit) {
  const [begin, end] = [from, to].map((share) => Math.round(share * 100));
  const fault = to > from ? `, the fault from ${begin} to ${end} percent of the window` : "";
  return `Query, channel ${channel}: ${length} steps between ${measured(low)} and ${measured(high)}${unit}${fault}`;
}

/** Where a window comes from, each name once. */
const origin = (...names) => [...new Set(names.filter(Boolean))].join(" · ");
