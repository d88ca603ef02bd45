/** Starts the page: header, and the view that the address asks for. */

import { board } from "#site/board.js";
import { browser, firstCase } from "#site/case.js";
import { adopt } from "#site/choice.js";
import { data } from "#site/data.js";
import { dataset, datasets } from "#site/dataset.js";
import { figures } from "#site/figures.js";
import { method } from "#site/method.js";
import { parse, to } from "#site/route.js";
import { h } from "#web/dom.js";

const views = { "": board, method, datasets, dataset, case: browser, figures };
let shown = {};

async function show() {
  const { parts: [kind = "", ...rest], parameters } = parse(location.hash);
  adopt(parameters);
  shown = kind === "cases" ? await cases(parameters) : await (views[kind] ?? unknown)(rest);
  document.title = `${shown.title} · ${data.name} · READ-Bench`;
  document.getElementById("main").replaceChildren(shown.view);
  for (const link of document.querySelectorAll("#top nav a")) {
    const own = link.dataset.kinds.split(" ").includes(kind || "board");
    link.toggleAttribute("aria-current", own);
  }
  shown.placed?.();
  window.scrollTo(0, 0);
}

const cases = (parameters) => {
  const first = firstCase(parameters);
  return first ? browser(first) : {
    title: "Cases",
    view: h("p", { class: "lead" }, data.no_cases),
  };
};

const unknown = () => ({
  title: "Not found",
  view: h("p", { class: "lead" }, "There is nothing here. ", h("a", { href: to([]) }, "To the leaderboard")),
});

function header() {
  const link = (text, address, kinds) => h("a", { href: address, "data-kinds": kinds }, text);
  return [
    h("a", { class: "brand", href: to([]) }, h("span", {}, "READ-Bench"), h("small", {}, data.name)),
    h(
      "nav",
      { "aria-label": "Pages" },
      link("Leaderboard", to([]), "board method"),
      link("Datasets", to(["datasets"]), "datasets dataset"),
      link("Cases", to(["cases"]), "cases case"),
      data.figures.length > 0 && link("Figures", to(["figures"]), "figures"),
    ),
    h("button", { type: "button", id: "theme" }),
  ];
}

/** Letters belong to whoever is typing; everything else to the view. */
function pressed(event) {
  const typing = event.target.closest("input, select, textarea");
  if (shown.keys && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) shown.keys(event);
}

document.getElementById("top").append(...header());
document.getElementById("foot").append(
  h("p", {}, `Made by readbench ${data.code}. Everything on this page is in this one file.`),
);
addEventListener("hashchange", show);
addEventListener("keydown", pressed);
show();
