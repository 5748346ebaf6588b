// The line to the server: the page as an object, what changes in it, and the charts; says when it is dead, and comes back alone.

const DEAD_AFTER = 6000, RETRY = 2000, OLD = 5;

/** Applies a merge patch (RFC 7396) to an object, in place. */
export function merge(target, patch) {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete target[name];
    else if (typeof value === "object" && !Array.isArray(value)) {
      const inner = target[name];
      target[name] = merge(inner && typeof inner === "object" && !Array.isArray(inner) ? inner : {}, value);
    } else target[name] = value;
  }
  return target;
}

/** Adds one second to the charts; returns false if they have to be fetched anew. */
export function extend(store, points) {
  const steps = points.t - store.t;
  if (steps <= 0) return true;
  if (steps > 60) return false;
  for (const [name, lines] of Object.entries(points.charts)) {
    if (!store.charts[name]) return false;
    for (const key of Object.keys(lines)) store.charts[name].lines[key] ??= new Array(store.seconds).fill(null);
  }
  for (const [name, chart] of Object.entries(store.charts)) for (const [key, values] of Object.entries(chart.lines)) {
    for (let i = 1; i < steps; i++) values.push(null);
    values.push(points.charts[name]?.[key] ?? null);
    values.splice(0, steps);
  }
  store.t = points.t;
  return true;
}

export class Feed {
  /** Calls `changed` after each change. `page`, `charts` and `problem` ("" while all is well) are what there is. */
  constructor(changed) {
    this.changed = changed;
    this.page = this.charts = null;
    this.problem = "connecting";
    this.age = 0;
    this.source = null;
    this.timer = this.watch = 0;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    window.addEventListener("online", () => this.open());
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("pageshow", (event) => { if (event.persisted) this.open(); });
    this.open();
  }

  open() {
    this.close();
    const source = this.source = new EventSource("api/v1/stream");
    source.addEventListener("page", (event) => { this.page = JSON.parse(event.data); this.load(); this.heard(); });
    source.addEventListener("patch", (event) => { if (this.page) merge(this.page, JSON.parse(event.data)); this.heard(); });
    source.addEventListener("points", (event) => { if (this.charts && !extend(this.charts, JSON.parse(event.data))) this.load(); this.heard(); });
    source.addEventListener("beat", (event) => { this.heard(JSON.parse(event.data).age); });
    source.addEventListener("error", () => this.lost());
    this.listen();
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.watch);
    this.source?.close();
    this.source = null;
  }

  heard(age = 0) {
    this.age = age;
    this.problem = age > OLD ? "stuck" : "";
    this.listen();
    this.changed();
  }

  listen() {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => this.lost(), DEAD_AFTER);
  }

  lost() {
    this.close();
    this.problem = "lost";
    this.timer = setTimeout(() => this.open(), RETRY);
    this.changed();
  }

  async load() {
    try {
      this.charts = await fetched("api/v1/charts");
      this.changed();
    } catch { /* the stream tells that the server is gone */ }
  }
}

/** Returns an answer of the API. */
export async function fetched(url, options = {}) {
  const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(8000), ...options });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? String(answer.status));
  return answer.json();
}
