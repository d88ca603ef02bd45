// Small line plots on canvas: drawn when they are seen, redrawn when something changes.
const DRAWN = new WeakMap();
const SEEN = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) paint(entry.target);
}, { rootMargin: "200px" });
const SIZED = new ResizeObserver((entries) => {
  for (const entry of entries) paint(entry.target);
});

// Show `plot` ({ values, mean, deviation, span, other }) on a canvas; `other` is [[x, y], ...] with x from 0 to 1.
export function show(canvas, plot) {
  const known = DRAWN.has(canvas);
  DRAWN.set(canvas, plot);
  if (known) paint(canvas);
  else {
    SEEN.observe(canvas);
    SIZED.observe(canvas);
  }
}

export function repaintAll(root) {
  for (const canvas of root.querySelectorAll("canvas")) paint(canvas);
}

function paint(canvas) {
  const plot = DRAWN.get(canvas);
  const { width, height } = canvas.getBoundingClientRect();
  if (!plot || !width) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const [low, high] = extent(plot);
  const x = (share) => 1 + share * (width - 2);
  const y = (value) => height - 4 - ((value - low) / (high - low || 1)) * (height - 8);
  if (plot.span) {
    pen.fillStyle = paintOf("span");
    pen.fillRect(x(plot.span[0]), 0, x(plot.span[1]) - x(plot.span[0]), height);
  }
  if (plot.deviation) {
    pen.fillStyle = paintOf("band");
    const [top, bottom] = [plot.mean + 2 * plot.deviation, plot.mean - 2 * plot.deviation].map(y);
    pen.fillRect(0, Math.max(0, top), width, Math.max(1, Math.min(height, bottom) - Math.max(0, top)));
  }
  const last = Math.max(1, plot.values.length - 1);
  if (plot.other) line(pen, plot.other.map(([share, value]) => [x(share), y(value)]), paintOf("other"), 1.6);
  line(pen, plot.values.map((value, i) => [x(i / last), y(value)]), paintOf("own"), 1.5);
}

function line(pen, points, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.lineJoin = "round";
  pen.beginPath();
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
}

// Limits of both lines, and of the normal band where it does not flatten them.
function extent(plot) {
  const values = plot.other ? plot.values.concat(plot.other.map(([, value]) => value)) : plot.values;
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (plot.deviation) {
    const room = Math.max(high - low, plot.deviation);
    low = Math.min(low, Math.max(plot.mean - 2.2 * plot.deviation, low - room));
    high = Math.max(high, Math.min(plot.mean + 2.2 * plot.deviation, high + room));
  }
  return [low, high];
}

// The computed colour of a role: light-dark() is resolved only in real properties, so a probe element asks for it.
function paintOf(role) {
  let probe = document.getElementById(`paint-${role}`);
  if (!probe) {
    probe = document.createElement("i");
    probe.id = `paint-${role}`;
    probe.className = `paint ${role}`;
    probe.hidden = true;
    document.body.append(probe);
  }
  return getComputedStyle(probe).color;
}
