"""Plain words for the closed lists of the model: what a layer is, what a reason means."""

from __future__ import annotations

from heptascope.model import Layer, Reason

LAYER_WORDS: dict[Layer, str] = {
    Layer.HARDWARE: "The card and its links: memory bandwidth, compute, power, heat, PCIe.",
    Layer.OPERATOR: "The kernels and how fast they are launched.",
    Layer.MEMORY: "The KV cache: room, reuse, preemption.",
    Layer.SCHEDULING: "The engine's loop: batch, queue, and the host that drives it.",
    Layer.PARALLEL: "Several GPUs at one model: links and balance.",
    Layer.SPECULATIVE: "Drafted tokens: how many are accepted, and whether they pay.",
    Layer.APPLICATION: "What the user feels: latency, throughput, errors.",
}

REASON_WORDS: dict[Reason, str] = {
    Reason.NOT_SUPPORTED: "this card, driver or kernel does not have it",
    Reason.NO_PERMISSION: "it exists, but heptascope may not read it",
    Reason.PROFILER_LOCKED: "another profiler holds the counters",
    Reason.ENGINE: "no version of this engine exports it",
    Reason.ENGINE_TOO_OLD: "a newer version of this engine exports it",
    Reason.FLAG_OFF: "the engine needs a start flag to export it",
    Reason.NOT_CONFIGURED: "the feature behind it is off",
    Reason.SOURCE_DOWN: "its source cannot be read at present",
    Reason.NO_SOURCE: "no source of this kind is configured or was found",
    Reason.STALE: "its last value is too old to use",
    Reason.INVALID: "the value that came was impossible",
    Reason.AMBIGUOUS: "it cannot be told which engine or GPU it belongs to",
    Reason.IDLE: "it is defined only while there is work",
}
