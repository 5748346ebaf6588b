// Ten minutes of GPU and engine on one axis, the findings as bands, and the way back in time.

import { plot } from "./chart.js";
import { h } from "./dom.js";
import { ago, clock, shown, utc } from "./format.js";
import { chip, entity, lines, moment, place } from "./parts.js";
import { t } from "./words.js";

const SHOWN = ["ttft", "itl", "generated", "prompted", "running", "waiting", "limits", "kv", "preemptions", "acceptance", "step", "gap",
  "active", "sm", "dram", "tensor", "utilization", "power", "clock", "temperature", "pcie", "nvlink"];
const MEDIANS = { ttft: "ttft_median", itl: "itl_median" };
const STATES = { fault: "faulty", symptom: "symptom", limiter: "limiting" };

export function time(ctx) {
  if (!ctx.charts) return [h("p", { class: "card quiet" }, t("loading"))];
  const { seconds, t: last } = ctx.charts, begin = last - seconds + 1;
  const i = place(ctx), instant = begin + i;
  const bands = Object.values(ctx.page.bands).filter((band) => (band.end ?? last) >= begin).sort((a, b) => a.begin - b.begin);
  const faults = union(bands.filter((band) => band.kind === "fault").map((band) => span(band, begin, last)));
  const marked = ctx.hover !== null || ctx.at !== null ? i : null;
  return [
    h("section", { class: "card", "aria-labelledby": "says" },
      h("h1", { id: "says", tabindex: "-1" }, t("charts")),
      scrubber(ctx, begin, last),
      h("p", { class: "instant", title: utc(instant) }, t("at", clock(instant)), " · ", t("some_ago", ago(last - instant)))),
    h("section", { class: "card bands", "aria-labelledby": "bands" }, h("h2", { id: "bands" }, t("bands")),
      bands.length ? h("ul", null, rows(bands).map(([key, group]) => bandRow(key, group, begin, last, seconds, marked))) : h("p", { class: "quiet" }, t("no_bands"))),
    h("section", { class: "multiples", "data-act": "hover", "aria-label": t("charts") },
      SHOWN.map((name) => multiple(ctx, name, { seconds, faults, marked, i }))),
    h("p", { class: "ends quiet" }, moment(begin), moment(last)),
  ];
}

const span = (band, begin, last) => [Math.max(0, band.begin - begin), Math.min(last, band.end ?? last) - begin];

function union(spans) {
  const out = [];
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    const before = out[out.length - 1];
    if (before && from <= before[1]) before[1] = Math.max(before[1], to);
    else out.push([from, to]);
  }
  return out;
}

function rows(bands) {
  const groups = new Map();
  for (const band of bands) groups.set(band.key, [...(groups.get(band.key) ?? []), band]);
  return [...groups];
}

function bandRow(key, group, begin, last, seconds, marked) {
  const band = group[group.length - 1], begun = group.map((one) => clock(one.begin) + "–" + (one.end ? clock(one.end) : t("now"))).join(", ");
  const x = (s) => (s * 600 / (seconds - 1)).toFixed(1);
  return h("li", { "data-key": key },
    h("span", { class: "name" }, chip(STATES[band.kind], t(band.kind === "symptom" ? "symptom_kind" : band.kind)), " ", h("b", null, band.rule), " ", h("span", { class: "quiet" }, entity(band.entity), ", ", t(band.layer))),
    h("svg", { class: "bandline", viewBox: "0 0 600 12", preserveAspectRatio: "none", role: "img", "aria-label": begun }, h("title", null, begun),
      h("line", { class: "base", x1: 0, x2: 600, y1: 11, y2: 11 }),
      group.map((one) => { const [from, to] = span(one, begin, last); return h("rect", { class: "b-" + one.kind, x: x(from), width: Math.max(2, x(to) - x(from)), y: 1, height: 9 }); }),
      marked === null ? null : h("line", { class: "cursor", x1: x(marked), x2: x(marked), y1: 0, y2: 12 })));
}

function multiple(ctx, name, { seconds, faults, marked, i }) {
  const found = lines(ctx, name);
  if (!found.length) return null;
  const chart = found[0].chart, all = MEDIANS[name] ? [...found, ...lines(ctx, MEDIANS[name])] : found;
  const now = found.map((line) => line.values[i] ?? null);
  const legend = found.length > 1 ? found.map((line, n) => h("span", { class: "key hue" + (n % 8) }, h("span", { "aria-hidden": "true" }, "━ "), label(line.key, chart), " ", shown(now[n], chart))) : shown(now[0], chart);
  const words = found.map((line, n) => (found.length > 1 ? label(line.key, chart) + " " : "") + shown(now[n], chart)).join(", ");
  return h("figure", { "data-key": name, class: "multiple" },
    h("figcaption", null, h("b", null, t("c_" + name)), MEDIANS[name] ? h("span", { class: "quiet" }, " · ", t("median", shown(lines(ctx, MEDIANS[name])[0]?.values[i] ?? null, chart))) : null, h("span", { class: "values" }, legend)),
    plot(all.map((line) => line.values), { unit: chart.unit, seconds, bands: faults, at: marked, label: t("c_" + name) + ": " + words, height: 56, names: all.map((line) => label(line.key, chart)) }));
}

const label = (key, chart) => (chart.signal.startsWith("heptascope_saturation_") ? t("limit_" + key) : chart.signal.startsWith("heptascope_gpu_") ? "GPU " + key : key.replace(/\|0$/, "").replace("|", " " + t("rank") + " "));

function scrubber(ctx, begin, last) {
  return h("div", { class: "scrubber" },
    h("button", { type: "button", "data-act": ctx.at === null ? "pause" : "resume" }, ctx.at === null ? "❚❚ " + t("pause") : "▶ " + t("resume")),
    h("label", null, h("span", { class: "quiet" }, t("scrub")), " ",
      h("input", { type: "range", id: "scrub", "data-act": "scrub", min: 0, max: last - begin, step: 1, "data-own": "", "aria-valuetext": clock(ctx.at ?? last) })));
}
