/** The order of a table's rows. */

/** Order of two values, the greater first where `down`; missing ones stand last in either direction. */
export function compare(a, b, down) {
  const [none, neither] = [a, b].map((value) => value === null || value === undefined);
  if (none || neither) return none - neither;
  const texts = typeof a === "string" || typeof b === "string";
  const sign = texts ? String(a).localeCompare(String(b)) : a - b;
  return down ? -sign : sign;
}

/** What the text of a cell sorts by: a number where it is one, nothing where it is a dash. */
export function sortValue(text) {
  const own = text.trim();
  if (own === "" || own === "-" || own === "–") return null;
  return Number.isFinite(Number(own)) ? Number(own) : own;
}
