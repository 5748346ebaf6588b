// Charts in plain SVG: one value a second, null where there was none.

import { h } from "./dom.js";

const WIDTH = 600;
export const HUES = 8;
const SHORTEST = 120;

/** Returns from where on lines are drawn: the first value, two minutes before the end at most, so that a young history fills the width. */
export const begun = (lines, seconds) =>
  Math.max(0, Math.min(...lines.map((values) => values.findIndex((v) => v !== null)).filter((i) => i >= 0), seconds - SHORTEST));

/** Returns the lowest and the highest value of some lines, never the same. */
export function range(lines, unit, extra = []) {
  let low = 0, high = unit === "ratio" ? 1 : -Infinity;
  for (const values of lines) for (const v of values) if (v !== null && v !== undefined) { if (v > high) high = v; if (v < low) low = v; }
  for (const v of extra) { if (v > high) high = v; if (v < low) low = v; }
  if (!Number.isFinite(high) || high <= low) high = low + 1;
  return unit === "ratio" ? [low, Math.max(1, high)] : [low, low + (high - low) * 1.08];
}

/** Returns the drawing instructions of one line. */
export function path(values, low, high, height, width = WIDTH) {
  const step = width / Math.max(1, values.length - 1), scale = (height - 2) / (high - low);
  let out = "", pen = false;
  values.forEach((value, i) => {
    if (value === null || value === undefined) { pen = false; return; }
    const x = (i * step).toFixed(1), y = (height - 1 - (value - low) * scale).toFixed(1);
    const alone = !pen && (values[i + 1] === null || values[i + 1] === undefined);
    out += (pen ? "L" : "M") + x + " " + y + (alone ? "h1" : "");
    pen = true;
  });
  return out;
}

/** Returns a line without axes, for a row of a table; it tells nothing that the text beside it does not tell. */
export function spark(lines, unit, { height = 30, width = 160 } = {}) {
  const [low, high] = range(lines, unit);
  return h("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    h("line", { class: "base", x1: 0, x2: width, y1: height - 1, y2: height - 1 }),
    lines.map((values, i) => h("path", { class: "line hue" + (i % HUES), d: path(values, low, high, height, width) })));
}

/**
 * Returns a chart of full width. `threshold` is drawn across, `bands` are [begin, end] in seconds from the left, `at` is a second
 * from the left to mark.
 */
export function plot(lines, { unit, height = 64, seconds, threshold, bands = [], at, label, names = [] }) {
  const [low, high] = range(lines, unit, threshold === undefined ? [] : [threshold]);
  const y = (v) => (height - 1 - (v - low) * (height - 2) / (high - low)).toFixed(1);
  const x = (s) => (s * WIDTH / Math.max(1, seconds - 1)).toFixed(1);
  return h("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    bands.map(([begin, end]) => h("rect", { class: "band", x: x(begin), width: Math.max(1, x(end) - x(begin)), y: 0, height })),
    h("line", { class: "base", x1: 0, x2: WIDTH, y1: height - 1, y2: height - 1 }),
    lines.map((values, i) => h("path", { class: "line hue" + (i % HUES), d: path(values, low, high, height) }, names[i] ? h("title", null, names[i]) : null)),
    threshold === undefined ? null : h("line", { class: "threshold", x1: 0, x2: WIDTH, y1: y(threshold), y2: y(threshold) }),
    at === undefined || at === null ? null : h("line", { class: "cursor", x1: x(at), x2: x(at), y1: 0, y2: height }));
}
