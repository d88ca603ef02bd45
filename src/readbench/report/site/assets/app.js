/** Starts the page: header, theme, and the view that the address asks for. */

import { board } from "site/board";
import { browser, firstCase } from "site/case";
import { adopt } from "site/choice";
import { data } from "site/data";
import { dataset, datasets } from "site/dataset";
import { h } from "site/dom";
import { figures } from "site/figures";
import { method } from "site/method";
import { current, to } from "site/route";

const THEMES = ["auto", "light", "dark"];
const views = { "": board, method, datasets, dataset, case: browser, figures };
let shown = {};

async function show() {
  const { parts: [kind = "", ...rest], parameters } = current();
  adopt(parameters);
  shown = kind === "cases" ? await cases(parameters) : await (views[kind] ?? unknown)(rest);
  document.title = `${shown.title} · ${data.name} · READ-Bench`;
  document.getElementById("main").replaceChildren(shown.view);
  for (const link of document.querySelectorAll("#top nav a")) {
    const own = link.dataset.kinds.split(" ").includes(kind || "board");
    link.toggleAttribute("aria-current", own);
  }
  shown.drawn?.();
  window.scrollTo(0, 0);
}

const cases = (parameters) => {
  const first = firstCase(parameters);
  return first ? browser(first) : {
    title: "Cases",
    view: h("p", { class: "lead" }, "This run keeps no cases. Run it again: finished cells are kept."),
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
    h("button", {
      type: "button",
      id: "theme",
      onclick: () => paint(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]),
    }),
  ];
}

const theme = () => document.documentElement.dataset.theme ?? "auto";

function paint(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
  document.getElementById("theme").textContent = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" }[name];
  document.getElementById("theme").setAttribute("aria-label", `Theme: ${name}`);
  shown.drawn?.();
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
paint(localStorage.getItem("theme") ?? "auto");
addEventListener("hashchange", show);
addEventListener("keydown", pressed);
addEventListener("resize", () => shown.drawn?.());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.drawn?.());
show();
