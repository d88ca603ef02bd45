import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { marks, moveView, stepWords, timeOf } from "#service/clock.js";
import { keyed, proposed, shareOf, stepAt, words } from "#service/onset.js";
import { closerPoints, far, laidOver, moved, plotOf, question, titled } from "#service/signals.js";
import { nearest, rangeOf } from "#web/plot.js";

const SILENT = { start: null, rate: null, zone: "", shift: 0 };
const MAY = { start: 1714572000, rate: 1, zone: "+02:00", shift: 7200 };
const CHANNEL = { name: "flow", unit: "", values: [1, 2, 3], asked: [1, 3], mean: 10, deviation: 2, departure: 3.26 };

describe("the page of a case", () => {
  test("how far a channel is from normal is said where normal is known", () => {
    assert.equal(far(CHANNEL), "3.3 sd");
    assert.equal(far({ ...CHANNEL, deviation: null }), "");
  });

  test("a channel is drawn beside its normal band, with the stretch that departs most", () => {
    const plot = plotOf(CHANNEL, { span: [0.5, 1], steps: 300, clock: SILENT }, null);
    assert.deepEqual(plot.band, [6, 14]);
    assert.deepEqual([plot.shade.from, plot.shade.to], [0.5, 1]);
    assert.equal(nearest(plot.lines[0], 1, plot.steps).step, 299);
  });

  test("without normal there is no band, without departure no shade", () => {
    const plot = plotOf({ ...CHANNEL, mean: null, deviation: null }, { span: null, steps: 3, clock: SILENT }, null);
    assert.deepEqual([plot.band, plot.shade], [null, null]);
    assert.deepEqual(rangeOf(plot), [1, 3]);
  });

  test("the chosen case lies under the window's own line, which is the one that is read", () => {
    const { lines } = plotOf(CHANNEL, { span: null, steps: 3, clock: SILENT }, [[0, 9], [1, 9]]);
    assert.deepEqual(lines.map(({ main }) => Boolean(main)), [false, true]);
    assert.deepEqual(lines[0].points, [[0, 9], [1, 9]]);
  });

  test("a case is laid over in the window's own units, step by step of the alignment", () => {
    const own = { window_series: [0, 0, 0], case_series: [1, 3, -1] };
    assert.deepEqual(laidOver([[0, 0], [1, 1], [2, 2]], own, CHANNEL), [[0, 12], [0.5, 16], [1, 8]]);
  });

  test("steps of a case that fall on one step of the window are averaged", () => {
    const own = { window_series: [0, 0], case_series: [1, 3, -1] };
    assert.deepEqual(laidOver([[0, 0], [0, 1], [1, 2]], own, CHANNEL), [[0, 14], [1, 8]]);
  });

  test("a step of a case may be laid on several of the window, and a window of one step has a place", () => {
    const own = { window_series: [0, 0, 0], case_series: [2] };
    assert.deepEqual(laidOver([[0, 0], [1, 0], [2, 0]], own, CHANNEL).map(([, value]) => value), [14, 14, 14]);
    assert.deepEqual(laidOver([[0, 0]], { window_series: [0], case_series: [0] }, CHANNEL), [[0, 10]]);
  });

  test("a kept case is asked about by name, a file by readings that are evenly spaced", () => {
    assert.deepEqual(question("c1", "pump", [CHANNEL], "c2"), { case: "c1", like: "c2" });
    assert.deepEqual(question("", "pump", [CHANNEL], "c2"), {
      window: { channels: ["flow"], values: [[1, 3]], asset: "pump" },
      like: "c2",
    });
  });

  test("a file that has a time before is asked about with it", () => {
    const asked = question("", "", [{ ...CHANNEL, asked_before: [9, 8] }], "c2");
    assert.deepEqual(asked.window.before, [[9, 8]]);
    assert.equal(question("", "", [{ ...CHANNEL, asked_before: [] }], "c2").window.before, undefined);
  });

  test("the keyboard stays within the list", () => {
    assert.deepEqual([moved(-1, 1, 3), moved(1, 1, 3), moved(2, 1, 3), moved(0, -1, 3), moved(-1, -1, 3)], [
      0, 2, 2, 0, 0,
    ]);
  });
});

describe("the time axis", () => {
  test("a channel is named with its unit", () => {
    assert.equal(titled(CHANNEL), "flow");
    assert.equal(titled({ ...CHANNEL, unit: "bar" }), "flow [bar]");
  });

  test("marks are round times of the recording's own clock", () => {
    assert.deepEqual(marks([0, 1800], MAY, 4), [[0, "16:00"], [600, "16:10"], [1200, "16:20"], [1800, "16:30"]]);
    assert.deepEqual(marks([10, 40], MAY, 4).map(([, text]) => text), ["16:00:10", "16:00:20", "16:00:30", "16:00:40"]);
    assert.deepEqual(marks([0, 3 * 86400], MAY, 4).map(([, text]) => text), ["2024-05-02", "2024-05-03", "2024-05-04"]);
  });

  test("a recording without dates has seconds, one without times has steps", () => {
    assert.deepEqual(marks([0, 100], { ...SILENT, start: 10, rate: 2 }, 3), [[20, "20 s"], [60, "40 s"], [100, "60 s"]]);
    assert.deepEqual(marks([0, 100], SILENT, 3), [[0, "0"], [50, "50"], [100, "100"]]);
    assert.equal(stepWords(7, SILENT), "step 7");
    assert.equal(stepWords(7, MAY), "16:00:07");
  });

  test("a view is halved around its middle, shifted, and never leaves the window", () => {
    assert.deepEqual(moveView(null, { factor: 0.5 }, 1001), [0.25, 0.75]);
    assert.deepEqual(moveView([0.25, 0.75], { shift: 0.5 }, 1001), [0.5, 1]);
    assert.deepEqual(moveView([0.5, 1], { shift: 0.5 }, 1001), [0.5, 1]);
    assert.equal(moveView([0.5, 1], { factor: 2 }, 1001), null);
    assert.ok(moveView([0.5, 0.501], { factor: 0.5 }, 1001)[1] > 0.5);
  });

  test("a part that was drawn closer lies where its steps are", () => {
    assert.deepEqual(closerPoints({ first: 10, last: 13, values: { flow: [1, null, 3] } }, "flow", 21), [
      [0.5, 1], [0.55, null], [0.6, 3],
    ]);
  });
});

const LONG = { signals: { steps: 1001, clock: SILENT }, onset: 0.25, long: true };

describe("the line that marks the onset", () => {
  test("a place on the plot is a step, and the last step stays in the window", () => {
    assert.deepEqual([0, 0.25, 1, 1.5, -1].map((share) => stepAt(share, 1001)), [0, 250, 1000, 1000, 0]);
    assert.equal(shareOf(stepAt(0.25, 1001), 1001), 0.25);
    assert.equal(shareOf(0, 1), 0);
  });

  test("a long recording proposes where it departs from normal, others nothing", () => {
    assert.equal(proposed(LONG), 250);
    assert.equal(proposed({ ...LONG, long: false }), 0);
    assert.equal(proposed({ ...LONG, onset: null }), 0);
  });

  test("keys move it a little, a lot, by one step, and to both ends", () => {
    const after = (key, shiftKey = false) => keyed({ key, shiftKey }, 500, 1001);
    assert.deepEqual(["ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"].map((key) => after(key)), [505, 505, 495, 495]);
    assert.deepEqual([after("ArrowRight", true), after("ArrowLeft", true)], [501, 499]);
    assert.deepEqual(["PageUp", "PageDown", "Home", "End"].map((key) => after(key)), [550, 450, 0, 1000]);
    assert.deepEqual([after("a"), after("Tab"), after("constructor")], [null, null, null]);
    assert.equal(keyed({ key: "ArrowLeft" }, 0, 8), 0);
    assert.equal(keyed({ key: "ArrowRight" }, 0, 8), 1);
  });

  test("it says the step, the time where there is one, and what lies on both sides", () => {
    assert.equal(words(0, LONG), "No onset marked: all 1001 steps are the window.");
    assert.equal(words(250, LONG), "Began at step 250: 250 steps before, 751 in the window.");
    const timed = { ...LONG, signals: { steps: 1001, clock: { ...SILENT, start: 10, rate: 2 } } };
    assert.match(words(250, timed), /step 250, 135 s: 250 steps/);
    assert.equal(timeOf(60, { ...MAY, zone: "", shift: 0 }), "2024-05-01 14:01:00");
    assert.equal(timeOf(60, MAY), "2024-05-01 16:01:00 +02:00");
  });
});
