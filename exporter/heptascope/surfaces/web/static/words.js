// The page's own words, and the choice of the language. All that is said in Chinese stands in words-zh*.js, which are loaded on demand.

const en = {
  overview: "Overview", time: "Time", sources: "Sources", signals: "Signals", skip: "Skip to the verdict", views: "Views",
  theme: "Theme", theme_system: "System theme", theme_light: "Light", theme_dark: "Dark", language_browser: "Browser language", language: "Language",
  live: "Live", updated: "updated {0}", connecting: "Connecting", waiting: "Waiting for the first verdict; it needs about ten seconds of readings.",
  lost: "No answer from heptascope; stale since {0}", stuck: "Readings stand still since {0}", lost_never: "No answer from heptascope",
  paused: "Showing {0}, {1} ago", paused_gone: "Nothing is kept of that time.", resume: "Back to live", pause: "Pause",
  idle: "Idle", healthy: "Healthy", degraded: "Degraded", "cannot-tell": "Cannot tell",
  since: "{0} since ", idle_words: "no requests are running.", cannot_words: "too little can be read to judge.",
  healthy_words: "the load is light and nothing limits it.", symptom_words: "users feel it, but no cause was found.",
  cannot_limited: "throughput is limited, but too little can be read to say whether something is to be fixed.",
  root: "Root fault", limiting_layer: "Limiting layer", sure: "How sure", stands: "Since", unjudged: "{0} rules cannot be judged", direct: "seen directly", inferred: "inferred", weak: "weak evidence",
  none: "none", nothing_to_fix: "nothing to fix", on: "{0} on {1}", also: "Also", next: "Next", see_missing: "see which signals are missing, why, and what would bring them", for_ago: "for {0}",
  engine: "Engine", engines: "Engines", gpu: "GPU", gpus: "GPUs", rank: "rank", model: "Model", no_engine: "No engine is read yet.",
  ttft: "TTFT p95", itl: "Inter-token latency p95", tokens: "Tokens generated", requests: "Requests", saturation: "Saturation",
  objective: "objective {0}", no_objective: "no objective", over: "missed", within: "kept",
  median: "median {0}", prompt: "prompt {0}", run: "running", wait: "waiting", binds_first: "first limit: {0}", busiest: "{0} {1}", of_had: "of what can be had of the busiest resource",
  limit_kv_cache: "KV cache", limit_sequences: "sequence slots", limit_compute: "tensor cores", limit_slo: "latency objective", c_limits: "Saturation by limit",
  present: "This view shows the present.", runbook_english: "(in English)",
  no_value: "cannot be read now", no_traffic: "no requests in the last 10 s", none_seen: "none was measured in the last 10 s",
  stack: "The seven layers, from the application to the hardware",
  layer: "Layer", application: "Application", speculative: "Speculative", parallel: "Parallel", scheduling: "Scheduling", memory: "Memory (KV cache)",
  operator: "Operator", hardware: "Hardware",
  "application_words": "What the user feels: latency, throughput, errors, and the front end.",
  "speculative_words": "Drafted tokens: how many are accepted, and whether they pay.",
  "parallel_words": "Several GPUs at one model: links and balance.",
  "scheduling_words": "The engine's loop: batch, queue, and the host that drives it.",
  "memory_words": "The KV cache: room, reuse, preemption.",
  "operator_words": "The kernels, and how fast they are launched.",
  "hardware_words": "The card and its links: memory bandwidth, compute, power, heat, PCIe.",
  clear: "Clear", partly: "Clear in part", limiting: "Limiting", faulty: "Fault", symptom: "Symptom", firing: "Firing", pending: "Pending",
  judged: "{0} of {1} rules judged", all_judged: "all {0} rules judged", lacks: "{0} of {1} rules lack signals",
  limits: "limits throughput", fails: "root fault", follows: "follows from {0}", felt: "felt by users", only_one: "one GPU: nothing to share",
  some_ago: "{0} ago", now: "now",
  back: "All layers", rules: "Rules", graph: "What causes what, now", no_graph: "Nothing fires in this layer.",
  evidence: "Evidence", signal: "Signal", value: "Value", threshold: "Rule", trend: "Trend", context: "for context", among_slowest: "{0} among the slowest",
  thresholds: "Thresholds and where they come from", explains: "Explains", explained_by: "Explained by", steps: "Next steps", copy: "Copy", copied: "Copied",
  promql: "PromQL", missing: "What is missing", runbook: "Runbook", no_trend: "No values in the last ten minutes.", gain: "Worth", trace_served: "trace {0}, {1} old", corroborated: "A fresh trace shows it too: {0}.",
  baseline: "This rule compares with a day ago; it is judged by Prometheus only.", loading: "Loading",
  limiter: "limiter", fault: "fault", symptom_kind: "symptom", about: "On", confidence: "Confidence", holds: "the alert waits {0}",
  charts: "Ten minutes on one axis", bands: "Findings", no_bands: "No finding fired in the last ten minutes.", scrub: "Go back in time", at: "at {0}",
  c_ttft: "TTFT p95", c_ttft_median: "TTFT median", c_itl: "Inter-token latency p95", c_itl_median: "Inter-token latency median", c_generated: "Tokens generated",
  c_prompted: "Prompt tokens", c_acceptance: "Draft acceptance", c_running: "Running", c_waiting: "Waiting", c_step: "Engine step", c_kv: "KV cache used",
  c_preemptions: "Preemptions", c_gap: "Host gap in a step", c_active: "Graphics engine active", c_sm: "SM active", c_dram: "DRAM active", c_tensor: "Tensor active",
  c_utilization: "GPU utilization", c_power: "Power", c_clock: "SM clock", c_temperature: "Temperature", c_pcie: "PCIe receive", c_nvlink: "NVLink receive",
  resource_dram: "DRAM bandwidth", resource_tensor: "tensor cores", resource_pcie: "PCIe", resource_link: "GPU links", resource_host: "host steps",
  matrix: "Engines and layers", state: "State", odd: "odd", odd_rule: "odd: {0}", odd_words: "differs from the others of its group",
  source: "Source", age: "Age", takes: "Takes", failures: "Failures", why: "Why", up: "up", down: "down", unavailable: "What cannot be had, and why",
  all_there: "Everything that heptascope knows can be read here.", no_source: "No source has been read yet.", take_away: "Take away", links: "For machines",
  e_json: "Verdict (JSON)", e_ticket: "Ticket (Markdown)", e_recording: "Last ten minutes (recording)", copy_ticket: "Copy the ticket",
  recording_words: "Unpack with tar; heptascope replay reads the folder.", find: "Find a signal", name: "Name", labels: "Labels", rate: "Rate", help: "What it is",
  nothing_found: "No signal matches.", shown_of: "{0} of {1} series",
  playing: "Recording", label: "A right verdict", verdict: "The verdict now", match: "Comparison", right: "agrees", "wrong-page": "wrong fault", missed: "missed", settling: "settling: the window fills",
  pick: "Play another recording", demo_words: "This is a recording of vLLM on H200 GPUs that plays in a loop.", or: " or ", no_fault: "no fault", limiter_is: "limiter {0}",
  not_supported: "this card, driver or kernel does not have it", no_permission: "it exists, but heptascope may not read it",
  profiler_locked: "another profiler holds the counters", engine_reason: "the engine does not export it", engine_too_old: "a newer version of this engine exports it",
  flag_off: "the engine needs a start flag to export it", not_configured: "the feature behind it is off", source_down: "its source cannot be read at present",
  no_source_reason: "no source of this kind is configured or was found", stale: "its last value is too old to use", invalid: "the value that came was impossible",
  ambiguous: "it cannot be told which engine or GPU it belongs to", idle_reason: "it is defined only while there is work",
};

const REASONS = { engine: "engine_reason", no_source: "no_source_reason", idle: "idle_reason" };
const stored = () => { try { return localStorage.getItem("heptascope-language"); } catch { return null; } };
const PREFIX = /^(\[[\w-]+\] )?([^]*)$/;
let chinese = null;

/** Chooses the language: the reader's choice, else the browser's. Resolves when its words are there; without them it stays English. */
export async function speak(choice = stored()) {
  const wanted = choice === "en" || choice === "zh" ? choice : navigator.languages.map((one) => one.slice(0, 2)).find((one) => one === "en" || one === "zh") ?? "en";
  chinese = wanted === "zh" ? await import("./words-zh.js").catch(() => null) : null;
  document.documentElement.lang = chinese ? "zh-CN" : "en";
}

/** Returns a text of the page, its {0}, {1} filled in. */
export const t = (key, ...values) => (chinese?.page[key] ?? en[key] ?? key).replace(/\{(\d)\}/g, (_, i) => values[i] ?? "");

/** Returns the reason why a signal is missing, in words. */
export const reason = (code) => t(REASONS[code] ?? code);

/** Returns what a rule says, in the reader's language where that is known. */
export const summary = (rule, english) => chinese?.rules[rule] ?? english;

/** Returns a next step in the reader's language; the engine kind that may stand before it stays. */
export function step(english) {
  const [, kind = "", words] = PREFIX.exec(english);
  return kind + (chinese?.steps[words] ?? words);
}

/** Returns what a signal is, what a recording shows, or what mending a fault is worth. */
export const help = (english) => chinese?.signals[english] ?? english;
export const scene = (english) => chinese?.scenes[english] ?? english;
export const gain = (english) => english.replace(/(?<=^\S+ ).*/s, (words) => chinese?.gains[words] ?? words);

/** Returns the source's own words on why a signal is missing; what a pattern leaves open is looked up in turn. */
export function detail(english) {
  const whole = chinese?.reasons[english] ?? chinese?.reasons[english.toLowerCase()];
  if (whole !== undefined) return whole;
  for (const [pattern, words] of chinese?.details ?? []) {
    const found = pattern.exec(english);
    if (found) return words.replace(/\{(\d)\}/g, (_, i) => detail(found[i]));
  }
  return english;
}

/** Returns where a threshold comes from; one that is another rule's begins with that rule's name. */
export function origin(english) {
  const [, rule = "", words] = /^(?:as (\w+): )?(.*)$/s.exec(english), told = chinese?.thresholds[words];
  return told === undefined ? english : (rule && "同 " + rule + "：") + told;
}

/** Whether the page speaks another language than its runbooks. */
export const foreign = () => chinese !== null;

export const keys = Object.keys(en);
