import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

let [kept, root, button, said, loaded, visits] = [];

/** A browser as far as the theme needs one; every visit runs the script anew, as every page does. */
async function visit() {
  root = { dataset: {} };
  button = {
    addEventListener: (_, turn) => { button.click = turn; },
    setAttribute: (name, value) => { button[name] = value; },
  };
  globalThis.localStorage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  globalThis.document = {
    documentElement: root,
    getElementById: () => button,
    addEventListener: (_, ready) => { loaded = ready; },
  };
  globalThis.window = { dispatchEvent: ({ type }) => said.push(type) };
  globalThis.matchMedia = () => ({ addEventListener: (_, changed) => { root.systemChanged = changed; } });
  await import(`#web/theme.js?visit=${visits++}`);
}

visits = 0;
beforeEach(() => {
  [kept, said] = [new Map(), []];
});

test("without a choice the page is as the system has it", async () => {
  await visit();
  loaded();
  assert.deepEqual(root.dataset, {});
  assert.deepEqual([button.textContent, button["aria-label"]], ["◐ Auto", "Theme: auto"]);
});

test("a click goes round, and every change is told", async () => {
  await visit();
  loaded();
  const seen = [1, 2, 3].map(() => (button.click(), root.dataset.theme));
  assert.deepEqual(seen, ["light", "dark", undefined]);
  assert.deepEqual(said, ["theme", "theme", "theme"]);
});

test("the choice holds on the next page before it is drawn", async () => {
  await visit();
  loaded();
  button.click();
  button.click();
  await visit();
  assert.equal(root.dataset.theme, "dark");
});

test("a choice that nobody knows is none", async () => {
  kept.set("readbench-theme", "sepia");
  await visit();
  assert.deepEqual(root.dataset, {});
});

test("plots are told when the system changes", async () => {
  await visit();
  root.systemChanged();
  assert.deepEqual(said, ["theme"]);
});
