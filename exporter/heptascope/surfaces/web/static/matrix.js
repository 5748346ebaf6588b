// Several engines or GPUs: who stands where, and who is odd.

import { h } from "./dom.js";
import { shown, text } from "./format.js";
import { LAYERS, brief, chip, place, value } from "./parts.js";
import { t } from "./words.js";

const COLUMNS = ["sm", "dram", "tensor", "utilization", "power", "clock", "temperature"];
/** How far from the others a value is odd: ratios by difference, others by share. */
const ODD = { sm: 0.2, dram: 0.2, tensor: 0.2, power: 0.25, clock: 0.1 };

export function matrix(ctx) {
  const several = Object.keys(ctx.page.engines).length > 1;
  return h("section", { class: "card matrix", "aria-labelledby": "matrix" },
    h("h2", { id: "matrix" }, several ? t("matrix") : t("gpus")),
    several ? engines(ctx) : null, gpus(ctx));
}

function engines(ctx) {
  const rows = Object.keys(ctx.page.engines).map((name) => {
    const layers = ctx.page.layers[name] ?? {}, verdict = ctx.page.verdicts[name];
    return h("tr", { "data-key": name },
      h("th", { scope: "row" }, h("a", { href: "#/engine/" + encodeURIComponent(name) }, name)),
      h("td", null, verdict ? chip(verdict.state) : "–"),
      LAYERS.map((layer) => h("td", null, layers[layer] ? chip(layers[layer].state) : "–")),
      h("td", { class: "n" }, text(value(ctx, "ttft", "max", name), "seconds")),
      h("td", { class: "n" }, text(value(ctx, "itl", "max", name), "seconds")),
      h("td", { class: "n" }, text(value(ctx, "generated", "sum", name), "tokens/s")));
  });
  const head = [t("engine"), t("state"), ...LAYERS.map(brief), t("ttft"), t("itl"), t("tokens")];
  return table(head, rows, t("matrix"));
}

function gpus(ctx) {
  const names = Object.keys(ctx.page.gpus).sort((a, b) => Number(a) - Number(b));
  if (names.length < 2) return null;
  const columns = COLUMNS.filter((name) => ctx.charts?.charts[name]);
  const odd = oddities(ctx, names, columns);
  const rows = names.map((name) => h("tr", { "data-key": name },
    h("th", { scope: "row" }, "GPU " + name, odd.rules[name] ? [" ", h("span", { class: "chip s-symptom", title: odd.rules[name] }, "◆ ", t("odd_rule", odd.rules[name]))] : null),
    h("td", null, ctx.page.gpus[name].engines.join(", ") || "–"),
    columns.map((column) => cell(ctx, name, column, odd.cells.has(name + "/" + column)))));
  return table([t("gpu"), t("engine"), ...columns.map((column) => t("c_" + column))], rows, t("gpus"));
}

function cell(ctx, gpu, column, odd) {
  const chart = ctx.charts.charts[column], now = chart.lines[gpu]?.[place(ctx)];
  return h("td", { class: odd ? "n odd" : "n" }, shown(now, chart), odd ? h("span", { class: "oddmark", title: t("odd_words") }, " ◆ ", t("odd")) : null);
}

/** Returns which GPUs a firing rule names, and which values lie apart from the others of the group. */
function oddities(ctx, names, columns) {
  const rules = {}, cells = new Set();
  const faults = Object.values(ctx.page.verdicts).flatMap((v) => [...v.faults, ...v.consequences]).map((key) => ctx.page.claims[key]);
  for (const claim of faults) if (claim?.entity.gpu !== undefined) rules[claim.entity.gpu] = claim.rule;
  if (Object.keys(rules).length === names.length) for (const name of names) delete rules[name];
  const groups = new Map();
  for (const name of names) groups.set(ctx.page.gpus[name].engines.join(), [...(groups.get(ctx.page.gpus[name].engines.join()) ?? []), name]);
  for (const group of groups.values()) for (const column of columns) {
    if (!(column in ODD) || group.length < 2) continue;
    const now = group.map((name) => ctx.charts.charts[column].lines[name]?.[place(ctx)] ?? null);
    if (now.includes(null)) continue;
    group.forEach((name, i) => {
      const others = now.filter((_, j) => j !== i).sort((a, b) => a - b), middle = others[Math.floor(others.length / 2)];
      const apart = Math.abs(now[i] - middle) / (["power", "clock"].includes(column) ? Math.max(middle, 1) : 1);
      if (apart > ODD[column] && (group.length > 2 || rules[name])) cells.add(name + "/" + column);
    });
  }
  return { rules, cells };
}

function table(head, rows, name) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    h("table", null, h("thead", null, h("tr", null, head.map((word) => h("th", { scope: "col" }, word)))), h("tbody", null, rows)));
}
