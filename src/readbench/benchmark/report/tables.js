/** Tables sorted by a click on a heading: numbers from the greatest, names from the first. */

import { compare, sortValue } from "#web/order.js";

for (const table of document.querySelectorAll("table")) {
  const [heads, body] = [[...table.tHead.rows[0].cells], table.tBodies[0]];
  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const sorted = head.getAttribute("aria-sort");
      const down = sorted ? sorted === "ascending" : head.className === "number";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => sortValue(row.cells[column].textContent);
      body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b), down)));
    });
  });
}
