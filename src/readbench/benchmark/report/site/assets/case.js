/** The case browser: one query, and what two methods found for it, side by side. */

import { choice, parameters as chosen } from "#site/choice.js";
import { caseControls } from "#site/controls.js";
import { cases, data, methodAt } from "#site/data.js";
import { foundList } from "#site/found.js";
import { keyboardHelp, pressed } from "#site/keys.js";
import { inOrder, queryList, reveal } from "#site/queries.js";
import { queryPanel } from "#site/query.js";
import { caseAddress, replace } from "#site/route.js";
import { ranked } from "#site/stats.js";
import { announce, redraw } from "#site/widgets.js";
import { h } from "#web/dom.js";
import { repaint, union } from "#web/plot.js";

/** What stays when another query is opened: channel, overlay, scale, and the order and class of the list. */
const kept = { overlay: false, shared: false, sort: "asked", label: "", channel: "" };

/** The case that an address without details means: the best two methods on the first task. */
export function firstCase(parameters) {
  const order = ranked(data.headline, { ...choice, datasets: data.datasets.map((_, d) => d) }).map((m) =>
    data.methods[m].text
  );
  const first = parameters.get("a") ?? order[0];
  const second = parameters.get("b") ?? order.find((text) => text !== first) ?? first;
  const task = data.cases.find(({ dataset }) => dataset === parameters.get("dataset")) ?? data.cases[0];
  return task ? [task.dataset, String(task.seed), String(data.levels[choice.level]), "", first, second] : null;
}

export async function browser([dataset, seed, rho, query, first, second]) {
  const found = await cases(dataset, Number(seed));
  const problem = found ? obstacle(found, rho, query, [first, second]) : missing(dataset, seed);
  if (problem) return { title: "Cases", view: h("p", { class: "lead" }, problem) };
  const state = {
    dataset,
    seed: Number(seed),
    level: data.levels.indexOf(Number(rho)),
    methods: [methodAt(first), methodAt(second)],
    cases: found,
    query: Math.max(0, numberOf(found, query)),
    kept,
  };
  const view = h("div", { class: "browser" });
  state.render = () => render(state, view);
  state.open = (changes) => {
    Object.assign(state, changes);
    state.render();
  };
  state.step = (by) => {
    const next = state.order[state.order.indexOf(state.query) + by];
    if (next !== undefined) state.open({ query: next });
  };
  render(state, view);
  return {
    title: `Cases of ${dataset}`,
    view,
    keys: (event) => pressed(event, state, view),
    placed: () => settle(view),
  };
}

const missing = (dataset, seed) =>
  `This run keeps no cases of “${dataset}”, split seed ${seed}. Make the report again where its data are at hand.`;

function obstacle(found, rho, query, methods) {
  const unknown = methods.find((text) => methodAt(text) < 0);
  if (unknown !== undefined) return `This run has no method “${unknown}”.`;
  if (!data.levels.includes(Number(rho))) return `This run has no pollution level of ${rho} %.`;
  if (query && numberOf(found, query) < 0) return `This task has no query “${query}”.`;
  return "";
}

/** Number of a query among the queries of its task, by id; -1 where there is none. */
const numberOf = (found, id) => found.queries.findIndex((window) => found.windows.id[window] === id);

function render(state, view) {
  const { cases: found, level, methods } = state;
  const columns = methods.map((m) => found.column(level, choice.budget, m));
  const asked = found.queries[state.query];
  const lists = columns.map((column) => (column === undefined ? [] : found.list(column, state.query)));
  const channel = channelOf(state, asked);
  Object.assign(state, { order: inOrder({ ...state, columns }), channel });
  const every = [asked, ...lists.flat()]
    .map((window) => found.series(window, channel))
    .filter(Boolean)
    .map(({ low, high }) => [low, high]);
  const scene = { ...state, columns, asked, lists, channel, range: every.length ? union(every) : [0, 1] };
  replace(
    caseAddress(
      state.dataset,
      state.seed,
      data.levels[level],
      found.windows.id[asked],
      ...methods.map((m) => data.methods[m].text),
      chosen().labels ? { labels: chosen().labels } : {},
    ),
  );
  const scroll = view.querySelector(".queries ol")?.scrollTop ?? 0;
  const parts = [queryPanel(scene), ...[0, 1].map((side) => foundList(scene, side))];
  redraw(
    view,
    h("div", { class: "title" }, h("h1", {}, "Case browser")),
    caseControls(scene),
    h("div", { class: "layout" }, queryList(scene), h("div", { class: "stage" }, parts)),
    keyboardHelp(),
  );
  view.querySelector(".queries ol").scrollTop = scroll;
  if (view.isConnected) settle(view);
  announce(spoken(scene));
}

/** What needs the view to stand on the page: its drawings, and the place in the list. */
function settle(view) {
  repaint(view);
  reveal(view);
}

/** The channel last chosen where the query has it, else the one that tells most about its class. */
function channelOf({ cases: found, dataset, kept: { channel } }, window) {
  const own = found.channels(window);
  if (own.includes(channel)) return channel;
  const facts = data.datasets.find(({ name }) => name === dataset)?.classes.find(({ name }) =>
    name === found.label(window)
  );
  return own.includes(facts?.telling) ? facts.telling : own[0];
}

function spoken({ cases: found, query, asked, lists, methods }) {
  const right = lists.map((list, side) =>
    `${data.methods[methods[side]].title}: ${
      list.filter((item) => found.label(item) === found.label(asked)).length
    } of ${list.length} right`
  );
  return `Query ${query + 1} of ${found.queries.length}, ${found.label(asked)}. ${right.join("; ")}`;
}
