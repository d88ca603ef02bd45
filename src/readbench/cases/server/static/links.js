/** Links into a case page: `#like=CASE&view=FROM,TO`, the case laid over it and the part that is shown. */

/** What a hash asks for; whatever makes no sense asks for nothing. */
export function readLink(hash) {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const view = (asked.get("view") ?? "").split(",").map(Number);
  const fits = view.length === 2 && view.every((share) => share >= 0 && share <= 1) && view[0] < view[1];
  return { like: asked.get("like") ?? "", view: fits ? view : null };
}

/** The hash of what a page shows; "" where that is what it shows anyway. */
export function writeLink({ like, view }) {
  const parts = [];
  if (like) parts.push(`like=${encodeURIComponent(like)}`);
  if (view) parts.push(`view=${view.map((share) => Number(share.toFixed(4))).join(",")}`);
  return parts.length ? `#${parts.join("&")}` : "";
}
