// What is read, what is lost and why; every signal with its value; and what can be taken away.

import { h } from "./dom.js";
import { text } from "./format.js";
import { breakable, chip } from "./parts.js";
import { detail, help, reason, t } from "./words.js";

const MOST_ROWS = 400;
/** Reasons in the order of how much a reader can do about them. */
const ORDER = ["source_down", "no_permission", "profiler_locked", "flag_off", "ambiguous", "stale", "invalid", "engine", "no_source", "engine_too_old", "not_supported", "not_configured", "idle"];

export function sources(ctx) {
  return [
    h("section", { class: "card", "aria-labelledby": "says" }, h("h1", { id: "says", tabindex: "-1" }, t("sources")), present(ctx),
      ctx.sources?.length ? table([t("source"), t("state"), t("age"), t("takes"), t("failures"), t("why")], ctx.sources.map(source), t("sources")) : h("p", { class: "quiet" }, t("no_source"))),
    takeAway(ctx),
    h("section", { class: "card", "aria-labelledby": "gaps" }, h("h2", { id: "gaps" }, t("unavailable")), gaps(ctx.unavailable ?? [])),
  ];
}

/** Returns the note that a view shows the present while the others show an earlier instant. */
const present = (ctx) => (ctx.at === null ? null : h("p", { class: "quiet" }, t("present")));

function source(row) {
  return h("tr", { "data-key": row.name }, h("th", { scope: "row" }, row.name), h("td", null, chip(row.up ? "clear" : "faulty", t(row.up ? "up" : "down"))),
    h("td", { class: "n" }, row.age_seconds === null ? "–" : text(row.age_seconds, "seconds")), h("td", { class: "n" }, row.duration_seconds === null ? "–" : text(row.duration_seconds, "seconds")),
    h("td", { class: "n" }, row.failures), h("td", null, [row.reason ? reason(row.reason) : "", detail(row.message)].filter(Boolean).join(": ")));
}

function gaps(rows) {
  if (!rows.length) return h("p", { class: "quiet" }, t("all_there"));
  const groups = new Map();
  for (const row of rows) {
    const key = row.reason + "\n" + row.detail;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const rank = ([, [row]]) => ORDER.indexOf(row.reason);
  return [...groups].sort((a, b) => rank(a) - rank(b)).map(([key, group]) => h("div", { class: "gap", "data-key": key },
    h("p", null, h("b", null, reason(group[0].reason)), group[0].detail ? ": " + detail(group[0].detail) : ""),
    h("p", null, [...new Set(group.map((row) => row.signal))].map((name) => h("code", null, breakable(name), " ")))));
}

function takeAway(ctx) {
  const link = (href, words, download) => h("a", { href, download: download ?? null }, words);
  return h("section", { class: "card", "aria-labelledby": "away" }, h("h2", { id: "away" }, t("take_away")),
    h("p", { class: "links" }, link("api/v1/verdict", t("e_json"), "verdict.json"), link("api/v1/export/ticket", t("e_ticket"), "verdict.md"), link("api/v1/export/recording", t("e_recording"), ""),
      h("button", { type: "button", "data-act": "ticket", class: "copy" }, ctx.copied === "ticket" ? t("copied") : t("copy_ticket"))),
    h("p", { class: "quiet" }, t("recording_words")),
    h("h2", null, t("links")),
    h("p", { class: "links" }, ["metrics", "api/openapi.json", "api/v1/verdict", "api/v1/page", "api/v1/findings", "api/v1/rules", "api/v1/charts", "api/v1/signals", "api/v1/sources", "api/v1/unavailable"].map((path) => link(path, "/" + path))));
}

export function signals(ctx) {
  const all = (ctx.signals ?? []).flatMap((signal) => signal.values.map((value) => ({ signal, value })));
  const wanted = ctx.query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter(({ signal, value }) => {
    const where = (signal.name + " " + signal.layer + " " + signal.help + " " + help(signal.help) + " " + Object.values(value.labels).join(" ")).toLowerCase();
    return wanted.every((word) => where.includes(word));
  });
  return [h("section", { class: "card", "aria-labelledby": "says" }, h("h1", { id: "says", tabindex: "-1" }, t("signals")), present(ctx),
    h("p", null, h("input", { type: "search", id: "find", "data-own": "", "data-act": "find", placeholder: t("find"), "aria-label": t("find"), "aria-keyshortcuts": "/", autocomplete: "off", spellcheck: "false" }),
      " ", h("span", { class: "quiet", role: "status" }, ctx.signals ? t("shown_of", Math.min(found.length, MOST_ROWS), all.length) : t("loading"))),
    ctx.signals && !found.length ? h("p", null, t("nothing_found")) :
      table([t("name") + " · " + t("help"), t("labels"), t("value"), t("rate"), t("layer")], found.slice(0, MOST_ROWS).map(row), t("signals"), "data wide"))];
}

function row({ signal, value }) {
  const labels = Object.entries(value.labels).filter(([name]) => name !== "uuid").map(([name, text]) => name + "=" + text).join(" ");
  return h("tr", { "data-key": signal.name + labels }, h("th", { scope: "row" }, h("a", { href: "api/v1/signals?name=" + encodeURIComponent(signal.name) }, h("code", null, breakable(signal.name))), h("span", { class: "help" }, help(signal.help))),
    h("td", null, signal.kind === "info" ? "" : labels), h("td", { class: signal.kind === "info" ? null : "n", title: String(value.value ?? value.count ?? "") }, value.text), h("td", { class: "n" }, value.rate_text ?? ""),
    h("td", null, signal.layer ? t(signal.layer) : "heptascope"));
}

function table(head, rows, name, look = "data") {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    h("table", { class: look }, h("thead", null, h("tr", null, head.map((word) => h("th", { scope: "col" }, word)))), h("tbody", null, rows)));
}
