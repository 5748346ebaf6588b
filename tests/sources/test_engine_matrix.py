"""The matrix of signals and engines: each cell is delivered in the quality that it says, or has the reason that the engine lacks it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.engine.names import PREFIX
from heptascope.sources.engine.reader import EngineReader
from support.engine_pages import VLLM_032, capture, missing, quality, reason
from support.page_text import page
from support.whole_pages import DYNAMO, LMDEPLOY, READINGS, SGLANG, TGI, TRITON, TRTLLM

KINDS = ("vllm", "sglang", "trtllm-json", "trtllm", "triton", "tgi", "lmdeploy", "llamacpp", "dynamo")
"""The columns. A cell: N (counted by the engine), D (computed), A (stands in) or - (the engine has no such thing), then the first
release that has it where that is known, then what ours is if it is not what the letter says: e (exact), d (derived), a (approximate)."""

MATRIX = """
kv usage           | N        | N         | D      | N 1.2   | N      | A 2.4  | N          | A      | N
prefix hits        | N        | N 0.4.3   | D      | D 1.3 a | -      | -      | D 0.14 a   | D e    | D a
preemptions        | N        | N 0.4.9   | A      | A 1.3   | A      | -      | -          | -      | -
running            | N        | N         | N      | N 1.3   | N      | N      | N          | N      | N
waiting            | N        | N         | N      | N 1.3   | N      | N      | N          | N      | A
queue time         | N        | N 0.5.2   | D      | N       | A      | N      | N          | -      | A
steps              | A        | N 0.5.7   | N      | A       | N      | N      | -          | A      | -
tokens in steps    | D e      | N 0.5.7   | D      | A       | A      | A      | -          | D      | -
first token        | N        | N         | D      | N       | N      | A      | N          | -      | N
gap between tokens | N        | N         | -      | -       | -      | -      | N 0.10     | -      | N
time per token     | N        | N 0.5.22  | D a    | N       | -      | N      | N          | A      | -
whole request      | N        | N         | D      | N       | A      | N      | N          | -      | N
prompt tokens      | N        | N         | D e    | N 1.3 a | D a    | D a    | N          | N      | D
generated tokens   | N        | N         | -      | N 1.3 a | D a    | D a    | N          | N      | D
acceptance         | N        | N         | N      | N       | -      | -      | N 0.14     | N      | -
accepted length    | N        | N 0.5.13  | N      | A       | -      | A      | N 0.14     | N      | -
kv capacity        | N        | N         | D      | D 1.3   | D      | N 2.4  | -          | A      | D
most requests      | N        | -         | N      | N 1.3   | N      | -      | N          | N      | N
model              | N        | N         | N      | N       | N      | N      | N          | N      | N
ends               | N        | N 0.4.1   | N      | N       | N      | N      | N          | -      | N
stages             | -        | N 0.5.20  | A      | -       | -      | A      | -          | -      | -
estimated work     | N        | N 0.5.10  | -      | -       | -      | -      | -          | -      | -
kv transfer        | N        | N 0.5.10  | -      | -       | N      | -      | -          | -      | A
kv offload         | N        | N 0.5.18  | N      | N 1.3   | -      | -      | -          | -      | -
graph use          | -        | N 0.5.7   | -      | -       | -      | -      | -          | -      | -
"""

SIGNALS: dict[str, Sequence[str]] = {
    "kv usage": ("kv_cache_usage_ratio",),
    "prefix hits": ("prefix_cache_hit_tokens_total",),
    "preemptions": ("preemptions_total",),
    "running": ("requests_running",),
    "waiting": ("requests_waiting",),
    "queue time": ("queue_time_seconds", "latency_seconds_total/queue_time"),
    "steps": ("steps_total", "step_seconds"),
    "tokens in steps": ("step_tokens_total", "last_step_tokens"),
    "first token": ("time_to_first_token_seconds", "latency_seconds_total/time_to_first_token"),
    "gap between tokens": ("inter_token_latency_seconds",),
    "time per token": ("time_per_output_token_seconds", "latency_seconds_total/time_per_output_token"),
    "whole request": ("e2e_latency_seconds", "latency_seconds_total/e2e"),
    "prompt tokens": ("prompt_tokens_total",),
    "generated tokens": ("generation_tokens_total",),
    "acceptance": ("spec_draft_tokens_total", "spec_acceptance_ratio"),
    "accepted length": ("spec_drafts_total", "spec_accepted_length_tokens"),
    "kv capacity": ("kv_cache_capacity_tokens",),
    "most requests": ("sequence_limit", "config_info/kv_cache_max_concurrency"),
    "model": ("info",),
    "ends": ("requests_finished_total",),
    "stages": ("stage_seconds_total",),
    "estimated work": ("estimated_flops_total",),
    "kv transfer": ("kv_transfers_total",),
    "kv offload": ("kv_offload_load_bytes_total",),
    "graph use": ("graph_passes_total",),
}
"""What each row is with us: the first of these that there is; after a slash one value of its second label."""

QUALITIES = {"N": "e", "D": "d", "A": "a"}
LETTERS = {Quality.EXACT: "e", Quality.DERIVED: "d", Quality.APPROXIMATE: "a"}
LINES = [line.split("|") for line in MATRIX.split("\n") if line]
ROWS = {name.strip(): dict(zip(KINDS, map(str.split, cells), strict=True)) for name, *cells in LINES}
CELLS = [(row, kind) for row in ROWS for kind in KINDS]


def has(reading: Reading, signal: str) -> bool:
    """Return whether there is a value."""
    name, _, which = signal.partition("/")
    found = [series.labels for series in (*reading.samples, *reading.histograms) if series.name == PREFIX + name]
    return any(not which or which in dict(pairs).values() for pairs in found)


@pytest.mark.parametrize(("row", "kind"), CELLS, ids=[f"{row}-{kind}".replace(" ", "_") for row, kind in CELLS])
def test_the_newest_release_delivers_its_cell(row: str, kind: str) -> None:
    """With everything switched on there is the signal in the quality of the cell; where the engine has no such thing, that is said."""
    letter, *more = ROWS[row][kind]
    reading = READINGS[kind]()
    there = [signal for signal in SIGNALS[row] if has(reading, signal)]
    if letter == "-":
        assert ([], Reason.ENGINE) == (there, reason(reading, SIGNALS[row][0]))
        return
    assert there, reason(reading, SIGNALS[row][0])
    ours = next((word for word in more if word in "eda"), QUALITIES[letter])
    assert ours == LETTERS[quality(reading, there[0].partition("/")[0])]


BARE = {
    "sglang": 'gauge sglang:num_running_reqs{model_name="m"} 1',
    "trtllm": 'counter trtllm_request_success_total{model_name="m"} 1',
    "tgi": "counter tgi_request_count 1",
    "lmdeploy": 'gauge lmdeploy:num_requests_running{model_name="m",engine="0"} 1',
}
"""Pages that hold nothing else: what is then missing depends on the version that the engine states."""

FIRSTS = [(row, kind, word) for row, kind in CELLS if kind in BARE for word in ROWS[row][kind][1:] if word[0].isdigit()]


@pytest.mark.parametrize(("row", "kind", "first"), FIRSTS, ids=[f"{row}-{kind}".replace(" ", "_") for row, kind, _ in FIRSTS])
def test_older_releases_are_told_which_one_has_it(row: str, kind: str, first: str) -> None:
    """Just before its release the signal is missing since the engine is too old, and the detail names the release; from it on it is not."""
    *head, last = map(int, first.split("."))
    before = ".".join(map(str, [*head, last - 1]))
    told = []
    for version in (before, first):
        reading = EngineReader(None, kind).read_page(page(BARE[kind]), "", 1.0, version=version)
        told.append([gap for signal in SIGNALS[row] if (gap := missing(reading, signal.partition("/")[0])) is not None])
    assert (Reason.ENGINE_TOO_OLD, True) == (told[0][0].reason, told[0][0].detail.endswith(f" {first} or newer"))
    assert Reason.ENGINE_TOO_OLD not in {gap.reason for gap in told[1]}


PAGES = {"sglang": SGLANG, "trtllm": TRTLLM, "triton": TRITON, "tgi": TGI, "lmdeploy": LMDEPLOY, "dynamo": DYNAMO}
VERSIONS = {"vllm": "0.32.0", "sglang": "0.5.23", "trtllm": "1.3.0", "lmdeploy": "0.18.0"}


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", *PAGES])
@pytest.mark.parametrize("number", ["NaN", "+Inf", "-Inf", "-1", "1e308"])
def test_nothing_but_numbers_comes_through(kind: str, number: str) -> None:
    """Wherever such a value stands on a page, also where a signal is computed of several, none comes out of it; NaN would end a series."""
    captures = {"vllm": (VLLM_032, "steady_16"), "llamacpp": ("llamacpp-b11434", "spec_draft_high")}
    lines = (capture(*captures[kind]) if kind in captures else page(PAGES[kind])).splitlines()
    for turn in range(3):
        spoiled = [
            line.rpartition(" ")[0] + f" {number}" if place % 3 == turn and not line.startswith("#") else line
            for place, line in enumerate(lines)
        ]
        reading = EngineReader(None, kind).read_page("\n".join([*spoiled, ""]), "", 1.0, version=VERSIONS.get(kind, ""))
        assert [] == [sample for sample in reading.samples if not isfinite(sample.value) or sample.value < 0]
        assert [] == [one for one in reading.histograms if not all(isfinite(n) and n >= 0 for n in (*one.counts, one.sum))]
