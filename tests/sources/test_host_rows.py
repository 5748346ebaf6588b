"""Host rows of the recordings: who is who, and counters that stay counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.model import Missing, Reading, Reason, labels
from heptascope.signals.schema import SCHEMA
from heptascope.sources.host.cgroup import CGROUP_SIGNALS
from heptascope.sources.host.roles import rank_of, role_by_title, roles_by_company
from heptascope.sources.host.rows import INTERPRETER_SIGNALS, HostRows
from support.recordings import all_recordings, read_lines

PROCESS = "heptascope_host_process_"
RECORDINGS = all_recordings()
# processes that only shared the machine, seen in the recordings' own notes: load generators, hogs, compilers
STRANGERS = {
    "cpu-starved": {3035},
    "draft-good": {7076, 7077},
    "gpu-neighbour": {5356},
    "prefill-starve-heavy": {879, 883},
    "tp2-straggler": {2696},
}


def host_rows(path: Path) -> list[dict]:
    """Return the host rows of a recording."""
    return [row for row in read_lines(path / "gpu.jsonl.gz") if row["kind"] == "host"]


def series(readings: list[Reading], name: str, process: str) -> list[float]:
    """Return the values of one signal of one process over time."""
    return [s.value for r in readings for s in r.samples if s.name == name and ("process", process) in s.labels]


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_every_recording_has_the_right_roles_in_every_row(name: str) -> None:
    """One API server (dozens of threads), one engine core, the titled workers; all else is other."""
    for row in host_rows(RECORDINGS[name]):
        roles = roles_by_company(row["procs"])
        by_role = {role: [p for p in row["procs"] if roles[p["pid"]] == role] for role in set(roles.values())}
        core = next(p for p in row["procs"] if p["comm"] == "VLLM::EngineCor")
        assert [core] == by_role["engine_core"]
        assert [(True, "python3")] == [(p["threads"] in range(54, 103), p["comm"]) for p in by_role["api_server"]]
        assert sum(p["comm"].startswith("VLLM::Worker") for p in row["procs"]) == len(by_role.get("worker", []))
        helpers = {p["pid"] for p in row["procs"] if p["threads"] == 1 and p["pid"] == core["pid"] - 1}
        assert 1 == len(helpers)
        assert helpers <= {p["pid"] for p in by_role["other"]} <= helpers | STRANGERS.get(name, set())


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_every_counter_of_every_recording_only_rises(name: str) -> None:
    """CPU time, run-queue wait and machine time never fall, whatever threads and neighbours come and go."""
    reader = HostRows(["vllm"])
    last: dict[tuple, float] = {}
    for row in host_rows(RECORDINGS[name]):
        now = {(s.name, s.labels): s.value for s in reader.read(row).samples if s.name.endswith("_total")}
        assert [] == [key for key, value in now.items() if value < last.get(key, 0.0)]
        last = now


def test_cpu_starved_shows_the_wait_of_the_engine_core() -> None:
    """The recording whose engine waits for a CPU 0.75 s each second says so, in base units."""
    rows = host_rows(RECORDINGS["cpu-starved"])
    reader = HostRows(["vllm"])
    readings = [reader.read(row) for row in rows]
    steady = slice(12, 38)
    span = rows[37]["t"] - rows[12]["t"]
    waits = series(readings, PROCESS + "run_queue_seconds_total", "engine_core")[steady]
    assert 0.75 == pytest.approx((waits[-1] - waits[0]) / span, abs=0.05)
    assert {1.0} == set(series(readings, PROCESS + "allowed_cpus", "engine_core")[steady])


def test_strangers_have_no_engine_and_the_engine_has_its_name() -> None:
    """A neighbour must not be counted as the engine's own process."""
    reading = HostRows(["vllm"], cpus=16).read(host_rows(RECORDINGS["gpu-neighbour"])[0])
    info = {dict(s.labels)["pid"]: dict(s.labels) for s in reading.samples if s.name == PROCESS + "info"}
    assert "engine" not in info["5356"]
    assert {"engine": "vllm", "role": "engine_core", "process": "engine_core", "pid": "1767", "command": "VLLM::EngineCor"} == info["1767"]
    assert [16.0] == [s.value for s in reading.samples if s.name == "heptascope_host_cpus"]


def test_with_several_engines_a_row_without_names_is_not_guessed() -> None:
    """Rows that do not say whose processes they hold get no engine label when there are two engines."""
    reading = HostRows(["a", "b"]).read(host_rows(RECORDINGS["idle"])[0])
    assert [] == [s for s in reading.samples if "engine" in dict(s.labels)]


def test_a_name_stays_with_its_process_and_is_free_when_it_ends() -> None:
    """Names are kept while a process lives, whoever comes and goes beside it; the next one takes the free name."""
    row = host_rows(RECORDINGS["idle"])[0]
    one = {"pid": 9, "comm": "stress", "user_s": 1.0, "sys_s": 0.0, "threads": 1, "rss": 1, "wait_ns": 0}
    reader = HostRows(["vllm"])

    def names(*strangers: dict) -> dict[str, str]:
        read = reader.read(row | {"procs": [*strangers, *row["procs"]]})
        return {dict(s.labels)["pid"]: dict(s.labels)["process"] for s in read.samples if s.name == PROCESS + "info"}

    assert {"9": "other", "1766": "other-1"} == {pid: name for pid, name in names(one).items() if name.startswith("other")}
    assert ["other", "other-2"] == [names(one, one | {"pid": 5})[pid] for pid in ("9", "5")]
    assert "other-2" == names(one | {"pid": 5})["5"]
    assert "other" == names(one | {"pid": 5}, one | {"pid": 12})["12"]


def test_what_a_recording_does_not_hold_has_a_reason() -> None:
    """Rows of older tools lack pressure of memory and io, control groups, busiest threads: absent, and said."""
    reading = HostRows(["vllm"]).read(host_rows(RECORDINGS["idle"])[0])
    given, absent = {s.name for s in reading.samples}, {m.signal for m in reading.missing}
    assert {name for name in SCHEMA if name.startswith("heptascope_host_")} == given | absent
    assert {*CGROUP_SIGNALS, PROCESS + "busiest_thread_cpu_seconds_total"} <= absent
    assert {Reason.NO_SOURCE} == {m.reason for m in reading.missing if m.signal not in ("heptascope_host_cpus", *INTERPRETER_SIGNALS)}
    memory = Missing(
        "heptascope_host_pressure_waiting_seconds_total", Reason.NO_SOURCE, "the recording does not hold it", labels(resource="memory")
    )
    assert memory in reading.missing


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("VLLM::EngineCor", "engine_core"),
        ("VLLM::EngineCore_DP3", "engine_core"),
        ("VLLM::Worker_TP1", "worker"),
        ("VLLM::APIServer_2", "api_server"),
        ("VLLM::DPCoordinator", "other"),
        ("python3", None),
    ],
)
def test_titles_name_roles(title: str, role: str | None) -> None:
    """VLLM's process titles, whole or cut to the kernel's 15 bytes, name the role."""
    assert role == role_by_title(title)


def test_titles_name_ranks() -> None:
    """Data, pipeline and tensor rank are read from a whole title; a cut one has none."""
    assert (0, 1, 2) == rank_of("VLLM::Worker_PP1_TP2_EP2")
    assert (3, 0, 0) == rank_of("VLLM::EngineCore_DP3")
    assert (0, 0, 0) == rank_of("VLLM::Worker_TP")


def test_a_server_with_a_higher_pid_than_its_core_is_not_guessed() -> None:
    """When pids have wrapped round there is no evidence for any process being the API server."""
    row = [{"pid": 90, "comm": "python3", "threads": 54}, {"pid": 5, "comm": "VLLM::EngineCor", "threads": 100}]
    assert {90: "other", 5: "engine_core"} == roles_by_company(row)
