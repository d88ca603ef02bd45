/** Controls, and parts of the page that are drawn anew. */

import { h } from "#web/dom.js";

/** A labelled drop-down list; `options` are [value, text] pairs, `change` gets the chosen value. */
export function choose(label, options, chosen, change) {
  const items = options.map(([value, text]) =>
    h("option", { value, selected: String(value) === String(chosen) }, text)
  );
  return h(
    "label",
    { class: "field" },
    h("span", {}, label),
    h("select", { onchange: (event) => change(event.target.value) }, items),
  );
}

/** A row of buttons of which one is pressed. */
export function segments(label, options, chosen, change) {
  const buttons = options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => change(value) }, text)
  );
  return h(
    "div",
    { class: "field" },
    h("span", {}, label),
    h("div", { class: "segments", role: "group", "aria-label": label }, buttons),
  );
}

/** Replace what a view shows; the focus stays on the control that stands where the focused one stood. */
export function redraw(view, ...children) {
  const controls = () => [...view.querySelectorAll("a, button, input, select, [tabindex='0']")];
  const place = controls().indexOf(document.activeElement);
  view.replaceChildren(...children.filter(Boolean));
  if (place >= 0) controls()[place]?.focus({ preventScroll: true });
}

/** Say something to screen readers. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
