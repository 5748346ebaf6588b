// The first glance: one sentence, the numbers behind it, and the seven layers.

import { spark } from "./chart.js";
import { h } from "./dom.js";
import { rate, shown, text } from "./format.js";
import { LAYERS, chip, entity, layerHash, leading, lines, moment, place, says, standing, stepWords, value, verdictOf } from "./parts.js";
import { t } from "./words.js";
import { matrix } from "./matrix.js";

const RESOURCES = ["dram", "tensor", "pcie", "link", "host"];
const ALIKE = { tensor: "compute" }; // a resource that is a limit of the pod as well

export function overview(ctx) {
  const several = Object.keys(ctx.page.engines).length > 1 || Object.keys(ctx.page.gpus).length > 1;
  const verdict = verdictOf(ctx);
  if (!verdict) return [h("p", { class: "card quiet" }, t("waiting"))];
  if (ctx.route.engine === undefined && Object.keys(ctx.page.engines).length > 1) return [headline(ctx, ctx.page.overall ?? verdict), matrix(ctx), picker(ctx), tiles(ctx), stack(ctx)];
  return [headline(ctx, verdict), picker(ctx), tiles(ctx), stack(ctx), several ? matrix(ctx) : null];
}

function headline(ctx, verdict) {
  const claims = ctx.page.claims, limiter = claims[verdict.limiter];
  const faults = verdict.faults.map((key) => claims[key]);
  const lead = faults[0] ?? (verdict.state === "degraded" ? verdict.symptoms.map((key) => claims[key]).find((claim) => !claim.because.length) : null);
  const root = faults[0], since = lead?.since ?? verdict.since;
  return h("section", { class: "card verdict v-" + verdict.state, "aria-labelledby": "says" },
    h("h1", { id: "says", tabindex: "-1" }, chip(verdict.state), " ", sentence(verdict, lead, limiter)),
    h("p", { class: "how" },
      part(t("limiting_layer"), limiter ? [link(ctx, limiter), " ", h("span", { class: "quiet" }, limiter.rule)] : t("none")),
      part(t("root"), root ? [t("on", root.rule, entity(root.entity)), ", ", link(ctx, root)] : t(verdict.state === "healthy" || verdict.state === "idle" ? "nothing_to_fix" : "none")),
      part(t("sure"), t(verdict.confidence)),
      part(t("stands"), [moment(since), ", ", t("for_ago", standing(ctx, since))]),
      verdict.unknown.length ? h("a", { class: "unknown", href: "#/sources" }, t("unjudged", verdict.unknown.length)) : null),
    (lead ?? limiter)?.corroborated_by ? h("p", { class: "more" }, t("corroborated", (lead ?? limiter).corroborated_by.join(", "))) : null,
    lead?.actions?.length ? h("p", { class: "next" }, h("b", null, t("next"), ": "), stepWords(ctx, lead.actions[0])) : null,
    verdict.state === "cannot-tell" ? h("p", { class: "next" }, h("b", null, t("next"), ": "), h("a", { href: "#/sources" }, t("see_missing"))) : null,
    faults.slice(1).map((claim) => h("p", { class: "more" }, t("also"), ": ", says(claim), " ", h("span", { class: "quiet" }, t("on", claim.rule, entity(claim.entity)), ", ", link(ctx, claim)))),
    about(ctx));
}

const part = (name, what, look) => h("span", { class: look }, h("span", { class: "quiet" }, name, " "), what);

const link = (ctx, claim) => h("a", { href: layerHash(claim.layer, ctx.engine) }, t(claim.layer));

function sentence(verdict, lead, limiter) {
  if (lead) return says(lead);
  if (verdict.state === "idle") return capital(t("idle_words"));
  if (verdict.state === "degraded") return capital(t("symptom_words"));
  if (verdict.state === "cannot-tell") return capital(t(limiter ? "cannot_limited" : "cannot_words"));
  return limiter ? says(limiter) : capital(t("healthy_words"));
}

const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

function about(ctx) {
  const engines = Object.entries(ctx.page.engines).filter(([name]) => ctx.route.engine === undefined || name === ctx.engine);
  const cards = new Map();
  for (const gpu of Object.values(ctx.page.gpus)) cards.set(gpu.model ?? "GPU", (cards.get(gpu.model ?? "GPU") ?? 0) + 1);
  if (!engines.length && !cards.size) return h("p", { class: "about" }, t("no_engine"));
  const named = engines.map(([name, e]) => h("span", null, h("b", null, name), " ", e.version ?? "", " · ", t("model"), " ", h("b", null, e.model ?? "–")));
  return h("p", { class: "about" }, named.length ? named : t("no_engine"), [...cards].map(([model, n]) => h("span", null, n > 1 ? n + " × " : "", model)), served(ctx));
}

const served = (ctx) => (ctx.page.trace ? h("span", { class: "trace" }, t("trace_served", ctx.page.trace.file, standing(ctx, ctx.page.trace.written))) : null);

/** Returns the choice of the engine, where there are several. */
function picker(ctx) {
  const names = Object.keys(ctx.page.engines);
  if (names.length < 2) return null;
  return h("nav", { class: "engines", "aria-label": t("engines") },
    names.map((name) => h("a", { href: "#/engine/" + encodeURIComponent(name), "aria-current": name === ctx.engine ? "true" : null }, name)));
}

function tiles(ctx) {
  const idle = verdictOf(ctx)?.state === "idle";
  return h("section", { class: "tiles", "aria-label": t("engine") },
    latency(ctx, "ttft", idle), latency(ctx, "itl", idle),
    tile(t("tokens"), rate(value(ctx, "generated", "sum"), "tokens"), t("prompt", rate(value(ctx, "prompted", "sum"), "tokens"))),
    tile(t("requests"), [text(value(ctx, "running", "sum"), ""), " ", h("small", null, t("run")), " · ", text(value(ctx, "waiting", "sum"), ""), " ", h("small", null, t("wait"))],
      [t("c_kv"), " ", text(value(ctx, "kv"), "ratio")]),
    saturation(ctx));
}

function tile(name, main, more, look = "", share = null) {
  return h("div", { class: "tile " + look }, h("h2", null, name), h("p", { class: "big" }, main), share === null ? null : bar(share), h("p", { class: "quiet" }, more));
}

const whole = (words, title) => h("span", { class: "whole", title }, words);

/** Returns a bar of a share; what it shows stands beside it in words. */
function bar(share) {
  const width = (Math.min(1, Math.max(0, share)) * 100).toFixed(1);
  return h("svg", { class: "bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("rect", { class: "track", width: 100, height: 4 }), h("rect", { class: "fill", width, height: 4 }));
}

function latency(ctx, name, idle) {
  if (!ctx.charts) return tile(t(name), "…", t("loading"));
  const now = value(ctx, name), objective = value(ctx, "objective_" + name);
  const median = value(ctx, name + "_median");
  if (now === null) return tile(t(name), "–", t(idle ? "no_traffic" : value(ctx, "running") === null ? "no_value" : "none_seen"));
  const over = objective !== null && now > objective;
  const words = objective === null ? whole(t("no_objective")) : whole([t("objective", text(objective, "seconds")), ": ", t(over ? "over" : "within")]);
  return tile(t(name), text(now, "seconds"), [whole(t("median", text(median, "seconds"))), words], over ? "over" : "", objective === null ? null : now / objective);
}

function saturation(ctx) {
  if (!ctx.charts) return tile(t("saturation"), "…", t("loading"));
  const share = value(ctx, "saturation"), i = place(ctx);
  if (share === null) return tile(t("saturation"), "–", t("no_value"));
  const limits = lines(ctx, "limits").map(({ key, values }) => [key, values[i]]).filter(([, v]) => v !== null && v !== undefined).sort((a, b) => b[1] - a[1]);
  const busiest = RESOURCES.map((what) => [what, value(ctx, "pressure_" + what)]).filter(([, v]) => v !== null).sort((a, b) => b[1] - a[1])[0];
  const words = [whole(limits.length && share > 0 ? t("binds_first", t("limit_" + limits[0][0])) : t("no_traffic")),
    busiest && share > 0 && ALIKE[busiest[0]] !== limits[0]?.[0] ? whole(t("busiest", t("resource_" + busiest[0]), text(busiest[1], "ratio")), t("of_had")) : null];
  return tile(t("saturation"), text(share, "ratio"), words, "", share);
}

function stack(ctx) {
  const layers = ctx.page.layers[ctx.engine] ?? Object.values(ctx.page.layers)[0] ?? {};
  return h("section", { class: "card stack", "aria-labelledby": "stack" },
    h("h2", { id: "stack" }, t("stack")),
    h("ol", null, LAYERS.map((layer) => row(ctx, layer, layers[layer]))));
}

function row(ctx, layer, state) {
  if (!state) return null;
  return h("li", { "data-key": layer, class: "layer l-" + state.state },
    h("a", { href: layerHash(layer, ctx.engine), id: "layer-" + layer },
      h("span", { class: "what" }, h("b", null, t(layer)), " ", standingOf(state)),
      h("span", { class: "words" }, reasons(ctx, layer, state)),
      trend(ctx, layer),
      judged(state)));
}

/** Returns the state of a layer; one that is clear as far as the smaller part of its rules tells is not called clear. */
export const standingOf = (state) => (state.state === "clear" && state.judged < state.rules / 2 ? chip("partly") : chip(state.state));

function reasons(ctx, layer, state) {
  const verdict = verdictOf(ctx), claims = ctx.page.claims;
  const of = (keys) => keys.map((key) => claims[key]).filter((claim) => claim?.layer === layer);
  const limiter = claims[verdict.limiter]?.layer === layer ? claims[verdict.limiter] : null;
  const found = [
    ...of(verdict.faults).map((claim) => [says(claim), t("fails")]),
    ...of(verdict.symptoms).map((claim) => [says(claim), claim.because.length ? t("follows", claim.because.join(", ")) : t("felt")]),
    ...of(verdict.consequences).map((claim) => [says(claim), t("follows", claim.because.join(", "))]),
    ...(limiter ? [[says(limiter), t("limits")]] : []),
  ];
  if (found.length) return found.slice(0, 2).map(([words, tag]) => h("span", { class: "reason" }, words, " ", h("em", null, tag)));
  if (state.state === "cannot-tell") return t("lacks", state.rules - state.judged, state.rules);
  const cards = Object.values(ctx.page.gpus).filter((gpu) => !gpu.engines.length || gpu.engines.includes(ctx.engine)).length;
  return h("span", { class: "quiet" }, layer === "parallel" && cards === 1 ? t("only_one") : t(layer + "_words"));
}

function trend(ctx, layer) {
  const found = leading(ctx, layer);
  if (!found) return h("span", { class: "trend none" }, "–");
  const chart = found.lines[0].chart, i = place(ctx);
  const now = found.lines.map((line) => line.values[i]).filter((v) => v !== null && v !== undefined);
  const worst = now.length ? Math.max(...now) : null;
  return h("span", { class: "trend" }, spark(found.lines.map((line) => line.values), chart.unit),
    h("span", { class: "lead" }, h("b", null, shown(worst, chart)), " ", h("small", null, t("c_" + found.name))));
}

function judged(state) {
  const words = state.judged === state.rules ? t("all_judged", state.rules) : t("judged", state.judged, state.rules);
  const share = state.rules ? state.judged / state.rules : 0;
  return h("span", { class: "judged" + (state.judged < state.rules ? " part" : "") }, bar(share), h("small", null, words));
}
