/** The leaderboard. */

import { choice, parameters } from "#site/choice.js";
import { data, joint } from "#site/data.js";
import { filters } from "#site/filters.js";
import { count, duration, kinds, named, score, signed } from "#site/format.js";
import { axisOf, breakable, dot, tint, whisker } from "#site/marks.js";
import { replace, to } from "#site/route.js";
import { difference, estimate, overDatasets, ranked, real, seconds, smallerIsBetter } from "#site/stats.js";
import { sortable } from "#site/table.js";
import { announce, redraw } from "#site/widgets.js";
import { h } from "#web/dom.js";

const MOST_COLUMNS = 8;
/** Stands beside the headline: a list of hits of one fault type has a high NDCG and few queries with any hit. */
const BESIDE = "HR@10";
let wanted = "";

export async function board() {
  const covariances = await joint();
  const view = h("div", {});
  const render = () => {
    replace(to([], parameters()));
    const controls = filters(render);
    controls.append(search(covariances), download(covariances));
    redraw(view, heading(), controls, table(covariances), legend());
  };
  render();
  return { title: "Leaderboard", view };
}

function heading() {
  const facts = [
    count(data.methods.length, "method"),
    kinds(data.datasets, data.origins),
    count(data.seeds.length, "split seed"),
  ];
  return h(
    "div",
    { class: "title" },
    h("h1", {}, "Which method finds the same fault again?"),
    h("p", { class: "lead" }, facts.join(" · ")),
    h("p", { class: "about" }, about(), " ", links()),
  );
}

/** What is asked, how it is judged, and what pollution is: three sentences. */
const about = () =>
  "A query is a window of sensor readings with a fault; a method ranks old windows so that those with the same fault come first. " +
  "NDCG@10 judges the first ten places: 1 where the right windows come first, 0 where there is none, and a right window counts less the later it comes. " +
  "ρ is the share of normal windows among the old ones, which can only be wrong.";

const PAGES = [["protocol.md", "protocol"], ["leaderboard.md", "how places are judged"], ["results.md", "results"]];

const links = () =>
  h(
    "span",
    {},
    "More: ",
    PAGES.flatMap(([file, words], i) => [
      i > 0 && ", ",
      data.documents ? h("a", { href: `${data.documents.replace(/\/$/, "")}/${file}` }, words) : `${words} (docs/${file})`,
    ]),
    ".",
  );

/** The rows of the table as CSV, for whoever wants to compute with them. */
export function asCsv(rows, metric) {
  const cell = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  const told = {
    method: ({ method }) => method.text,
    title: ({ method }) => method.title,
    labels: ({ method }) => method.labels,
    place: ({ placed }) => placed?.place,
    tie: ({ placed }) => placed?.tie,
    [metric]: ({ estimated }) => estimated.mean,
    half_interval: ({ estimated }) => estimated.half,
    [BESIDE]: ({ hits }) => hits,
    unseen_assets_retain: ({ method }) => method.retained,
    cpu_seconds: ({ method }) => method.cpu_seconds,
    seconds: (line) => line.seconds,
    chosen_on: ({ method }) => method.chosen_on.join(" "),
  };
  const header = Object.keys(told);
  const lines = rows.map((line) => Object.values(told).map((value) => cell(value(line))).join(","));
  return [header.join(","), ...lines, ""].join("\n");
}

function download(covariances) {
  const save = () => {
    const order = ranked(choice.metric, choice);
    const rows = order.map((m, place) => row(m, place, order[0], covariances));
    const address = URL.createObjectURL(new Blob([asCsv(rows, choice.metric)], { type: "text/csv" }));
    h("a", { href: address, download: `${data.name}-leaderboard.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  return h("button", { type: "button", class: "chip", id: "csv", onclick: save }, "Download CSV");
}

function search(covariances) {
  const narrow = (event) => {
    wanted = event.target.value;
    document.querySelector(".frame").replaceWith(table(covariances));
  };
  return h(
    "label",
    { class: "field" },
    h("span", {}, "Find a method"),
    h("input", { type: "search", value: wanted, placeholder: "name or family", oninput: narrow }),
  );
}

function table(covariances) {
  const order = ranked(choice.metric, choice);
  const best = order[0];
  const rows = order.map((m, place) => row(m, place, best, covariances)).filter(({ method }) => matches(method, wanted));
  const axis = axisOf(rows.map(({ estimated }) => estimated));
  const top = estimate(choice.metric, best, choice).mean;
  announce(`${count(rows.length, "method")}, the first is ${data.methods[best].title} with ${score(top)}`);
  return sortable("board", caption(), columns(axis, top), rows, { key: "mean", down: !smallerIsBetter(choice.metric) });
}

/** Whether a method's names hold a text. */
export const matches = ({ title, family, text }, sought) =>
  `${title} ${family} ${text}`.toLowerCase().includes(sought.trim().toLowerCase());

function row(m, place, best, covariances) {
  return {
    place,
    method: data.methods[m],
    placed: asRun() ? data.places[data.methods[m].text] : null,
    estimated: estimate(choice.metric, m, choice),
    polluted: change(m),
    datasets: choice.datasets.map((d) => estimate(choice.metric, m, { ...choice, datasets: [d] }).mean),
    real: estimate(choice.metric, m, { ...choice, datasets: real(choice.datasets) }).mean,
    datasetsBehind: choice.metric === data.headline && m !== best ? overDatasets(m, best, choice) : null,
    behind: choice.metric === data.headline && m !== best ? difference(m, best, choice, covariances) : null,
    hits: BESIDE in data.values ? estimate(BESIDE, m, choice).mean : null,
    seconds: seconds(m, choice.datasets),
  };
}

/** Whether the page shows what places were judged on: the headline at the first level, all datasets, the last budget. */
const asRun = () =>
  choice.metric === data.headline && choice.level === 0 && choice.datasets.length === data.datasets.length &&
  choice.budget === data.budgets.length - 1;

function columns(axis, top) {
  const several = choice.datasets.length > 1 && choice.datasets.length <= MOST_COLUMNS;
  const own = choice.datasets.map((d, i) => ({
    key: `d${d}`,
    title: named(data.datasets[d]),
    numeric: true,
    class: "minor narrow",
    value: ({ datasets }) => datasets[i],
    cell: ({ datasets }) => score(datasets[i]),
  }));
  return [
    {
      key: "place",
      title: "#",
      numeric: true,
      class: "place",
      value: ({ place }) => place,
      cell: ({ place, estimated }) => (estimated.mean === null ? "–" : place + 1),
    },
    {
      key: "title",
      title: "Method",
      heads: true,
      value: ({ method }) => method.title,
      cell: ({ method }) => nameOf(method),
    },
    {
      key: "labels",
      title: "Labels",
      class: "minor knowledge",
      describe: "Which labels it reads: none, those of a query's first hits (pool), or all; and whether it knows normals",
      value: ({ method }) => method.labels,
      cell: ({ method }) => method.labels,
    },
    {
      key: "mean",
      title: choice.metric.replace("_", "-"),
      numeric: true,
      value: ({ estimated }) => estimated.mean,
      cell: figure,
    },
    {
      key: "interval",
      title: "95 % interval",
      class: "minor drawn roomy",
      describe: `Of the mean, drawn from ${score(axis.low)} to ${score(axis.high)}`,
      cell: ({ estimated, method }) => whisker(estimated, axis, top, tint(method)),
    },
    ...(choice.metric === data.headline && BESIDE in data.values
      ? [{
        key: "hits",
        title: BESIDE,
        numeric: true,
        class: "minor",
        describe: "Share of queries with a right window among the first ten",
        value: ({ hits }) => hits,
        cell: ({ hits }) => score(hits),
      }]
      : []),
    ...(asRun()
      ? [{
        key: "placed",
        title: "Place among like",
        numeric: true,
        describe: "95 % interval of the rank among methods that read the same labels, and the letter of the tie group",
        value: ({ placed }) => placed?.low ?? Infinity,
        cell: ({ placed }) => (placed ? [placed.place, h("small", {}, ` of ${placed.of} ${placed.tie}`)] : "–"),
      }]
      : []),
    ...(real(choice.datasets).length > 0
      ? [{
        key: "real",
        title: `${real(choice.datasets).length} real`,
        numeric: true,
        describe: "Mean over the real datasets alone",
        value: (line) => line.real,
        cell: (line) => score(line.real),
      }]
      : []),
    ...(choice.metric === data.headline
      ? [{
        key: "behind",
        title: "to the first",
        numeric: true,
        class: "minor",
        describe: "Paired difference to the first row, on the same queries; below, its interval when datasets are drawn anew",
        value: ({ behind }) => behind?.mean ?? 0,
        cell: behindFirst,
      }]
      : []),
    ...(data.levels.length > 1
      ? [{
        key: "polluted",
        title: `ρ ${data.levels[0]} → ${data.levels.at(-1)} %`,
        numeric: true,
        class: "minor",
        describe: "Change from the lowest to the highest pollution level",
        value: ({ polluted }) => polluted,
        cell: ({ polluted }) => signed(polluted),
      }]
      : []),
    ...(several ? own : []),
    ...(asRun() && data.methods.some(({ retained }) => retained !== null)
      ? [{
        key: "retained",
        title: "Unseen",
        numeric: true,
        class: "minor",
        describe: "Share of what is beyond chance that is left where whole assets are held out",
        value: ({ method }) => method.retained,
        cell: ({ method }) => (method.retained === null ? "–" : h("span", { title: method.retained_interval }, method.retained.toFixed(2))),
      }]
      : []),
    cost(),
  ];
}

/** Seconds of a processor where they were measured, else the wall time of the run. */
function cost() {
  const measured = data.methods.some(({ cpu_seconds }) => cpu_seconds !== null);
  const of = (line) => (measured ? line.method.cpu_seconds : line.seconds);
  return {
    key: "seconds",
    title: measured ? "CPU" : "Time",
    numeric: true,
    class: "minor",
    describe: measured
      ? `Processor time of one task, from nothing (${data.cost_task})`
      : "Wall time of one corpus: encoding, fitting, scoring and reranking",
    value: of,
    cell: (line) => duration(of(line)),
  };
}

/** How much the metric changes from the lowest to the highest pollution level. */
function change(m) {
  const [low, high] = [0, data.levels.length - 1].map((level) => estimate(choice.metric, m, { ...choice, level }).mean);
  return low === null || high === null ? null : high - low;
}

/** A method's name with its family, and on a narrow page the labels that it reads. */
export const nameOf = (method) =>
  h(
    "a",
    { class: "method", href: to(["method", method.text]) },
    dot(method),
    h(
      "span",
      {},
      breakable(method.title),
      h("small", {}, method.family),
      h("small", { class: "slim" }, `labels: ${method.labels}`),
    ),
  );

const figure = (
  { estimated: { mean, half } },
) => [h("strong", {}, score(mean)), half !== null && h("small", {}, ` ± ${score(half)}`)];

function behindFirst({ behind, datasetsBehind }) {
  if (!behind) return "";
  return [
    signed(behind.mean),
    h("small", {}, ` ± ${score(behind.half)}`),
    h("span", { class: "tie", title: behind.told ? null : "not told apart from the first" }, behind.told ? "" : "≈"),
    datasetsBehind && h("small", { class: "under" }, behindOverDatasets(datasetsBehind)),
  ];
}

const behindOverDatasets = ({ low, high, told }) => [
  `[${signed(low)}, ${signed(high)}]`,
  h("span", { class: "tie", title: told ? null : "not told apart over datasets" }, told ? "" : "≈"),
];

function caption() {
  const { datasets, level, budget } = choice;
  const over = datasets.length === 1 ? named(data.datasets[datasets[0]]) : kinds(datasets.map((d) => data.datasets[d]), data.origins);
  const known = data.budgets.length > 1 ? `, ${data.budgets[budget].words}` : "";
  return `${choice.metric.replace("_", "-")} over ${over} at ρ = ${data.levels[level]} %${known}`;
}

function legend() {
  const lines = [
    "± is the 95 % interval of the mean when whole split groups are drawn anew, on the datasets shown.",
    data.joint && "≈ marks methods whose paired difference to the first holds zero: the data do not tell them apart.",
    choice.datasets.length > 2 &&
    "Below the difference to the first: its interval when datasets are drawn anew, each counting the same.",
    asRun() &&
    "Place among like: 95 % interval of the rank among methods that read the same labels, by a paired bootstrap over datasets and split groups; whoever shares a letter is not surely behind its first.",
    ...data.marks,
    data.failures.length > 0 &&
    `${count(data.failures.length, "cell")} failed; the first: ${data.failures[0].join(" ")}`,
  ];
  return h("ul", { class: "notes" }, lines.filter(Boolean).map((line) => h("li", {}, line)));
}
