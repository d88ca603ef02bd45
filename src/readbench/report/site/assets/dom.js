/** Building elements. Text is only ever set as text, so no label can become markup. */

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") { for (const [key, own] of Object.entries(value)) element.style.setProperty(key, own); }
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** An HTML element: `h("a", { href: "#/" }, "home")`. `onclick` and the like add listeners; null is left out. */
export const h = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** An SVG element, built the same way. */
export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

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

/** A colour of the style sheet as the canvas needs it, in the theme of the moment. */
export function colour(name) {
  const probe = document.getElementById("announcer");
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
