// What the theme leaves out for those who use a keyboard or a screen reader.
"use strict";

const seen = new Map();

const improve = () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const bar of document.querySelectorAll(".md-code__nav:not([aria-label])")) bar.setAttribute("aria-label", "Block");
  for (const frame of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    frame.tabIndex = 0; // wide tables scroll with the arrow keys
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", "Table");
  }
  for (const code of document.querySelectorAll(".md-typeset pre > code:not([tabindex])")) code.tabIndex = 0;
  for (const list of document.querySelectorAll("nav[aria-label]:not([data-told])")) {
    const name = list.getAttribute("aria-label");
    const times = (seen.get(name.toLowerCase()) ?? 0) + 1;
    seen.set(name.toLowerCase(), times);
    list.dataset.told = "";
    if (times > 1) list.setAttribute("aria-label", `${name} (${times})`);
  }
};

improve();
new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });
