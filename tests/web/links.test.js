import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { readLink, writeLink } from "#service/links.js";

describe("links into a case page", () => {
  test("what is written is read", () => {
    for (const shown of [{ like: "a b/ü&#", view: [0.25, 0.5] }, { like: "", view: [0, 1] }, { like: "x", view: null }]) {
      assert.deepEqual(readLink(writeLink(shown)), shown);
    }
    assert.equal(writeLink({ like: "", view: null }), "");
  });

  test("what makes no sense asks for nothing", () => {
    for (const hash of ["", "#", "#view=0.5", "#view=0.5,0.2", "#view=a,b", "#view=-1,2", "#other=1"]) {
      assert.deepEqual(readLink(hash), { like: "", view: null });
    }
  });
});
