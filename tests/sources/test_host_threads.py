"""The threads of the engines' processes: wait, the busiest one, and how many files stay open for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heptascope.model import Reason
from heptascope.sources.host.threads import OpenFiles
from support.host_readings import PROCESS, reasons, source, values
from support.procfs import FakeRoot


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    """Return an empty machine."""
    return FakeRoot(tmp_path)


def test_threads_are_summed_and_the_busiest_is_told_per_interval(fake: FakeRoot) -> None:
    """Run-queue wait sums all threads; the busiest-thread counter grows by the largest rise of any one thread."""
    fake.vllm()
    host = source(fake)
    first = host.read(100.0)
    fake.process(22, "VLLM::EngineCor", ppid=20, threads={22: (400_000_010, 1_000_000_002), 522: (900_000_020, 500_000_003)}, user=2.0)
    second = host.read(101.0)
    wait, busiest = PROCESS + "run_queue_seconds_total", PROCESS + "busiest_thread_cpu_seconds_total"
    assert 1.5 == pytest.approx(values(second, wait)["engine_core"] - values(first, wait)["engine_core"])
    assert 0.0 == values(first, busiest)["engine_core"]
    assert 0.9 == pytest.approx(values(second, busiest)["engine_core"])
    assert 1.0 == pytest.approx(values(second, PROCESS + "cpu_seconds_total")["engine_core"] - 1.5)
    assert 2.0 == values(second, PROCESS + "threads")["engine_core"]
    assert 3.0 == values(second, PROCESS + "allowed_cpus")["engine_core"]


def test_a_thread_that_ends_does_not_lower_the_wait(fake: FakeRoot) -> None:
    """The sum over living threads falls when one ends; the counter must not, or a rate would take it for a restart."""
    fake.vllm()
    host = source(fake)
    before = values(host.read(100.0), PROCESS + "run_queue_seconds_total")["engine_core"]
    (fake.root / "proc/22/task/522/schedstat").unlink()
    (fake.root / "proc/22/task/522").rmdir()
    fake.process(22, "VLLM::EngineCor", ppid=20, threads={22: (10, 2)})
    assert before == values(host.read(101.0), PROCESS + "run_queue_seconds_total")["engine_core"]


def test_the_busiest_thread_has_a_name(fake: FakeRoot) -> None:
    """Every tenth read tells which thread ran most since the look before; until the second look nothing is told."""
    fake.vllm()
    for tid, name in ((22, "VLLM::EngineCor"), (522, "output_sender")):
        fake.write(f"proc/22/task/{tid}/comm", f"{name}\n")
    host, signal = source(fake), PROCESS + "busiest_thread_info"
    told: list[set[tuple[str, str]]] = []
    for second in range(22):
        main, other = (second * 10**8, second * 9 * 10**7) if second < 12 else (12 * 10**8, second * 9 * 10**7)
        fake.process(22, "VLLM::EngineCor", ppid=20, threads={22: (main, 2), 522: (other, 3)})
        found = [dict(s.labels) for s in host.read(100.0 + second).samples if s.name == signal]
        told.append({(row["thread"], row["tid"]) for row in found if row["role"] == "engine_core"})
    assert [set(), {("VLLM::EngineCor", "22")}, {("output_sender", "522")}] == [told[9], told[10], told[20]]
    assert told[10] == told[19]


def test_more_threads_than_files_may_stay_open_are_still_all_read(fake: FakeRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit of open files, the rest are opened for each read: the sums are the same."""
    monkeypatch.setattr(OpenFiles.__init__, "__defaults__", (1,))
    fake.vllm()
    host = source(fake)
    open_before = len(os.listdir("/proc/self/fd"))
    host.read(1.0)
    fake.process(22, "VLLM::EngineCor", ppid=20, threads={22: (10, 1_000_000_002), 522: (20, 2_000_000_003)})
    wait = values(host.read(2.0), PROCESS + "run_queue_seconds_total")["engine_core"]
    assert 3.0 == pytest.approx(wait, abs=1e-6)
    assert open_before + 1 == len(os.listdir("/proc/self/fd"))


def test_kernels_without_schedstat_give_the_reason(fake: FakeRoot) -> None:
    """Without schedstat the wait and the busiest thread are not supported, CPU time stays."""
    fake.vllm()
    for path in fake.root.glob("proc/*/task/*/schedstat"):
        path.unlink()
    reading = source(fake).read(1.0)
    assert Reason.NOT_SUPPORTED == reasons(reading)[PROCESS + "run_queue_seconds_total"]
    assert {} == values(reading, PROCESS + "run_queue_seconds_total")
    assert 1.5 == values(reading, PROCESS + "cpu_seconds_total")["engine_core"]
