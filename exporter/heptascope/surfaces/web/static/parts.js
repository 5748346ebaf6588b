// Pieces that several views share: states, times, claims, values of charts at one instant.

import { h } from "./dom.js";
import { ago, clock, rate, text, utc } from "./format.js";
import { step, summary, t } from "./words.js";

export const LAYERS = ["application", "speculative", "parallel", "scheduling", "memory", "operator", "hardware"];
const MARKS = {
  idle: "○", healthy: "●", clear: "●", degraded: "▲", faulty: "▲", firing: "▲", symptom: "◆", limiting: "■", pending: "◔", "cannot-tell": "?", partly: "◐",
};

/** Returns a state as a chip: a mark and a word, never a colour alone. */
export const chip = (state, word = t(state)) => h("span", { class: "chip s-" + state }, h("span", { "aria-hidden": "true" }, MARKS[state] ?? "●"), " ", word);

/** Returns the name of a layer for a narrow place. */
export const brief = (layer) => t(layer).replace(/ *\(.*/, "");

/** Returns a moment in local time, UTC on hover. */
export const moment = (seconds) => h("time", { datetime: new Date(seconds * 1000).toISOString(), title: utc(seconds) }, clock(seconds));

/** Returns the engine or GPU that a claim is about. */
export function entity(pairs) {
  if (pairs.gpu !== undefined) return "GPU " + pairs.gpu;
  return (pairs.engine ?? "") + (pairs.rank !== undefined && pairs.rank !== "0" ? " " + t("rank") + " " + pairs.rank : "");
}

/** Returns what a claim says. */
export const says = (claim) => summary(claim.rule, claim.summary);

const PASSED = { ">": (a, b) => a > b, ">=": (a, b) => a >= b, "<": (a, b) => a < b, "<=": (a, b) => a <= b, "==": (a, b) => a === b };

/** Returns a value of evidence as text, the threshold, and whether the value passes it; counters are rates. */
export function evidence(item) {
  const perSecond = item.signal.endsWith("_total");
  const unit = item.unit || (/_(bytes|flops|tokens)_per_second$/.exec(item.signal)?.[1].replace("bytes", "B/s").replace("flops", "FLOP/s").replace("tokens", "tokens/s") ?? "");
  const show = (value) => (perSecond ? rate : text)(value, unit);
  const limit = item.threshold === undefined ? "" : item.comparison + " " + show(item.threshold);
  return { value: show(item.value), limit, passed: PASSED[item.comparison]?.(item.value, item.threshold) ?? false };
}

/** Returns what tells a value from others of its signal; a role that names its process is said once. */
export const which = (item) => (item.text ?? "").replace("per second", "").trim().replace(/(process=(\w+?)\S*) role=\2(?= |$)/, "$1");

export const short = (signal) => signal.replace(/^heptascope_/, "");

/** Returns the name of a signal, which may break after each underscore. */
export function breakable(signal) {
  return short(signal).split(/(?<=_)/).flatMap((part) => [part, h("wbr")]);
}

/** Returns the lines of a chart that belong to an engine: its ranks, or its GPUs. */
export function lines(ctx, name, engine = ctx.engine) {
  const chart = ctx.charts?.charts[name];
  if (!chart) return [];
  return Object.entries(chart.lines).filter(([key]) => owns(ctx, chart, key, engine)).map(([key, values]) => ({ key, values, chart }));
}

function owns(ctx, chart, key, engine) {
  if (engine === undefined || engine === "") return true;
  if (chart.signal.startsWith("heptascope_saturation_")) return true; // of the whole pod
  if (!chart.signal.startsWith("heptascope_gpu_")) return key.split("|")[0] === engine;
  const serves = ctx.page?.gpus[key]?.engines ?? [];
  return serves.length === 0 || serves.includes(engine);
}

/** Returns the place of the instant that is shown, in the arrays of the charts. */
export function place(ctx) {
  const instant = ctx.hover ?? ctx.at;
  return ctx.charts ? ctx.charts.seconds - 1 - Math.max(0, instant === null ? 0 : ctx.charts.t - Math.round(instant)) : -1;
}

const FOLDS = { sum: (v) => v.reduce((a, b) => a + b, 0), max: (v) => Math.max(...v), mean: (v) => v.reduce((a, b) => a + b, 0) / v.length };

/** Returns one number of a chart for an engine at the instant that is shown; null without values. */
export function value(ctx, name, fold = "max", engine = ctx.engine) {
  const i = place(ctx);
  const found = lines(ctx, name, engine).map((line) => line.values[i]).filter((v) => v !== null && v !== undefined);
  return found.length ? FOLDS[fold](found) : null;
}

/** Returns the chart that stands for a layer: the first that has lines. */
export function leading(ctx, layer) {
  for (const name of ctx.charts?.leading[layer] ?? []) {
    const found = lines(ctx, name);
    if (found.length) return { name, lines: found };
  }
  return null;
}

// what a reader types: commands, flags with a value that looks like one, environment variables, and what stands in backticks
const COMMANDS = [/(?:nvidia-smi|lspci|numactl|pidstat|taskset|py-spy)(?: (?:--?[\w-]+(?:=[\w,.]*\w)?|topo|pmon|nvlink|dump|record|r(?!\w)|[A-Z\d](?:[\w,]*\w)?))+/,
  /dmesg(?: -T)? \| grep(?: -[a-z]| xid| nvrm| AER)+/, /--[a-z][\w-]+(?:=[\w.,/]*\w| (?=\w*[\d_]|[A-Z]{2})[\w./:]*\w)?/, /\b[A-Z][A-Z0-9]*_[A-Z0-9_]+(?:=[\w.:/]*\w)?/, /`[^`]+`/];
const FLAG = new RegExp("(" + COMMANDS.map((one) => one.source).join("|") + ")");

/** Returns a next step in the reader's language; a click on a flag or a command copies it. */
export const stepWords = (ctx, english) => step(english).split(FLAG).map((part, i) => (i % 2 ? flag(ctx, part.replace(/^`|`$/g, "")) : part));

const flag = (ctx, words) => h("button", { type: "button", class: "flag", "data-act": "copy", "data-text": words, title: t("copy") }, ctx.copied === words ? t("copied") : words);

/** Returns a button that copies a text. */
export const copier = (ctx, what, label = t("copy")) =>
  h("button", { type: "button", class: "copy", "data-act": "copy", "data-text": what }, ctx.copied === what ? t("copied") : label);

/** Returns the verdict of an engine, or of all. */
export const verdictOf = (ctx, engine = ctx.engine) => ctx.page?.verdicts[engine] ?? Object.values(ctx.page?.verdicts ?? {})[0];

/** Returns how long something stands. */
export const standing = (ctx, since) => ago((ctx.at ?? ctx.page.t) - since);

export const layerHash = (layer, engine) => "#/layer/" + layer + (engine ? "/" + encodeURIComponent(engine) : "");
