// The head of the page: where one is, how fresh it is, and the reader's choices; in a demo also what plays.

import { h } from "./dom.js";
import { ago, clock, utc } from "./format.js";
import { chip, verdictOf } from "./parts.js";
import { scene, t } from "./words.js";

const VIEWS = [["overview", "#/"], ["time", "#/time"], ["sources", "#/sources"], ["signals", "#/signals"]];

export function head(ctx) {
  const current = ["layer", "engine"].includes(ctx.route.view) ? "overview" : ctx.route.view;
  return [
    h("a", { class: "brand", href: "#/" }, stack(), "heptascope"),
    h("nav", { "aria-label": t("views") }, VIEWS.map(([name, href]) => h("a", { href, "aria-current": name === current ? "page" : null }, t(name)))),
    h("p", { id: "fresh", class: ctx.problem ? "problem" : "" }, freshness(ctx)),
    h("span", { class: "choices" },
      choice("theme", t("theme"), [["", t("theme_system")], ["light", t("theme_light")], ["dark", t("theme_dark")]]),
      choice("language", t("language"), [["", t("language_browser")], ["en", "English"], ["zh", "中文"]])),
  ];
}

const stack = () => h("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
  h("path", { class: "mark", d: "M2 1h12v1H2zm0 2h12v1H2zm0 2h12v1H2zm0 4h12v1H2zm0 2h12v1H2zm0 2h12v1H2z" }), h("path", { class: "mark hot", d: "M1 7h14v1H1z" }));

const choice = (name, words, options) => h("select", { id: name, "data-own": "", "data-act": name, "aria-label": words }, options.map(([value, text]) => h("option", { value }, text)));

function freshness(ctx) {
  if (ctx.problem === "connecting") return t("connecting");
  if (ctx.problem === "lost") return ctx.live ? t("lost", clock(ctx.live.t)) : t("lost_never");
  if (ctx.problem === "stuck") return t("stuck", clock(ctx.live.t));
  return [h("span", { class: "dot", "aria-hidden": "true" }, "●"), " ", t("live"), h("span", { class: "quiet", title: utc(ctx.live.t) }, " ", t("updated", clock(ctx.live.t)))];
}

export function banner(ctx) {
  if (ctx.at === null) return [];
  return [h("p", { class: "paused" }, h("span", { title: utc(ctx.at) }, t("paused", clock(ctx.at), ago(Math.max(0, (ctx.charts?.t ?? ctx.at) - ctx.at)))), " ",
    h("button", { type: "button", "data-act": "resume" }, "▶ " + t("resume")))];
}

export function demo(ctx) {
  if (!ctx.demo) return [];
  const { playing, match, scenarios } = ctx.demo, label = scenarios[playing], verdict = verdictOf(ctx);
  const claims = ctx.page?.claims ?? {}, topic = (key) => (claims[key] ? claims[key].layer + "/" + claims[key].topic : "");
  const said = verdict ? [chip(verdict.state), " ", verdict.faults.length ? verdict.faults.map(topic).join(", ") : t("no_fault"), verdict.limiter ? ", " + t("limiter_is", topic(verdict.limiter)) : ""] : "–";
  const state = { right: "clear", "wrong-page": "faulty", missed: "faulty", settling: "pending", "cannot-tell": "cannot-tell" }[match];
  return [h("section", { class: "demo", "aria-label": t("playing") },
    h("p", null, h("label", null, h("b", null, t("playing")), " ", h("select", { id: "pick", "data-own": "", "data-act": "pick", title: t("pick") }, Object.keys(scenarios).map((name) => h("option", { value: name }, name)))),
      " ", h("span", { class: "quiet" }, t("demo_words"))),
    h("dl", null,
      h("div", null, h("dt", null, t("label")), h("dd", null, label.state.map((s) => t(s)).join(t("or")), ": ", label.fault.length ? label.fault.join(t("or")) : t("no_fault"), label.limiter.length ? ", " + t("limiter_is", label.limiter.join(t("or"))) : "", h("small", { class: "quiet" }, " ", scene(label.why)))),
      h("div", null, h("dt", null, t("verdict")), h("dd", null, said)),
      h("div", null, h("dt", null, t("match")), h("dd", null, state ? chip(state, t(match)) : "–"))))];
}
