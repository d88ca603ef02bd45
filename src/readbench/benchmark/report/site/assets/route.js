/** Addresses: `#/PART/PART?KEY=VALUE`. Parts are encoded one by one, since names may hold anything. */

/** What an address asks for: its parts, and its parameters. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { parts, parameters: new URLSearchParams(query) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a view: `to(["method", text])`. */
export function to(parts, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

/** Change the address without a new entry in the history, and without showing the view again. */
export const replace = (address) => history.replaceState(null, "", address);

/** Go to a view. */
export const go = (address) => {
  location.hash = address;
};

/** The address of a case, as `readbench.benchmark.report.case_link` writes it. */
export const caseAddress = (dataset, seed, rho, query, first, second, parameters = {}) =>
  to(["case", dataset, seed, rho, query, first, second], parameters);
