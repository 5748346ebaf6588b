// What the page says in Chinese; the field's terms stay as they are. `rules` are by rule name; `page` by the keys of words.js; all
// others by their English text, so that a changed one is missed by the test and not shown with the meaning that it had.

export { details, reasons } from "./words-zh-reasons.js";
export { thresholds } from "./words-zh-thresholds.js";

export const rules = {
  PowerCapLimit: "tensor 运算受功耗上限限制，SM 时钟被压低。",
  TensorComputeLimit: "tensor core 是每步的瓶颈，prefill 时理应如此。",
  DramBandwidthLimit: "从 DRAM 读取权重和 KV cache 是每步的瓶颈，decode 时理应如此。",
  PcieTransferLimit: "主机与 GPU 之间的拷贝占用了大部分 PCIe 带宽。",
  GpuContention: "另一个进程在引擎的 GPU 上计算。",
  ThermalSlowdown: "显卡因过热或硬件信号而自行降速。",
  PowerBrake: "服务器电源要求显卡降速（power brake）。",
  ClockHeldDown: "功耗尚有余量，但负载下 SM 时钟远低于最高值：过热或时钟被锁定。",
  MemoryClockLow: "负载下显存时钟低于最高值，decode 因此变慢。",
  PcieLinkDegraded: "负载下 PCIe 链路比显卡与插槽所能达到的更窄或更慢。",
  PcieReplays: "PCIe 数据包不断重发，链路有问题。",
  XidErrors: "驱动报告了表示硬件故障的 XID 错误。",
  GpuRecoveryWanted: "驱动要求重置或排空此 GPU，或重启节点。",
  GpusMissing: "应答的 GPU 少于应有的数量。",
  GpuLost: "GPU 不再应答：已掉线或等待重置。",
  EccUncorrected: "显存发生了不可纠正的错误。",
  RowRemapPending: "有显存行等待重映射，或重映射失败。",
  NvlinkErrors: "NVLink 在重发数据包或重新训练链路。",
  ProfilingStuck: "XID 错误之后 DCGM 的 profiling 停止不动，无从得知 GPU 在做什么。",
  DeviceMemoryGrowing: "KV cache 之外的显存持续增长，即将耗尽。",
  BusyWithoutWork: "GPU 一直忙却几乎没有做事：某个 kernel 在自旋或等待。",
  GpuSlowerThanPeers: "功耗尚有余量，但此 GPU 的时钟低于同一 pod 的其他 GPU。",
  LaunchLimit: "逐个发射 kernel 是每步的瓶颈，GPU 在 kernel 之间等待主机。",
  OccupancyLimit: "kernel 在运行，但没有资源接近上限：瓶颈是 kernel 内部的延迟。",
  EagerMode: "引擎未使用 CUDA graph，GPU 在 kernel 之间空闲。",
  LaunchOverhead: "GPU 在 kernel 之间空闲，由一个核逐个发射：CUDA graph 关闭或未覆盖此 batch。",
  BatchBeyondGraphs: "没有已捕获的 CUDA graph 覆盖此 batch（多因它大于最大的一个），每步逐 kernel 执行。",
  TensorIdleInPrefill: "prefill 占满 SM 而 tensor core 空闲：在使用回退 kernel。",
  LowOccupancy: "SM 上的 warp 很少，tensor core 与 DRAM 都未被利用：kernel 受延迟限制。",
  Recompilation: "个别步停顿一秒以上而 GPU 空闲，像是在线上编译 kernel 或捕获 graph。",
  TraceGapLimit: "trace 显示 GPU 在 kernel 之间等待：等主机发射，或等另一个 stream。",
  TraceLaunchGaps: "trace 显示主机逐个发射 kernel，GPU 因此空闲。",
  TraceSyncGaps: "trace 显示主机先等 GPU 完成才发射下一批 kernel，其间 GPU 空闲。",
  TraceCopies: "trace 显示拷贝数据时 kernel 在等待。",
  TraceCompilation: "trace 显示请求运行期间在编译 kernel 或捕获 CUDA graph。",
  ProfiledLatencyLimit: "被剖析的 kernel 既未用满 SM 也未用满显存：瓶颈是 kernel 内部的延迟。",
  ProfiledOccupancyLimit: "被剖析的 kernel 受延迟限制，而 SM 上的 warp 太少，掩盖不了延迟。",
  ProfiledDramLimit: "受显存限制的 kernel 未达到 DRAM 带宽：缓存、访问模式或行数太少所致。",
  ProfiledCacheLimit: "受显存限制的 kernel 几乎不用 L2：瓶颈在 L1 或 shared memory。",
  KVCapacityLimit: "KV cache 限制吞吐：剩余空间放不下下一个请求。",
  KVCacheExhausted: "KV cache 的空闲部分小于一个 prompt，请求因此等待。",
  KVCachePreemption: "KV cache 不足，运行中的请求被抢占后重新计算。",
  RecomputeTax: "相当一部分 token 是抢占后的重复计算。",
  KVCacheSmallerThanRequest: "整个 KV cache 小于引擎所接受的最长请求。",
  SequenceCapExceedsCache: "并发上限允许的请求多于 KV cache 能容纳到结束的数量。",
  PrefixCacheOff: "请求排在 prefill 之后，而 prefix cache 未启用：公共前缀每次都重算。",
  PrefixCacheCollapsed: "prefix cache 命中率远低于一天前。",
  RecomputeHits: "prefix cache 的命中大多是被抢占的请求找回自己的块。",
  EvictionChurn: "缓存的前缀在再次使用之前就被挤出。",
  OffloadSlowerThanRecompute: "从 offload 层取回 KV cache 比重新计算还慢。",
  AdmissionBlockedWithFreeCache: "KV 块和并发名额都有空闲，请求仍在等待：块池碎片化，或另有限制。",
  AllocationFailures: "KV cache 或 offload 层的分配不断失败。",
  DraftModelCrowdsCache: "草稿模型的权重与 KV 占用了 cache 所缺的空间，而接受的 token 很少。",
  SequenceCapLimit: "运行请求数达到上限，其余等待，而 KV cache 与 tensor core 都有余量。",
  TokenBudgetLimit: "每步都填满 token 预算，请求等待，而 tensor core 有余量。",
  HostStepLimit: "每步中的主机部分是瓶颈，GPU 在步与步之间等待。",
  SequenceCapReached: "请求排在并发上限之后，而 KV cache 与 tensor core 都有余量。",
  Overload: "到达的工作超过满载显卡所能处理，队列增长。",
  HostCpuStarved: "引擎已就绪却等不到 CPU，GPU 因此空闲。",
  CpuThrottled: "cgroup 触及 CPU 上限被暂停，引擎的线程随之停止。",
  EngineCoreSaturated: "engine core 占满一个 CPU 核，GPU 在等它。",
  HostStepBound: "GPU 一半时间空闲、KV cache 有余，请求却在等待：串行的主机是瓶颈。",
  PrefillStarvesDecode: "长 prompt 占用整步，正在 decode 的请求只能等待。",
  EngineStalled: "有请求却毫无进展：没有 token 产生，GPU 无事可做。",
  NumaMisplacement: "引擎线程与 GPU 不在同一 NUMA 节点，GPU 在等主机。",
  InterpreterLockHeld: "同一 Python 进程的线程争抢解释器锁，或事件循环被阻塞，GPU 在等待。",
  StepTimeRegression: "相同 batch 下每步远慢于一天前。",
  QueueGrowing: "队列持续增长。",
  LinkLimit: "GPU 之间的通信是每步的瓶颈。",
  PipelineBubbleLimit: "流水线各级相互等待，每个 GPU 只有部分时间在工作。",
  PipelineBubble: "流水线各级相互等待，每个 GPU 只有部分时间在工作。",
  TraceCommunicationLimit: "trace 显示每个 rank 都有时间花在未被计算掩盖的集合通信上。",
  TraceStraggler: "trace 显示一个 rank 总是迟到集合通信，其余 rank 都在等它。",
  TraceBubbles: "trace 显示一个流水线级在工作时，另一些级没有计算。",
  StragglerLimit: "组中一个 GPU 较慢，其他 GPU 在每次集合通信中等它。",
  StragglerRank: "组中一个 GPU 掉队，其他 GPU 在每次集合通信中等它。",
  IdleGpuInGroup: "引擎的一个 GPU 没有工作，而其他 GPU 在忙。",
  RankImbalance: "请求在此数据并行 rank 上排队，而另一个 rank 有空。",
  TensorParallelWithoutPeerAccess: "组内 GPU 经 PCIe 而非 NVLink 交换数据。",
  SpeculationBelowBreakEven: "几乎所有草稿 token 都被丢弃，投机解码得不偿失。",
  SpeculationAtLargeBatch: "batch 已足以占满 tensor core，验证被拒的草稿占用其时间。",
  SpeculationHostBound: "生成草稿使主机繁忙而 GPU 等待，投机解码收益很小或没有。",
  SpeculationWithoutDrafts: "投机解码已开启却几乎没有草稿可提，而它关闭的功能（异步调度）仍有代价。",
  DraftPositionsUnpaid: "最后的草稿位置几乎从不被接受，却仍要生成和验证。",
  AcceptanceCollapsed: "草稿接受率远低于一天前。",
  FrontendLimit: "API 服务器限制吞吐：prompt 分词或 token 流式输出占满其核。",
  FrontendSaturated: "API 服务器进程已满，请求的时间花在那里而不在引擎中。",
  EventLoopBlocked: "前端的事件循环被阻塞：在它再次运转之前，所有请求和流都要等待。",
  FrontendSlow: "请求有相当一部分时间花在引擎之外：分词、语法编译或输出处理。",
  OutputBacklog: "token 在引擎之外等待：测得的 token 间隔长于在运行的请求所能造成的间隔。",
  ClientAborts: "客户端在最初几个 token 后放弃许多请求，已做的工作白费。",
  EngineErrors: "相当一部分请求以服务器错误结束。",
  ClientErrors: "许多请求因有误被拒（4xx），多为 prompt 超过长度上限。",
  Rejections: "引擎在队列上限处拒绝请求。",
  RetriesAndTimeouts: "客户端重试失败的请求，进一步增加负载。",
  AdapterSwitching: "请求因空间以外的原因被搁置，例如 adapter 轮流使用过少的槽位。",
  BatchWindowTooLarge: "GPU 空闲而请求等待调度：批处理延迟或引擎之外的限制。",
  TimeToFirstTokenHigh: "用户等待首个 token 的时间超过目标。",
  InterTokenLatencyHigh: "token 输出慢于目标。",
  EndToEndLatencyHigh: "整个请求耗时超过目标。",
};

export const page = {
  overview: "总览", time: "时间", sources: "数据源", signals: "信号", skip: "跳到结论", views: "视图",
  theme: "主题", theme_system: "系统主题", theme_light: "浅色", theme_dark: "深色", language_browser: "浏览器语言", language: "语言",
  live: "实时", updated: "更新于 {0}", connecting: "正在连接", waiting: "等待第一个结论：需要约十秒的读数。",
  lost: "heptascope 没有应答，数据自 {0} 起陈旧", stuck: "读数自 {0} 起停滞", lost_never: "heptascope 没有应答",
  paused: "显示 {0}（{1} 前）的状态", paused_gone: "那个时刻没有保留数据。", resume: "回到实时", pause: "暂停",
  idle: "空闲", healthy: "健康", degraded: "降级", "cannot-tell": "无法判断",
  since: "{0}，自 ", idle_words: "没有正在运行的请求。", cannot_words: "可读到的数据太少，无法判断。",
  healthy_words: "负载很轻，没有瓶颈。", symptom_words: "用户已感受到，但没有找到原因。",
  cannot_limited: "吞吐受限，但可读到的数据太少，无法判断是否需要处理。",
  root: "根因", limiting_layer: "瓶颈层", sure: "把握", stands: "始于", unjudged: "{0} 条规则无法判断", direct: "直接观测", inferred: "推断", weak: "证据薄弱",
  none: "无", nothing_to_fix: "无需处理", on: "{0}（{1}）", also: "另有", next: "下一步", see_missing: "查看缺少哪些信号、为什么、如何补上", for_ago: "已 {0}",
  engine: "引擎", engines: "引擎", gpu: "GPU", gpus: "GPU", rank: "rank", model: "模型", no_engine: "还没有读到任何引擎。",
  ttft: "TTFT p95", itl: "token 间延迟 p95", tokens: "生成 token", requests: "请求", saturation: "饱和度",
  objective: "目标 {0}", no_objective: "未设目标", over: "未达到", within: "达到",
  median: "中位数 {0}", prompt: "prompt {0}", run: "运行", wait: "等待", binds_first: "最先到顶：{0}", busiest: "{0} {1}", of_had: "最忙的资源，占其可达值的比例",
  limit_kv_cache: "KV cache", limit_sequences: "并发名额", limit_compute: "tensor core", limit_slo: "延迟目标", c_limits: "各上限的饱和度",
  present: "本页显示当前数据。", runbook_english: "（运行手册为英文）",
  no_value: "目前读不到", no_traffic: "最近 10 秒没有请求", none_seen: "最近 10 秒没有测到",
  stack: "七层，自应用到硬件",
  layer: "层", application: "应用 Application", speculative: "投机解码 Speculative", parallel: "并行 Parallel", scheduling: "调度 Scheduling", memory: "内存 Memory",
  operator: "算子 Operator", hardware: "硬件 Hardware",
  "application_words": "用户的感受：延迟、吞吐、错误，以及前端。",
  "speculative_words": "草稿 token：接受多少，是否划算。",
  "parallel_words": "多 GPU 运行一个模型：互联与均衡。",
  "scheduling_words": "引擎循环：batch、队列，以及驱动它的主机。",
  "memory_words": "KV cache：空间、复用、抢占。",
  "operator_words": "kernel 以及发射速度。",
  "hardware_words": "显卡与链路：显存带宽、算力、功耗、温度、PCIe。",
  clear: "正常", partly: "部分正常", limiting: "瓶颈", faulty: "故障", symptom: "症状", firing: "触发", pending: "待定",
  judged: "已判断 {0}/{1} 条规则", all_judged: "{0} 条规则均已判断", lacks: "{1} 条规则中 {0} 条缺信号",
  limits: "限制吞吐", fails: "根因", follows: "由 {0} 引起", felt: "用户可感知", only_one: "单 GPU：无可分摊",
  some_ago: "{0} 前", now: "现在",
  back: "所有层", rules: "规则", graph: "此刻的因果", no_graph: "本层没有触发的规则。",
  evidence: "证据", signal: "信号", value: "数值", threshold: "规则", trend: "走势", context: "供参考", among_slowest: "最慢者 {0}",
  thresholds: "阈值及其来源", explains: "可解释", explained_by: "可由其解释", steps: "下一步", copy: "复制", copied: "已复制",
  promql: "PromQL", missing: "缺什么", runbook: "运行手册", no_trend: "最近十分钟没有数值。", gain: "收益", trace_served: "trace {0}，{1}前写入", corroborated: "新近的 trace 也显示了这一点：{0}。", corroborated: "新近的 trace 也显示了这一点：{0}。",
  baseline: "本规则与一天前比较，只由 Prometheus 判断。", loading: "加载中",
  limiter: "瓶颈", fault: "故障", symptom_kind: "症状", about: "对象", confidence: "把握", holds: "告警等待 {0}",
  charts: "同一时间轴上的十分钟", bands: "发现", no_bands: "最近十分钟没有触发的规则。", scrub: "回看", at: "{0} 时",
  c_ttft: "TTFT p95", c_ttft_median: "TTFT 中位数", c_itl: "token 间延迟 p95", c_itl_median: "token 间延迟中位数", c_generated: "生成 token",
  c_prompted: "prompt token", c_acceptance: "草稿接受率", c_running: "运行中", c_waiting: "等待中", c_step: "引擎一步", c_kv: "KV cache 用量",
  c_preemptions: "抢占", c_gap: "一步中的主机空隙", c_active: "Graphics engine active", c_sm: "SM active", c_dram: "DRAM active", c_tensor: "Tensor active",
  c_utilization: "GPU utilization", c_power: "功耗", c_clock: "SM 时钟", c_temperature: "温度", c_pcie: "PCIe 接收", c_nvlink: "NVLink 接收",
  resource_dram: "DRAM 带宽", resource_tensor: "tensor core", resource_pcie: "PCIe", resource_link: "GPU 互联", resource_host: "主机步骤",
  matrix: "引擎与层", state: "状态", odd: "异常", odd_rule: "异常：{0}", odd_words: "与同组其他 GPU 不同",
  source: "数据源", age: "数据龄", takes: "耗时", failures: "失败", why: "原因", up: "正常", down: "中断", unavailable: "哪些读不到，为什么",
  all_there: "heptascope 已知的信号在此全部可读。", no_source: "还没有读过任何数据源。", take_away: "导出", links: "供程序使用",
  e_json: "结论 (JSON)", e_ticket: "工单 (Markdown)", e_recording: "最近十分钟（录制）", copy_ticket: "复制工单",
  recording_words: "用 tar 解包，heptascope replay 可读该目录。", find: "查找信号", name: "名称", labels: "标签", rate: "速率", help: "含义",
  nothing_found: "没有匹配的信号。", shown_of: "{1} 条序列中的 {0} 条",
  playing: "录制", label: "正确的结论", verdict: "当前结论", match: "比较", right: "一致", "wrong-page": "故障不符", missed: "漏报", settling: "窗口填充中，暂不比较",
  pick: "播放其他录制", demo_words: "这是在 H200 GPU 上录制的 vLLM，循环播放。", or: " 或 ", no_fault: "无故障", limiter_is: "瓶颈 {0}",
  not_supported: "此卡、驱动或内核不具备", no_permission: "存在，但 heptascope 无权读取",
  profiler_locked: "其他 profiler 占用了计数器", engine_reason: "引擎未导出它", engine_too_old: "此引擎的新版本才导出它",
  flag_off: "引擎需要启动参数才导出它", not_configured: "相关功能未启用", source_down: "其数据源目前不可读",
  no_source_reason: "没有配置或找到此类数据源", stale: "最后的值太旧", invalid: "收到的值不可能",
  ambiguous: "无法确定属于哪个引擎或 GPU", idle_reason: "只有有负载时才有定义",
};

/** Next steps, by the catalogue's text; flags, commands and names of settings stay as they are. */
export const steps = {
  "Normal for dense prefill on this card. If the limit was lowered, raise it: nvidia-smi -pl WATTS (up to power.max_limit).":
    "dense prefill 在此卡上理应如此。若上限被调低，请调高：nvidia-smi -pl WATTS（最高到 power.max_limit）。",
  "Fewer joules per token: an FP8 or FP4 quantised model does the same work under the same cap in less time.":
    "每个 token 少耗能：FP8 或 FP4 量化的模型在同样的功耗上限下更快完成同样的工作。",
  "Compute more cheaply: FP8 weights and activations double dense throughput on Hopper and later.":
    "让计算更便宜：FP8 权重与激活在 Hopper 及更新的卡上使 dense 吞吐翻倍。",
  "Quantise: --quantization fp8. Reuse prefixes: --enable-prefix-caching. Split over GPUs: --tensor-parallel-size 2.":
    "量化：--quantization fp8。复用前缀：--enable-prefix-caching。分到多个 GPU：--tensor-parallel-size 2。",
  "Quantise: --quantization fp8. Keep the radix cache on (no --disable-radix-cache). Split over GPUs: --tp-size 2.":
    "量化：--quantization fp8。保持 radix cache 开启（不要 --disable-radix-cache）。分到多个 GPU：--tp-size 2。",
  "Build or load an FP8 checkpoint; keep kv_cache_config.enable_block_reuse true; --tp_size 2.":
    "构建或加载 FP8 checkpoint；保持 kv_cache_config.enable_block_reuse 为 true；--tp_size 2。",
  "Fewer bytes per token: quantised weights (FP8, INT4) and an FP8 KV cache. More tokens per weight read: a larger batch.":
    "每个 token 少读字节：量化权重（FP8、INT4）和 FP8 KV cache。每次读权重产出更多 token：更大的 batch。",
  "--quantization fp8, --kv-cache-dtype fp8, and room for more sequences (--max-num-seqs, --gpu-memory-utilization).":
    "--quantization fp8，--kv-cache-dtype fp8，并为更多序列留出空间（--max-num-seqs、--gpu-memory-utilization）。",
  "--quantization fp8, --kv-cache-dtype fp8_e5m2, and --max-running-requests as high as the KV cache allows.":
    "--quantization fp8，--kv-cache-dtype fp8_e5m2，--max-running-requests 在 KV cache 允许的范围内尽量高。",
  "An FP8 checkpoint, kv_cache_config.dtype fp8, and a larger --max_batch_size.":
    "使用 FP8 checkpoint、kv_cache_config.dtype fp8，以及更大的 --max_batch_size。",
  "Shrink or remove CPU offload (--cpu-offload-gb, --kv-offloading-size); offload pays only while the copy is faster than recomputing.":
    "减少或去掉 CPU offload（--cpu-offload-gb、--kv-offloading-size）；只有拷贝比重新计算快时 offload 才划算。",
  "Shrink the host tier of the hierarchical cache (--hicache-ratio, --hicache-size) or turn off --cpu-offload-gb.":
    "缩小分层 cache 的主机层（--hicache-ratio、--hicache-size），或关闭 --cpu-offload-gb。",
  "Lower kv_cache_config.host_cache_size.": "调低 kv_cache_config.host_cache_size。",
  "Find it: nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv; nvidia-smi pmon -c 1. Stop it or move it to another card.":
    "找到它：nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv；nvidia-smi pmon -c 1。停掉它或移到另一张卡。",
  "Look for pods that reach the GPU without asking for nvidia.com/gpu (NVIDIA_VISIBLE_DEVICES=all), time slicing, or MPS.":
    "查找没有申请 nvidia.com/gpu 却能用到 GPU 的 pod（NVIDIA_VISIBLE_DEVICES=all）、time slicing 或 MPS。",
  "Check fans, airflow, inlet temperature and dust; nvidia-smi -q -d TEMPERATURE,PERFORMANCE. Until then lower the load or the power limit (nvidia-smi -pl).":
    "检查风扇、风道、进风温度和灰尘；nvidia-smi -q -d TEMPERATURE,PERFORMANCE。在此之前降低负载或功耗上限（nvidia-smi -pl）。",
  "Check the power supplies and the rack's budget (BMC event log, redundancy lost?). The card itself is healthy.":
    "检查电源和机架的功率预算（BMC 事件日志，是否失去冗余？）。显卡本身没有问题。",
  "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE. Remove a clock lock with nvidia-smi -rgc; else look at cooling, also of memory and voltage regulators.":
    "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE。用 nvidia-smi -rgc 解除时钟锁定；否则检查散热，包括显存和电压调节器。",
  "Remove a memory clock lock: nvidia-smi -rmc. If none is set, the card limits itself: check power and memory temperature.":
    "解除显存时钟锁定：nvidia-smi -rmc。若没有锁定，则是显卡自我限制：检查功耗和显存温度。",
  "Reseat the card or riser, check the slot's bifurcation in the BIOS and the link with lspci -vv (LnkSta against LnkCap).":
    "重新插好显卡或 riser，检查 BIOS 中插槽的 bifurcation，并用 lspci -vv 查看链路（LnkSta 与 LnkCap 对比）。",
  "Reseat the card or riser, swap the slot, check the BMC for PCIe errors (lspci -vv, dmesg | grep AER).":
    "重新插好显卡或 riser，换插槽，在 BMC 中查 PCIe 错误（lspci -vv，dmesg | grep AER）。",
  "Drain the node, nvidia-smi --gpu-reset -i N where possible, else power-cycle; a second loss of the same card: replace it.":
    "排空节点，可行时 nvidia-smi --gpu-reset -i N，否则断电重启；同一张卡再次丢失：更换。",
  "Drain the node and reset the GPU so that the row is remapped; watch heptascope_gpu_row_remap_failure.":
    "排空节点并重置 GPU，使该行完成重映射；关注 heptascope_gpu_row_remap_failure。",
  "Plan a GPU reset (nvidia-smi --gpu-reset -i N) in the next quiet hour; on a remap failure ask for a replacement.":
    "在下一个空闲时段安排重置 GPU（nvidia-smi --gpu-reset -i N）；重映射失败则申请换卡。",
  "Lower --gpu-memory-utilization by 0.02 to 0.05, restart; look for a growing adapter or multimodal cache (--mm-processor-cache-gb).":
    "把 --gpu-memory-utilization 调低 0.02 到 0.05 并重启；查找不断增长的 adapter 或多模态 cache（--mm-processor-cache-gb）。",
  "Lower --mem-fraction-static, restart.": "调低 --mem-fraction-static 并重启。",
  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps against fragmentation of the allocator.":
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True 可缓解分配器的碎片化。",
  "Look for a rank that hangs (a collective waits for it): py-spy dump --pid of each worker, NCCL_DEBUG=INFO; compare the GPUs of the group.":
    "查找挂起的 rank（集合通信在等它）：对每个 worker 执行 py-spy dump --pid，NCCL_DEBUG=INFO；比较组内各 GPU。",
  "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE for this card and a healthy one; remove clock locks, check its cooling and slot.":
    "对此卡和一张正常的卡执行 nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE；解除时钟锁定，检查其散热和插槽。",
  "Remove --enforce-eager; check the log for CUDA graph capture, and --compilation-config for cudagraph_mode NONE.":
    "去掉 --enforce-eager；在日志中查看 CUDA graph 捕获，并检查 --compilation-config 中是否有 cudagraph_mode NONE。",
  "Remove --disable-cuda-graph; raise --cuda-graph-max-bs to the batch you run.":
    "去掉 --disable-cuda-graph；把 --cuda-graph-max-bs 提高到你实际的 batch。",
  "Set cuda_graph_config (PyTorch backend) with the batch sizes you run.":
    "按你运行的 batch 大小设置 cuda_graph_config（PyTorch 后端）。",
  "Larger batches fill the kernels; if the batch is large already, take a trace (heptascope trace) to see which kernels are small.":
    "更大的 batch 能填满 kernel；若 batch 已经很大，采一次 trace（heptascope trace），看哪些 kernel 太小。",
  "Try another attention backend for your lengths: VLLM_ATTENTION_BACKEND / --attention-backend FLASH_ATTN or FLASHINFER.":
    "按你的序列长度换一个 attention 后端：VLLM_ATTENTION_BACKEND / --attention-backend FLASH_ATTN 或 FLASHINFER。",
  "Try another --attention-backend (fa3, flashinfer, triton) for your lengths.":
    "按你的序列长度换一个 --attention-backend（fa3、flashinfer、triton）。",
  "Remove --enforce-eager (and enforce_eager in code). On the H200, 8 streams of a 1B model went from 15.5 to 3.1 ms a step.":
    "去掉 --enforce-eager（以及代码中的 enforce_eager）。在 H200 上，1B 模型 8 路并发每步从 15.5 ms 降到 3.1 ms。",
  "Remove --disable-cuda-graph.": "去掉 --disable-cuda-graph。",
  "Enable cuda_graph_config.": "启用 cuda_graph_config。",
  "Remove --enforce-eager; else raise --max-cudagraph-capture-size (or --cudagraph-capture-sizes) to the batch you run.":
    "去掉 --enforce-eager；否则把 --max-cudagraph-capture-size（或 --cudagraph-capture-sizes）提高到你实际的 batch。",
  "Remove --disable-cuda-graph; raise --cuda-graph-max-bs.": "去掉 --disable-cuda-graph；提高 --cuda-graph-max-bs。",
  "Enable cuda_graph_config and list the batch sizes you run; enable_padding: true.":
    "启用 cuda_graph_config 并列出你运行的 batch 大小；enable_padding: true。",
  "Raise --max-cudagraph-capture-size to at least --max-num-seqs, or lower --max-num-seqs.":
    "把 --max-cudagraph-capture-size 提高到至少 --max-num-seqs，或调低 --max-num-seqs。",
  "Raise --cuda-graph-max-bs to at least --max-running-requests.":
    "把 --cuda-graph-max-bs 提高到至少 --max-running-requests。",
  "Raise cuda_graph_config.max_batch_size.": "提高 cuda_graph_config.max_batch_size。",
  "See which backend and kernels the log names at start; set --attention-backend, check that the quantisation has a kernel for this card (Marlin, CUTLASS) and that MoE has a tuned configuration.":
    "看启动日志写的是哪个后端和 kernel；设置 --attention-backend，确认量化方式在此卡上有 kernel（Marlin、CUTLASS），且 MoE 有调优过的配置。",
  "Set --attention-backend and --moe-runner-backend for this card; tune the MoE kernel for it.":
    "为此卡设置 --attention-backend 和 --moe-runner-backend；为其调优 MoE kernel。",
  "heptascope trace on a short profile names the kernel.": "对一段短 profile 执行 heptascope trace，可得知是哪个 kernel。",
  "Find the kernel with a trace (heptascope trace); a custom or fallback kernel with few warps a block is the usual cause.":
    "用 trace（heptascope trace）找到该 kernel；常见原因是每个 block 只有很少 warp 的自定义或回退 kernel。",
  "Warm up before taking traffic, keep the compile cache on a volume (VLLM_CACHE_ROOT), list the shapes in --compilation-config.":
    "接流量之前先预热，把编译缓存放在卷上（VLLM_CACHE_ROOT），在 --compilation-config 中列出各种 shape。",
  "Keep warm-up on (no --skip-server-warmup); list the batch sizes in --cuda-graph-bs.":
    "保持预热开启（不要 --skip-server-warmup）；在 --cuda-graph-bs 中列出 batch 大小。",
  "See which cause has most of the gaps: launches want CUDA graphs, larger batches or less host work, synchronisations want to be removed, waits between streams less splitting.":
    "看空隙主要出自哪个原因：launch 需要 CUDA graph、更大的 batch 或更少的主机工作，sync 需要去掉同步，stream 之间的等待需要少拆分。",
  "heptascope trace lists the waits with their callers: .item(), .cpu(), print of a tensor, boolean masks and copies from pageable memory each stop the host; make the copy pinned and asynchronous, or decide on the GPU.":
    "heptascope trace 列出等待及其调用者：.item()、.cpu()、打印 tensor、布尔掩码和从 pageable 内存拷贝都会让主机停下；把拷贝改为 pinned 和异步，或在 GPU 上做判断。",
  "Keep --async-scheduling on; custom logits processors and connectors are the usual callers.":
    "保持 --async-scheduling 开启；自定义 logits processor 和 connector 是常见的调用者。",
  "See which kind of copy takes the time: pageable memory wants to be pinned, small copies to be merged, copies between GPUs want NVLink.":
    "看哪种拷贝占时间：pageable 内存应改为 pinned，小拷贝应合并，GPU 之间的拷贝需要 NVLink。",
  "Less --cpu-offload-gb (weights that are copied each step); with a KV connector, a larger GPU cache so that less is loaded back.":
    "减少 --cpu-offload-gb（每步都要拷贝的权重）；使用 KV connector 时，加大 GPU cache 以减少回读。",
  "Less --cpu-offload-gb; with --enable-hierarchical-cache, --hicache-io-backend kernel.":
    "减少 --cpu-offload-gb；使用 --enable-hierarchical-cache 时加 --hicache-io-backend kernel。",
  "heptascope trace says how many and how long; a trace of the first seconds after a start shows them rightly.":
    "heptascope trace 会说明次数和时长；刚启动几秒内的 trace 出现这些属于正常。",
  "Larger batches or fused kernels give each launch more to do; the main stall reason says what the warps wait for.":
    "更大的 batch 或融合的 kernel 让每次发射做更多事；主要的 stall 原因说明 warp 在等什么。",
  "More blocks (a larger batch or grid), fewer registers or less shared memory a block; Nsight Compute's Occupancy section names what limits it.":
    "更多 block（更大的 batch 或 grid），每个 block 用更少寄存器或共享内存；Nsight Compute 的 Occupancy 一节指出受限于什么。",
  "Matrix products with few rows are near their best at 0.72; for other kernels look at coalescing, vector loads and L2 in Nsight Compute's Memory section.":
    "行数很少的矩阵乘在 0.72 时已接近最佳；其他 kernel 请看 Nsight Compute 的 Memory 一节中的合并访问、向量加载和 L2。",
  "Look for bank conflicts and uncoalesced or spilled accesses in Nsight Compute's Memory section.":
    "在 Nsight Compute 的 Memory 一节中查找 bank conflict、未合并或溢出的访问。",
  "More room: --gpu-memory-utilization 0.95, --kv-cache-dtype fp8 (doubles the tokens), --quantization fp8 (frees weights), --tensor-parallel-size 2.":
    "更多空间：--gpu-memory-utilization 0.95，--kv-cache-dtype fp8（token 数翻倍），--quantization fp8（腾出权重空间），--tensor-parallel-size 2。",
  "More room: --mem-fraction-static up, --kv-cache-dtype fp8_e5m2, --tp-size 2.":
    "更多空间：提高 --mem-fraction-static，--kv-cache-dtype fp8_e5m2，--tp-size 2。",
  "More room: kv_cache_config.free_gpu_memory_fraction up, kv_cache_config.dtype fp8.":
    "更多空间：提高 kv_cache_config.free_gpu_memory_fraction，kv_cache_config.dtype fp8。",
  "--kv-cache-dtype fp8 halves a token's bytes; --gpu-memory-utilization 0.95; --quantization fp8 frees weights; --max-model-len down if long requests are not wanted.":
    "--kv-cache-dtype fp8 使每个 token 的字节减半；--gpu-memory-utilization 0.95；--quantization fp8 腾出权重空间；若不需要长请求，调低 --max-model-len。",
  "--kv-cache-dtype fp8_e5m2; raise --mem-fraction-static by 0.02 at a time; --context-length down.":
    "--kv-cache-dtype fp8_e5m2；每次把 --mem-fraction-static 提高 0.02；调低 --context-length。",
  "kv_cache_config.free_gpu_memory_fraction 0.95 and kv_cache_config.dtype fp8.":
    "kv_cache_config.free_gpu_memory_fraction 0.95 以及 kv_cache_config.dtype fp8。",
  "Or more cards: tensor parallelism leaves more memory for the cache, another replica takes the queue.":
    "或用更多卡：tensor parallel 为 cache 留出更多显存，另一个副本分担队列。",
  "Fewer at once: --max-num-seqs at about capacity / tokens per sequence. Or more room: --kv-cache-dtype fp8, --gpu-memory-utilization up.":
    "减少并发：--max-num-seqs 约为 容量 / 每序列 token 数。或更多空间：--kv-cache-dtype fp8，提高 --gpu-memory-utilization。",
  "--schedule-conservativeness 1.3 (up), --max-running-requests down, --kv-cache-dtype fp8_e5m2.":
    "--schedule-conservativeness 1.3（调高），调低 --max-running-requests，--kv-cache-dtype fp8_e5m2。",
  "capacity_scheduler_policy GUARANTEED_NO_EVICT, or lower --max_batch_size.":
    "capacity_scheduler_policy GUARANTEED_NO_EVICT，或调低 --max_batch_size。",
  "Do not raise the sequence cap: more running requests mean more preemption.":
    "不要提高并发上限：运行的请求越多，抢占越多。",
  "The remedy is that of KVCachePreemption: fewer sequences at once or more room.":
    "对策与 KVCachePreemption 相同：减少并发序列或增加空间。",
  "--max-model-len down to what users send, or more room: --kv-cache-dtype fp8, --gpu-memory-utilization, --quantization, --tensor-parallel-size.":
    "把 --max-model-len 降到用户实际发送的长度，或更多空间：--kv-cache-dtype fp8、--gpu-memory-utilization、--quantization、--tensor-parallel-size。",
  "--context-length down, or --mem-fraction-static up, --kv-cache-dtype fp8_e5m2, --tp-size.":
    "调低 --context-length，或提高 --mem-fraction-static、--kv-cache-dtype fp8_e5m2、--tp-size。",
  "--max_seq_len down, or kv_cache_config.free_gpu_memory_fraction up.":
    "调低 --max_seq_len，或提高 kv_cache_config.free_gpu_memory_fraction。",
  "--max-num-seqs down to capacity / tokens per sequence.": "把 --max-num-seqs 降到 容量 / 每序列 token 数。",
  "--max-running-requests down to capacity / tokens per sequence.":
    "把 --max-running-requests 降到 容量 / 每序列 token 数。",
  "--max_batch_size down to capacity / tokens per sequence.": "把 --max_batch_size 降到 容量 / 每序列 token 数。",
  "Remove --no-enable-prefix-caching. With a shared 6000-token prefix an H200 went from 3.3 to 0.12 s TTFT.":
    "去掉 --no-enable-prefix-caching。共享 6000 token 前缀时，H200 的 TTFT 从 3.3 s 降到 0.12 s。",
  "Remove --disable-radix-cache.": "去掉 --disable-radix-cache。",
  "kv_cache_config.enable_block_reuse: true.": "kv_cache_config.enable_block_reuse: true。",
  "Whether prompts share a prefix cannot be seen while the cache is off: try it; on random prompts it costs next to nothing.":
    "cache 关闭时看不出 prompt 是否共享前缀：试一下；对随机 prompt 几乎没有代价。",
  "Look for a changed prompt template (a date or id near its start), a router that lost its affinity, or less room in the KV cache.":
    "查找是否改了 prompt 模板（开头附近的日期或 id）、路由器失去了亲和性，或 KV cache 空间变小。",
  "Do not read the hit ratio as a success; remove the preemptions first. vLLM 0.11.1 and later leave these hits out.":
    "不要把命中率当成好事；先消除抢占。vLLM 0.11.1 及以后不计这些命中。",
  "More room (--kv-cache-dtype fp8), a host tier (--kv-offloading-size GiB), or route users with one prefix to one replica.":
    "更多空间（--kv-cache-dtype fp8）、主机层（--kv-offloading-size GiB），或把相同前缀的用户路由到同一副本。",
  "--enable-hierarchical-cache, --kv-cache-dtype fp8_e5m2, or a cache-aware router.":
    "--enable-hierarchical-cache、--kv-cache-dtype fp8_e5m2，或使用感知 cache 的路由器。",
  "kv_cache_config.host_cache_size for a host tier.": "用 kv_cache_config.host_cache_size 设置主机层。",
  "Turn the tier off (--kv-offloading-size 0, or remove --kv-transfer-config) or put it on pinned host memory near the GPU's NUMA node.":
    "关闭该层（--kv-offloading-size 0，或去掉 --kv-transfer-config），或把它放到靠近 GPU NUMA 节点的 pinned 主机内存。",
  "Remove the slow storage tier (--hicache-storage-backend); keep only the host tier.":
    "去掉慢的存储层（--hicache-storage-backend）；只保留主机层。",
  "Hybrid models keep one pool for each group: see the log's per-group blocks; check --max-num-batched-tokens and adapter slots (--max-loras).":
    "混合模型为每个组保留一个池：看日志中各组的块数；检查 --max-num-batched-tokens 和 adapter 槽位（--max-loras）。",
  "If the queue only holds one kind of request (an adapter, a grammar), the limit is that kind's.":
    "若队列中只有一类请求（某个 adapter、某种 grammar），则上限属于这一类。",
  "Enlarge the tier (--kv-offloading-size) or store less (raise the store threshold of the offload connector).":
    "扩大该层（--kv-offloading-size）或少存一些（提高 offload connector 的存储阈值）。",
  "See heptascope_gpu_memory_used_bytes and the host's memory limit beside it.":
    "同时看 heptascope_gpu_memory_used_bytes 和主机的内存上限。",
  "Remove --speculative-config, or use a drafter without weights of its own (ngram, or the model's MTP head).":
    "去掉 --speculative-config，或使用自身没有权重的 drafter（ngram，或模型自带的 MTP head）。",
  "Remove --speculative-algorithm, or use NGRAM.": "去掉 --speculative-algorithm，或使用 NGRAM。",
  "Raise --max-num-seqs (and --max-cudagraph-capture-size with it).":
    "提高 --max-num-seqs（并相应提高 --max-cudagraph-capture-size）。",
  "Raise --max-running-requests (and --cuda-graph-max-bs with it).":
    "提高 --max-running-requests（并相应提高 --cuda-graph-max-bs）。",
  "Raise --max_batch_size (and cuda_graph_config.max_batch_size with it).":
    "提高 --max_batch_size（并相应提高 cuda_graph_config.max_batch_size）。",
  "Raise --max-num-batched-tokens (inter-token latency of running requests rises with it).":
    "提高 --max-num-batched-tokens（运行中请求的 token 间延迟会随之升高）。",
  "Raise --chunked-prefill-size and --max-prefill-tokens.": "提高 --chunked-prefill-size 和 --max-prefill-tokens。",
  "Raise --max_num_tokens.": "提高 --max_num_tokens。",
  "Keep --async-scheduling on (speculation turns it off before 0.33), give the engine whole cores, put the front end on others: --api-server-count 2.":
    "保持 --async-scheduling 开启（0.33 之前投机解码会关闭它），给引擎整核，把前端放到其他核上：--api-server-count 2。",
  "Keep the overlap scheduler on (no --disable-overlap-schedule).":
    "保持 overlap scheduler 开启（不要 --disable-overlap-schedule）。",
  "Keep the overlap scheduler on (disable_overlap_scheduler: false).":
    "保持 overlap scheduler 开启（disable_overlap_scheduler: false）。",
  "Raise --max-num-seqs to about KV tokens / tokens per sequence, and --max-cudagraph-capture-size to the same.":
    "把 --max-num-seqs 提高到约 KV token 数 / 每序列 token 数，并把 --max-cudagraph-capture-size 设为同样大小。",
  "Raise --max-running-requests and --cuda-graph-max-bs.": "提高 --max-running-requests 和 --cuda-graph-max-bs。",
  "Raise --max_batch_size and cuda_graph_config.max_batch_size.": "提高 --max_batch_size 和 cuda_graph_config.max_batch_size。",
  "Add a replica or send less: raising the sequence cap does not help a full card, it only moves the queue into slower steps.":
    "加副本或减少请求：显卡已满时提高并发上限没有用，只会把排队变成更慢的步。",
  "Until then turn requests away early: --max-num-queued-reqs. Cheaper tokens: --quantization fp8.":
    "在此之前尽早拒绝请求：--max-num-queued-reqs。让 token 更便宜：--quantization fp8。",
  "Until then turn requests away early: --max-queued-requests. Cheaper tokens: --quantization fp8.":
    "在此之前尽早拒绝请求：--max-queued-requests。让 token 更便宜：--quantization fp8。",
  "Raise the container's CPU request and limit to at least 2 + number of GPUs, equal, integer (static CPU manager pins them).":
    "把容器的 CPU request 与 limit 提高到至少 2 + GPU 数，两者相等且为整数（static CPU manager 会绑核）。",
  "Find who shares the cores: pidstat 1, taskset -pc PID of the engine; move batch jobs away, widen the affinity.":
    "找出谁在共用这些核：pidstat 1，taskset -pc PID（引擎的）；移走批处理任务，放宽亲和性。",
  "py-spy dump --pid PID of the engine core and of each worker shows what they wait for; then restart the engine, and let its liveness probe ask for a token and not only for /health.":
    "对 engine core 和每个 worker 执行 py-spy dump --pid PID，可看到它们在等什么；然后重启引擎，并让存活探针请求一个 token，而不只是 /health。",
  "Look in the log for a worker that died, a KV transfer without an answer, or shared memory that is full (--shm-size).":
    "在日志中查找已退出的 worker、没有回应的 KV 传输，或已满的共享内存（--shm-size）。",
  "--watchdog-timeout ends an engine whose forward pass does not return.":
    "--watchdog-timeout 会结束前向计算不返回的引擎。",
  "Raise resources.limits.cpu of the engine's container, or remove the CPU limit and keep the request.":
    "提高引擎容器的 resources.limits.cpu，或去掉 CPU limit 只保留 request。",
  "A faster core (frequency, no neighbours on its sibling), --async-scheduling on, fewer front-end duties in the core: --api-server-count 2; for small models several replicas on one GPU or --data-parallel-size.":
    "更快的核（频率、超线程兄弟核无邻居），保持 --async-scheduling 开启，减少 core 中的前端工作：--api-server-count 2；小模型可在一张 GPU 上跑多个副本，或用 --data-parallel-size。",
  "Keep the overlap scheduler on, use --dp-size for small models, --stream-interval 4.":
    "保持 overlap scheduler 开启，小模型用 --dp-size，--stream-interval 4。",
  "A larger batch spreads the host's cost over more tokens; a small model on a large card stays host-bound.":
    "更大的 batch 把主机开销摊到更多 token；大卡上的小模型仍会受主机限制。",
  "--async-scheduling, --api-server-count 2, more CPU cores; share the process namespace so that heptascope can see which process is full.":
    "--async-scheduling，--api-server-count 2，更多 CPU 核；共享进程命名空间，使 heptascope 能看到哪个进程已满。",
  "Sample the engine process (py-spy record --pid PID --gil) to see what holds its main loop.":
    "对引擎进程采样（py-spy record --pid PID --gil），看什么占住了主循环。",
  "Smaller chunks: --max-num-batched-tokens 2048 (or --long-prefill-token-threshold 2048 with --max-long-partial-prefills 1); for strict latency separate prefill and decode (--kv-transfer-config).":
    "更小的 chunk：--max-num-batched-tokens 2048（或 --long-prefill-token-threshold 2048 加 --max-long-partial-prefills 1）；对延迟要求严格时把 prefill 与 decode 分离（--kv-transfer-config）。",
  "--chunked-prefill-size 2048, --enable-mixed-chunk; or prefill/decode disaggregation (--disaggregation-mode).":
    "--chunked-prefill-size 2048，--enable-mixed-chunk；或 prefill/decode 分离（--disaggregation-mode）。",
  "enable_chunked_prefill: true with a smaller --max_num_tokens; or disaggregated serving.":
    "enable_chunked_prefill: true 并用更小的 --max_num_tokens；或分离部署。",
  "Pin the engine to the GPU's node: numactl --cpunodebind=N --membind=N (nvidia-smi topo -m names N).":
    "把引擎绑到 GPU 所在节点：numactl --cpunodebind=N --membind=N（nvidia-smi topo -m 给出 N）。",
  "Topology manager policy single-numa-node, static CPU manager, integer equal CPU request and limit.":
    "Topology manager 策略 single-numa-node，static CPU manager，整数且相等的 CPU request 与 limit。",
  "More processes instead of threads: --api-server-count 2; move parsers and logits processors written in Python out of the engine core.":
    "用更多进程代替线程：--api-server-count 2；把用 Python 写的解析器和 logits processor 移出 engine core。",
  "py-spy dump --pid PID shows who owns it.": "py-spy dump --pid PID 可看出谁持有它。",
  "Compare what changed: engine version, heptascope_engine_config_info (attention backend, graph mode), clocks, neighbours.":
    "比较有什么变化：引擎版本、heptascope_engine_config_info（attention 后端、graph 模式）、时钟、邻居。",
  "Fewer GPUs in a group and more replicas: an 8B model on two H200s made 1.4 times one GPU's decode tokens, two replicas make 2.":
    "组内用更少 GPU、多开副本：8B 模型在两张 H200 上的 decode token 是单卡的 1.4 倍，两个副本是 2 倍。",
  "--tensor-parallel-size down with --data-parallel-size up; keep the custom all-reduce (no --disable-custom-all-reduce).":
    "调低 --tensor-parallel-size 并提高 --data-parallel-size；保留自定义 all-reduce（不要 --disable-custom-all-reduce）。",
  "--tp-size down with --dp-size up; --enable-dp-attention for MLA models.":
    "调低 --tp-size 并提高 --dp-size；MLA 模型用 --enable-dp-attention。",
  "If the model fits: --pipeline-parallel-size 1 and --tensor-parallel-size or replicas instead; else more requests at once, at least stages x the batch that fills one.":
    "若模型放得下：--pipeline-parallel-size 1，改用 --tensor-parallel-size 或副本；否则增加并发请求，至少为级数 x 填满一级的 batch。",
  "Two H200s as a pipeline made 0.8 times the tokens of one.": "两张 H200 组成流水线，token 数是单卡的 0.8 倍。",
  "If the model fits: --pipeline-parallel-size 1 and --tensor-parallel-size or replicas instead; else more requests at once.":
    "若模型放得下：--pipeline-parallel-size 1，改用 --tensor-parallel-size 或副本；否则增加并发请求。",
  "--pp-size 1 with --tp-size or replicas; else a larger --max-running-requests and --pp-max-micro-batch-size.":
    "--pp-size 1，改用 --tp-size 或副本；否则加大 --max-running-requests 和 --pp-max-micro-batch-size。",
  "The GPU with the higher SM activity is the slow one: look for a neighbour on it (nvidia-smi pmon -c 1 -i N), its clock and temperature, its PCIe link.":
    "SM 活跃度较高的 GPU 是慢的那个：看其上是否有邻居（nvidia-smi pmon -c 1 -i N），以及它的时钟、温度和 PCIe 链路。",
  "Until it is mended run on the other GPUs: CUDA_VISIBLE_DEVICES with a smaller --tensor-parallel-size.":
    "修好之前用其他 GPU 运行：CUDA_VISIBLE_DEVICES 加更小的 --tensor-parallel-size。",
  "Compare CUDA_VISIBLE_DEVICES and the parallel sizes with the GPUs of the pod: the idle one is paid for and unused, or its rank has died.":
    "把 CUDA_VISIBLE_DEVICES 和并行度与 pod 的 GPU 对照：空闲的那个付了钱却没用，或其 rank 已退出。",
  "Use the internal balancer (--data-parallel-size without --data-parallel-external-lb), or balance on queue length outside.":
    "使用内置均衡（--data-parallel-size，不带 --data-parallel-external-lb），或在外部按队列长度均衡。",
  "--load-balance-method minimum_tokens (or shortest_queue).": "--load-balance-method minimum_tokens（或 shortest_queue）。",
  "nvidia-smi topo -m and nvidia-smi topo -p2p r: choose GPUs that share NVLink; check NCCL_P2P_DISABLE, IOMMU/ACS, and that the container has enough /dev/shm.":
    "nvidia-smi topo -m 与 nvidia-smi topo -p2p r：选择共享 NVLink 的 GPU；检查 NCCL_P2P_DISABLE、IOMMU/ACS，以及容器的 /dev/shm 是否够大。",
  "Without NVLink prefer --pipeline-parallel-size or replicas over --tensor-parallel-size.":
    "没有 NVLink 时，优先 --pipeline-parallel-size 或副本，而不是 --tensor-parallel-size。",
  "Fewer GPUs in a group and more replicas; a trace of one rank alone cannot tell communication from waiting for the others, so trace all of them.":
    "组内用更少 GPU、多开副本；只有一个 rank 的 trace 分不清通信与等待他人，因此要采所有 rank。",
  "Keep the custom all-reduce (no --disable-custom-all-reduce); --tensor-parallel-size down with --data-parallel-size up.":
    "保留自定义 all-reduce（不要 --disable-custom-all-reduce）；调低 --tensor-parallel-size 并提高 --data-parallel-size。",
  "The rank that waits least is the late one. If its kernel gap ratio is high its host is late (CPU, NUMA, a profiler that began later); if its kernels take longer its GPU is slow (neighbour, clock, heat).":
    "等得最少的 rank 就是迟到的那个。若它的 kernel gap 比例高，是主机慢（CPU、NUMA、profiler 开始较晚）；若它的 kernel 更久，是 GPU 慢（邻居、时钟、过热）。",
  "Remove --speculative-config, or fewer tokens (num_speculative_tokens 1 or 2), or a drafter trained for this model (EAGLE-3, MTP). Before 0.33 speculation also turns asynchronous scheduling off.":
    "去掉 --speculative-config，或减少 token（num_speculative_tokens 1 或 2），或使用为此模型训练的 drafter（EAGLE-3、MTP）。0.33 之前投机解码还会关闭异步调度。",
  "Remove --speculative-algorithm, or lower --speculative-num-steps and --speculative-num-draft-tokens.":
    "去掉 --speculative-algorithm，或调低 --speculative-num-steps 和 --speculative-num-draft-tokens。",
  "Remove speculative_config or lower max_draft_len.": "去掉 speculative_config 或调低 max_draft_len。",
  "Speculate only at small batches: disable_by_batch_size in --speculative-config where the version has it, else fewer num_speculative_tokens.":
    "只在小 batch 时投机：若版本支持，在 --speculative-config 中设 disable_by_batch_size，否则减少 num_speculative_tokens。",
  "Lower --speculative-num-draft-tokens, or run without speculation on the busy replicas.":
    "调低 --speculative-num-draft-tokens，或在繁忙的副本上关闭投机解码。",
  "Measure without --speculative-config; or fewer num_speculative_tokens, a drafter inside the model (EAGLE-3, MTP), a version that captures the draft loop in a graph and keeps --async-scheduling on.":
    "去掉 --speculative-config 测一次；或减少 num_speculative_tokens，用模型内的 drafter（EAGLE-3、MTP），或用能把草稿循环捕获进 graph 且保持 --async-scheduling 开启的版本。",
  "--cuda-graph-max-bs large enough for the draft batch; --enable-spec-v2 overlap where available; fewer --speculative-num-steps.":
    "--cuda-graph-max-bs 要大到覆盖草稿 batch；可用时启用 --enable-spec-v2 overlap；减少 --speculative-num-steps。",
  "Remove --speculative-config (method ngram needs text that repeats itself): 2.8 instead of 2.25 thousand tokens/s on an H200 with 16 streams.":
    "去掉 --speculative-config（ngram 方法需要自我重复的文本）：H200 上 16 路并发从每秒 2.25 千 token 升到 2.8 千。",
  "Remove --speculative-algorithm NGRAM for this traffic.": "对此流量去掉 --speculative-algorithm NGRAM。",
  "Lower num_speculative_tokens in --speculative-config to the last position that pays.":
    "把 --speculative-config 中的 num_speculative_tokens 降到最后一个划算的位置。",
  "Lower --speculative-num-steps to the last position that pays.":
    "把 --speculative-num-steps 降到最后一个划算的位置。",
  "Lower max_draft_len to the last position that pays.": "把 max_draft_len 降到最后一个划算的位置。",
  "Traffic or target model changed: check that the drafter was trained for this model version, and the sampling temperature.":
    "流量或目标模型变了：确认 drafter 是为此模型版本训练的，并检查采样温度。",
  "--api-server-count 2 or more; larger chunks in the stream (--stream-interval 8); look for a slow tokeniser in the start-up log.":
    "--api-server-count 2 或更多；流式输出用更大的块（--stream-interval 8）；在启动日志中查看是否使用了慢速 tokenizer。",
  "--tokenizer-worker-num and --detokenizer-worker-num 2 or more, --stream-interval 8, a fast tokeniser; --skip-tokenizer-init shows what is to be won.":
    "--tokenizer-worker-num 与 --detokenizer-worker-num 2 或更多，--stream-interval 8，使用快速 tokenizer；--skip-tokenizer-init 可看出能赢得多少。",
  "--api-server-count 2 or more; send token ids instead of text for very long prompts; larger chunks in the stream (--stream-interval 8); the Rust front end (VLLM_USE_RUST_FRONTEND=1) where the build has it.":
    "--api-server-count 2 或更多；很长的 prompt 改发 token id 而非文本；流式输出用更大的块（--stream-interval 8）；若构建包含 Rust 前端则启用（VLLM_USE_RUST_FRONTEND=1）。",
  "--tokenizer-worker-num 2 or more, --stream-interval 8.": "--tokenizer-worker-num 2 或更多，--stream-interval 8。",
  "num_postprocess_workers 2 or more; stream_interval 8.": "num_postprocess_workers 2 或更多；stream_interval 8。",
  "--api-server-count 2; for structured output compare --structured-outputs-config backends (xgrammar, guidance) and reuse schemas.":
    "--api-server-count 2；结构化输出请比较 --structured-outputs-config 的后端（xgrammar、guidance）并复用 schema。",
  "--tokenizer-worker-num 2; --grammar-backend xgrammar.": "--tokenizer-worker-num 2；--grammar-backend xgrammar。",
  "Compare the clients' and the gateway's time-outs with the latencies here; look for retries (each one is new work), and for users who press stop because answers are long.":
    "把客户端和网关的超时与这里的延迟比较；查找重试（每次重试都是新工作），以及因回答太长而按停止的用户。",
  "vLLM up to 0.33 does not count these under finished_reason=abort: compare first tokens with finished requests.":
    "vLLM 到 0.33 为止不把这些计入 finished_reason=abort：比较首个 token 数与完成的请求数。",
  "Read the engine's log around the first error; check heptascope_gpu_xid_errors_total and the host's memory limit.":
    "看引擎日志中首个错误前后；检查 heptascope_gpu_xid_errors_total 和主机的内存上限。",
  "See the message of one refused request; shorten prompts at the client or raise --max-model-len (vLLM), --context-length (SGLang), --max_seq_len (TensorRT-LLM).":
    "看一个被拒请求的消息；在客户端缩短 prompt，或提高 --max-model-len（vLLM）、--context-length（SGLang）、--max_seq_len（TensorRT-LLM）。",
  "The limit is --max-num-queued-reqs; it does its duty. Add a replica, or raise it if the wait were acceptable.":
    "上限是 --max-num-queued-reqs，它在尽职。加副本；若等待可以接受则提高它。",
  "The limit is --max-queued-requests.": "上限是 --max-queued-requests。",
  "Exponential backoff with jitter and a retry budget at clients and gateway; time-outs above the p99 of heptascope_engine_e2e_latency_seconds.":
    "客户端和网关用带抖动的指数退避和重试预算；超时要高于 heptascope_engine_e2e_latency_seconds 的 p99。",
  "Raise --max-loras to the number of adapters in use at once; for KV transfers see the connector's latency.":
    "把 --max-loras 提高到同时使用的 adapter 数；KV 传输则看 connector 的延迟。",
  "Raise --max-loras-per-batch.": "提高 --max-loras-per-batch。",
  "Lower max_queue_delay_microseconds (Triton dynamic batching) or batch_wait_timeout_ms.":
    "调低 max_queue_delay_microseconds（Triton dynamic batching）或 batch_wait_timeout_ms。",
  "Look for a batching window at the gateway or a connection pool in front of the engine.":
    "查看网关的批处理窗口，或引擎前面的连接池。",
  "dmesg | grep -i xid. Drain the node; 48, 64, 92, 94, 95: memory, reset the GPU; 74: NVLink; 79: off the bus, power-cycle; 119, 120: firmware.":
    "dmesg | grep -i xid。排空节点；48、64、92、94、95：显存，重置 GPU；74：NVLink；79：掉出总线，断电重启；119、120：固件。",
  "1: drain, then nvidia-smi --gpu-reset -i N; 2: drain and reboot the node; 3: stop work that uses peer access; 4: finish the work on it, then reset it.":
    "1：排空后 nvidia-smi --gpu-reset -i N；2：排空并重启节点；3：停止使用 peer access 的工作；4：待其上的工作结束后重置。",
  "nvidia-smi -L and dmesg -T | grep -i -e xid -e nvrm. A card that is gone needs a power cycle. If fewer are wanted, set gpu.expected.":
    "nvidia-smi -L 与 dmesg -T | grep -i -e xid -e nvrm。丢失的卡需要断电重启。若本来就要更少的卡，请设置 gpu.expected。",
  "nvidia-smi nvlink -e and -s on both ends; dmesg -T | grep -i xid (74). Drain, reset all GPUs of the board together; the same link again: replace card, baseboard or cable.":
    "在两端执行 nvidia-smi nvlink -e 和 -s；dmesg -T | grep -i xid（74）。排空，同时重置板上所有 GPU；同一链路再次出错：更换显卡、底板或线缆。",
  "Restart the host engine (systemctl restart nvidia-dcgm, or its pod). If that does not help, reset the GPU when it is drained.":
    "重启 host engine（systemctl restart nvidia-dcgm，或其 pod）。若无效，排空后重置 GPU。",
  "py-spy dump --pid PID of the API server names the call that blocks: a custom middleware, parser or chat template; then --api-server-count 2.":
    "对 API 服务器执行 py-spy dump --pid PID，可看出阻塞的调用：自定义 middleware、解析器或 chat template；然后 --api-server-count 2。",
  "Give the front end a core of its own, and take work that is not asynchronous out of its loop.":
    "给前端一个独立的核，并把非异步的工作移出其事件循环。",
};

/** What signals are, by the help of the schema. */
export const signals = {
  "Identity of the GPU (NVML), value 1; scope is pod, shared (by several pods) or node (it cannot be told whose it is).":
    "GPU 的身份（NVML），值为 1；scope 为 pod、shared（多个 pod 共用）或 node（无法判断归属）。",
  "1 while the GPU answers, 0 after it was lost, needs a reset, or its values stand still.":
    "GPU 有应答时为 1；丢失、需要重置或数值停滞后为 0。",
  "Share of time in which any kernel ran, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "有 kernel 运行的时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which any kernel ran; divide its rate by the rate of heptascope_gpu_graphics_engine_active_sampled_seconds_total.":
    "有 kernel 运行的时间比例对时间的积分；用其速率除以 heptascope_gpu_graphics_engine_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_graphics_engine_active_seconds_total covers.":
    "heptascope_gpu_graphics_engine_active_seconds_total 覆盖的时间。",
  "Share of SM time with at least one warp resident, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "至少驻留一个 warp 的 SM 时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of SM time with at least one warp resident; divide its rate by the rate of heptascope_gpu_sm_active_sampled_seconds_total.":
    "至少驻留一个 warp 的 SM 时间比例对时间的积分；用其速率除以 heptascope_gpu_sm_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_sm_active_seconds_total covers.": "heptascope_gpu_sm_active_seconds_total 覆盖的时间。",
  "Share of warp slots that were filled, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "被占用的 warp 槽位比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of warp slots that were filled; divide its rate by the rate of heptascope_gpu_sm_occupancy_sampled_seconds_total.":
    "被占用的 warp 槽位比例对时间的积分；用其速率除以 heptascope_gpu_sm_occupancy_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_sm_occupancy_seconds_total covers.": "heptascope_gpu_sm_occupancy_seconds_total 覆盖的时间。",
  "Share of time in which the tensor pipes issued (any data type), mean over the last sampling window (NVML GPM or DCGM profiling).":
    "tensor pipe 发射（任何数据类型）的时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the tensor pipes issued (any data type); divide its rate by the rate of heptascope_gpu_tensor_active_sampled_seconds_total.":
    "tensor pipe 发射（任何数据类型）的时间比例对时间的积分；用其速率除以 heptascope_gpu_tensor_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_tensor_active_seconds_total covers.": "heptascope_gpu_tensor_active_seconds_total 覆盖的时间。",
  "Share of peak DRAM bandwidth that was used, reads plus writes, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "所用 DRAM 带宽占峰值的比例，读加写，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of peak DRAM bandwidth that was used, reads plus writes; divide its rate by the rate of heptascope_gpu_dram_active_sampled_seconds_total.":
    "所用 DRAM 带宽占峰值的比例，读加写对时间的积分；用其速率除以 heptascope_gpu_dram_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_dram_active_seconds_total covers.": "heptascope_gpu_dram_active_seconds_total 覆盖的时间。",
  "Share of time in which the integer pipes issued, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "integer pipe 发射的时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the integer pipes issued; divide its rate by the rate of heptascope_gpu_int_active_sampled_seconds_total.":
    "integer pipe 发射的时间比例对时间的积分；用其速率除以 heptascope_gpu_int_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_int_active_seconds_total covers.": "heptascope_gpu_int_active_seconds_total 覆盖的时间。",
  "Share of time in which the FP64 pipes issued, tensor cores apart, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "FP64 pipe 发射的时间比例，不含 tensor core，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the FP64 pipes issued, tensor cores apart; divide its rate by the rate of heptascope_gpu_fp64_active_sampled_seconds_total.":
    "FP64 pipe 发射的时间比例，不含 tensor core对时间的积分；用其速率除以 heptascope_gpu_fp64_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_fp64_active_seconds_total covers.": "heptascope_gpu_fp64_active_seconds_total 覆盖的时间。",
  "Share of time in which the FP32 pipes issued, tensor cores apart, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "FP32 pipe 发射的时间比例，不含 tensor core，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the FP32 pipes issued, tensor cores apart; divide its rate by the rate of heptascope_gpu_fp32_active_sampled_seconds_total.":
    "FP32 pipe 发射的时间比例，不含 tensor core对时间的积分；用其速率除以 heptascope_gpu_fp32_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_fp32_active_seconds_total covers.": "heptascope_gpu_fp32_active_seconds_total 覆盖的时间。",
  "Share of time in which the FP16 pipes issued, tensor cores apart, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "FP16 pipe 发射的时间比例，不含 tensor core，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the FP16 pipes issued, tensor cores apart; divide its rate by the rate of heptascope_gpu_fp16_active_sampled_seconds_total.":
    "FP16 pipe 发射的时间比例，不含 tensor core对时间的积分；用其速率除以 heptascope_gpu_fp16_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_fp16_active_seconds_total covers.": "heptascope_gpu_fp16_active_seconds_total 覆盖的时间。",
  "Share of time with a kernel or a copy in progress (NVML utilization); it says nothing about how much of the GPU is used.":
    "有 kernel 或拷贝在进行的时间占比（NVML utilization）；不说明 GPU 用了多少。",
  "Board power (NVML; about a one-second mean on Ampere and later).":
    "板卡功耗（NVML；Ampere 及以后约为一秒均值）。",
  "Power limit in force (NVML enforced limit).": "生效的功耗上限（NVML enforced limit）。",
  "Energy used since the driver was loaded (NVML).": "驱动加载以来的能耗（NVML）。",
  "Highest SM clock of this card (NVML).": "此卡的最高 SM 时钟（NVML）。",
  "Memory clock now (NVML).": "当前显存时钟（NVML）。",
  "Highest memory clock of this card (NVML).": "此卡的最高显存时钟（NVML）。",
  "Time for which clocks were held down, by reason (NVML clocks-event reasons over the sampling interval, or the driver's counters).":
    "时钟被压低的时间，按原因（采样间隔内的 NVML clocks-event reasons，或驱动的计数器）。",
  "GPU core temperature (NVML).": "GPU 核心温度（NVML）。",
  "Core temperature at which the card slows down (NVML threshold).":
    "显卡开始降速的核心温度（NVML 阈值）。",
  "Memory temperature (NVML field 82).": "显存温度（NVML field 82）。",
  "Device memory in use by anyone (NVML, version 2: without the reserved part).":
    "所有使用者占用的显存（NVML 第 2 版：不含保留部分）。",
  "Device memory of the card (NVML).": "显卡的显存（NVML）。",
  "Device memory that the driver keeps for itself (NVML version 2).":
    "驱动自留的显存（NVML 第 2 版）。",
  "Device memory of one process (NVML, where process ids are visible).":
    "单个进程的显存（NVML，进程号可见时）。",
  "Share of SM time that one process used (NVML process utilization, where visible).":
    "单个进程占用的 SM 时间比例（NVML process utilization，可见时）。",
  "Bytes from host to GPU over PCIe, packet overhead included (GPM rate integrated, or DCGM).":
    "主机经 PCIe 到 GPU 的字节，含包开销（GPM 速率积分，或 DCGM）。",
  "Bytes from GPU to host over PCIe, packet overhead included (GPM rate integrated, or DCGM).":
    "GPU 经 PCIe 到主机的字节，含包开销（GPM 速率积分，或 DCGM）。",
  "PCIe generation of the link now (NVML); it falls at idle to save power.":
    "链路当前的 PCIe 代数（NVML）；空闲时为省电而降低。",
  "Highest PCIe generation that card and slot can do together (NVML).":
    "显卡与插槽共同支持的最高 PCIe 代数（NVML）。",
  "PCIe lanes in use now (NVML).": "当前使用的 PCIe 通道数（NVML）。",
  "PCIe lanes that card and slot can use together (NVML).": "显卡与插槽共同可用的 PCIe 通道数（NVML）。",
  "PCIe packets that had to be sent again (NVML).": "重发的 PCIe 数据包（NVML）。",
  "Bytes received over all NVLinks (GPM rate integrated, or DCGM).":
    "所有 NVLink 收到的字节（GPM 速率积分，或 DCGM）。",
  "Bytes sent over all NVLinks (GPM rate integrated, or DCGM).": "所有 NVLink 发出的字节（GPM 速率积分，或 DCGM）。",
  "Sum of the speeds of the active NVLinks, one direction (NVML).":
    "活动 NVLink 的单向速率之和（NVML）。",
  "XID errors since heptascope started watching, by code (NVML events).":
    "heptascope 开始观察以来的 XID 错误，按代码（NVML 事件）。",
  "Time of the last XID error of a code (Unix time, NVML events or DCGM).":
    "某代码最近一次 XID 错误的时刻（Unix 时间，NVML 事件或 DCGM）。",
  "NVLink errors over all links, by kind (NVML or DCGM).": "所有链路的 NVLink 错误，按种类（NVML 或 DCGM）。",
  "What the driver wants done: 0 nothing, 1 reset the GPU, 2 reboot, 3 drain peer traffic, 4 drain and reset (NVML or DCGM).":
    "驱动要求的动作：0 无，1 重置 GPU，2 重启，3 停止 peer 流量，4 排空并重置（NVML 或 DCGM）。",
  "1 while DCGM profiling stands at 0 on a busy GPU after an XID error, else 0.":
    "XID 错误之后 DCGM profiling 在忙碌的 GPU 上停在 0 时为 1，否则为 0。",
  "ECC errors since the driver was loaded, by kind (NVML volatile counts).":
    "驱动加载以来的 ECC 错误，按种类（NVML volatile 计数）。",
  "Memory rows remapped over the life of the card, by kind (NVML).":
    "显卡一生中重映射的显存行，按种类（NVML）。",
  "1 if a row remap waits for a GPU reset (NVML).": "有行重映射等待 GPU 重置时为 1（NVML）。",
  "1 if a row remap failed: the card should be replaced (NVML).": "行重映射失败时为 1：应换卡（NVML）。",
  "1 if the GPU ran kernels for a twentieth of the window or more, unless all engines that it serves were idle.":
    "窗口内 GPU 有二十分之一以上时间运行 kernel 则为 1，除非它服务的引擎全部空闲。",
  "Peak DRAM bandwidth: 2 x maximum memory clock x bus width / 8, or the datasheet value.":
    "DRAM 峰值带宽：2 x 最高显存时钟 x 位宽 / 8，或规格书的值。",
  "DRAM traffic estimate: DRAM active ratio x peak bandwidth, over the derivation window.":
    "DRAM 流量估计：推导窗口内的 DRAM active 比例 x 峰值带宽。",
  "Dense bf16 tensor work estimate: tensor active ratio x SMs x FLOP per clock x SM clock; an upper bound of the model's share.":
    "dense bf16 tensor 运算估计：tensor active 比例 x SM 数 x 每周期 FLOP x SM 时钟；是模型所占部分的上界。",
  "Share of SM time used by processes that do not belong to a known engine, where process ids are visible.":
    "不属于已知引擎的进程占用的 SM 时间比例（进程号可见时）。",
  "Device memory held by processes that do not belong to a known engine, where process ids are visible.":
    "不属于已知引擎的进程占用的显存（进程号可见时）。",
  "Share of time in which any kernel ran, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中有 kernel 运行的时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which any kernel ran, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_graphics_engine_active_sampled_seconds_total.":
    "一个 MIG 实例中有 kernel 运行的时间比例对时间的积分；用其速率除以 heptascope_gpu_instance_graphics_engine_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_graphics_engine_active_seconds_total covers.":
    "heptascope_gpu_instance_graphics_engine_active_seconds_total 覆盖的时间。",
  "Share of SM time with at least one warp resident, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中至少驻留一个 warp 的 SM 时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of SM time with at least one warp resident, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_sm_active_sampled_seconds_total.":
    "一个 MIG 实例中至少驻留一个 warp 的 SM 时间比例对时间的积分；用其速率除以 heptascope_gpu_instance_sm_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_sm_active_seconds_total covers.":
    "heptascope_gpu_instance_sm_active_seconds_total 覆盖的时间。",
  "Share of warp slots that were filled, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中被占用的 warp 槽位比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of warp slots that were filled, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_sm_occupancy_sampled_seconds_total.":
    "一个 MIG 实例中被占用的 warp 槽位比例对时间的积分；用其速率除以 heptascope_gpu_instance_sm_occupancy_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_sm_occupancy_seconds_total covers.":
    "heptascope_gpu_instance_sm_occupancy_seconds_total 覆盖的时间。",
  "Share of time in which the tensor pipes issued (any data type), of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中tensor pipe 发射（任何数据类型）的时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the tensor pipes issued (any data type), of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_tensor_active_sampled_seconds_total.":
    "一个 MIG 实例中tensor pipe 发射（任何数据类型）的时间比例对时间的积分；用其速率除以 heptascope_gpu_instance_tensor_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_tensor_active_seconds_total covers.":
    "heptascope_gpu_instance_tensor_active_seconds_total 覆盖的时间。",
  "Share of peak DRAM bandwidth that was used, reads plus writes, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中所用 DRAM 带宽占峰值的比例，读加写，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of peak DRAM bandwidth that was used, reads plus writes, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_dram_active_sampled_seconds_total.":
    "一个 MIG 实例中所用 DRAM 带宽占峰值的比例，读加写对时间的积分；用其速率除以 heptascope_gpu_instance_dram_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_dram_active_seconds_total covers.":
    "heptascope_gpu_instance_dram_active_seconds_total 覆盖的时间。",
  "Share of time in which the integer pipes issued, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中integer pipe 发射的时间比例，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the integer pipes issued, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_int_active_sampled_seconds_total.":
    "一个 MIG 实例中integer pipe 发射的时间比例对时间的积分；用其速率除以 heptascope_gpu_instance_int_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_int_active_seconds_total covers.":
    "heptascope_gpu_instance_int_active_seconds_total 覆盖的时间。",
  "Share of time in which the FP64 pipes issued, tensor cores apart, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中FP64 pipe 发射的时间比例，不含 tensor core，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the FP64 pipes issued, tensor cores apart, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_fp64_active_sampled_seconds_total.":
    "一个 MIG 实例中FP64 pipe 发射的时间比例，不含 tensor core对时间的积分；用其速率除以 heptascope_gpu_instance_fp64_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_fp64_active_seconds_total covers.":
    "heptascope_gpu_instance_fp64_active_seconds_total 覆盖的时间。",
  "Share of time in which the FP32 pipes issued, tensor cores apart, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中FP32 pipe 发射的时间比例，不含 tensor core，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the FP32 pipes issued, tensor cores apart, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_fp32_active_sampled_seconds_total.":
    "一个 MIG 实例中FP32 pipe 发射的时间比例，不含 tensor core对时间的积分；用其速率除以 heptascope_gpu_instance_fp32_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_fp32_active_seconds_total covers.":
    "heptascope_gpu_instance_fp32_active_seconds_total 覆盖的时间。",
  "Share of time in which the FP16 pipes issued, tensor cores apart, of one MIG instance, mean over the last sampling window (NVML GPM or DCGM profiling).":
    "一个 MIG 实例中FP16 pipe 发射的时间比例，不含 tensor core，最近采样窗口的均值（NVML GPM 或 DCGM profiling）。",
  "Integral over time of the share of time in which the FP16 pipes issued, tensor cores apart, of one MIG instance; divide its rate by the rate of heptascope_gpu_instance_fp16_active_sampled_seconds_total.":
    "一个 MIG 实例中FP16 pipe 发射的时间比例，不含 tensor core对时间的积分；用其速率除以 heptascope_gpu_instance_fp16_active_sampled_seconds_total 的速率。",
  "Time that heptascope_gpu_instance_fp16_active_seconds_total covers.":
    "heptascope_gpu_instance_fp16_active_seconds_total 覆盖的时间。",
  "Identity of a MIG instance, or of a compute instance in it, value 1; gpu and uuid are the board's.":
    "MIG 实例或其中 compute 实例的身份，值为 1；gpu 与 uuid 是板卡的。",
  "Device memory in use in one MIG instance.": "一个 MIG 实例中占用的显存。",
  "Device memory of one MIG instance.": "一个 MIG 实例的显存。",
  "GPUs that answer to the source in use.": "对所用数据源有应答的 GPU 数。",
  "GPUs that should be there: the configured number, or the most that were seen since the start.":
    "应有的 GPU 数：配置的数目，或启动以来见过的最多数目。",
  "Engine kind, version and served model, value 1.": "引擎种类、版本与所服务的模型，值为 1。",
  "One start setting of the engine that rules may need, as text, value 1.":
    "规则可能需要的一项引擎启动设置，文本形式，值为 1。",
  "How a signal of this engine was obtained where it is not exact: derived or approximate.":
    "此引擎的某信号不精确时的获得方式：derived 或 approximate。",
  "Which GPU serves which engine rank (configuration, process ids, or a lone engine).":
    "哪个 GPU 服务哪个引擎 rank（来自配置、进程号，或只有一个引擎）。",
  "The engine rank that the served trace is of: trace.engine, or the only one.":
    "所展示的 trace 属于哪个引擎 rank：trace.engine，或唯一的那个。",
  "Requests in the running batch after the last scheduling step.":
    "最近一次调度后运行 batch 中的请求数。",
  "Requests in the engine's own queue, not yet admitted to the batch (vLLM counts deferred ones in).":
    "引擎自身队列中尚未进入 batch 的请求（vLLM 把被推迟的也计入）。",
  "Waiting requests held back for another cause than room (adapter slot, KV transfer, grammar).":
    "因空间以外的原因被搁置的等待请求（adapter 槽位、KV 传输、grammar）。",
  "Requests that ended, by reason as the engine names it.": "已结束的请求，按引擎给出的原因。",
  "Requests refused at the door, by reason.": "在入口被拒的请求，按原因。",
  "HTTP requests answered by the engine's API, by class of status.":
    "引擎 API 应答的 HTTP 请求，按状态类别。",
  "Prompt tokens processed, cached ones included.": "处理的 prompt token，含来自 cache 的。",
  "Prompt tokens that came from a cache instead of being computed.":
    "来自 cache 而未计算的 prompt token。",
  "Tokens generated.": "生成的 token。",
  "Most requests that may run at once (--max-num-seqs and its like), where it can be known.":
    "可同时运行的请求上限（--max-num-seqs 之类），可知时。",
  "Most tokens that one step may hold (--max-num-batched-tokens and its like), where it can be known.":
    "一步可容纳的 token 上限（--max-num-batched-tokens 之类），可知时。",
  "Longest sequence that the engine accepts, where it can be known.":
    "引擎接受的最长序列，可知时。",
  "1 if prefix caching is on, 0 if it is off.": "prefix cache 开启为 1，关闭为 0。",
  "1 if the engine runs without CUDA graphs, 0 if it uses them, where it can be known.":
    "引擎不用 CUDA graph 为 1，使用为 0，可知时。",
  "Largest batch that a captured CUDA graph covers, where it can be known.":
    "已捕获的 CUDA graph 覆盖的最大 batch，可知时。",
  "1 if speculative decoding is configured, 0 if not, where it can be known.":
    "配置了投机解码为 1，否则为 0，可知时。",
  "GPUs that share each layer, where it can be known.": "共同分担每一层的 GPU 数，可知时。",
  "Pipeline stages, where it can be known.": "流水线级数，可知时。",
  "Share of the KV cache held by live requests; cached blocks that nobody holds count as free.":
    "进行中的请求占用的 KV cache 比例；无人占用的缓存块算空闲。",
  "Tokens that the KV cache can hold.": "KV cache 可容纳的 token 数。",
  "Prompt tokens looked up in the prefix cache.": "在 prefix cache 中查找的 prompt token。",
  "Prompt tokens found in the prefix cache.": "在 prefix cache 中找到的 prompt token。",
  "Running requests pushed back to waiting for lack of KV cache.":
    "因 KV cache 不足被退回等待的运行请求（抢占）。",
  "KV cache bytes loaded back from an offload tier.": "从 offload 层取回的 KV cache 字节。",
  "Time spent loading KV cache back from an offload tier.": "从 offload 层取回 KV cache 所用时间。",
  "KV or offload allocations that failed.": "失败的 KV 或 offload 分配。",
  "KV cache transfers between engines (prefill to decode).": "引擎之间的 KV cache 传输（prefill 到 decode）。",
  "Time that those transfers took, summed.": "这些传输的总耗时。",
  "Bytes that they moved.": "它们传输的字节。",
  "KV cache transfers that failed.": "失败的 KV cache 传输。",
  "Engine steps (scheduler iterations) that returned output; vLLM's page leaves out those that only prefill part of a prompt.":
    "有输出的引擎步（调度迭代）；vLLM 的页面不计只 prefill 部分 prompt 的步。",
  "Tokens in those steps: prompt tokens computed and tokens generated.":
    "这些步中的 token：计算的 prompt token 与生成的 token。",
  "Tokens in the latest step, where the engine tells no sum over steps.":
    "最近一步的 token，用于引擎不给出总和的情形。",
  "Time in one stage of the engine's loop, or of a model call, as the engine names it.":
    "引擎循环或一次模型调用中某阶段的时间，名称按引擎所称。",
  "Forward passes by kind and by whether a CUDA graph ran them, as the engine names it.":
    "forward 次数，按种类和是否由 CUDA graph 执行，名称按引擎所称。",
  "Time with requests running: integral over our polls, or from the in-engine probe.":
    "有请求运行的时间：对轮询的积分，或来自引擎内 probe。",
  "Time of one phase of a scheduler iteration, from the in-engine probe (the engine's own buckets).":
    "一次调度迭代中某阶段的时间，来自引擎内 probe（引擎自己的 bucket）。",
  "Scheduler passes that left requests waiting, by the limit that bound (sequences, tokens, kv_cache), from the in-engine probe.":
    "留下等待请求的调度次数，按受限的上限（sequences、tokens、kv_cache），来自引擎内 probe。",
  "Time from arrival to the first token (the engine's own buckets).":
    "从到达到首个 token 的时间（引擎自己的 bucket）。",
  "Time between two output events of one request (the engine's own buckets).":
    "同一请求两次输出之间的时间（引擎自己的 bucket）。",
  "Decode time per output token of finished requests (the engine's own buckets).":
    "已完成请求每个输出 token 的 decode 时间（引擎自己的 bucket）。",
  "Time from arrival to the last token (the engine's own buckets).":
    "从到达到最后一个 token 的时间（引擎自己的 bucket）。",
  "Time waiting in the engine before the first scheduling (the engine's own buckets).":
    "首次调度前在引擎中等待的时间（引擎自己的 bucket）。",
  "Time from first scheduling to the first token (the engine's own buckets).":
    "从首次调度到首个 token 的时间（引擎自己的 bucket）。",
  "Time from the first to the last token (the engine's own buckets).":
    "从首个到最后一个 token 的时间（引擎自己的 bucket）。",
  "Sum of a latency where the engine gives no histogram of it; over latency_observations_total it is the mean.":
    "引擎不给直方图时某延迟的总和；除以 latency_observations_total 即均值。",
  "How many times latency_seconds_total holds.": "latency_seconds_total 所含的次数。",
  "Prompt length of finished requests (the engine's own buckets).":
    "已完成请求的 prompt 长度（引擎自己的 bucket）。",
  "Output length of finished requests (the engine's own buckets).":
    "已完成请求的输出长度（引擎自己的 bucket）。",
  "Time from HTTP request to the last byte of its answer, all handlers (the engine's own buckets).":
    "从 HTTP 请求到应答最后一个字节的时间，所有 handler（引擎自己的 bucket）。",
  "Drafts: one per request and step with a draft.": "草稿数：每个请求每个有草稿的步计一次。",
  "Tokens proposed by the drafter.": "drafter 提出的 token。",
  "Draft tokens accepted, the bonus token excluded.": "被接受的草稿 token，不含 bonus token。",
  "Draft tokens accepted at each draft position, from 0.": "各草稿位置（从 0 起）被接受的草稿 token。",
  "FLOP per GPU that the engine estimates for its batches (vLLM --enable-mfu-metrics).":
    "引擎估计其 batch 的每 GPU FLOP（vLLM --enable-mfu-metrics）。",
  "DRAM bytes per GPU that the engine estimates for its batches, reads plus writes.":
    "引擎估计其 batch 的每 GPU DRAM 字节，读加写。",
  "1 if the engine had requests or made tokens within the window, 0 if it was idle.":
    "窗口内引擎有请求或生成了 token 为 1，空闲为 0。",
  "Share of busy time in which the engine's GPUs ran no kernel (without activity counters: by NVML's utilization); copies and a collective that spins hide gaps.":
    "忙碌时间中引擎的 GPU 没有运行 kernel 的占比（没有活动计数器时用 NVML 的利用率）；拷贝和自旋的集合通信会掩盖空隙。",
  "Part of the mean step in which the engine's GPUs ran no kernel.":
    "平均一步中引擎的 GPU 没有运行 kernel 的部分。",
  "Graphics-engine-active ratio over the window, mean of the engine's GPUs.":
    "窗口内 graphics engine active 比例，引擎各 GPU 的均值。",
  "SM active ratio over the window, mean of the engine's GPUs.": "窗口内 SM active 比例，引擎各 GPU 的均值。",
  "DRAM active ratio over the window, mean of the engine's GPUs.":
    "窗口内 DRAM active 比例，引擎各 GPU 的均值。",
  "Tensor active ratio over the window, mean of the engine's GPUs.":
    "窗口内 tensor active 比例，引擎各 GPU 的均值。",
  "GPUs known to serve this rank.": "已知服务此 rank 的 GPU 数。",
  "Use of a resource as a share of what can be had of it (dram, tensor, pcie, link; host: gap share of a step); the largest limits.":
    "某资源的用量占可达值的比例（dram、tensor、pcie、link；host：一步中空隙的比例）；最大者为瓶颈。",
  "Hit tokens over queried tokens within the window; absent without queries.":
    "窗口内命中 token 与查询 token 之比；没有查询时没有。",
  "Prompt tokens computed (not cached) per second over the window.":
    "窗口内每秒计算的（非 cache 的）prompt token。",
  "KV cache tokens held per running request.": "每个运行请求占用的 KV cache token。",
  "Accepted over proposed draft tokens within the window.": "窗口内被接受与被提出的草稿 token 之比。",
  "Tokens per draft that a step yields, the bonus token included.":
    "每个草稿一步得到的 token，含 bonus token。",
  "Requests running, if that number stood still at its maximum for the whole window while requests waited: a cap inferred.":
    "运行请求数，若整个窗口内停在最大值而有请求等待：推断出的上限。",
  "Share of a request's time spent outside the engine: HTTP time minus engine time.":
    "请求在引擎之外花费的时间比例：HTTP 时间减去引擎时间。",
  "Use of what binds first in this pod (the largest heptascope_saturation_limit_ratio), 0 to 1; 0 when idle.":
    "此 pod 中最先到顶者的用量（最大的 heptascope_saturation_limit_ratio），0 到 1；空闲时为 0。",
  "Use of one limit by the fullest rank (kv_cache, sequences, compute: tensor cores, slo: p95 latency over its objective), 0 to 1.":
    "最满的 rank 对某上限的用量（kv_cache，sequences，compute：tensor core，slo：p95 延迟与目标之比），0 到 1。",
  "Objective for a latency, from the configuration.": "某延迟的目标，来自配置。",
  "Tokens scheduled into steps, by kind (prefill, decode; drafts to verify are decode).":
    "调度进各步的 token，按种类（prefill、decode；待验证的草稿算 decode）。",
  "Tokens whose KV cache a preemption gave up and that had to be computed again.":
    "抢占丢弃了 KV cache、须重新计算的 token。",
  "How late a timer of 0.1 s runs in the front end's event loop, from the in-engine probe or the front end itself.":
    "前端事件循环中 0.1 s 定时器的迟到时间，来自引擎内 probe 或前端自身。",
  "Time of one call of the tokeniser in the front end, from the in-engine probe or the front end itself.":
    "前端一次 tokenizer 调用的时间，来自引擎内 probe 或前端自身。",
  "Mean of a latency in the engine's latest report, where it gives neither histogram nor sum.":
    "引擎最近一次报告中某延迟的均值，用于既无直方图也无总和的情形。",
  "Quantile `q` of a latency over a sliding window of the engine's own, where it gives no histogram.":
    "引擎自己的滑动窗口内某延迟的分位数，用于没有直方图的情形。",
  "Tokens generated per second in the engine's latest report, where its counter moves only when requests finish.":
    "引擎最近一次报告中每秒生成的 token，用于计数器只在请求完成时变化的情形。",
  "1 if the latest reported step ran as a CUDA graph, 0 if not, where the engine does not count them.":
    "最近报告的一步以 CUDA graph 执行为 1，否则为 0，用于引擎不计数的情形。",
  "The trace that is served, value 1.": "所展示的 trace，值为 1。",
  "Time since the trace was written.": "trace 写出以来的时间。",
  "Time from the first GPU activity to the last in the trace.": "trace 中从首个到最后一个 GPU 活动的时间。",
  "Share of the trace in which the GPU did anything.": "trace 中 GPU 有任何活动的比例。",
  "Share of the trace in which no kernel ran.": "trace 中没有 kernel 运行的比例。",
  "Share of the trace in which no kernel ran, by cause.": "trace 中没有 kernel 运行的比例，按原因。",
  "Share of the trace in which no kernel ran though there was work: launch, sync, device.":
    "trace 中有工作却没有 kernel 运行的比例：launch、sync、device。",
  "Share of the trace in which a copy or fill ran.": "trace 中有拷贝或填充运行的比例。",
  "Time of copies by direction and kind of memory, over the trace.":
    "按方向和内存种类的拷贝时间，占 trace 的比例。",
  "Bytes copied by direction and kind of memory.": "按方向和内存种类的拷贝字节。",
  "Engine steps in the trace.": "trace 中的引擎步数。",
  "Period of engine steps on the GPU, p50 and p99.": "GPU 上引擎步的周期，p50 与 p99。",
  "Kernels in the trace.": "trace 中的 kernel 数。",
  "Share of kernels shorter than 5 µs.": "短于 5 µs 的 kernel 的比例。",
  "Share of kernel time in kernels shorter than 5 µs.": "短于 5 µs 的 kernel 占 kernel 时间的比例。",
  "Kernel runs of at least 3 times the median of their kernel and shape.":
    "耗时至少为同 kernel 同 shape 中位数 3 倍的 kernel 次数。",
  "Time of outliers over their medians, over the trace.": "离群 kernel 超出中位数的时间，占 trace 的比例。",
  "The profiler's estimate of occupancy, weighted by time.": "profiler 估计的 occupancy，按时间加权。",
  "Compilations inside the trace.": "trace 内的编译次数。",
  "GPU modules loaded inside the trace.": "trace 内加载的 GPU module 数。",
  "CUDA graph captures begun inside the trace.": "trace 内开始的 CUDA graph 捕获次数。",
  "Share of kernels that CUDA graphs launched.": "由 CUDA graph 发射的 kernel 的比例。",
  "Share of kernel time that CUDA graphs launched.": "由 CUDA graph 发射的 kernel 时间的比例。",
  "CUDA graph launches in the trace.": "trace 中的 CUDA graph 发射次数。",
  "Host calls that waited for the GPU.": "等待 GPU 的主机调用次数。",
  "Share of the trace in which a host thread waited for the GPU.":
    "trace 中有主机线程等待 GPU 的比例。",
  "Time from launch call to kernel, p50 and p99.": "从发射调用到 kernel 的时间，p50 与 p99。",
  "Share of GPU work by class.": "GPU 工作按类别的比例。",
  "Share of the trace in which a collective ran.": "trace 中有集合通信运行的比例。",
  "Share of collective time in which compute kernels ran too.": "集合通信时间中同时有计算 kernel 的比例。",
  "Share of the trace in which a collective ran and no compute kernel.":
    "trace 中只有集合通信而无计算 kernel 的比例。",
  "Time that the rank waited in collectives for the last rank, over its trace.":
    "rank 在集合通信中等待最后一个 rank 的时间，占其 trace 的比例。",
  "Share of collectives to which the rank came last.": "rank 最后到达的集合通信的比例。",
  "By how much the rank came last to collectives, p50 and p99.": "rank 在集合通信中迟到多少，p50 与 p99。",
  "What the rank's clock shows more than the first rank's.": "rank 的时钟比首个 rank 快多少。",
  "Share of the run in which the rank computed nothing while another did.":
    "运行中此 rank 没有计算而另一个在计算的比例。",
  "Achieved occupancy of profiled kernels (Nsight Compute), by what bounds them.":
    "被 profile 的 kernel 的实际 occupancy（Nsight Compute），按受限类型。",
  "SM throughput of profiled kernels, of peak, by what bounds them.":
    "被 profile 的 kernel 的 SM 吞吐占峰值的比例，按受限类型。",
  "Memory throughput of profiled kernels, of peak, by what bounds them.":
    "被 profile 的 kernel 的内存吞吐占峰值的比例，按受限类型。",
  "DRAM throughput of profiled kernels, of peak, by what bounds them.":
    "被 profile 的 kernel 的 DRAM 吞吐占峰值的比例，按受限类型。",
  "L2 throughput of profiled kernels, of peak, by what bounds them.":
    "被 profile 的 kernel 的 L2 吞吐占峰值的比例，按受限类型。",
  "Tensor pipe activity of profiled kernels, by what bounds them.":
    "被 profile 的 kernel 的 tensor pipe 活跃度，按受限类型。",
  "Stall reasons of profiled kernels, shares of all stalls.": "被 profile 的 kernel 的 stall 原因，占全部 stall 的比例。",
  "Share of profiled kernel time bound by compute, memory or latency.":
    "被 profile 的 kernel 时间中受限于计算、内存或延迟的比例。",
  "Processors of this machine.": "本机的处理器数。",
  "Load average over one minute (/proc/loadavg).": "一分钟 load average（/proc/loadavg）。",
  "CPU time of the whole machine, busy and idle (/proc/stat).": "整机的 CPU 时间，忙与闲（/proc/stat）。",
  "Time in which some task waited for the resource (/proc/pressure).":
    "有任务等待该资源的时间（/proc/pressure）。",
  "CPU limit of the engine's control group, in cores; absent without a limit.":
    "引擎 cgroup 的 CPU 上限（核数）；无上限时没有。",
  "CPU time of the engine's control group.": "引擎 cgroup 的 CPU 时间。",
  "Time for which the engine's group was stopped at its CPU limit.":
    "引擎 cgroup 因 CPU 上限被暂停的时间。",
  "Enforcement periods of the CPU limit.": "CPU 上限的执行周期数。",
  "Enforcement periods in which the CPU limit stopped the engine's group.":
    "引擎 cgroup 被 CPU 上限暂停的周期数。",
  "Memory of the engine's control group, page cache included.": "引擎 cgroup 的内存，含 page cache。",
  "Memory limit of the engine's control group; absent without a limit.":
    "引擎 cgroup 的内存上限；无上限时没有。",
  "Page cache in that memory, which the kernel takes back under pressure.":
    "其中的 page cache，内存紧张时由内核收回。",
  "A process of an engine (role: api_server, engine_core, worker) or beside it (role: other), value 1.":
    "引擎的进程（role：api_server、engine_core、worker）或其旁的进程（role：other），值为 1。",
  "CPU time of the process, all threads.": "进程所有线程的 CPU 时间。",
  "Time for which threads of the process were runnable and waited for a CPU (schedstat).":
    "进程的线程就绪却等待 CPU 的时间（schedstat）。",
  "CPU time of the thread that ran most, summed per interval.": "运行最多的线程的 CPU 时间，按间隔累加。",
  "The thread that ran most over the last ten reads: its name and its number, value 1.":
    "最近十次读取中运行最多的线程：名称与编号，值为 1。",
  "Threads of the process.": "进程的线程数。",
  "Resident memory of the process.": "进程的常驻内存。",
  "CPUs on which the process may run (affinity).": "进程可用的 CPU 数（affinity）。",
  "Share of the CPUs that the process may use which lie on another NUMA node than its GPU.":
    "进程可用的 CPU 中与其 GPU 不在同一 NUMA 节点的比例。",
  "Share of samples in which a thread of the process owned the Python interpreter lock.":
    "采样中进程有线程持有 Python 解释器锁的比例。",
  "Share of samples in which this thread owned the lock, of the three threads that did most.":
    "采样中此线程持有锁的比例，仅列持有最多的三个线程。",
  "Share of samples in which the event loop of the process was busy.":
    "采样中进程的事件循环忙碌的比例。",
  "Pod, namespace and node by the downward API, value 1.": "downward API 给出的 pod、namespace 与 node，值为 1。",
  "Place of this pod among those that serve one model together (LeaderWorkerSet, Ray, JobSet, Job, torchrun, StatefulSet), value 1.":
    "此 pod 在共同服务一个模型的各 pod 中的位置（LeaderWorkerSet、Ray、JobSet、Job、torchrun、StatefulSet），值为 1。",
  "Container that the kubelet gave a GPU or a MIG instance (uuid) to, value 1; where heptascope speaks for a whole node.":
    "kubelet 把某 GPU 或 MIG 实例（uuid）分配给的容器，值为 1；用于 heptascope 代表整个节点时。",
  "Version of heptascope, value 1.": "heptascope 的版本，值为 1。",
  "A source, its kind, and whether its window ratios are exact or approximate, value 1.":
    "数据源、其种类，以及其窗口比例是精确还是近似，值为 1。",
  "1 if the last read of the source succeeded.": "数据源最近一次读取成功为 1。",
  "Age of the last good reading of the source, right to one second.":
    "数据源最近一次成功读数的数据龄，精确到一秒。",
  "Time that the last read of the source took.": "数据源最近一次读取的耗时。",
  "Reads of the source that failed.": "数据源失败的读取次数。",
  "1 for a signal that has no value on at least one engine or GPU, with the reason.":
    "信号在至少一个引擎或 GPU 上没有值则为 1，附原因。",
  "Values refused because they were impossible or not in the signal table.":
    "因不可能或不在信号表中而被拒的值。",
  "Time that one pass of a stage took (ingest, derive, rules, render).":
    "一个阶段一次执行的耗时（ingest、derive、rules、render）。",
  "Unix time on this machine's clock when the page was made, to tell clock skew.":
    "生成页面时本机时钟的 Unix 时间，用于判断时钟偏差。",
  "Memory of the in-process history.": "进程内历史占用的内存。",
  "CPU time used by heptascope.": "heptascope 使用的 CPU 时间。",
  "Resident memory of heptascope.": "heptascope 的常驻内存。",
  "1 while a rule of the catalogue fires.": "目录中的规则触发期间为 1。",
  "1 for a firing fault that no other fault explains: what to mend.":
    "没有其他故障可解释的触发故障为 1：应当修复的对象。",
  "1 while a rule cannot be judged.": "规则无法判断期间为 1。",
  "1 for the rule that says what bounds the engine now.": "说明当前瓶颈的规则为 1。",
  "1 for the state that a layer is in, 0 for the others.": "层所处的状态为 1，其余为 0。",
  "1 for the state that the engine is in, 0 for the others.": "引擎所处的状态为 1，其余为 0。",
  "Mean time of one engine step over the window, while requests run; absent at idle. Against the in-engine probe (vLLM 0.11, 0.32) the derived one was within 5 % under steady load, and up to 31 % off where requests pause between polls.":
    "有请求运行时，窗口内引擎一步的平均时间；空闲时没有。与引擎内 probe（vLLM 0.11、0.32）相比，推导值在稳定负载下误差在 5 % 以内，请求在轮询之间停顿时可能差到 31 %。",
  "SM clock now (NVML); under tensor work an H200 counts 6 to 11 % fewer cycles.":
    "当前 SM 时钟（NVML）；tensor 负载下 H200 实际计数的周期少 6 到 11 %。",
};

/** What mending a fault is worth, after the percentage. */
export const gains = {
  "of the computed tokens are computed again; that share comes back":
    "的已计算 token 是重复计算，这部分可以省下",
  "of the drafting and verifying is thrown away": "的草稿与验证被丢弃",
  "of each step's time is host gap; that much can be won at most":
    "的每步时间是主机空隙，最多可赢回这么多",
};

/** What the demo's recordings show, by their labels. */
export const scenes = {
  "engine waits for a CPU 0.75 s each second: GPU active 0.44, step 16 ms against 8":
    "引擎每秒有 0.75 s 在等 CPU：GPU active 0.44，一步 16 ms 而非 8",
  "DRAM 0.52 leads tensor 0.22; GPU idle 0.14 of the time": "DRAM 0.52 高于 tensor 0.22；GPU 有 0.14 的时间空闲",
  "GPU active 0.10, 15.5 ms a step; the graph twin needs 3.1": "GPU active 0.10，一步 15.5 ms；使用 CUDA graph 时为 3.1",
  "no requests": "没有请求",
  "6 preemptions a second, KV 0.99, 33 waiting, 31 of 256 running":
    "每秒 6 次抢占，KV 0.99，33 个等待，256 个名额运行 31 个",
  "acceptance 0.02: slower than no drafts and than no speculation":
    "接受率 0.02：比没有草稿、也比不投机更慢",
  "hit ratio 0.99": "命中率 0.99",
  "8 running = cap, 56 waiting, KV 0.19": "运行 8 个 = 上限，56 个等待，KV 0.19",
  "GPU active 0.02, nothing in the engine, TTFT 2.6 s, API process above one core":
    "GPU active 0.02，引擎中没有请求，TTFT 2.6 s，API 进程超过一个核",
  "GPU 1 shared with another process: SM 0.76 against 0.40, 691 W against 332 W":
    "GPU 1 与另一进程共用：SM 0.76 对 0.40，691 W 对 332 W",
};
