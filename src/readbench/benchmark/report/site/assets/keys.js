/** The keyboard of the case browser. */

import { h } from "#web/dom.js";

const KEYS = [
  ["j k", "next and previous query"],
  ["↑ ↓ ← →", "move between the cards"],
  ["c", "next channel"],
  ["o", "lay the query over all cards"],
  ["y", "one scale for all, or each its own"],
  ["x", "swap the methods"],
];

/** What the keys do, for all to read. */
export function keyboardHelp() {
  return h(
    "dl",
    { class: "keys", "aria-label": "Keyboard" },
    KEYS.map(([keys, text]) =>
      h("div", {}, h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, text))
    ),
  );
}

/** Answer a key. */
export function pressed(event, state, view) {
  const { kept: own, cases: found } = state;
  const flip = (name) => {
    own[name] = !own[name];
    state.render();
  };
  const actions = {
    j: () => state.step(1),
    k: () => state.step(-1),
    o: () => flip("overlay"),
    y: () => flip("shared"),
    x: () => state.open({ methods: [...state.methods].reverse() }),
    c: () => {
      const names = found.channels(found.queries[state.query]);
      own.channel = names[(names.indexOf(state.channel) + 1) % names.length];
      state.render();
    },
    ArrowDown: () => move(view, 0, 1),
    ArrowUp: () => move(view, 0, -1),
    ArrowRight: () => move(view, 1, 0),
    ArrowLeft: () => move(view, -1, 0),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

/** Move the focus among the cards. */
function move(view, across, down) {
  const lists = [...view.querySelectorAll(".found")].map((list) => [...list.querySelectorAll(".card")]);
  const side = lists.findIndex((cards) => cards.includes(document.activeElement));
  const place = side < 0 ? -1 : lists[side].indexOf(document.activeElement);
  const cards = lists[Math.min(1, Math.max(0, side < 0 ? 0 : side + across))];
  cards[Math.min(cards.length - 1, Math.max(0, place + (side < 0 ? 1 : down)))]?.focus();
}
