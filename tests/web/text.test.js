import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { count, duration, kinds, named, score, signed } from "#site/format.js";
import { caseAddress, parse, to } from "#site/route.js";
import { measured, reading } from "#web/format.js";
import { compare, sortValue } from "#web/order.js";

describe("numbers as text", () => {
  test("a score has three digits, a missing one a dash", () => {
    assert.deepEqual([0.8734, 1, null, undefined].map(score), ["0.873", "1.000", "–", "–"]);
  });

  test("a difference has its sign", () => {
    assert.deepEqual([-0.25, 0.25, 0, null].map(signed), ["−0.250", "+0.250", "+0.000", "–"]);
  });

  test("a duration has a unit that reads well", () => {
    assert.deepEqual(
      [0.0123, 0.5, 1, 59.6, 119, 120, 3600, null].map(duration),
      ["12 ms", "500 ms", "1 s", "60 s", "120 s", "2 min", "60 min", "–"],
    );
  });

  test("a measured value has three digits and no needless zeros", () => {
    assert.deepEqual([1234.5, 0.12345, 5, -30.26].map((value) => measured(value)), ["1230", "0.123", "5", "-30.3"]);
    assert.equal(measured(2.264137, 6), "2.26414");
  });

  test("a reading says the value and the step", () => {
    assert.equal(reading({ value: 18.62, step: 127 }), "18.6 at 127");
    assert.equal(reading({ value: 18.62, step: 127 }, 6), "18.62 at 127");
  });

  test("one is singular", () => {
    assert.deepEqual([0, 1, 2].map((number) => count(number, "method")), ["0 methods", "1 method", "2 methods"]);
  });

  test("a mean says over how many of which kind it is", () => {
    const origins = [["real", ""], ["simulated", "†"]];
    const [real, simulated] = [{ origin: "real" }, { origin: "simulated" }];
    assert.equal(kinds([real, simulated, real], origins), "3 datasets (2 real, 1 simulated†)");
    assert.equal(kinds([simulated], origins), "1 dataset (simulated†)");
  });

  test("simulated and partial data are marked", () => {
    assert.equal(named({ title: "Tanks (simulated)", marks: "‡§" }), "Tanks ‡§");
    assert.equal(named({ title: "HAI", marks: "§" }), "HAI §");
    assert.equal(named({ title: "Road", marks: "" }), "Road");
  });
});

describe("addresses", () => {
  test("parts are encoded one by one, so names may hold anything", () => {
    assert.equal(to(["method", "charm+nr|dtw-i/x?"]), "#/method/charm%2Bnr%7Cdtw-i%2Fx%3F");
    assert.deepEqual(parse(to(["method", "a/b?c#d", "ρ 20 %"])).parts, ["method", "a/b?c#d", "ρ 20 %"]);
  });

  test("parameters come back", () => {
    const { parts, parameters } = parse(to([], { datasets: "a;b", rho: 20 }));
    assert.deepEqual([parts, parameters.get("datasets"), parameters.get("rho")], [[], "a;b", "20"]);
  });

  test("an empty address is the first page", () => {
    assert.deepEqual(parse("").parts, []);
    assert.deepEqual(parse("#/").parts, []);
  });

  test("what is not encoded well is taken as it stands", () => {
    assert.deepEqual(parse("#/method/100%").parts, ["method", "100%"]);
  });

  test("the address of a case is what the report writes", () => {
    assert.equal(
      caseAddress("sim_tanks", 0, 20, "run-3/7", "sonde|dtw-i", "euclidean"),
      "#/case/sim_tanks/0/20/run-3%2F7/sonde%7Cdtw-i/euclidean",
    );
  });
});

describe("order of rows", () => {
  const sorted = (values, down) => [...values].sort((a, b) => compare(a, b, down));

  test("numbers sort as numbers, in either direction", () => {
    assert.deepEqual(sorted([10, 9, 100], false), [9, 10, 100]);
    assert.deepEqual(sorted([10, 9, 100], true), [100, 10, 9]);
  });

  test("missing values stand last in either direction", () => {
    assert.deepEqual(sorted([null, 1, 2], false), [1, 2, null]);
    assert.deepEqual(sorted([null, 1, 2], true), [2, 1, null]);
  });

  test("names sort as people write them, not by capital letters", () => {
    assert.deepEqual(sorted(["b", "A", "C", "a"], false).map((name) => name.toLowerCase()), ["a", "a", "b", "c"]);
  });

  test("cells that hold numbers sort as numbers, dashes are missing, all else is text", () => {
    assert.deepEqual(["0.750", "12", "-", "–", " ", "sim_tanks", "1st try"].map(sortValue), [
      0.75, 12, null, null, null, "sim_tanks", "1st try",
    ]);
  });
});
