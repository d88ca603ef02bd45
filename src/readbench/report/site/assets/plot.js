/** Series on a canvas. */

import { colour } from "site/dom";

const EDGE = 4;

/**
 * Draw lines over one another.
 *
 * `lines` are { series, paint, width, dash, range }: `range` is the [low, high] that fills the height, `paint` a colour
 * name of the style sheet. Where the fault fills a part of the window, that part is shaded `depth` pixels high.
 */
export function draw(canvas, lines, { from, to, partly }, depth = Infinity) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width || !height) return;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.lineJoin = "round";
  if (partly) {
    const [inner, shaded] = [width - 2 * EDGE, Math.min(depth, height)];
    pen.fillStyle = colour(depth < height ? "fault" : "span");
    pen.fillRect(EDGE + from * inner, height - shaded, (to - from) * inner, shaded);
  }
  for (const line of lines) trace(pen, line, width, height);
}

function trace(pen, { series, paint, width: thickness = 1.4, dash = [], range }, width, height) {
  const [low, high] = range;
  const last = series.values.length - 1 || 1;
  const x = (i) => EDGE + (i / last) * (width - 2 * EDGE);
  const y = (value) => (high > low ? height - EDGE - ((value - low) / (high - low)) * (height - 2 * EDGE) : height / 2);
  pen.strokeStyle = colour(paint);
  pen.lineWidth = thickness;
  pen.setLineDash(dash);
  pen.beginPath();
  series.values.forEach((value, i) => (i ? pen.lineTo(x(i), y(value)) : pen.moveTo(x(i), y(value))));
  pen.stroke();
}

/** The range that holds several series. */
export function rangeOf(many) {
  const known = many.filter(Boolean);
  return [Math.min(...known.map(({ low }) => low)), Math.max(...known.map(({ high }) => high))];
}
