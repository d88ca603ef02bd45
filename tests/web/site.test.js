import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";

import { RUN } from "./page.js";

const { asCsv, matches } = await import("#site/board.js");
const { firstCase } = await import("#site/case.js");
const { adopt, choice, parameters } = await import("#site/choice.js");
const { Cases, data, datasetAt, methodAt } = await import("#site/data.js");
const { toggled } = await import("#site/filters.js");
const { axisOf, tint } = await import("#site/marks.js");
const { standing } = await import("#site/method.js");
const { inOrder } = await import("#site/queries.js");
const { difference, estimate, overDatasets, ranked, real, seconds } = await import("#site/stats.js");

const ALL = { datasets: [0, 1], level: 0, budget: 0 };
const near = (actual, expected) => assert.ok(Math.abs(actual - expected) < 1e-6, `${actual} is not ${expected}`);

beforeEach(() => Object.assign(choice, { datasets: [0, 1], level: 0, budget: 1, metric: "NDCG@10" }));

describe("means and intervals", () => {
  test("a mean is over the chosen datasets", () => {
    near(estimate("NDCG@10", 1, ALL).mean, 0.6);
    near(estimate("NDCG@10", 1, { ...ALL, datasets: [1] }).mean, 0.7);
  });

  test("the interval of a mean adds the variances of its parts", () => {
    near(estimate("NDCG@10", 1, ALL).half, (1.959964 * 0.05) / 2);
  });

  test("a mean with a missing cell is missing", () => {
    assert.deepEqual(estimate("NDCG@10", 2, { ...ALL, budget: 1 }), { mean: null, half: null });
  });

  test("a metric without errors has a mean and no interval", () => {
    assert.deepEqual(estimate("macro_F1", 1, ALL), { mean: 1, half: null });
  });

  test("methods are ranked by their means, those without one last", () => {
    assert.deepEqual(ranked("NDCG@10", ALL), [1, 2, 0]);
    assert.deepEqual(ranked("NDCG@10", { ...ALL, budget: 1 }), [1, 0, 2]);
    assert.deepEqual(ranked("NDCG@10", { ...ALL, datasets: [0], budget: 1 }), [2, 1, 0]);
  });

  test("of a metric that counts errors, the least comes first, and those without one last", () => {
    data.smaller_is_better = ["NDCG@10"];
    try {
      assert.deepEqual(ranked("NDCG@10", { ...ALL, budget: 1 }), [0, 1, 2]);
    } finally {
      delete data.smaller_is_better;
    }
  });

  test("a paired difference takes the covariance off", () => {
    const joint = new Float32Array(2 * 2 * 2 * 9);
    joint.set([0, 0, 0, 0, 0.04, 0.03, 0, 0.03, 0.04], 0);
    const found = difference(2, 1, { ...ALL, datasets: [0] }, joint);
    near(found.mean, 0.1);
    near(found.half, 1.959964 * Math.sqrt(0.02));
    assert.equal(found.told, false);
  });

  test("a difference that is larger than its interval is told", () => {
    assert.equal(difference(2, 1, { ...ALL, datasets: [0] }, new Float32Array(2 * 2 * 2 * 9)).told, true);
  });

  test("without covariances, or without a mean, there is no difference", () => {
    assert.equal(difference(2, 1, ALL, null), null);
    assert.equal(difference(2, 1, { ...ALL, budget: 1 }, new Float32Array(2 * 2 * 2 * 9)), null);
  });

  test("over datasets, a difference has an interval when there are three", () => {
    assert.equal(overDatasets(1, 0, ALL), null);
    const found = overDatasets(1, 0, { ...ALL, datasets: [0, 1, 1, 0] }); // differences .4, .5, .5, .4
    near(found.mean, 0.45);
    assert.ok(found.low >= 0.4 && found.low < 0.43 && found.high > 0.47 && found.high <= 0.5 + 1e-9);
    assert.equal(found.told, true);
    assert.deepEqual(overDatasets(1, 0, { ...ALL, datasets: [0, 1, 1, 0] }), found);
    assert.equal(overDatasets(2, 0, { ...ALL, datasets: [0, 1, 1], budget: 1 }), null);
  });

  test("real datasets have a mean of their own where others are simulated", () => {
    assert.deepEqual([real([0, 1]), real([1]), real([0])], [[1], [], []]);
  });

  test("times are summed over the stages and missing where one is", () => {
    near(seconds(1, [0, 1]), 3.5);
    assert.equal(seconds(2, [0, 1]), null);
  });
});

describe("the choice", () => {
  test("what is not chosen is not in the address", () => {
    assert.deepEqual(parameters(), {});
  });

  test("an address gives the same choice again", () => {
    Object.assign(choice, { datasets: [1], level: 1, budget: 0, metric: "macro_F1" });
    const said = parameters();
    assert.deepEqual(said, { datasets: "hai", rho: 20, labels: "5", metric: "macro_F1" });
    Object.assign(choice, { datasets: [0, 1], level: 0, budget: 1, metric: "NDCG@10" });
    adopt(new URLSearchParams(said));
    assert.deepEqual({ ...choice }, { datasets: [1], level: 1, budget: 0, metric: "macro_F1" });
  });

  test("what an address does not know stays as it is", () => {
    adopt(new URLSearchParams({ datasets: "nowhere", rho: "15", labels: "none", metric: "speed" }));
    assert.deepEqual({ ...choice }, { datasets: [0, 1], level: 0, budget: 1, metric: "NDCG@10" });
  });

  test("a dataset is taken out and put back in its place", () => {
    assert.deepEqual(toggled([0, 1, 2], 1, 3), [0, 2]);
    assert.deepEqual(toggled([0, 2], 1, 3), [0, 1, 2]);
  });

  test("without any dataset, all of them are chosen", () => {
    assert.deepEqual(toggled([1], 1, 3), [0, 1, 2]);
  });

  test("a method is found by its title, family or text, however it is written", () => {
    const method = RUN.methods[2];
    const sought = ["charm", " SHAPE ", "+nr", "dtw"];
    assert.deepEqual(sought.map((text) => matches(method, text)), [true, true, true, false]);
    assert.equal(matches(method, ""), true);
  });

  test("datasets and methods are found by their names", () => {
    assert.deepEqual([datasetAt("hai"), datasetAt("x"), methodAt("charm+nr"), methodAt("x")], [1, -1, 2, -1]);
  });

  test("cases without details are those of the two best methods on the first task", () => {
    assert.deepEqual(firstCase(new URLSearchParams()), ["tanks", "7", "0", "", "dtw-i", "random"]);
    assert.deepEqual(firstCase(new URLSearchParams({ dataset: "hai", a: "random" })), [
      "hai", "7", "0", "", "random", "dtw-i",
    ]);
  });
});

describe("marks", () => {
  test("an axis holds every interval", () => {
    assert.deepEqual(axisOf([{ mean: 0.5, half: 0.25 }, { mean: 1, half: null }, { mean: null, half: null }]), {
      low: 0.25,
      high: 1,
    });
    assert.deepEqual(axisOf([{ mean: null, half: null }]), { low: 0, high: 1 });
  });

  test("black follows the theme", () => {
    assert.deepEqual([tint({ colour: "#000000" }), tint({ colour: "#0072b2" })], ["var(--ink)", "#0072b2"]);
  });
});

/** A pack as `readbench.benchmark.report.site` writes it: three windows, two of them queries, one column. */
function packed() {
  const header = {
    queries: [0, 2],
    columns: [[0, "all", 1], [0, "5", 2]],
    windows: {
      labels: ["leak", "noise"],
      channel_names: ["flow", "speed"],
      id: ["q0", "w1", "q2"],
      label: [0, 0, 1],
      length: [100, 100, 100],
      span: [[25, 75], [0, 100], [0, 0]],
      channels: [[1, 0], [0], []],
      at: [0, 6, 9],
      points: [3, 3, 0],
      low: [[10, -1], [0], []],
      high: [[20, 1], [255], []],
    },
  };
  let text = JSON.stringify(header);
  text += " ".repeat((4 - (text.length % 4)) % 4);
  const values = new Float32Array([0.25, 0.75, 0.5, 0.5]);
  const lists = new Uint16Array(40).fill(0xffff);
  lists.set([1, 2], 0);
  lists.set([0], 10);
  const codes = new Uint8Array([0, 255, 51, 0, 255, 0, 0, 100, 255]);
  const parts = [new Uint32Array([text.length]), new TextEncoder().encode(text), values, lists, codes];
  const bytes = parts.map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  const joined = new Uint8Array(bytes.reduce((sum, part) => sum + part.length, 0));
  bytes.reduce((at, part) => (joined.set(part, at), at + part.length), 0);
  return new Cases(joined.buffer);
}

describe("a pack of cases", () => {
  test("lists end where there are no more windows", () => {
    const cases = packed();
    assert.deepEqual([cases.list(0, 0), cases.list(0, 1), cases.list(1, 0)], [[1, 2], [0], []]);
  });

  test("values are those of the column and the query", () => {
    const cases = packed();
    assert.deepEqual([cases.value(0, 0), cases.value(0, 1), cases.value(1, 1)], [0.25, 0.75, 0.5]);
  });

  test("a method has its column under the labels it was given, else under its first", () => {
    const cases = packed();
    assert.deepEqual([cases.column(0, 0, 1), cases.column(0, 0, 2), cases.column(1, 0, 1)], [0, 1, undefined]);
  });

  test("a series has its own scale, and the share of it that is faulty", () => {
    const own = packed().series(0, "speed");
    assert.deepEqual([...own.values], [10, 20, 12]);
    assert.deepEqual([own.from, own.to, own.partly, own.length], [0.25, 0.75, true, 100]);
    assert.deepEqual([...packed().series(0, "flow").values], [-1, 1, -1]);
  });

  test("a window that is faulty from end to end is not shaded", () => {
    assert.equal(packed().series(1, "flow").partly, false);
  });

  test("a channel that a window has not, or may not show, has no series", () => {
    assert.equal(packed().series(1, "speed"), null);
    assert.equal(packed().series(2, "flow"), null);
  });
});

describe("the list of queries", () => {
  const scene = (kept) => ({ cases: packed(), columns: [0, undefined], kept: { label: "", sort: "asked", ...kept } });

  test("queries stand as they were asked", () => {
    assert.deepEqual(inOrder(scene({})), [0, 1]);
  });

  test("queries of one class, and all where the task has no such class", () => {
    assert.deepEqual(inOrder(scene({ label: "noise" })), [1]);
    assert.deepEqual(inOrder(scene({ label: "unknown" })), [0, 1]);
  });

  test("the worst of A, and the largest difference, come first", () => {
    const both = { ...scene({ sort: "difference" }), columns: [0, 1] };
    both.cases.values.set([0.5, 1, 0.5, 0.1]);
    assert.deepEqual(inOrder(both), [1, 0]);
    both.kept.sort = "first";
    assert.deepEqual(inOrder(both), [0, 1]);
    both.kept.sort = "second";
    assert.deepEqual(inOrder(both), [1, 0]);
  });
});

describe("the page of a method", () => {
  test("a place is an interval among like, and an order is no place", () => {
    assert.equal(standing({ place: "1 to 2", of: 4 }, 0, 44), "place 1 to 2 of the 4 that read the same labels");
    assert.equal(standing(undefined, 2, 44), "3 of 44 in the order of means");
  });
});

describe("the table as a file", () => {
  test("one line a row, with quotes where a cell needs them", () => {
    const method = {
      text: "sonde(a=1,b=2)",
      title: 'The "best"',
      labels: "none",
      retained: 0.5,
      cpu_seconds: 2,
      chosen_on: ["skab", "ctsr"],
    };
    const placed = { place: "1 to 2", tie: "a" };
    const [header, line] = asCsv([{ method, estimated: { mean: 0.5, half: null }, placed, hits: 0.9, seconds: 3 }], "NDCG@10").split("\n");
    assert.equal(
      header,
      "method,title,labels,place,tie,NDCG@10,half_interval,HR@10,unseen_assets_retain,cpu_seconds,seconds,chosen_on",
    );
    assert.equal(line, '"sonde(a=1,b=2)","The ""best""",none,1 to 2,a,0.5,,0.9,0.5,2,3,skab ctsr');
  });
});
