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
