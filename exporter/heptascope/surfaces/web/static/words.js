// The page's own words in English and Chinese. The field's terms stay as they are; rules have their Chinese summaries in words-zh.js.

import { rules as rulesZh } from "./words-zh.js";

const en = {
  overview: "Overview", time: "Time", sources: "Sources", signals: "Signals", skip: "Skip to the verdict", views: "Views",
  theme: "Theme", theme_system: "System theme", theme_light: "Light", theme_dark: "Dark", language_browser: "Browser language", language: "Language",
  live: "Live", updated: "updated {0}", connecting: "Connecting", waiting: "Waiting for the first verdict; it needs about ten seconds of readings.",
  lost: "No answer from heptascope; stale since {0}", stuck: "Readings stand still since {0}", lost_never: "No answer from heptascope",
  paused: "Showing {0}, {1} ago", paused_gone: "Nothing is kept of that time.", resume: "Back to live", pause: "Pause",
  idle: "Idle", healthy: "Healthy", degraded: "Degraded", "cannot-tell": "Cannot tell",
  since: "{0} since {1}", idle_words: "no requests are running.", cannot_words: "too little can be read to judge.",
  healthy_words: "the load is light and nothing limits it.", symptom_words: "users feel it, but no cause was found.",
  cannot_limited: "throughput is limited, but too little can be read to say whether something is to be fixed.",
  root: "Root fault", limiting_layer: "Limiting layer", sure: "How sure", stands: "Since", unjudged: "{0} rules cannot be judged", direct: "seen directly", inferred: "inferred", weak: "weak evidence",
  none: "none", nothing_to_fix: "nothing to fix", on: "{0} on {1}", also: "Also", next: "Next", for_ago: "for {0}",
  engine: "Engine", engines: "Engines", gpu: "GPU", gpus: "GPUs", rank: "rank", model: "Model", no_engine: "No engine is read yet.",
  ttft: "TTFT p95", itl: "Inter-token latency p95", tokens: "Tokens generated", requests: "Requests", saturation: "Saturation",
  objective: "objective {0}", no_objective: "no objective", of_objective: "{0} of the objective", over: "over the objective", within: "within the objective",
  median: "median {0}", prompt: "prompt {0}", running_waiting: "running · waiting", run: "running", wait: "waiting", of_had: "of what can be had of {0}",
  no_value: "cannot be read now", no_traffic: "no requests in the last 10 s",
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
  minutes_ago: "10 min ago", now: "now", leading: "leading signal",
  back: "All layers", rules: "Rules", graph: "What causes what, now", no_graph: "Nothing fires in this layer.",
  evidence: "Evidence", signal: "Signal", value: "Value", threshold: "Rule", trend: "Last ten minutes", context: "for context",
  thresholds: "Thresholds and where they come from", explains: "Explains", explained_by: "Explained by", steps: "Next steps", copy: "Copy", copied: "Copied",
  promql: "PromQL", missing: "What is missing", runbook: "Runbook", no_trend: "No values in the last ten minutes.", gain: "Worth", trace_served: "trace {0}, {1} old", corroborated: "A fresh trace shows it too: {0}.",
  baseline: "This rule compares with a day ago; it is judged by Prometheus only.", of_rules: "{0} rules", loading: "Loading",
  limiter: "limiter", fault: "fault", symptom_kind: "symptom", about: "On", confidence: "Confidence", holds: "the alert waits {0}",
  charts: "Ten minutes on one axis", bands: "Findings", no_bands: "No finding fired in the last ten minutes.", scrub: "Go back in time", at: "at {0}",
  c_ttft: "TTFT p95", c_ttft_median: "TTFT median", c_itl: "Inter-token latency p95", c_itl_median: "Inter-token latency median", c_generated: "Tokens generated",
  c_prompted: "Prompt tokens", c_acceptance: "Draft acceptance", c_running: "Running", c_waiting: "Waiting", c_step: "Engine step", c_kv: "KV cache used",
  c_preemptions: "Preemptions", c_gap: "Host gap in a step", c_active: "Graphics engine active", c_sm: "SM active", c_dram: "DRAM active", c_tensor: "Tensor active",
  c_utilization: "GPU utilization", c_power: "Power", c_clock: "SM clock", c_temperature: "Temperature", c_pcie: "PCIe receive", c_nvlink: "NVLink receive",
  resource_dram: "DRAM bandwidth", resource_tensor: "tensor cores", resource_pcie: "PCIe", resource_link: "GPU links", resource_host: "host steps",
  matrix: "Engines and layers", state: "State", odd: "odd", odd_rule: "odd: {0}", odd_words: "differs from the others of its group", show: "Show {0}",
  source: "Source", age: "Age", takes: "Takes", failures: "Failures", why: "Why", up: "up", down: "down", unavailable: "What cannot be had, and why",
  all_there: "Everything that heptascope knows can be read here.", no_source: "No source has been read yet.", take_away: "Take away", links: "For machines",
  e_json: "Verdict (JSON)", e_ticket: "Ticket (Markdown)", e_recording: "Last ten minutes (recording)", copy_ticket: "Copy the ticket",
  recording_words: "Unpack with tar; heptascope replay reads the folder.", find: "Find a signal", name: "Name", labels: "Labels", rate: "Rate", help: "What it is",
  nothing_found: "No signal matches.", shown_of: "{0} of {1} series",
  playing: "Recording", label: "A right verdict", verdict: "The verdict now", match: "Comparison", right: "agrees", "wrong-page": "wrong fault", missed: "not yet, or missed",
  pick: "Play another recording", demo_words: "This is a recording of vLLM on H200 GPUs that plays in a loop.", or: " or ", no_fault: "no fault", limiter_is: "limiter {0}",
  not_supported: "this card, driver or kernel does not have it", no_permission: "it exists, but heptascope may not read it",
  profiler_locked: "another profiler holds the counters", engine_reason: "no version of this engine exports it", engine_too_old: "a newer version of this engine exports it",
  flag_off: "the engine needs a start flag to export it", not_configured: "the feature behind it is off", source_down: "its source cannot be read at present",
  no_source_reason: "no source of this kind is configured or was found", stale: "its last value is too old to use", invalid: "the value that came was impossible",
  ambiguous: "it cannot be told which engine or GPU it belongs to", idle_reason: "it is defined only while there is work",
};

const zh = {
  overview: "总览", time: "时间", sources: "数据源", signals: "信号", skip: "跳到结论", views: "视图",
  theme: "主题", theme_system: "系统主题", theme_light: "浅色", theme_dark: "深色", language_browser: "浏览器语言", language: "语言",
  live: "实时", updated: "更新于 {0}", connecting: "正在连接", waiting: "等待第一个结论：需要约十秒的读数。",
  lost: "heptascope 没有应答，数据自 {0} 起陈旧", stuck: "读数自 {0} 起停滞", lost_never: "heptascope 没有应答",
  paused: "显示 {0}（{1} 前）的状态", paused_gone: "那个时刻没有保留数据。", resume: "回到实时", pause: "暂停",
  idle: "空闲", healthy: "健康", degraded: "降级", "cannot-tell": "无法判断",
  since: "自 {1} 起{0}", idle_words: "没有正在运行的请求。", cannot_words: "可读到的数据太少，无法判断。",
  healthy_words: "负载很轻，没有瓶颈。", symptom_words: "用户已感受到，但没有找到原因。",
  cannot_limited: "吞吐受限，但可读到的数据太少，无法判断是否需要处理。",
  root: "根因", limiting_layer: "瓶颈层", sure: "把握", stands: "始于", unjudged: "{0} 条规则无法判断", direct: "直接观测", inferred: "推断", weak: "证据薄弱",
  none: "无", nothing_to_fix: "无需处理", on: "{0}（{1}）", also: "另有", next: "下一步", for_ago: "已 {0}",
  engine: "引擎", engines: "引擎", gpu: "GPU", gpus: "GPU", rank: "rank", model: "模型", no_engine: "还没有读到任何引擎。",
  ttft: "TTFT p95", itl: "token 间延迟 p95", tokens: "生成 token", requests: "请求", saturation: "饱和度",
  objective: "目标 {0}", no_objective: "未设目标", of_objective: "目标的 {0}", over: "超出目标", within: "在目标内",
  median: "中位数 {0}", prompt: "prompt {0}", running_waiting: "运行 · 等待", run: "运行", wait: "等待", of_had: "占 {0} 可达上限",
  no_value: "目前读不到", no_traffic: "最近 10 秒没有请求",
  stack: "七层，自应用到硬件",
  layer: "层", application: "应用 Application", speculative: "投机解码 Speculative", parallel: "并行 Parallel", scheduling: "调度 Scheduling", memory: "内存 Memory（KV cache）",
  operator: "算子 Operator", hardware: "硬件 Hardware",
  "application_words": "用户的感受：延迟、吞吐、错误，以及前端。",
  "speculative_words": "草稿 token：接受多少，是否划算。",
  "parallel_words": "多 GPU 运行一个模型：互联与均衡。",
  "scheduling_words": "引擎循环：batch、队列，以及驱动它的主机。",
  "memory_words": "KV cache：空间、复用、抢占。",
  "operator_words": "kernel 以及发射速度。",
  "hardware_words": "显卡与链路：显存带宽、算力、功耗、温度、PCIe。",
  clear: "正常", partly: "部分正常", limiting: "瓶颈", faulty: "故障", symptom: "症状", firing: "触发", pending: "待定",
  judged: "{1} 条规则判断了 {0} 条", all_judged: "{0} 条规则全部已判断", lacks: "{1} 条规则中 {0} 条缺信号",
  limits: "限制吞吐", fails: "根因", follows: "由 {0} 引起", felt: "用户可感知", only_one: "单 GPU：无可分摊",
  minutes_ago: "10 分钟前", now: "现在", leading: "主要信号",
  back: "所有层", rules: "规则", graph: "此刻的因果", no_graph: "本层没有触发的规则。",
  evidence: "证据", signal: "信号", value: "数值", threshold: "规则", trend: "最近十分钟", context: "供参考",
  thresholds: "阈值及其来源", explains: "可解释", explained_by: "可由其解释", steps: "下一步", copy: "复制", copied: "已复制",
  promql: "PromQL", missing: "缺什么", runbook: "Runbook", no_trend: "最近十分钟没有数值。", gain: "收益", trace_served: "trace {0}，{1}前写入", corroborated: "新近的 trace 也显示了这一点：{0}。",
  baseline: "本规则与一天前比较，只由 Prometheus 判断。", of_rules: "{0} 条规则", loading: "加载中",
  limiter: "瓶颈", fault: "故障", symptom_kind: "症状", about: "对象", confidence: "把握", holds: "告警等待 {0}",
  charts: "同一时间轴上的十分钟", bands: "发现", no_bands: "最近十分钟没有触发的规则。", scrub: "回看", at: "{0} 时",
  c_ttft: "TTFT p95", c_ttft_median: "TTFT 中位数", c_itl: "token 间延迟 p95", c_itl_median: "token 间延迟中位数", c_generated: "生成 token",
  c_prompted: "prompt token", c_acceptance: "草稿接受率", c_running: "运行中", c_waiting: "等待中", c_step: "引擎一步", c_kv: "KV cache 用量",
  c_preemptions: "抢占", c_gap: "一步中的主机空隙", c_active: "Graphics engine active", c_sm: "SM active", c_dram: "DRAM active", c_tensor: "Tensor active",
  c_utilization: "GPU utilization", c_power: "功耗", c_clock: "SM 时钟", c_temperature: "温度", c_pcie: "PCIe 接收", c_nvlink: "NVLink 接收",
  resource_dram: "DRAM 带宽", resource_tensor: "tensor core", resource_pcie: "PCIe", resource_link: "GPU 互联", resource_host: "主机步骤",
  matrix: "引擎与层", state: "状态", odd: "异常", odd_rule: "异常：{0}", odd_words: "与同组其他 GPU 不同", show: "查看 {0}",
  source: "数据源", age: "数据龄", takes: "耗时", failures: "失败", why: "原因", up: "正常", down: "中断", unavailable: "哪些读不到，为什么",
  all_there: "heptascope 已知的信号在此全部可读。", no_source: "还没有读过任何数据源。", take_away: "导出", links: "供程序使用",
  e_json: "结论 (JSON)", e_ticket: "工单 (Markdown)", e_recording: "最近十分钟（录制）", copy_ticket: "复制工单",
  recording_words: "用 tar 解包，heptascope replay 可读该目录。", find: "查找信号", name: "名称", labels: "标签", rate: "速率", help: "含义",
  nothing_found: "没有匹配的信号。", shown_of: "{1} 条序列中的 {0} 条",
  playing: "录制", label: "正确的结论", verdict: "当前结论", match: "比较", right: "一致", "wrong-page": "故障不符", missed: "尚未得出或漏报",
  pick: "播放其他录制", demo_words: "这是在 H200 GPU 上录制的 vLLM，循环播放。", or: " 或 ", no_fault: "无故障", limiter_is: "瓶颈 {0}",
  not_supported: "此卡、驱动或内核不具备", no_permission: "存在，但 heptascope 无权读取",
  profiler_locked: "其他 profiler 占用了计数器", engine_reason: "此引擎没有版本导出它", engine_too_old: "此引擎的新版本才导出它",
  flag_off: "引擎需要启动参数才导出它", not_configured: "相关功能未启用", source_down: "其数据源目前不可读",
  no_source_reason: "没有配置或找到此类数据源", stale: "最后的值太旧", invalid: "收到的值不可能",
  ambiguous: "无法确定属于哪个引擎或 GPU", idle_reason: "只有有负载时才有定义",
};

const REASONS = { engine: "engine_reason", no_source: "no_source_reason", idle: "idle_reason" };
const stored = () => { try { return localStorage.getItem("heptascope-language"); } catch { return null; } };
let words = en;

/** Chooses the language: the reader's choice, else the browser's. */
export function speak(choice = stored()) {
  const wanted = choice === "en" || choice === "zh" ? choice : navigator.languages.map((one) => one.slice(0, 2)).find((one) => one === "en" || one === "zh") ?? "en";
  words = wanted === "zh" ? zh : en;
  document.documentElement.lang = wanted === "zh" ? "zh-CN" : "en";
  return wanted;
}

/** Returns a text of the page, its {0}, {1} filled in. */
export const t = (key, ...values) => (words[key] ?? en[key] ?? key).replace(/\{(\d)\}/g, (_, i) => values[i] ?? "");

/** Returns the reason why a signal is missing, in words. */
export const reason = (code) => t(REASONS[code] ?? code);

/** Returns what a rule says, in the reader's language where that is known. */
export const summary = (rule, english) => (words === zh && rulesZh[rule]) || english;

export const keys = { en: Object.keys(en), zh: Object.keys(zh) };
