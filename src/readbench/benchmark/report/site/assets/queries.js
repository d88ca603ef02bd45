/** The list of queries, with what both methods reach on each. */

import { choose } from "#site/widgets.js";
import { h } from "#web/dom.js";

const ORDERS = [
  ["asked", "as asked"],
  ["difference", "largest difference first"],
  ["first", "A at its worst first"],
  ["second", "B at its worst first"],
];

const value = ({ cases, columns }, side, q) => (columns[side] === undefined ? NaN : cases.value(columns[side], q));

const KEYS = {
  asked: (_, q) => q,
  difference: (scene, q) => -Math.abs(value(scene, 0, q) - value(scene, 1, q)),
  first: (scene, q) => value(scene, 0, q),
  second: (scene, q) => value(scene, 1, q),
};

/** Numbers of the queries that the list shows, in its order. */
export function inOrder(scene) {
  const { cases, kept } = scene;
  const key = (q) => KEYS[kept.sort](scene, q);
  const all = !labelsOf(cases).includes(kept.label);
  return cases.queries
    .map((_, q) => q)
    .filter((q) => all || labelOf(cases, q) === kept.label)
    .sort((a, b) => key(a) - key(b) || a - b);
}

const labelOf = (cases, q) => cases.label(cases.queries[q]);
const labelsOf = (cases) => [...new Set(cases.queries.map((window) => cases.label(window)))].sort();

/** Scroll the list, and nothing else, to the query that is shown. */
export function reveal(view) {
  const [list, current] = [view.querySelector(".queries ol"), view.querySelector(".queries [aria-current]")];
  if (!current) return;
  const top = current.offsetTop - list.offsetTop;
  list.scrollTop = Math.min(Math.max(list.scrollTop, top + current.offsetHeight - list.clientHeight), top);
}

export function queryList(scene) {
  const { cases, query, order, kept, open, render } = scene;
  const set = (key) => (own) => {
    kept[key] = own;
    render();
  };
  return h(
    "nav",
    { class: "queries", "aria-label": "Queries" },
    choose("Class", [["", "all classes"], ...labelsOf(cases).map((own) => [own, own])], kept.label, set("label")),
    choose("Order", ORDERS, kept.sort, set("sort")),
    h(
      "div",
      { class: "columns", "aria-hidden": "true" },
      h("span", {}, "query"),
      h("span", {}, "A"),
      h("span", {}, "B"),
    ),
    h(
      "ol",
      {},
      order.map((q) => item(q, labelOf(cases, q), [0, 1].map((side) => value(scene, side, q)), q === query, open)),
    ),
  );
}

function item(q, label, values, current, open) {
  return h(
    "li",
    {},
    h(
      "button",
      {
        type: "button",
        "aria-current": current ? "true" : null,
        title: label,
        onclick: () => open({ query: q }),
      },
      h("span", { class: "unseen" }, `Query ${q + 1}, `), // spoken beside what is seen, so that both say the same
      h("span", { class: "label" }, label),
      values.map((own, side) => [
        h("span", { class: "unseen" }, `, ${"AB"[side]} `),
        h(
          "span",
          { class: "bar", style: { "--share": `${Math.round((own || 0) * 100)}%` } },
          Number.isNaN(own) ? "–" : own.toFixed(2),
        ),
      ]),
    ),
  );
}
