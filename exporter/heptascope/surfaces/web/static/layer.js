// One layer opened: its rules with their evidence, what they lead to, and what to do.

import { begun, plot } from "./chart.js";
import { h } from "./dom.js";
import { ago, duration, rate, shown, significant, text } from "./format.js";
import { graph } from "./graph.js";
import { markdown } from "./markdown.js";
import { breakable, chip, copier, entity, evidence, moment, short, standing, stepWords, verdictOf, which } from "./parts.js";
import { detail, foreign, gain, origin, reason, step, summary, t } from "./words.js";

const ORDER = ["firing", "pending", "cannot-tell", "clear"];
const KINDS = ["fault", "symptom", "limiter"];

export function layer(ctx) {
  const name = ctx.route.layer, state = (ctx.page.layers[ctx.engine] ?? {})[name], verdict = verdictOf(ctx);
  const rules = new Map((ctx.rules[name] ?? []).map((rule) => [rule.rule, rule]));
  const findings = (ctx.findings[name] ?? []).filter((f) => rules.has(f.rule) && mine(ctx, f));
  const root = (finding) => Number(verdict?.faults.includes(finding.key) ?? false);
  findings.sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || root(b) - root(a));
  return [
    h("p", null, h("a", { href: ctx.route.engine ? "#/engine/" + encodeURIComponent(ctx.engine) : "#/" }, "← ", t("back"))),
    h("section", { class: "card" },
      h("h1", { id: "says", tabindex: "-1" }, t(name), " ", state ? chip(state.state) : null),
      h("p", { class: "quiet" }, t(name + "_words"), " ", state ? t("judged", state.judged, state.rules) : ""),
      h("h2", null, t("graph")), verdict ? graph(ctx, verdict, name) : null),
    h("section", { class: "card rules", "aria-labelledby": "rules" },
      h("h2", { id: "rules" }, t("rules")),
      findings.length ? findings.map((f) => rule(ctx, f, rules.get(f.rule))) : h("p", { class: "quiet" }, t("loading"))),
  ];
}

function mine(ctx, finding) {
  if (finding.entity.gpu === undefined) return !ctx.engine || finding.entity.engine === ctx.engine;
  const serves = ctx.page.gpus[finding.entity.gpu]?.engines ?? [];
  return serves.length === 0 || serves.includes(ctx.engine);
}

function rule(ctx, finding, about) {
  const several = Object.keys(ctx.page.gpus).length > 1 || Object.keys(ctx.page.engines).length > 1;
  return h("details", { "data-key": finding.key, "data-rule": finding.rule, id: "rule-" + finding.key, open: finding.state === "firing" && ctx.fresh },
    h("summary", null, chip(finding.state), " ", h("b", null, finding.rule), " ", several ? h("span", { class: "quiet" }, entity(finding.entity), " ") : null,
      h("span", { class: "kind" }, t(about.kind === "symptom" ? "symptom_kind" : about.kind)), h("span", { class: "words" }, summary(about.rule, about.summary))),
    ctx.opened.has(finding.key) ? body(ctx, finding, about) : null);
}

function body(ctx, finding, about) {
  const claim = ctx.page.claims[finding.key], trends = ctx.trends[finding.rule];
  return h("div", { class: "body" },
    h("p", { class: "quiet" }, t("since", t(finding.state)), moment(finding.since), ", ", t("for_ago", standing(ctx, finding.since)), " · ", t("confidence"), ": ", t(claim?.confidence ?? about.confidence),
      " · ", t("holds", duration(about.hold_seconds)), claim?.gain ? [" · ", h("b", null, t("gain"), ": ", gain(claim.gain))] : null),
    claim?.corroborated_by ? h("p", null, t("corroborated", claim.corroborated_by.join(", "))) : null,
    finding.state === "firing" ? steps(ctx, about) : null,
    about.needs_baseline ? h("p", null, t("baseline")) : null,
    finding.missing.length ? lacking(finding) : null,
    finding.evidence.length ? values(finding) : null,
    trends ? drawn(trends, finding, ctx.at) : null,
    edges(ctx, about),
    finding.state === "firing" ? null : steps(ctx, about),
    h("h4", null, t("promql")), h("pre", { tabindex: "0" }, h("code", null, about.promql)), copier(ctx, about.promql),
    sources(about),
    handbook(about));
}

/** Returns the runbook in the reader's language, else in English, which is said then. */
function handbook(about) {
  if (!about.runbook) return null;
  const own = foreign() && about.runbook_zh;
  return h("details", { class: "runbook", "data-key": "runbook" },
    h("summary", null, t("runbook"), foreign() && !own ? h("span", { class: "quiet" }, " ", t("runbook_english")) : null),
    h("div", { lang: own ? null : "en" }, markdown(own || about.runbook)));
}

function lacking(finding) {
  return [h("h4", null, t("missing")), h("ul", null, finding.missing.map((m) => h("li", null, h("code", null, breakable(m.signal)), " ", m.detail ? detail(m.detail) : reason(m.reason),
    m.detail ? h("span", { class: "quiet" }, " (", reason(m.reason), ")") : null)))];
}

function values(finding) {
  return [h("h4", null, t("evidence")), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("evidence") }, h("table", { class: "evidence" },
    h("thead", null, h("tr", null, [t("signal"), t("value"), t("threshold")].map((word) => h("th", { scope: "col" }, word)))),
    h("tbody", null, finding.evidence.filter((item) => item.value !== null).map((item, i) => {
      const words = evidence(item), label = which(item);
      return h("tr", { "data-key": i }, h("th", { scope: "row" }, h("code", null, breakable(item.signal)), label ? h("span", { class: "quiet" }, " ", label) : null),
        h("td", { class: "n" }, words.value), h("td", { class: "n" }, limit(finding, item, words) || h("span", { class: "quiet" }, t("context"))));
    }))))];
}

/** Returns the threshold beside a value; where a rule fires, another value than this one has passed it, or the tail that this one is the mean of. */
function limit(finding, item, { limit, passed }) {
  if (passed || finding.state !== "firing" || !limit) return limit;
  return item.text === "mean" ? t("among_slowest", limit) : "";
}

function drawn(trends, finding, at) {
  const rows = trends.trends.map((trend) => ({ ...trend, lines: trend.lines.filter((line) => Object.entries(finding.entity).every(([k, v]) => k === "uuid" || line.labels[k] === undefined || line.labels[k] === v)) })).filter((trend) => trend.lines.length);
  if (!rows.length) return h("p", { class: "quiet" }, t("no_trend"));
  const first = begun(rows.flatMap((trend) => trend.lines.map((line) => line.values)), trends.seconds);
  const i = trends.seconds - 1 - Math.max(0, at === null ? 0 : trends.t - Math.round(at));
  return [h("h4", null, t("trend")), h("div", { class: "trends" }, rows.map((trend) => {
    const last = trend.lines.map((line) => line.values[i]).filter((v) => v !== null && v !== undefined);
    const limit = trend.threshold === undefined ? "" : trend.comparison + " " + (trend.rate ? rate : text)(trend.threshold, trend.unit);
    const now = last.length ? shown(Math.max(...last), trend) : "–";
    return h("figure", { "data-key": trend.signal }, h("figcaption", null, h("code", null, breakable(trend.signal)), " ", h("b", null, now), limit ? h("span", { class: "limit" }, " ", limit) : null),
      plot(trend.lines.map((line) => line.values.slice(first)), { unit: trend.unit, seconds: trends.seconds - first, threshold: trend.threshold, at: at === null ? null : i - first, height: 56, label: short(trend.signal) + ": " + now + (limit ? ", " + t("threshold") + " " + limit : ""),
        names: trend.lines.map((line) => Object.entries(line.labels).filter(([k]) => k !== "uuid").map(([k, v]) => k + " " + v).join(", ")) }));
  })), h("p", { class: "ends quiet", "aria-hidden": "true" }, h("span", null, t("some_ago", ago(trends.seconds - first))), h("span", null, t("now")))];
}

function edges(ctx, about) {
  const firing = new Set(Object.values(ctx.page.claims).map((claim) => claim.rule));
  const list = (names) => names.flatMap((name) => [h("span", { class: firing.has(name) ? "edge on" : "edge" }, name, firing.has(name) ? " ▲" : ""), " "]);
  if (!about.explains.length && !about.explained_by.length) return null;
  return h("p", { class: "edges" },
    about.explained_by.length ? [h("span", { class: "quiet" }, t("explained_by"), ": "), list(about.explained_by), " → "] : null, h("b", null, about.rule),
    about.explains.length ? [" → ", h("span", { class: "quiet" }, t("explains"), ": "), list(about.explains)] : null);
}

function steps(ctx, about) {
  const kind = ctx.page.engines[ctx.engine]?.kind;
  const mine = about.actions.filter((action) => !kind || ["any", "kubernetes", kind].includes(action.when));
  if (!mine.length) return null;
  return [h("h4", null, t("steps")), h("ol", { class: "steps" }, mine.map((action) => h("li", null,
    stepWords(ctx, action.do), " ", copier(ctx, step(action.do)))))];
}

function sources(about) {
  const rows = Object.entries(about.thresholds);
  if (!rows.length) return null;
  return [h("h4", null, t("thresholds")), h("dl", { class: "thresholds" }, rows.flatMap(([name, value]) =>
    [h("dt", null, h("code", null, name), " ", h("b", null, Math.abs(value) >= 100 ? text(value, "") : significant(value))), h("dd", null, origin(about.source[name] ?? ""))]))];
}
