/** The figures of the report, as they are in its folder. */

import { data } from "#site/data.js";
import { h } from "#web/dom.js";

const TYPE = "data:image/svg+xml;base64";

export const figures = () => ({
  title: "Figures",
  view: h("div", {}, h("div", { class: "title" }, h("h1", {}, "Figures")), data.figures.map(figure)),
});

const figure = ({ id, shows }) =>
  h(
    "figure",
    { class: "plate" },
    h("img", { src: `${TYPE},${document.getElementById(id).textContent}`, alt: shows }),
    h("figcaption", {}, shows),
  );
