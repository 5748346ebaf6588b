"""The NVML sources on the GPUs of this machine, beside known work. Run by `make test-gpu`; conftest.py says what that needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pynvml
import pytest

from heptascope.model import Reading, Reason
from heptascope.signals.schema import SCHEMA
from heptascope.sources.gpu.nvml import NvmlSlowSource, NvmlSource
from support.gpu_cost import TimedNvml, cost
from support.gpu_real import SUPPORT, average, grown, integral, mean, opened, poll, table, working
from support.gpu_rows import reasons, value, values

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


def test_a_first_reading_tells_everything(results: dict[str, Any]) -> None:
    """Each NVML signal of the table has a value or a reason after one read of each source; the listing is what `check` shows."""
    with opened() as (fast, slow):
        begin = time.perf_counter()
        one, two = fast.read(time.time()), slow.read(time.time())
        first_ms = 1000 * (time.perf_counter() - begin)
        header = fast.header
    made = {row.integral for row in SCHEMA.values()}
    made |= {name.replace("_seconds_total", "_sampled_seconds_total") for name in made}
    wanted = {n for n, row in SCHEMA.items() if n.startswith("heptascope_gpu_") and {"nvml", "gpm"} & set(row.suppliers)} - made
    wanted = {name for name in wanted if not name.startswith("heptascope_gpu_instance_")}  # without MIG there are none, nor a reason
    supplied = sorted({s.name for r in (one, two) for s in r.samples})
    absent = sorted({(m.signal, str(m.reason), m.detail) for r in (one, two) for m in r.missing})
    results["check"] = {"supplied": supplied, "missing": absent, "first_reads_ms": round(first_ms, 1)}
    results["header"] = {**(header or {}), "gpus": [{**g, "serial": "", "uuid": ""} for g in (header or {}).get("gpus", [])]}
    results["nvidia_ml_py"] = getattr(pynvml, "__version__", "")
    assert wanted - set(supplied) - {name for name, _, _ in absent} == set()
    assert "heptascope_gpu_dram_active_ratio" in supplied


def test_a_device_copy(results: dict[str, Any]) -> None:
    """DRAM active x peak bandwidth is the measured traffic of a device-to-device copy within 1.5 % (recordings: 0.5 to 1.2 %)."""
    with opened() as (fast, slow), working("copy") as load:
        constants = slow.read(time.time())
        readings, begin, end = poll(fast, 6.0, 1.0)
        measured = load.rate(begin, end)
    bus_bits = int(dict(next(iter(values(constants, "info"))))["memory_bus_bits"])
    peak = 2 * value(constants, "memory_clock_max_hertz", gpu="0") * bus_bits / 8
    found = mean(readings, "dram_active") * peak
    results["copy"] = {**table(readings), "measured_gb_s": measured / 1e9, "dram_x_peak_gb_s": found / 1e9, "error": found / measured - 1}
    assert found == pytest.approx(measured, rel=0.015)


def test_a_copy_from_the_host(results: dict[str, Any]) -> None:
    """The receive counter is the measured host-to-device traffic plus packet overhead (recordings: 7 to 9 %)."""
    with opened() as (fast, _), working("h2d") as load:
        readings, begin, end = poll(fast, 4.0, 1.0)
        measured = load.rate(begin, end)
    seconds = integral(readings[1:], "sm_active")[1]
    received, sent = (grown(readings, f"pcie_{way}_bytes_total") / seconds for way in ("receive", "transmit"))
    results["h2d"] = {
        "measured_gb_s": measured / 1e9, "receive_gb_s": received / 1e9, "transmit_gb_s": sent / 1e9, "overhead": received / measured - 1,
        **table(readings),
    }  # fmt: skip
    assert 1.0 < received / measured < 1.15
    assert sent < 0.2 * received


def test_the_busy_counter_is_the_integral_of_a_fast_poll(results: dict[str, Any]) -> None:
    """Under an uneven load the 1 Hz chain and a 100 ms poll integrate to the same busy time within 1 %."""
    out: dict[str, list[Reading]] = {"coarse": [], "fine": []}
    with opened(1.0) as (coarse, _), opened(0.1) as (fine, _), working("bursts"):
        coarse.read(time.time())
        fine.read(time.time())
        due = time.monotonic()
        for tick in range(1, 121):
            due += 0.1
            time.sleep(max(0.0, due - time.monotonic()))
            out["fine"].append(fine.read(time.time()))
            if tick % 10 == 0:
                out["coarse"].append(coarse.read(time.time()))
    found = {}
    for what in ("graphics_engine_active", "sm_active", "dram_active"):
        (slow_active, slow_time), (fast_active, fast_time) = integral(out["coarse"], what), integral(out["fine"], what)
        found[what] = {
            "active_1s": slow_active, "sampled_1s": slow_time, "active_100ms": fast_active, "sampled_100ms": fast_time,
            "difference": (slow_active / slow_time) / (fast_active / fast_time) - 1,
        }  # fmt: skip
    results["integral"] = {"reads_100ms": len(out["fine"]), **found}
    assert all(abs(row["difference"]) < 0.01 for row in found.values())


def test_energy_is_power_over_time(results: dict[str, Any]) -> None:
    """The energy counter grows by the mean power times the time within 5 %."""
    with opened() as (fast, slow), working("copy"):
        time.sleep(1.5)
        first = slow.read(time.time())
        readings = poll(fast, 4.0, 0.5)[0]
        last = slow.read(time.time())
    joules = value(last, "energy_joules_total", gpu="0") - value(first, "energy_joules_total", gpu="0")
    results["energy"] = {"watts_by_energy": joules / (last.t - first.t), "watts_by_power": average(readings, "power_watts")}
    assert joules / (last.t - first.t) == pytest.approx(average(readings, "power_watts"), rel=0.05)


def test_windows_of_100_ms_on_an_idle_card(results: dict[str, Any]) -> None:
    """On an idle card some short windows may have no number; nothing else is lost, and the windows still cover the time."""
    with opened(0.1) as (fast, _):
        readings, begin, end = poll(fast, 5.0, 0.1)
    gaps = [m for r in readings for m in r.missing if m.reason is Reason.INVALID]
    covered = integral(readings, "dram_active")[1]
    results["idle_100ms"] = {"reads": len(readings), "no_number": len(gaps), "covered": covered / (end - begin)}
    assert covered == pytest.approx(end - begin, abs=0.15)


def test_what_a_read_costs(results: dict[str, Any]) -> None:
    """A fast read of one GPU takes at most twice the time inside NVML; both sources take under 1.5 % of a core at 1 Hz, 4 % at 10 Hz."""
    timed = TimedNvml(pynvml)
    found: dict[str, Any] = {}
    for name, interval, reads in (("fast_1s", 1.0, 10), ("fast_100ms", 0.1, 100)):
        with opened(interval, timed, ("0",)) as (fast, _):
            measured, by_function = cost(fast, timed, reads, interval)
            found[name] = {**measured._asdict(), "by_function_ms": dict(by_function.most_common())}
    with opened(1.0, timed, ("0",)) as (fast, slow):
        fast.read(time.time())
        measured, by_function = cost(slow, timed, 10, 0.5)
        found["slow_5s"] = {
            **measured._replace(core_percent=measured.core_percent / 10)._asdict(),
            "by_function_ms": dict(by_function.most_common()),
        }
    for name, interval in (("untimed_fast_1s", 1.0), ("untimed_fast_100ms", 0.1)):
        with opened(interval, None, ("0",)) as (fast, _):
            found[name] = cost(fast, None, round(8 / interval), interval)[0]._asdict()
    results["cost"] = found
    assert found["untimed_fast_1s"]["processor_ms"] < 2 * found["fast_1s"]["nvml_wall_ms"]
    assert found["untimed_fast_1s"]["core_percent"] + found["slow_5s"]["core_percent"] < 1.5
    assert found["untimed_fast_100ms"]["core_percent"] + found["slow_5s"]["core_percent"] < 4.0


_AS_NOBODY = """
import json, os, time
import pynvml
from heptascope.sources.gpu.nvml import nvml_sources
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
fast, slow = nvml_sources()
readings = fast.read(time.time()), slow.read(time.time())
fast.close(); slow.close()
names = sorted({x.name for r in readings for x in r.samples})
print(json.dumps([names, sorted({(m.signal, m.reason) for r in readings for m in r.missing})]))
"""


def test_without_root(results: dict[str, Any]) -> None:
    """An ordinary user gets every signal that this process gets."""
    with opened() as (fast, slow):
        here = {s.name for reading in (fast.read(time.time()), slow.read(time.time())) for s in reading.samples}
    out = subprocess.run([sys.executable, "-c", _AS_NOBODY], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    supplied, absent = json.loads(out.stdout)
    results["without_root"] = {"root_here": os.getuid() == 0, "supplied": len(supplied), "missing": absent}
    assert here - set(supplied) == set()


def test_nvlink(results: dict[str, Any]) -> None:
    """A copy from GPU 0 to GPU 1 is transmit of the one and receive of the other; a lone card has no NVLink series, but a reason."""
    with opened() as (fast, slow):
        if len(values(fast.read(time.time()), "up")) > 1:
            results["p2p"] = _copy_between_gpus(fast, slow)
            assert results["p2p"]["transmit_0_gb_s"] == pytest.approx(results["p2p"]["receive_1_gb_s"], rel=0.02)
            assert 0.95 < results["p2p"]["transmit_0_gb_s"] / results["p2p"]["measured_gb_s"] < 1.3
        else:
            reading = fast.read(time.time())
            assert values(reading, "nvlink_transmit_bytes_total") == {}
            assert [m.reason for m in reasons(reading, "nvlink_transmit_bytes_total")] == [Reason.NOT_SUPPORTED]


def _copy_between_gpus(fast: NvmlSource, slow: NvmlSlowSource) -> dict[str, float]:
    with working("p2p") as load:
        speed = value(slow.read(time.time()), "nvlink_bandwidth_bytes_per_second", gpu="0")
        readings, begin, end = poll(fast, 5.0, 1.0)
        measured = load.rate(begin, end)
    seconds = integral(readings[1:], "sm_active")[1]
    moved = {
        "transmit_0": grown(readings, "nvlink_transmit_bytes_total", "0") / seconds,
        "receive_1": grown(readings, "nvlink_receive_bytes_total", "1") / seconds,
        "receive_0": grown(readings, "nvlink_receive_bytes_total", "0") / seconds,
        "link_bandwidth": speed,
        "measured": measured,
    }
    return {f"{name}_gb_s": rate / 1e9 for name, rate in moved.items()}


def test_an_xid_is_counted(results: dict[str, Any]) -> None:
    """A kernel that writes to a wrong address raises an XID (31, MMU fault), which is counted; GPM goes on after it."""
    with opened() as (fast, _):
        before = values(fast.read(time.time()), "xid_errors_total")
        ended = subprocess.run([sys.executable, str(SUPPORT / "gpu_fault.py")], capture_output=True, text=True, check=False)
        time.sleep(1.0)
        after_reading = fast.read(time.time())
        after = values(after_reading, "xid_errors_total")
        with working("copy"):
            active = mean(poll(fast, 3.0, 1.0)[0], "dram_active")
    codes = {dict(pairs)["xid"]: total - before.get(pairs, 0.0) for pairs, total in after.items() if total > before.get(pairs, 0.0)}
    results["xid"] = {"codes": codes, "dram_active_after": active, "cuda": ended.stdout.strip(), "stderr": ended.stderr[-200:]}
    assert codes
    assert active > 0.5


_THREADS = """
import threading, time
from heptascope.sources.gpu import gpm
from heptascope.sources.gpu.nvml import nvml_sources
gpm.SHORTEST_WINDOW_SECONDS = 0.0
fast, slow = nvml_sources()
other, _ = nvml_sources()
end, counts = time.time() + 8.0, {}
def loop(name, source):
    counts[name] = 0
    while time.time() < end:
        source.read(time.time())
        counts[name] += 1
threads = [threading.Thread(target=loop, args=item) for item in (("fast", fast), ("slow", slow), ("other", other))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
import json
print(json.dumps(counts))
"""


def test_sources_in_several_threads(results: dict[str, Any]) -> None:
    """Three sources at full speed in three threads do not bring NVML down: two threads inside GPM would (segmentation fault)."""
    with working("bursts"):
        out = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    results["threads"] = json.loads(out.stdout)
    assert min(results["threads"].values()) > 10
