/** A table that sorts itself by any column. */

import { h } from "#web/dom.js";
import { compare } from "#web/order.js";

const order = new Map();

/**
 * A sortable table.
 *
 * `columns` are { key, title, value(row), cell(row, place), numeric, heads, class, describe }: `value` is what a column
 * sorts by, one without it does not sort; `heads` marks the one that names the row. The order of a table is remembered
 * under its name.
 */
export function sortable(name, caption, columns, rows, initial) {
  const { key, down } = order.get(name) ?? initial;
  const column = columns.find((own) => own.key === key) ?? columns.find((own) => own.value);
  const sorted = [...rows].sort((a, b) => compare(column.value(a), column.value(b), down));
  const table = h(
    "table",
    {},
    h("caption", {}, caption),
    h("thead", {}, h("tr", {}, columns.map((own) => heading(own, own === column, down, turn)))),
    h("tbody", {}, sorted.map((row, i) => h("tr", {}, columns.map((own) => cell(own, row, i))))),
  );
  const frame = h("div", { class: "frame" }, table);

  function turn(own) {
    const again = own.key === column.key;
    order.set(name, { key: own.key, down: again ? !down : Boolean(own.numeric) });
    const fresh = sortable(name, caption, columns, rows, initial);
    frame.replaceWith(fresh);
    fresh.querySelector(`th[data-key="${CSS.escape(own.key)}"] button`).focus();
  }
  return frame;
}

function heading(column, sorting, down, turn) {
  const attributes = { scope: "col", class: classes(column), "data-key": column.key, title: column.describe };
  if (!column.value) return h("th", attributes, column.title);
  const direction = down ? "descending" : "ascending";
  return h(
    "th",
    { ...attributes, "aria-sort": sorting ? direction : null },
    h("button", { type: "button", onclick: () => turn(column) }, column.title),
  );
}

const cell = (column, row, place) =>
  h(column.heads ? "th" : "td", { class: classes(column), scope: column.heads && "row" }, column.cell(row, place));

const classes = (column) => [column.numeric && "number", column.class].filter(Boolean).join(" ") || null;
