/** What one method found: ten cards, each with its place, whether it is the same fault, and its series. */

import { choice } from "#site/choice.js";
import { data } from "#site/data.js";
import { score } from "#site/format.js";
import { dot } from "#site/marks.js";
import { choose } from "#site/widgets.js";
import { h } from "#web/dom.js";
import { measured, reading } from "#web/format.js";
import { show } from "#web/plot.js";

const SIDES = ["A", "B"];
const STRIP = 3;

export function foundList(scene, side) {
  const { cases, columns, query, asked, lists, methods, level, open } = scene;
  const right = lists[side].filter((item) => cases.label(item) === cases.label(asked)).length;
  const offered = data.methods.map((method, m) => [m, method.title]).filter(([m]) =>
    cases.column(level, choice.budget, m) !== undefined
  );
  const exchange = (m) => open({ methods: methods.map((own, i) => (i === side ? Number(m) : own)) });
  const cards = lists[side].map((item, place) => card(scene, side, item, place));
  const reached = columns[side] === undefined
    ? "this method has no list here"
    : `${data.headline} ${score(cases.value(columns[side], query))} · ${right} of ${lists[side].length} the same fault`;
  return h(
    "section",
    { class: "found", "aria-label": `Method ${SIDES[side]}` },
    h(
      "header",
      {},
      h("span", { class: "side" }, SIDES[side]),
      dot(data.methods[methods[side]]),
      choose(`Method ${SIDES[side]}`, offered, methods[side], exchange),
    ),
    h("p", { class: "reached" }, reached),
    h("ol", {}, cards.map((one) => h("li", {}, one))),
  );
}

function card(scene, side, item, place) {
  const { cases, asked, lists, channel, range, kept } = scene;
  const same = cases.label(item) === cases.label(asked);
  const series = cases.series(item, channel);
  const other = lists[1 - side].indexOf(item);
  const elsewhere = other < 0 ? `not in ${SIDES[1 - side]}’s ten` : `${SIDES[1 - side]}: place ${other + 1}`;
  const verdict = same ? "same fault" : "other fault";
  const canvas = series && h("canvas", { "aria-hidden": "true" });
  const whole = series && `${measured(series.low)} to ${measured(series.high)}`;
  const beside = series && h("span", { class: "range" }, whole);
  const paint = (over) =>
    series && show(canvas, {
      lines: drawn(scene, series, same, over, range),
      shade: series.partly ? { from: series.from, to: series.to, depth: STRIP, paint: "fault" } : null,
      steps: series.length,
      read: (found) => beside.replaceChildren(found ? reading(found) : whole),
    });
  const hover = (over) => () => paint(kept.overlay || over);
  paint(kept.overlay);
  return h(
    "article",
    {
      class: same ? "card same" : "card other",
      tabindex: "0",
      "aria-label": `Place ${place + 1}: ${cases.label(item)}, ${verdict}, ${elsewhere}${
        series ? `, ${channel} from ${whole}` : ""
      }`,
      onpointerenter: hover(true),
      onpointerleave: hover(false),
      onfocus: hover(true),
      onblur: hover(false),
    },
    h(
      "header",
      {},
      h("span", { class: "place" }, place + 1),
      h("span", { class: "verdict", title: verdict }, same ? "✓" : "✕"),
      h("span", { class: "label" }, cases.label(item)),
    ),
    canvas,
    !series && h("p", { class: "undrawn" }, cases.windows.points[item] ? `has no ${channel}` : ""),
    h(
      "footer",
      {},
      h("span", {}, cases.windows.asset[item] || cases.windows.group[item]),
      beside,
      h("span", {}, elsewhere),
    ),
  );
}

/** The item, and the query behind it where it is wanted. */
function drawn({ cases, asked, channel, kept }, series, same, overlaid, range) {
  const scaled = (own) => (kept.shared ? range : [own.low, own.high]);
  const lines = [{ values: series.values, paint: same ? "blue" : "orange", range: scaled(series) }];
  const query = overlaid && cases.series(asked, channel);
  return query ? [...lines, { values: query.values, paint: "ink", width: 1.1, dash: [4, 2], range: scaled(query) }] : lines;
}
