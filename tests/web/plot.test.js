import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { beside, draw, extent, nearest, pieces, pointsOf, rangeOf, scale, ticks, union } from "#web/plot.js";

/** A pen that remembers where lines and boxes were drawn, in pixels. */
function recorder() {
  const drawn = { lines: [], boxes: [], texts: [], dots: [], dashes: [] };
  return {
    drawn,
    beginPath: () => drawn.lines.push([]),
    moveTo: (x, y) => drawn.lines.at(-1).push([x, y]),
    lineTo: (x, y) => drawn.lines.at(-1).push([x, y]),
    stroke: () => {},
    fill: () => {},
    arc: (x, y) => drawn.dots.push([x, y]),
    setLineDash: (dash) => drawn.dashes.push(dash),
    fillRect(...box) {
      drawn.boxes.push([this.fillStyle, ...box]);
    },
    fillText: (text, x, y) => drawn.texts.push([text, x, y]),
    measureText: (text) => ({ width: 6 * text.length }),
  };
}

function drawnBy(plot, { width = 108, height = 58, pointer = null } = {}) {
  const pen = recorder();
  const found = draw(pen, plot, width, height, (name) => name, pointer);
  return { ...pen.drawn, found };
}

describe("ranges", () => {
  test("the extent of values is their least and their greatest", () => {
    assert.deepEqual(extent([3, -1, 2]), [-1, 3]);
    assert.deepEqual(extent(new Float32Array([5])), [5, 5]);
  });

  test("a hundred thousand values have an extent too", () => {
    assert.deepEqual(extent(Array.from({ length: 100_000 }, (_, i) => i)), [0, 99_999]);
  });

  test("a union holds every range", () => {
    assert.deepEqual(union([[1, 2], [-3, 0], [0, 1.5]]), [-3, 2]);
  });

  test("a band within the lines changes nothing", () => {
    assert.deepEqual(beside([-10, 10], [-2, 2]), [-10, 10]);
  });

  test("a band near the lines is shown with a rim", () => {
    assert.deepEqual(beside([-1, 1], [-2, 2]), [-2.2, 2.2]);
  });

  test("a band far from the lines does not flatten them: it gets their height at most", () => {
    assert.deepEqual(beside([100, 110], [-2, 2]), [90, 110]);
    assert.deepEqual(beside([-110, -100], [-2, 2]), [-110, -90]);
  });

  test("a constant line gets a quarter of the band as room", () => {
    assert.deepEqual(beside([0, 0], [-2, 2]), [-1, 1]);
  });

  test("the range of a plot is what it says, else what its lines need", () => {
    const lines = [{ values: [1, 2] }, { points: [[0, 5], [1, -1]] }];
    assert.deepEqual(rangeOf({ lines, range: [0, 1] }), [0, 1]);
    assert.deepEqual(rangeOf({ lines }), [-1, 5]);
    assert.deepEqual(rangeOf({ lines, band: [-3, 6] }), [-3.45, 6.45]);
    assert.deepEqual(rangeOf({ lines: [{ values: [7], range: [0, 9] }] }), [0, 9]);
  });
});

describe("scales and ticks", () => {
  test("a scale maps the ends of a range to the ends of the drawing", () => {
    const y = scale([10, 20], 100, 0);
    assert.deepEqual([10, 15, 20].map(y), [100, 50, 0]);
  });

  test("a range of no height lies in the middle", () => {
    assert.equal(scale([3, 3], 100, 0)(3), 50);
  });

  test("ticks are round and within the range", () => {
    assert.deepEqual(ticks([19, 30.3], 4), [20, 25, 30]);
    assert.deepEqual(ticks([-0.31, 0.29], 3), [-0.2, 0, 0.2]);
    assert.deepEqual(ticks([0, 1], 5), [0, 0.5, 1]);
  });

  test("there are never more ticks than asked for, nor none where the range spans a round value", () => {
    for (const [low, high] of [[0, 1], [-7, 13], [1e6, 1e6 + 8], [-1e-4, 3e-5], [99.9, 101.3], [-250, 4095]]) {
      for (const most of [2, 3, 4, 6]) {
        const found = ticks([low, high], most);
        assert.ok(found.length >= 1 && found.length <= most, `${low} ${high} ${most}: ${found}`);
        assert.ok(found.every((value) => value >= low && value <= high));
      }
    }
  });

  test("ticks carry no rounding dust", () => {
    assert.deepEqual(ticks([0.1, 0.35], 3).map(String), ["0.1", "0.2", "0.3"]);
  });

  test("a range of no height has no ticks", () => {
    assert.deepEqual(ticks([4, 4], 3), []);
    assert.deepEqual(ticks([Infinity, -Infinity], 3), []);
  });
});

describe("points", () => {
  test("evenly spaced values run from the beginning to the end of the window", () => {
    assert.deepEqual(pointsOf({ values: [4, 5, 6] }), [[0, 4], [0.5, 5], [1, 6]]);
    assert.deepEqual(pointsOf({ values: [4] }), [[0, 4]]);
  });

  test("a line of points says itself where they lie", () => {
    assert.deepEqual(pointsOf({ points: [[0.25, 1]] }), [[0.25, 1]]);
  });

  test("the pointer finds the nearest point, and its step in the whole window", () => {
    assert.deepEqual(nearest({ values: [4, 5, 6] }, 0.6, 201), { share: 0.5, value: 5, step: 100 });
    assert.deepEqual(nearest({ values: [4, 5, 6] }, 0.9), { share: 1, value: 6, step: 2 });
    assert.deepEqual(nearest({ points: [[0.1, 7], [0.9, 8]] }, 0.2, 11), { share: 0.1, value: 7, step: 1 });
  });

  test("a line without points has nothing under the pointer", () => {
    assert.equal(nearest({ values: [] }, 0.5), null);
  });
});

describe("drawing", () => {
  test("a line fills the canvas within its edge", () => {
    const { lines } = drawnBy({ lines: [{ values: [0, 10, 5], paint: "ink" }] });
    assert.deepEqual(lines, [[[4, 54], [54, 4], [104, 29]]]);
  });

  test("the spike of an envelope reaches the top", () => {
    const values = Array(512).fill(0);
    values[301] = 9;
    const { lines } = drawnBy({ lines: [{ values, paint: "ink" }] });
    assert.equal(Math.min(...lines[0].map(([, y]) => y)), 4);
    assert.equal(lines[0].length, 512);
  });

  test("a line with its own range does not follow that of the plot", () => {
    const { lines } = drawnBy({ lines: [{ values: [0, 1] }, { values: [0, 1], range: [0, 2] }], range: [0, 1] });
    assert.deepEqual(lines.map((line) => line[1][1]), [4, 29]);
  });

  test("dashes hold for their line alone", () => {
    const { dashes } = drawnBy({ lines: [{ values: [0, 1], dash: [4, 2] }, { values: [0, 1] }] });
    assert.deepEqual(dashes, [[4, 2], []]);
  });

  test("a band is cut at the canvas and never vanishes", () => {
    const inside = drawnBy({ lines: [{ values: [0, 10] }], range: [0, 10], band: [4, 6] });
    assert.deepEqual(inside.boxes, [["band", 4, 24, 100, 10]]);
    const outside = drawnBy({ lines: [{ values: [0, 10] }], range: [0, 10], band: [500, 600] });
    assert.deepEqual(outside.boxes, [["band", 4, 0, 100, 1]]);
  });

  test("a shaded stretch is as wide as its share and as deep as it says", () => {
    const whole = drawnBy({ lines: [{ values: [0, 1] }], shade: { from: 0.5, to: 1, paint: "span" } });
    assert.deepEqual(whole.boxes, [["span", 54, 0, 50, 58]]);
    const strip = drawnBy({ lines: [{ values: [0, 1] }], shade: { from: 0, to: 0.1, depth: 3, paint: "fault" } });
    assert.deepEqual(strip.boxes, [["fault", 4, 55, 10, 3]]);
  });

  test("ticks are written left of the plot, which makes room for them", () => {
    const { texts, lines } = drawnBy({ lines: [{ values: [0, 10] }], ticks: 3 });
    assert.deepEqual(texts.map(([text]) => text), ["0", "5", "10"]);
    assert.ok(texts.every(([, x]) => x < lines[0][0][0]));
    assert.ok(texts.every(([, , y]) => y >= 5 && y <= 53));
  });

  test("the pointer marks the main line and reads it", () => {
    const lines = [{ points: [[0, 0], [1, 0]] }, { values: [1, 2, 3], main: true }];
    const { found, dots } = drawnBy({ lines, steps: 101 }, { pointer: 55 });
    assert.deepEqual(found, { share: 0.5, value: 2, step: 50 });
    assert.equal(dots[0][0], 54);
  });

  test("a pointer beyond the edge reads the first or the last point", () => {
    const plot = { lines: [{ values: [1, 2, 3] }] };
    assert.equal(drawnBy(plot, { pointer: -9 }).found.value, 1);
    assert.equal(drawnBy(plot, { pointer: 999 }).found.value, 3);
    assert.equal(drawnBy(plot).found, null);
  });
});

describe("gaps and views", () => {
  test("a missing reading breaks the line and does not count for the range", () => {
    const { lines } = drawnBy({ lines: [{ values: [5, null, 7, 9] }] });
    assert.equal(lines[0].length, 3);
    assert.deepEqual(rangeOf({ lines: [{ values: [5, null, 7] }] }), [5, 7]);
    assert.deepEqual(pieces([[0, 5], [0.5, null], [1, 7]], [0, 1]), [[[0, 5]], [[1, 7]]]);
  });

  test("a channel without any reading is an empty plot", () => {
    assert.deepEqual(rangeOf({ lines: [{ values: [null, null] }], band: [2, 4] }).map(Number.isFinite), [true, true]);
  });

  test("a view shows its part, cut off at its edges, in its own range", () => {
    assert.deepEqual(pieces([[0, 0], [1, 8]], [0.25, 0.5]), [[[0.25, 2], [0.5, 4]]]);
    const plot = { lines: [{ values: [0, 8, 0, 100] }], view: [0, 0.5] };
    assert.deepEqual(rangeOf(plot)[0], 0);
    assert.ok(rangeOf(plot)[1] <= 50);
    const { lines, found } = drawnBy({ ...plot, steps: 4 }, { pointer: 36 });
    assert.deepEqual([lines[0][0][0], lines[0].at(-1)[0]], [4, 104]);
    assert.equal(found.step, 0);
  });

  test("marks along stand below the plot, those without room are left out", () => {
    const { texts } = drawnBy({ lines: [{ values: [0, 1] }], along: [[0.5, "12:00"], [0.52, "12:01"]] });
    assert.deepEqual(texts.map(([text]) => text), ["12:00"]);
  });
});
