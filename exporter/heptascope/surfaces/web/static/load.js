// What a view needs beyond the stream, fetched when it opens and renewed while it is open.

import { fetched } from "./feed.js";

const EVERY = 2000, TRENDS_EVERY = 5000, SETTLE = 120;

/** Returns the loaders; they write into `ctx` and call `draw`. */
export function data(ctx, draw) {
  let timer = 0, waiting = 0, drawn = 0;

  const get = async (url, take) => {
    try { take(await fetched(url)); draw(); } catch { /* the stream says that the server is gone; the next round tries again */ }
  };
  const trend = (rule) => get("api/v1/trends?rule=" + rule, (answer) => { ctx.trends[rule] = answer; });

  async function layer(name) {
    if (!ctx.rules[name]) await get("api/v1/rules?layer=" + name, (answer) => { ctx.rules[name] = answer.rules; });
    const at = ctx.at;
    if (at === null || ctx.stood[name] !== at) {
      await get("api/v1/findings?layer=" + name + (at === null ? "" : "&at=" + at), (answer) => {
        if (ctx.at === at) Object.assign(ctx, { findings: { ...ctx.findings, [name]: answer.findings }, stood: { ...ctx.stood, [name]: at } });
      });
    }
    if (Date.now() - drawn > TRENDS_EVERY) {
      drawn = Date.now();
      for (const rule of new Set([...ctx.opened].map((key) => key.split("|")[0]))) await trend(rule);
    }
  }

  async function round() {
    const { view } = ctx.route;
    if (document.hidden || ctx.problem === "lost") return;
    if (document.body.dataset.demo !== undefined) await get("api/v1/demo", (answer) => { ctx.demo = answer; });
    if (view === "layer") await layer(ctx.route.layer);
    if (view === "signals") await get("api/v1/signals", (answer) => { ctx.signals = answer.signals; });
    if (view === "sources") {
      await get("api/v1/sources", (answer) => { ctx.sources = answer.sources; });
      await get("api/v1/unavailable", (answer) => { ctx.unavailable = answer.unavailable; });
    }
  }

  async function now() {
    clearTimeout(timer);
    await round();
    clearTimeout(timer);
    timer = setTimeout(now, EVERY);
  }

  /** Fetches what was said at the instant that is shown, once the reader rests there. */
  function past() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const at = ctx.at;
      if (at === null) return;
      get("api/v1/page?at=" + at, (answer) => { if (ctx.at === at) ctx.past = answer; });
      if (ctx.route.view === "layer") layer(ctx.route.layer);
    }, SETTLE);
  }

  const play = (name) => fetched("api/v1/demo?scenario=" + encodeURIComponent(name), { method: "POST", headers: { "content-type": "application/json" } })
    .then((answer) => { ctx.demo = answer; draw(); }, () => undefined);
  const ticket = async () => {
    const answer = await fetch("api/v1/export/ticket", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.text();
  };
  return { now, past, trend, play, ticket };
}
