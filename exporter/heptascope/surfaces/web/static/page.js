"use strict";
// Keeps the page that the server rendered fresh: new numbers from the API, a new page body when series come or go.
(() => {
  const EVERY = 2000, OLD = 5;
  const find = (what) => document.querySelector(what);
  const query = find("#q"), state = find("#state");
  let cells = new Map(), seen = null, timer = 0, busy = false;

  const key = (name, labels) => name + "{" + Object.entries(labels).map(([k, v]) => k + "=" + v).join(",") + "}";
  const fetched = async (url) => {
    const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(answer.status === 401 ? "the token is no longer accepted" : "heptascope answers " + answer.status);
    return answer;
  };
  const index = () => { cells = new Map([...document.querySelectorAll("[data-k]")].map((cell) => [cell.dataset.k, cell])); };

  function filter() {
    const wanted = query.value.trim().toLowerCase();
    for (const section of document.querySelectorAll("section.searched")) {
      let any = false;
      for (const row of section.querySelectorAll(".s, .gap")) {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
        any ||= !row.hidden;
      }
      section.hidden = !any;
    }
  }

  async function rebuild() {
    const fresh = new DOMParser().parseFromString(await (await fetched("./")).text(), "text/html");
    find("#live").replaceWith(fresh.querySelector("#live"));
    document.title = fresh.title;
    index();
    filter();
  }

  function update(signals) {
    for (const signal of signals) for (const row of signal.values) {
      const cell = cells.get(key(signal.name, row.labels));
      if (!cell) continue;
      cell.textContent = row.text;
      if (row.value !== undefined) cell.title = row.value;
      const beside = cell.parentElement;
      const meter = beside.querySelector("meter"), rate = beside.querySelector("i");
      if (meter) meter.value = row.value;
      if (rate) rate.textContent = row.rate_text ?? "";
    }
  }

  function say(text, stale) {
    if (state.textContent !== text) state.textContent = text;
    document.body.classList.toggle("stale", stale);
  }
  const clock = (t) => new Date(t * 1000).toLocaleTimeString();

  async function tick() {
    clearTimeout(timer);
    if (document.hidden || busy) return;
    busy = true;
    try {
      const now = await (await fetched("api/v1/signals")).json();
      if (now.shape === find("#live").dataset.shape) update(now.signals);
      else await rebuild();
      seen = now.t;
      if (now.age_seconds > OLD) say("Readings stand still since " + clock(now.t), true);
      else say("Updated " + clock(now.t), false);
    } catch (error) {
      const why = error instanceof TypeError || error.name === "TimeoutError" ? "No answer from heptascope" : "Stale: " + error.message;
      say(why + (seen ? "; last update " + clock(seen) : ""), true);
    }
    busy = false;
    clearTimeout(timer);
    timer = setTimeout(tick, EVERY);
  }

  find("#tools").hidden = false;
  find("#tools").addEventListener("submit", (event) => event.preventDefault());
  query.addEventListener("input", filter);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== query) { event.preventDefault(); query.focus(); }
    if (event.key === "Escape" && event.target === query) { query.value = ""; filter(); }
  });
  document.addEventListener("visibilitychange", tick);
  index();
  filter();
  tick();
})();
