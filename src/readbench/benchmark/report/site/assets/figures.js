/** The figures of the report, as they are in its folder: as wide as the page, and larger at a click or a key. */

import { data } from "#site/data.js";
import { h } from "#web/dom.js";

const TYPE = "data:image/svg+xml;base64";

export const figures = () => ({
  title: "Figures",
  view: h("div", {}, h("div", { class: "title" }, h("h1", {}, "Figures")), data.figures.map(figure)),
});

function figure({ id, shows, name }) {
  const image = h("img", { src: `${TYPE},${document.getElementById(id).textContent}`, alt: shows });
  const frame = h("div", { class: "zoom", tabindex: "0", role: "group", "aria-label": shows }, image);
  const button = h("button", { type: "button", class: "chip" }, "Enlarge");
  const turn = () => {
    const large = frame.classList.toggle("large");
    button.textContent = large ? "Fit to the page" : "Enlarge";
  };
  button.addEventListener("click", turn);
  image.addEventListener("click", turn);
  const download = h("a", { href: image.src, download: `${name}.svg` }, "SVG");
  return h("figure", { class: "plate" }, frame, h("figcaption", {}, shows, " ", button, " ", download));
}
