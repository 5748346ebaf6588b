"""Signals beside work whose amount is known, one row of the truth table each. Run by `make test-gpu`; conftest.py says what that needs."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import pytest

from support.gpu_load import SKEW_BYTES, SKEW_MATMULS
from support.gpu_real import average, grown, integral, mean, opened, poll, table, working
from support.gpu_rows import value, values

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

BF16_FLOPS, FP8_FLOPS, FP32_FLOPS = 4096, 8192, 256
"""Dense operations per SM and clock on Hopper (architecture white paper)."""


class Case(NamedTuple):
    """Work of `kind` fills `what`, at most `per_clock` operations an SM and clock; NVML's clock may be `clock_above` the counted one."""

    kind: str
    what: str
    per_clock: float
    clock_above: float


CASES = (
    Case("matmul", "tensor_active", BF16_FLOPS, 0.15),
    Case("matmul_half", "tensor_active", BF16_FLOPS, 0.15),
    Case("fp8", "tensor_active", FP8_FLOPS, 0.15),
    Case("fp32", "fp32_active", FP32_FLOPS, 0.01),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_matrix_products(case: Case, results: dict[str, Any]) -> None:
    """Pipe active x SMs x operations a clock x SM clock is what the program did within 5 %, with the clock that an SM counts.

    Under tensor work that clock is a tenth below the one that NVML tells, which then makes the product an upper bound.
    """
    with opened() as (fast, slow), working(case.kind) as load:
        sms = int(dict(next(iter(values(slow.read(time.time()), "info"))))["sm_count"])
        readings, begin, end = poll(fast, 6.0, 1.0)
        measured, counted = load.rate(begin, end), load.clock(begin, end)
    capped = value(readings[-1], "throttle_seconds_total", reason="power_cap", gpu="0")
    capped -= value(readings[0], "throttle_seconds_total", reason="power_cap", gpu="0")
    clock, active = average(readings, "sm_clock_hertz"), mean(readings, case.what)
    found = active * sms * case.per_clock * counted
    results.setdefault("truth", {})[case.kind] = {
        **table(readings),
        case.what: round(active, 4),
        "measured_tflop_s": measured / 1e12,
        "found_tflop_s": found / 1e12,
        "error": found / measured - 1,
        "error_with_told_clock": found / measured * clock / counted - 1,
        "counted_sm_clock_mhz": counted / 1e6,
        "told_clock_above": clock / counted - 1,
        "power_cap_share": capped / (len(readings) - 1),
    }
    assert found == pytest.approx(measured, rel=0.05)
    assert -0.01 < clock / counted - 1 < case.clock_above


@pytest.mark.parametrize("kind", ["spin", "storm", "storm_graph"])
def test_one_sm(kind: str, results: dict[str, Any]) -> None:
    """SM active x SMs is the share of time in which a warp is on the one SM that works, however busy the card looks otherwise.

    Of kernels of one microsecond also their start and end count, some 5 % of it.
    """
    with opened() as (fast, slow), working(kind) as load:
        sms = int(dict(next(iter(values(slow.read(time.time()), "info"))))["sm_count"])
        readings, begin, end = poll(fast, 5.0, 1.0)
        asked = load.rate(begin, end) / average(readings, "sm_clock_hertz")
    found = mean(readings, "sm_active") * sms
    results.setdefault("truth", {})[kind] = {
        **table(readings),
        "sm_active": round(found / sms, 6),
        "measured_busy_sms": asked,
        "found_busy_sms": found,
        "error": found / asked - 1,
        "kernels_per_second": load.rate(begin, end) / (2_000_000 if kind == "spin" else 2_000),
    }
    assert -0.01 < found / asked - 1 < (0.01 if kind == "spin" else 0.1)


def test_a_copy_from_pageable_memory(results: dict[str, Any]) -> None:
    """The receive counter sees what crosses the link, pinned or not; the pageable copy itself is several times slower."""
    with opened() as (fast, _), working("h2d_pageable") as load:
        readings, begin, end = poll(fast, 5.0, 1.0)
        measured = load.rate(begin, end)
    seconds = integral(readings[1:], "sm_active")[1]
    received = grown(readings, "pcie_receive_bytes_total") / seconds
    results.setdefault("truth", {})["h2d_pageable"] = {
        **table(readings),
        "measured_gb_s": measured / 1e9,
        "found_gb_s": received / 1e9,
        "error": received / measured - 1,
    }
    assert 1.0 < received / measured < 1.15


def test_a_skewed_pair(results: dict[str, Any]) -> None:
    """Of two ranks the one with twice the work shows twice the tensor cycles, though both look busy; NVLink carries what the sum needs.

    Its share of time is more than twice as large: under the power cap its clock is lower.
    """
    with opened() as (fast, _):
        if len(values(fast.read(time.time()), "up")) < 2:
            results["skew"] = "needs two GPUs"
            return
        with working("skew") as load:
            readings, begin, end = poll(fast, 6.0, 1.0)
            steps = load.rate(begin, end)
    seconds = integral(readings[1:], "sm_active")[1]
    rows = {gpu: _rank(readings, gpu, seconds) for gpu in ("0", "1")}
    cycles = {gpu: row["tensor_active"] * row["sm_clock_mhz"] for gpu, row in rows.items()}
    measured = steps * SKEW_BYTES  # a sum over two ranks moves each byte once in each direction
    results["skew"] = {
        "steps_per_second": steps,
        "measured_tflop_s": [steps * SKEW_MATMULS * n * 2 * 4096**3 / 1e12 for n in (1, 2)],
        "measured_nvlink_gb_s": measured / 1e9,
        "gpus": rows,
        "tensor_time_ratio": rows["1"]["tensor_active"] / rows["0"]["tensor_active"],
        "tensor_cycle_ratio": cycles["1"] / cycles["0"],
    }
    assert cycles["1"] / cycles["0"] == pytest.approx(2.0, rel=0.1)
    assert min(row["graphics_engine_active"] for row in rows.values()) > 0.8
    for row in rows.values():
        assert 0.95 < row["nvlink_transmit_gb_s"] * 1e9 / measured < 1.3


def _rank(readings: list[Any], gpu: str, seconds: float) -> dict[str, float]:
    row = {}
    for what in ("graphics_engine_active", "sm_active", "tensor_active", "dram_active"):
        active, sampled = integral(readings, what, gpu)
        row[what] = round(active / sampled, 4)
    row["power_watts"] = round(sum(value(r, "power_watts", gpu=gpu) for r in readings) / len(readings), 1)
    row["sm_clock_mhz"] = round(sum(value(r, "sm_clock_hertz", gpu=gpu) for r in readings) / len(readings) / 1e6)
    for way in ("transmit", "receive"):
        row[f"nvlink_{way}_gb_s"] = round(grown(readings, f"nvlink_{way}_bytes_total", gpu) / seconds / 1e9, 2)
    return row
