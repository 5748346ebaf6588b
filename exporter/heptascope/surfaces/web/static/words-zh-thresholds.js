// Where the thresholds of the rules come from, in Chinese, by the catalogue's text (without an `as RULE:` before it).

export const thresholds = {
  "half of the time; a steady cap reads 1.0 on the driver's own counter (H200 probe)": "一半时间；稳定触及上限时驱动自己的计数器读 1.0（H200 探测）",
  "dense bf16 work under a 700 W cap runs at 0.75 of the top clock on an H200, a B200 at its limit at 0.80":
    "700 W 上限下，dense bf16 运算在 H200 上以最高时钟的 0.75 运行，到达上限的 B200 为 0.80",
  "dense bf16 matrix product on an H200, tensor pipe 0.925 busy (calibration run)": "H200 上的 dense bf16 矩阵乘法，tensor pipe 忙 0.925（校准运行）",
  "matrix products of 1 to 64 rows on an H200, DRAM 0.72 to 0.74 of peak (calibration run)": "H200 上 1 到 64 行的矩阵乘法，DRAM 达峰值的 0.72 到 0.74（校准运行）",
  "so near its ceiling a resource bounds the step whatever the others do; below, the largest can only be named when all are known":
    "如此接近上限时，无论其他资源如何，它都是每步的瓶颈；低于此值，只有全部已知时才能指出最大者",
  "below a third of what can be had no resource bounds a step; the ranking among resources decides, not this floor":
    "低于可达值的三分之一时，没有资源限制一步；起决定作用的是资源之间的排名，而不是这个下限",
  "near half of the step without a kernel; 0.60 where the recordings call it a fault, 0.35 where they do not":
    "接近一半的 step 没有 kernel；录制认定为故障处为 0.60，不认定处为 0.35",
  "the engine core's main loop is one thread; at 0.9 cores it has no time left": "engine core 的主循环只有一个线程；到 0.9 核就没有余力",
  "half of the usable link (55 GB/s one way on PCIe 5 x16, H200 calibration); engines without offload use below 0.01":
    "可用链路的一半（PCIe 5 x16 单向 55 GB/s，H200 校准）；没有 offload 的引擎低于 0.01",
  "a tenth of the SM time; NVML's per-process sampling is exact to a few hundredths on the H200 recordings":
    "SM 时间的十分之一；在 H200 录制中，NVML 按进程的采样精确到百分之几",
  "a tenth of the time; a healthy card under full load never sets these bits (H200 recordings, 0 in all)": "十分之一的时间；健康的卡在满载下从不置这些位（H200 录制中共 0 次）",
  "the brake is an external signal of the power supply; it is never asserted in normal operation (NVML clocks-event reasons)":
    "brake 是电源的外部信号；正常运行中从不出现（NVML clocks-event reasons）",
  "under half of the time at work a card may rest its clocks and links between kernels": "工作时间不到一半时，卡可以在 kernel 之间让时钟和链路休息",
  "the deepest clock under a power cap in the H200 calibration is 0.70 of the top (fp8 matrix product); a hot 100 W card fell to a third":
    "H200 校准中功耗上限下最低的时钟为最高值的 0.70（fp8 矩阵乘法）；过热的 100 W 卡降到三分之一",
  "with a tenth of the limit to spare the power cap is not what holds the clock down": "离上限还有十分之一，压低时钟的就不是功耗上限",
  "datacentre cards slow down from 83 to 92 degrees on (89 on an H200); under full load one reads 50 to 60":
    "数据中心卡从 83 到 92 度开始降速（H200 为 89）；满载时为 50 到 60",
  "the memory clock of datacentre cards stands at its maximum under any load (3201 MHz in all H200 recordings)":
    "数据中心卡的显存时钟在任何负载下都处于最高值（所有 H200 录制中为 3201 MHz）",
  "a healthy link shows 0 to 1 in its whole life (H200 recordings)": "健康的链路一生只有 0 到 1 次（H200 录制）",
  "any of these XID codes says that hardware, firmware or the link failed (NVIDIA XID catalogue); what a program can cause (13, 31, 43, 45) and notes (63, 154, 156) are left out":
    "其中任何一个 XID 代码都表示硬件、固件或链路失效（NVIDIA XID 目录）；程序可能引起的（13、31、43、45）与仅供参考的（63、154、156）不计",
  "the driver's own judgement (NVML field 230); DCGM's health check fails for 1, 2 and 4 and warns for 3":
    "驱动自己的判断（NVML 字段 230）；DCGM 的健康检查对 1、2、4 判失败，对 3 告警",
  "every GPU of gpu.expected must answer, or, where that is not set, every one that has answered since the start":
    "gpu.expected 中的每个 GPU 都必须应答；未设置时，启动以来应答过的每一个都必须应答",
  "the driver answered \"GPU is lost\" or \"reset required\" (NVML return codes 15 and 16)": "驱动回答 GPU 已丢失或需要重置（NVML 返回码 15 和 16）",
  "one uncorrected error already means lost data (NVIDIA GPU memory error management)": "一次不可纠正的错误就意味着数据丢失（NVIDIA GPU memory error management）",
  "NVML flag; a pending remap needs a reset, a failed one a new card": "NVML 标志；等待中的 remap 需要重置，失败的需要换卡",
  "from here on DCGM's health check calls the link failed (100 a second); fewer are repaired in passing": "从此值起 DCGM 的健康检查判链路失败（每秒 100 次）；更少的会顺便修复",
  "DCGM's health check fails at the first replay or recovery; one alone has left the window before the alert's minute is over":
    "DCGM 的健康检查在第一次重发或恢复时即判失败；单独一次在告警的一分钟结束前已移出窗口",
  "heptascope's own flag, set by three reads in a row with utilisation 100 % and all profiling at 0 after an XID error":
    "heptascope 自己的标志：XID 错误之后，连续三次读到利用率 100 % 而所有 profiling 为 0 时置位",
  "1 MiB/s; engines reserve their KV cache at the start, so used memory is flat afterwards (0 in all H200 recordings)":
    "1 MiB/s；引擎在启动时预留 KV cache，之后显存用量不变（所有 H200 录制中为 0）",
  "a fiftieth of the card left; engines leave about a tenth on purpose, and growth far from the edge is no fault yet":
    "卡只剩五十分之一；引擎有意留出约十分之一，离极限还远的增长不是故障",
  "the card looks fully used to utilisation counters": "在利用率计数器看来，卡已用满",
  "a spinning kernel on one SM reads 0.01 and on sixteen 0.12 (H200 calibration); the lowest busy decode in the recordings 0.17 at 0.25 busy":
    "自旋的 kernel 占一个 SM 时读 0.01，占十六个时读 0.12（H200 校准）；录制中忙碌的 decode 最低为 0.17，当时忙 0.25",
  "real decode reads DRAM at 0.3 and more while the card is busy (H200 recordings)": "真正的 decode 在卡忙时 DRAM 读 0.3 以上（H200 录制）",
  "spinning kernels draw 0.18 to 0.27 of the limit, real work 0.45 and more (H200 calibration)":
    "自旋的 kernel 耗用功耗上限的 0.18 到 0.27，真正的工作为 0.45 以上（H200 校准）",
  "two H200s under one load differ by 0.03 in clock (tp2 recordings)": "同一负载下两张 H200 的时钟相差 0.03（tp2 录制）",
  "a card at its power limit is busier than its peers, not slower": "到达功耗上限的卡比同伴更忙，而不是更慢",
  "half of the step without a kernel; 0.90 in eager mode, 0.60 at worst with graphs (H200 recordings, 1B model)":
    "一半的 step 没有 kernel；eager 模式为 0.90，用 graph 时最多 0.60（H200 录制，1B 模型）",
  "host time of a step is 0.7 to 1.9 ms with CUDA graphs, 14 ms without (H200 recordings); guided decoding lies between, so the upper part":
    "用 CUDA graph 时一步的主机时间为 0.7 到 1.9 ms，不用时 14 ms（H200 录制）；引导解码介于其间，所以取上部",
  "scheduling and output handling cost about 0.01 ms a sequence (4 ms at 380 sequences); three times that": "调度与输出处理每序列约 0.01 ms（380 个序列为 4 ms）；取其三倍",
  "the launching thread is busy all the time (1.02 cores in eager mode)": "发射线程一直在忙（eager 模式为 1.02 核）",
  "launching is the work of one thread; a process that uses more computes something else (drafts, grammars)": "发射只由一个线程完成；用得更多的进程在算别的（草稿、语法）",
  "a process that waits for a CPU is starved, not launch-bound (1.7 in the starved recording, below 0.1 elsewhere)":
    "等待 CPU 的进程是缺 CPU，而不是受发射限制（缺 CPU 的录制中为 1.7，其他低于 0.1）",
  "a saturated front end makes the engine wait too (1.0 and 1.3 cores in the recordings of that)": "饱和的前端也会让引擎等待（相应录制中为 1.0 和 1.3 核）",
  "a GPU that talks to others may only spin in a collective (4 GB/s beside a straggler); idle links carry nothing":
    "与其他 GPU 通信的 GPU 可能只是在集合通信中自旋（与掉队者一起时为 4 GB/s）；空闲链路上没有数据",
  "the card runs kernels for at least half of the time": "卡至少一半时间在运行 kernel",
  "no resource reaches a third of what can be had; the least in a busy single-GPU recording of the H200 with that activity is 0.5":
    "没有资源达到可达值的三分之一；H200 的单 GPU 忙碌录制中，在该活跃度下最低为 0.5",
  "the engine's own start setting": "引擎自己的启动设置",
  "a fifth of the step without a kernel; below it graphs could gain little (0.01 to 0.14 with graphs for an 8B model on an H200)":
    "五分之一的 step 没有 kernel；低于此值 graph 收益很小（H200 上 8B 模型用 graph 时为 0.01 到 0.14）",
  "a fifth of the step without a kernel, as for eager mode": "五分之一的 step 没有 kernel，与 eager 模式相同",
  "no decode step that the engine reported in the window ran as a graph, although graphs are not off (data-parallel attention adds up the ranks' batches, SGLang issue 5527)":
    "引擎在窗口内报告的 decode step 没有一个以 graph 运行，尽管 graph 没有关闭（数据并行 attention 会合并各 rank 的 batch，SGLang issue 5527）",
  "prompt tokens outnumber generated ones so far that nearly all work is prefill": "prompt token 远多于生成的 token，几乎全部工作都是 prefill",
  "the SMs are full (0.94 to 0.98 in prefill on an H200)": "SM 已满（H200 上 prefill 时为 0.94 到 0.98）",
  "healthy prefill keeps tensor pipes 0.66 to 0.84 busy (H200 recordings); a third of the least is a kernel without them":
    "健康的 prefill 使 tensor pipe 忙 0.66 到 0.84（H200 录制）；不到最低值的三分之一即是没有用到它的 kernel",
  "nor is DRAM what the kernels wait for (0.20 to 0.33 in prefill)": "kernel 等待的也不是 DRAM（prefill 时为 0.20 到 0.33）",
  "SMs hold warps most of the time": "SM 大部分时间都持有 warp",
  "four warps of 64 on each SM read 0.0625 (H200 calibration, spin_132x4w); matrix products 0.12 to 0.18, decode 0.10 to 0.16":
    "每个 SM 64 个 warp 中有四个时读 0.0625（H200 校准，spin_132x4w）；矩阵乘法为 0.12 到 0.18，decode 为 0.10 到 0.16",
  "tensor-core kernels run well at low occupancy, so they must not be what runs": "tensor core 的 kernel 在低占用率下也运行良好，所以在运行的不能是它们",
  "nor kernels that wait for DRAM on purpose": "也不是有意等待 DRAM 的 kernel",
  "a compilation or graph capture during traffic takes a second and more (vLLM 0.32 start-up log; first requests 15 s on 0.11)":
    "服务期间的编译或 graph 捕获要一秒以上（vLLM 0.32 启动日志；0.11 上首批请求为 15 s）",
  "the GPU has nothing to do meanwhile": "其间 GPU 无事可做",
  "a long prompt explains a stall better": "停顿更可能由长 prompt 造成",
  "the mean step is far above the usual gap between tokens": "平均 step 远高于通常的 token 间隔",
  "a healthy kernel gap ratio is below it (0.008 in prefill, 0.019 in a CUDA graph, 0.61 and more where the host limits; H200 traces); time without work, with copies or of unknown cause does not count":
    "健康的 kernel 间隙比低于此值（prefill 为 0.008，CUDA graph 内为 0.019，受主机限制时 0.61 以上；H200 trace）；没有工作、在拷贝或原因不明的时间不计",
  "own choice; load and settings seldom stay the same for longer than a quarter of an hour": "自行选定；负载与设置很少保持不变超过一刻钟",
  "a fifth of the time without a kernel, as for eager mode; the profiler widens gaps, so that the healthy 0.05 would blame it too (0.86 in eager mode, H200 trace)":
    "五分之一的时间没有 kernel，与 eager 模式相同；profiler 会拉大间隙，否则健康的 0.05 也会被指责（eager 模式为 0.86，H200 trace）",
  "less than half of the kernels' time comes from CUDA graphs (0.72 to 1 where they are on, 0 where not; H200 traces)":
    "来自 CUDA graph 的 kernel 时间不到一半（打开时为 0.72 到 1，关闭时为 0；H200 trace）",
  "a healthy kernel gap ratio is below it, whatever the cause; synchronisation makes 0.0015 at most in the H200 traces":
    "健康的 kernel 间隙比低于此值，无论何种原因；H200 trace 中同步最多占 0.0015",
  "healthy engines copy for less than 3 % of the time (0.0005 to 0.0015, H200 traces)": "健康的引擎拷贝时间不到 3 %（0.0005 到 0.0015，H200 trace）",
  "own choice; copies beside kernels cost little, so a hundredth of the time must go to copies alone": "自行选定；与 kernel 同时进行的拷贝代价很小，所以须有百分之一的时间只在拷贝",
  "kernels are compiled and graphs captured before serving; none in any H200 trace of a serving engine":
    "kernel 在服务之前编译，graph 在服务之前捕获；服务中的引擎的 H200 trace 里都没有",
  "own choice; a fifth of the profiled time, less is not worth a change": "自行选定；被剖析时间的五分之一，更少则不值得改动",
  "healthy kernels that memory does not bound use more of the SMs' throughput; below 60 % Nsight Compute's Speed-of-Light rule calls them latency-bound (a 4096 matrix product 0.90, H200)":
    "不受显存限制的健康 kernel 会用到更多的 SM 吞吐；低于 60 % 时 Nsight Compute 的 Speed-of-Light 规则称其受延迟限制（4096 矩阵乘法为 0.90，H200）",
  "half of the warps that an SM can hold hide most latency; asked of latency-bound kernels only, since tensor-core kernels run well at 0.15 (H200)":
    "SM 能容纳的 warp 的一半可掩盖大部分延迟；只对受延迟限制的 kernel 提出，因为 tensor core 的 kernel 在 0.15 时也运行良好（H200）",
  "Nsight Compute calls 80 % of peak high; on an H200 a copy reads 0.88 and a sum 0.91, matrix products with few rows 0.72 to 0.74 at best":
    "Nsight Compute 称峰值的 80 % 为高；H200 上拷贝读 0.88，求和 0.91，行数少的矩阵乘法最好也只有 0.72 到 0.74",
  "all traffic to DRAM passes L2, so a kernel that DRAM bounds reads more (0.92, an addition over 1 GiB on an H200); below it the bound lies in L1 or shared memory":
    "到 DRAM 的流量都经过 L2，所以受 DRAM 限制的 kernel 读数更高（0.92，H200 上 1 GiB 的加法）；低于此值，瓶颈在 L1 或 shared memory",
  "preemption at this rate is a full cache even when nobody waits at a poll": "以此速率抢占即是 cache 已满，即使轮询时没有人等待",
  "someone waited at every poll of the window": "窗口内每次轮询都有请求在等待",
  "with three hundredths left no usual prompt fits; engines stop admitting at 0.99 to 1.0": "只剩百分之三时，通常的 prompt 都放不下；引擎在 0.99 到 1.0 时停止接纳",
  "where finished requests are not known; the severe recording has 6 a second, an engine that finishes five a second loses a tenth":
    "用于完成的请求数未知时；严重的录制中每秒 6 次，每秒完成五个请求的引擎会损失十分之一",
  "two in ten seconds; a single one is no pattern (a recording with 2 in 26 s lost nothing measurable)": "十秒内两次；单独一次不成规律（26 s 内 2 次的录制没有可测的损失）",
  "one request in ten; at 0.11 a simulated vLLM went from 0.46 to 2.2 s TTFT p99 (inference-sim), 1.4 in the severe recording":
    "每十个请求一次；达 0.11 时模拟的 vLLM 的 TTFT p99 从 0.46 s 升到 2.2 s（inference-sim），严重的录制中为 1.4",
  "a tenth of the tokens computed twice; recomputed tokens are in no counter, so preempted sequences times their mean length stand for them":
    "十分之一的 token 计算了两次；没有计数器统计重算的 token，故以被抢占的序列数乘其平均长度代之",
  "less than one full-length request fits (vLLM logs \"maximum concurrency 0.82x\" for such a case)":
    "放不下一个最长的请求（此时 vLLM 日志会写“maximum concurrency 0.82x”）",
  "a fifth beyond the cache; below it, requests that end early make room in time": "超过 cache 五分之一；低于此值，提前结束的请求会及时腾出空间",
  "an engine that generates nothing embeds or ranks texts, which seldom share a prefix": "不生成 token 的引擎用于 embedding 或排序，其文本很少有公共前缀",
  "the engine's own setting": "引擎自己的设置",
  "ten prompt tokens computed for each one generated; prefill is what users wait for": "每生成一个 token 要计算十个 prompt token；用户等待的是 prefill",
  "half of yesterday's ratio at the same hour": "昨天同一时刻命中率的一半",
  "a ratio below a third was never much of a help": "低于三分之一的命中率本来就没有多大帮助",
  "a hit ratio that someone may be proud of": "足以令人满意的命中率",
  "preempted sequences times their length account for half of the hits (vLLM issue 25780; excluded by vLLM itself since 0.11.1)":
    "被抢占的序列数乘其长度占命中的一半（vLLM issue 25780；自 0.11.1 起 vLLM 自己已排除）",
  "new prompt tokens replace the whole cache within five seconds, faster than users come back": "新的 prompt token 在五秒内替换整个 cache，比用户回来更快",
  "some prompts do share a prefix": "确有一些 prompt 有公共前缀",
  "yet most look-ups miss": "但大多数查找没有命中",
  "live requests leave cached blocks little room": "运行中的请求给缓存的块留下的空间很少",
  "an 8B model needs 131 kB of KV a token and prefills 39 thousand tokens/s on an H200, which is 5.1 GB/s of KV; slower loads lose":
    "8B 模型每 token 需要 131 kB 的 KV，在 H200 上每秒 prefill 39 千 token，即 5.1 GB/s 的 KV；更慢的载入得不偿失",
  "a twentieth of the time spent loading": "二十分之一的时间花在载入上",
  "room for two requests of the greatest length, so size cannot be the reason": "可容纳两个最长的请求，所以原因不会是大小",
  "the sequence cap is not the reason either": "原因也不是并发上限",
  "nor is prefill work that the token budget spreads out": "也不是被 token 预算分摊的 prefill",
  "two in ten seconds; single ones are retried without loss": "十秒内两次；单独的会重试，没有损失",
  "two in ten seconds": "十秒内两次",
  "the cache is full": "cache 已满",
  "drafts that are mostly thrown away are not worth their memory": "大多被丢弃的草稿不值它们占用的显存",
  "a card whose tensor cores are this busy gains little from a larger batch (0.77 and more in the compute-bound recordings, 0.06 at the cap)":
    "tensor core 如此繁忙的卡难以从更大的 batch 获益（受算力限制的录制中为 0.77 以上，触及并发上限时为 0.06）",
  "two more prompts would fit": "还能放下两个 prompt",
  "and a fifth of the cache is free": "且五分之一的 cache 空闲",
  "decode must be what fills the slots; where prompt tokens outnumber generated ones by four, the token budget holds requests back":
    "占用名额的必须是 decode；prompt token 超过生成的四倍时，是 token 预算拦住了请求",
  "the mean step holds nine tenths of the tokens it may": "平均每步用到允许 token 数的十分之九",
  "with busy tensor cores the budget only spreads work that could not go faster": "tensor core 繁忙时，预算只是分摊了本来也快不了的工作",
  "a pipeline stage idles while another one works, which is no doing of the host (eight stages of an 8B model, each busy for 0.2 to 0.5, vLLM issue 11500)":
    "一个流水线级工作时另一级空闲，这不是主机造成的（8B 模型八级，各忙 0.2 到 0.5，vLLM issue 11500）",
  "kernels run in at most the other four tenths of the time, so DRAM can reach 0.4 / 0.74 and the tensor cores 0.4 / 0.925 at most":
    "kernel 最多在其余十分之四的时间运行，所以 DRAM 最多达 0.4 / 0.74，tensor core 最多达 0.4 / 0.925",
  "a fifth of the step without a kernel; the ranking among resources decides, not this floor": "五分之一的 step 没有 kernel；起决定作用的是资源之间的排名，而不是这个下限",
  "where nothing measures the tensor cores, a cap so low that decode cannot fill them; with four prompt tokens for each generated one a step holds 160 tokens, and an H200 needs some 200 for its tensor cores to be what bounds a matrix product (990 TFLOP/s over 4.8 TB/s)":
    "没有任何测量说明 tensor core 时，上限低到 decode 填不满它们；每生成一个 token 有四个 prompt token 时，一步有 160 个 token，而 H200 约需 200 个，矩阵乘法才受 tensor core 限制（990 TFLOP/s 比 4.8 TB/s）",
  "between two steps a finished request leaves its slot empty for a moment": "两步之间，完成的请求会让其名额空一会儿",
  "arrivals exceed completions by a tenth (1.5 times in the overload recording)": "到达比完成多十分之一（过载的录制中为 1.5 倍）",
  "two requests in ten seconds; less is noise": "十秒内两个请求；更少只是噪声",
  "a queue that stood at every poll": "每次轮询队列都在",
  "the card is full (0.77 in the overload recording); with room left the cap or the cache is at fault, not the load":
    "卡已满（过载的录制中为 0.77）；尚有余地时，问题在上限或 cache，而不是负载",
  "a fifth of the step without a kernel": "五分之一的 step 没有 kernel",
  "a quarter of the runnable time spent waiting; 0.64 in the starved recording, at most 0.07 in all others":
    "可运行时间的四分之一在等待；缺 CPU 的录制中为 0.64，其他最多 0.07",
  "where nothing tells what the GPU does, most periods; 1.0 where compiling grammars cost nine tenths of the speed (vLLM issue 49460), 0.68 where eight threads on four CPUs cost nearly all of it (Ollama issue 17916)":
    "没有任何测量说明 GPU 在做什么时，大多数周期；编译语法损失十分之九速度的案例中为 1.0（vLLM issue 49460），四个 CPU 上八个线程损失几乎全部速度的案例中为 0.68（Ollama issue 17916）",
  "a tenth of the 100 ms periods; each one stops every thread of the pod, the step's included": "十分之一的 100 ms 周期；每次都会暂停 pod 的所有线程，包括 step 的线程",
  "half of the step without a kernel": "一半的 step 没有 kernel",
  "the cache is not what they wait for": "它们等待的不是 cache",
  "more than half of a stream's time lies in the long gaps (3.2 in the starved recording, at most 1.9 in healthy ones)":
    "一个流的时间有一半以上在长间隔中（缺 CPU 的录制中为 3.2，健康的最多 1.9）",
  "the long gaps are a class of their own (47 in the starved recording, 3 to 10 in healthy ones)": "长间隔自成一类（缺 CPU 的录制中为 47，健康的为 3 到 10）",
  "and long enough to be felt": "且长到能被感觉到",
  "or every step carries a prompt chunk, so that the usual gap itself is long (1.35 s in FreeToken 483)":
    "或者每步都带一块 prompt，使通常的间隔本身就长（FreeToken 483 中为 1.35 s）",
  "prompt tokens computed outnumber generated ones, or the gaps between them, by four (27 in the starved recording)":
    "计算的 prompt token 是生成的 token（或其间隔数）的四倍以上（缺 CPU 的录制中为 27）",
  "someone else decodes": "有其他请求在 decode",
  "enough gaps to speak of a distribution": "间隔数足以谈论分布",
  "requests run or wait at every poll of the window; those that wait for an adapter, a grammar or a transfer are another matter":
    "窗口内每次轮询都有请求在运行或等待；等待 adapter、语法或传输的另当别论",
  "not one token, of a prompt or of an answer (vLLM issue 17972)": "没有一个 token，无论 prompt 的还是答案的（vLLM issue 17972）",
  "and no kernel works on a long prompt or spins in a collective (where nothing runs by NVML's utilization); a GPU that works for a twentieth of the time counts as working everywhere here":
    "也没有 kernel 在处理长 prompt 或在集合通信中自旋（无法测量时看 NVML 的 utilization）；此处工作二十分之一时间的 GPU 即算在工作",
  "most of the CPUs that the process may use are on another NUMA node than its GPU": "进程可用的 CPU 大多与其 GPU 不在同一 NUMA 节点",
  "some thread owns the interpreter lock in nine of ten samples; 0.47 at 16 clients on two CPU cores (py-spy, vLLM 0.32)":
    "十次采样有九次某个线程持有解释器锁；两个 CPU 核上 16 个客户端时为 0.47（py-spy，vLLM 0.32）",
  "the event loop answers nobody for half of the time": "事件循环有一半时间对谁都不应答",
  "half as slow again as a day ago at the same hour": "比一天前同一时刻慢一半",
  "with no larger batch": "而 batch 没有变大",
  "arrivals exceed completions by a tenth": "到达比完成多十分之一",
  "a queue worth half a batch; shorter ones come and go": "相当于半个 batch 的队列；更短的时有时无",
  "below a third of the link's usable speed other resources bound the step (tp2 prefill of an 8B model reads 0.09)":
    "低于链路可用速度的三分之一时，是其他资源限制一步（8B 模型的 tp2 prefill 读 0.09）",
  "more than one pipeline stage": "多于一个流水线级",
  "the GPUs look busy because a receive kernel spins (0.82 in the pp2 recording)": "GPU 看似繁忙，因为接收 kernel 在自旋（pp2 录制中为 0.82）",
  "yet their SMs are not (0.46 there; decode of the same model on one GPU 0.68 to 0.83)": "但其 SM 并不忙（那里为 0.46；同一模型在单 GPU 上 decode 为 0.68 到 0.83）",
  "or nothing spins, and the GPUs run kernels for less than sm_active of the time (0.2 to 0.5 each on eight stages, vLLM issue 11500)":
    "或者没有自旋，而 GPU 运行 kernel 的时间只占不到 sm_active（八级时各为 0.2 到 0.5，vLLM issue 11500）",
  "although requests run at every poll": "尽管每次轮询都有请求在运行",
  "ranks of one group differ by 0.00 to 0.04 when healthy and by 0.36 with a loaded neighbour (H200 tp2 recordings)":
    "健康时同组 rank 相差 0.00 到 0.04，邻居受载时相差 0.36（H200 tp2 录制）",
  "the faster rank spins in its collective, so both look busy": "较快的 rank 在集合通信中自旋，所以两者看起来都忙",
  "pipeline stages may differ by design": "流水线各级本来就可以不同",
  "the group works": "该组在工作",
  "one of its GPUs does not run a kernel, by the counters or by NVML's utilization; the waiting rank of a tensor-parallel group spins at 0.8 and more":
    "其中一个 GPU 没有运行 kernel（按计数器或 NVML 的 utilization）；tensor 并行组中等待的 rank 会以 0.8 以上自旋",
  "a queue on one rank that stood through the window": "一个 rank 上的队列贯穿整个窗口",
  "three times that of the least loaded rank; a fair balancer keeps ranks within a few requests (dp2 capture)":
    "是负载最低的 rank 的三倍；公平的均衡器使各 rank 只差几个请求（dp2 capture）",
  "several data-parallel ranks": "有多个数据并行 rank",
  "several GPUs serve one rank": "多个 GPU 服务一个 rank",
  "2 GB/s into a GPU; engines on one GPU read 0.02 to 0.1 GB/s over PCIe (H200 recordings), so this is collective traffic":
    "进入一个 GPU 2 GB/s；单 GPU 的引擎经 PCIe 读 0.02 到 0.1 GB/s（H200 录制），所以这是集合通信的流量",
  "nothing to speak of goes over NVLink": "NVLink 上几乎没有流量",
  "own choice; a tenth of the time with nothing but collectives on the rank that waits least, since the others also wait for it (0.038 in decode of an 8B model on two H200s)":
    "自行选定；等待最少的 rank 也有十分之一的时间只在做集合通信，因为其他 rank 也在等它（两张 H200 上 8B 模型 decode 时为 0.038）",
  "own choice; one rank waits a tenth of the time longer than another, where equal ranks wait for each other in turn":
    "自行选定；一个 rank 比另一个多等十分之一的时间，而相同的 rank 会轮流互等",
  "below it the live counters see no straggler (healthy groups 0.00 to 0.04, with a loaded neighbour 0.36; H200 tp2 recordings); a profiler that begins later on one rank makes a straggler of its own":
    "低于此值，实时计数器看不到掉队者（健康的组为 0.00 到 0.04，邻居受载时为 0.36；H200 tp2 录制）；某个 rank 上较晚开始的 profiler 会自己造出掉队者",
  "s stages with m micro-batches idle for (s - 1) / (m + s - 1) of the time; two stages with the four micro-batches that fill them reach 0.2":
    "s 级、m 个 micro-batch 的空闲为 (s - 1) / (m + s - 1)；两级加上能填满它们的四个 micro-batch 为 0.2",
  "above it the live counters see no bubble (0.46 in the pp2 recording, one GPU 0.68 to 0.83)": "高于此值，实时计数器看不到空泡（pp2 录制中为 0.46，单 GPU 为 0.68 到 0.83）",
  "with k = 4 drafts this is 0.6 tokens won a step at the very most; n-gram drafting at 0.02 lost a tenth, a draft model at 0 three quarters of the tokens (H200 recordings); no drafter in the cases gains below 0.2":
    "k = 4 个草稿时每步最多赢得 0.6 个 token；0.02 的 n-gram 草稿损失十分之一，0 的草稿模型损失四分之三的 token（H200 录制）；案例中没有草稿器在 0.2 以下获益",
  "drafting is a real part of the work": "草稿确实占工作的一部分",
  "a draft token that is verified costs as much compute as a real one once the step is compute-bound": "一旦一步受算力限制，验证一个草稿 token 的计算量与真正的 token 相同",
  "decode leaves the memory-bound regime above some tens of sequences (64 to 256 on an H200 with an 8B model)":
    "超过几十个序列后 decode 就离开受显存限制的区间（H200 上 8B 模型为 64 到 256）",
  "half of the achievable tensor throughput goes into verification": "可达 tensor 吞吐的一半用于验证",
  "more than a third of the step without a kernel; 0.49 where drafting is host-bound, at most 0.29 where speculation pays (H200 recordings)":
    "三分之一以上的 step 没有 kernel；草稿受主机限制时为 0.49，投机划算时最多 0.29（H200 录制）",
  "host time of a step is 0.7 to 1.9 ms without speculation, 12 to 14 ms with a draft model": "没有投机解码时一步的主机时间为 0.7 到 1.9 ms，用草稿模型时为 12 到 14 ms",
  "scheduling and output handling cost about 0.01 ms a sequence; three times that": "调度与输出处理每序列约 0.01 ms；取其三倍",
  "the engine core's thread is full": "engine core 的线程已满",
  "one step in twenty of a request has a draft; 0.004 in the recording of that, 0.9 and more where drafting works":
    "一个请求的二十步中有一步有草稿；相应录制中为 0.004，草稿起作用时 0.9 以上",
  "enough decoding to judge": "decode 多到足以判断",
  "the last position is accepted in less than one of twenty drafts": "最后一个位置的草稿被接受不到二十分之一",
  "enough drafts to judge": "草稿多到足以判断",
  "verification is not free any more": "验证不再是免费的",
  "four tenths of yesterday's acceptance at the same hour are gone": "与昨天同一时刻相比，接受率少了十分之四",
  "a third of a request's time outside the engine; 0.99 and 0.70 in the two recordings of that, at most 0.12 in others":
    "请求时间的三分之一在引擎之外；两个相应录制中为 0.99 和 0.70，其他最多 0.12",
  "an event loop is one thread; at 0.85 cores it has no time left": "事件循环只有一个线程；到 0.85 核就没有余力",
  "a fifth of a request's time outside the engine; 0.99 and 0.70 in the two recordings of that, at most 0.12 in others":
    "请求时间的五分之一在引擎之外；两个相应录制中为 0.99 和 0.70，其他最多 0.12",
  "a timer this late on average; every stream's next token waits as long (12 ms with 16 streams of vLLM 0.32 on two overloaded cores)":
    "定时器平均迟到这么久；每个流的下一个 token 也等这么久（两个过载的核上，vLLM 0.32 的 16 个流为 12 ms）",
  "or queue and prefill account for less than half of the time to the first token": "或者排队与 prefill 占首 token 时间不到一半",
  "which is long enough to be felt": "长到能被感觉到",
  "while nobody waits in the engine, so that the two do not speak of different moments of a growing queue": "而引擎中没有人等待，使两者说的不是增长中队列的不同时刻",
  "a fifth of a request's time outside the engine (0.12 at most in healthy recordings)": "请求时间的五分之一在引擎之外（健康的录制中最多 0.12）",
  "enough streams to speak of a mean": "流的数量足以谈论均值",
  "by Little's law as many streams are between two tokens as rate times gap, and no more can be than run or wait (1.08 times at most in the H200 recordings); 4.6 times where detokenising 1024 streams made 39 ms into 180 (SGLang issue 23393)":
    "按 Little 定律，处于两个 token 之间的流数为速率乘间隔，不可能多于在运行或等待的（H200 录制中最多 1.08 倍）；detokenize 1024 个流使 39 ms 变成 180 时为 4.6 倍（SGLang issue 23393）",
  "a quarter of the requests that got a first token never finish; 0.59 in the recording and 0.48 in the capture of aborts, 0.03 elsewhere":
    "得到首个 token 的请求有四分之一没有完成；中止的录制中为 0.59，capture 中为 0.48，其他为 0.03",
  "enough requests to speak of a share": "请求数足以谈论比例",
  "one request in twenty; an availability objective of 0.99 is spent five times over": "每二十个请求一个；0.99 的可用性目标已花掉五倍",
  "one request in five; 0.4 in the capture of prompts that are too long": "每五个请求一个；prompt 过长的 capture 中为 0.4",
  "more than a stray one": "不只是偶然一个",
  "one in twenty of the requests that finish": "完成的请求中每二十个一个",
  "half as many answers again as finished requests": "应答数比完成的请求多一半",
  "and failures among them": "且其中有失败",
  "some request was held back at every poll of the window": "窗口内每次轮询都有请求被搁置",
  "and not few (in the two-adapter capture half of the requests wait for the one slot)": "且不在少数（双 adapter 的 capture 中，一半的请求在等唯一的槽位）",
  "long enough to be felt": "长到能被感觉到",
  "most of it is waiting to be scheduled": "其中大部分是在等待调度",
  "while the GPU idles most of the time": "而 GPU 大部分时间空闲",
  "and the cache is half empty": "且 cache 有一半空闲",
  "and the engine's own thread is not full either": "且引擎自己的线程也未满",
  "the objective is meant for nineteen of twenty requests": "目标针对二十个请求中的十九个",
  "enough requests to speak of a quantile": "请求数足以谈论分位数",
  "the objective is meant for nineteen of twenty gaps": "目标针对二十个间隔中的十九个",
  "enough gaps to speak of a quantile": "间隔数足以谈论分位数",
};
