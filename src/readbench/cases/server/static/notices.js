/** The list looks again by itself: what is new is put on top, and nothing that is being read moves or loses the focus. */

const EVERY_MS = 15000;
const list = document.getElementById("notices");
const keyed = (within) => [...within.querySelectorAll(".notice")];

async function look() {
  if (document.hidden) return;
  const answer = await fetch(location.href).catch(() => null); // the service is away: the next look may find it
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const known = new Set(keyed(list).map((notice) => notice.dataset.key));
  const added = keyed(fresh).filter((notice) => !known.has(notice.dataset.key));
  if (!added.length) return;
  list.querySelector(".empty")?.remove();
  list.prepend(...added.map((notice) => document.importNode(notice, true)));
}

setInterval(look, EVERY_MS);
