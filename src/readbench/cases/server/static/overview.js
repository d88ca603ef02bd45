/** Points and names of one fault light up together. */

const marked = [...document.querySelectorAll("#map circle")];

function light(fault) {
  for (const point of marked) point.classList.toggle("dim", fault !== null && point.dataset.fault !== fault);
}

for (const row of document.querySelectorAll("#faults li")) {
  for (const name of ["mouseenter", "focusin"]) row.addEventListener(name, () => light(row.dataset.fault));
  for (const name of ["mouseleave", "focusout"]) row.addEventListener(name, () => light(null));
}
for (const point of marked) {
  point.addEventListener("mouseenter", () => light(point.dataset.fault));
  point.addEventListener("mouseleave", () => light(null));
}
