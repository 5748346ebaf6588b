// What causes what at this moment: claims in the rows of their layers, arrows from cause to consequence.

import { h } from "./dom.js";
import { LAYERS, brief } from "./parts.js";
import { t } from "./words.js";

const DIP = 22, ROW = 52, BOX = 30, NAMES = 150, WIDTH = 760, LETTER = 7.5;

/** Returns the claims that `layer` is part of: its own, what explains them, and what they explain. */
export function related(ctx, verdict, layer) {
  const claims = [...verdict.faults, ...verdict.consequences, ...verdict.symptoms].map((key) => ({ key, ...ctx.page.claims[key] })).filter((claim) => claim.rule);
  const edges = claims.flatMap((effect) => claims.filter((cause) => effect.because.includes(cause.rule) && cause !== effect).map((cause) => [cause, effect]));
  const inside = new Set(claims.filter((claim) => claim.layer === layer));
  for (let grown = -1; grown !== inside.size;) {
    grown = inside.size;
    for (const [a, b] of edges) if (inside.has(a) || inside.has(b)) { inside.add(a); inside.add(b); }
  }
  return { claims: claims.filter((claim) => inside.has(claim)), edges: edges.filter(([a]) => inside.has(a)) };
}

/** Returns the picture, with the same in words for those who do not see it. */
export function graph(ctx, verdict, layer) {
  const { claims, edges } = related(ctx, verdict, layer);
  if (!claims.length) return h("p", { class: "quiet" }, t("no_graph"));
  const rows = LAYERS.filter((name) => claims.some((claim) => claim.layer === name));
  const at = new Map();
  for (const [y, name] of rows.entries()) {
    const here = claims.filter((claim) => claim.layer === name), width = (WIDTH - NAMES) / here.length;
    here.forEach((claim, x) => at.set(claim.key, { x: NAMES + x * width + 4, y: y * ROW + 8, width: Math.min(width - 8, 250) }));
  }
  const height = rows.length * ROW + 12;
  const words = edges.map(([cause, effect]) => cause.rule + " → " + effect.rule).join("; ") || claims.map((claim) => claim.rule).join(", ");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("graph") },
    h("svg", { class: "graph", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": t("graph") + ": " + words },
      h("defs", null, h("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, h("path", { d: "M0 0L8 4L0 8z" }))),
      rows.map((name, y) => h("text", { class: "row", x: 0, y: y * ROW + 28 }, brief(name))),
      claims.map((claim) => box(claim, at.get(claim.key), verdict)),
      edges.map(([cause, effect]) => arrow(at.get(cause.key), at.get(effect.key)))));
}

function box(claim, { x, y, width }, verdict) {
  const look = verdict.faults.includes(claim.key) ? "root" : verdict.symptoms.includes(claim.key) ? "felt" : "effect";
  const room = width - 16, squeezed = claim.rule.length * LETTER > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
  return h("g", { class: "node " + look }, h("rect", { x, y, width, height: BOX, rx: 6 }), h("text", { x: x + 8, y: y + 20, ...squeezed }, claim.rule));
}

function arrow(a, b) {
  const middle = (box) => box.x + box.width / 2;
  if (a.y === b.y) {
    const y = a.y + BOX, from = middle(a) + 12, to = middle(b) - 12;
    return h("path", { class: "edge", "marker-end": "url(#head)", d: `M${from} ${y}C${from} ${y + DIP} ${to} ${y + DIP} ${to} ${y + 2}` });
  }
  const down = a.y < b.y, from = down ? a.y + BOX : a.y, to = down ? b.y - 2 : b.y + BOX + 2, bend = (from + to) / 2;
  return h("path", { class: "edge", "marker-end": "url(#head)", d: `M${middle(a)} ${from}C${middle(a)} ${bend} ${middle(b)} ${bend} ${middle(b)} ${to}` });
}
