// Holds what the reader chose and what the server said, and draws the view again when either changes.

import { begun } from "./chart.js";
import { data } from "./load.js";
import { sources, signals } from "./data.js";
import { h, morph } from "./dom.js";
import { Feed } from "./feed.js";
import { layer } from "./layer.js";
import { overview } from "./overview.js";
import { LAYERS, says, verdictOf } from "./parts.js";
import { time } from "./time.js";
import { banner, demo, head } from "./top.js";
import { speak, t } from "./words.js";

const WORST = ["degraded", "cannot-tell", "healthy", "idle"];
const HOVER_DRAWS = 40; // milliseconds between two drawings while the pointer moves
const VIEWS = { overview, engine: overview, layer, time, sources, signals };

const find = (id) => document.getElementById(id);
const ctx = {
  live: null, page: null, charts: null, problem: "connecting", route: { view: "overview" }, engine: "", at: null, past: null, hover: null,
  rules: {}, findings: {}, stood: {}, trends: {}, opened: new Set(), fresh: true, sources: null, unavailable: null, signals: null, query: "", copied: null, demo: null,
};
const load = data(ctx, draw);
let drawing = 0, spoken = "", hovered = 0, ready = false;

function parse() {
  const [view = "", first, second] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (view === "layer" && LAYERS.includes(first)) return { view, layer: first, engine: second };
  if (view === "engine") return { view, engine: first };
  return { view: ["time", "sources", "signals"].includes(view) ? view : "overview" };
}

/** Returns a part of the address as it was meant; one that nobody encoded stands for itself. */
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

function settle() {
  ctx.page = ctx.at === null ? ctx.live : ctx.past ?? ctx.live;
  ctx.charts = feed.charts && covered(feed.charts);
  const known = Object.keys(ctx.page?.verdicts ?? {});
  const worst = WORST.flatMap((state) => known.filter((name) => ctx.page.verdicts[name].state === state));
  ctx.engine = known.includes(ctx.route.engine) ? ctx.route.engine : worst[0] ?? "";
}

/** Returns the charts without the time before the first value. */
function covered(store) {
  const first = begun(Object.values(store.charts).flatMap((chart) => Object.values(chart.lines)), store.seconds);
  const cut = (lines) => Object.fromEntries(Object.entries(lines).map(([key, values]) => [key, values.slice(first)]));
  const charts = Object.fromEntries(Object.entries(store.charts).map(([name, chart]) => [name, { ...chart, lines: cut(chart.lines) }]));
  return { ...store, seconds: store.seconds - first, charts };
}

function fill(id, parts) {
  const shell = find(id), wanted = shell.cloneNode(false);
  wanted.append(...parts.flat(Infinity).filter((part) => part !== null && part !== undefined && part !== false));
  morph(shell, wanted);
}

function render() {
  drawing = 0;
  settle();
  const view = !ctx.page ? [h("p", { class: "card quiet" }, ctx.problem === "lost" ? t("lost_never") : t("connecting"))]
    : ctx.at !== null && ctx.past && !Object.keys(ctx.past.verdicts).length && ctx.route.view !== "time" ? [h("p", { class: "card" }, t("paused_gone"))] : VIEWS[ctx.route.view](ctx);
  document.querySelector(".skip").textContent = t("skip");
  fill("top", head(ctx));
  fill("demo", demo(ctx));
  fill("banner", banner(ctx));
  find("main").dataset.view = ctx.route.view;
  fill("main", view);
  if (document.querySelector(".rules details")) ctx.fresh = false; // what fires was opened; from now on the reader opens and closes
  document.body.classList.toggle("stale", ctx.problem === "lost" || ctx.problem === "stuck");
  choices();
  announce();
}

function draw() {
  if (ready) drawing ||= requestAnimationFrame(render);
}

/** Sets what the reader's own controls show; the drawing leaves them alone. */
function choices() {
  const set = (id, value) => { const element = find(id); if (element && document.activeElement !== element && element.value !== String(value)) element.value = value; };
  set("theme", document.documentElement.dataset.theme ?? "");
  set("language", stored("heptascope-language") ?? "");
  if (ctx.demo) set("pick", ctx.demo.playing);
  const scrub = find("scrub");
  if (scrub && ctx.charts) {
    const begin = ctx.charts.t - ctx.charts.seconds + 1;
    scrub.max = ctx.charts.seconds - 1;
    if (document.activeElement !== scrub || ctx.at === null) scrub.value = (ctx.at ?? ctx.charts.t) - begin;
  }
}

/** Tells a screen reader what changed, and shows the state in the title. */
function announce() {
  const verdict = ctx.live?.overall ?? verdictOf({ ...ctx, page: ctx.live });
  const lead = verdict && ctx.live.claims[verdict.faults[0] ?? verdict.limiter];
  const words = ctx.problem === "lost" ? t("lost_never") : verdict ? t(verdict.state) + (lead ? ": " + says(lead) : "") : "";
  document.title = (verdict ? t(verdict.state) + " · " : "") + "heptascope";
  if (words !== spoken) find("announce").textContent = spoken = words;
}

function stored(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    if (value) localStorage.setItem(name, value); else localStorage.removeItem(name);
  } catch { /* the choice holds for this visit */ }
  return value ?? null;
}

function travel() {
  ctx.route = parse();
  ctx.hover = null;
  ctx.fresh = true;
  ctx.opened.clear();
  load.now();
  draw();
  requestAnimationFrame(() => requestAnimationFrame(() => { find("says")?.focus({ preventScroll: true }); window.scrollTo(0, 0); }));
}

function pause(at) {
  ctx.at = at;
  ctx.past = at === null ? null : ctx.past;
  if (at === null) load.now(); else load.past();
  draw();
}

const acts = {
  copy: (element) => copy(element.dataset.text, element.dataset.text),
  ticket: () => load.ticket().then((words) => copy(words, "ticket"), () => undefined),
  pause: () => pause(ctx.charts.t),
  resume: () => pause(null),
};

async function copy(words, what) {
  if (!await navigator.clipboard?.writeText(words).then(() => true, () => false) && !copyByHand(words)) return;
  ctx.copied = what;
  draw();
  setTimeout(() => { if (ctx.copied === what) { ctx.copied = null; draw(); } }, 1500);
}

/** Copies as browsers did before; they keep the clipboard from pages that come over plain HTTP from another machine. */
function copyByHand(words) {
  const field = h("textarea", { "aria-hidden": "true", class: "sr", readonly: "" }), before = document.activeElement;
  field.value = words;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus({ preventScroll: true });
  return done;
}

const chosen = {
  theme: (value) => { stored("heptascope-theme", value); if (value) document.documentElement.dataset.theme = value; else delete document.documentElement.dataset.theme; },
  language: (value) => { stored("heptascope-language", value); speak(value || undefined).then(() => { document.querySelectorAll("#theme,#language,#find").forEach((element) => element.remove()); draw(); }); },
  pick: (value) => { if (ctx.at !== null) pause(null); load.play(value); },
  find: (value) => { ctx.query = value; draw(); },
  scrub: (value) => { const at = ctx.charts.t - ctx.charts.seconds + 1 + Number(value); pause(at >= ctx.charts.t ? null : at); },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) {
    if (event.key === "Escape" && event.target.id === "find") { event.target.value = ctx.query = ""; draw(); }
    return;
  }
  const number = Number(event.key);
  if (number >= 1 && number <= 7) location.hash = "#/layer/" + LAYERS[LAYERS.length - number];  // counted from the hardware, as the boards are
  else if (event.key === "Escape" || event.key === "0") location.hash = "#/";
  else if (event.key === "/") { event.preventDefault(); location.hash = "#/signals"; setTimeout(() => find("find")?.focus(), 100); }
}

function onHover(event) {
  const plot = event.target.closest?.("[data-act=hover] svg.plot");
  const before = ctx.hover;
  if (!plot || !ctx.charts) ctx.hover = null;
  else {
    const { left, width } = plot.getBoundingClientRect(), { t: last, seconds } = ctx.charts;
    ctx.hover = Math.round(last - seconds + 1 + Math.min(1, Math.max(0, (event.clientX - left) / width)) * (seconds - 1));
  }
  if (ctx.hover !== before) hovered ||= setTimeout(() => { hovered = 0; draw(); }, HOVER_DRAWS);
}

document.addEventListener("click", (event) => {
  if (event.target.matches(".skip")) { event.preventDefault(); find("main").focus(); }
});
document.addEventListener("click", (event) => { const element = event.target.closest("button[data-act]"); if (element) acts[element.dataset.act]?.(element); });
for (const kind of ["change", "input"]) document.addEventListener(kind, (event) => {
  const act = event.target.dataset?.act;
  if (chosen[act] && (kind === "input") === ["find", "scrub"].includes(act)) chosen[act](event.target.value);
});
document.addEventListener("toggle", (event) => {
  const { key, rule } = event.target.dataset ?? {};
  if (!rule) return;
  if (event.target.open) { ctx.opened.add(key); load.trend(rule); } else ctx.opened.delete(key);
  draw();
}, true);
document.addEventListener("pointermove", onHover, { passive: true });
document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", travel);

ctx.route = parse();
const feed = new Feed(() => {
  Object.assign(ctx, { live: feed.page, problem: feed.problem });
  draw();
});
speak().then(() => { ready = true; load.now(); draw(); });
