"""The host source: processes, control groups and the machine, from a fixture's files and from this machine's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heptascope.model import Reason, labels
from heptascope.signals.schema import SCHEMA
from heptascope.sources.base import SourceError
from heptascope.sources.host.cgroup import CGROUP_SIGNALS
from heptascope.sources.host.discovery import LOOKUP_SECONDS
from heptascope.sources.host.process import PROCESS_SIGNALS, SCAN_SECONDS, visible_arguments
from heptascope.sources.host.source import HostSource
from support.host_readings import PROCESS, infos, reasons, source, values
from support.procfs import FakeRoot, put_group

CGROUP = "heptascope_host_cgroup_"


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    """Return an empty machine."""
    return FakeRoot(tmp_path)


def test_the_machine_is_read_in_base_units(fake: FakeRoot) -> None:
    """Processors, load, CPU time and pressure come out in cores, seconds and nothing else."""
    reading = source(fake).read(100.0)
    assert {"": 4.0} == values(reading, "heptascope_host_cpus")
    assert {"": 1.5} == values(reading, "heptascope_host_load1")
    assert {"busy": 15.0, "idle": 85.0} == values(reading, "heptascope_host_cpu_seconds_total", "mode")
    assert {"cpu": 2.0, "memory": 2.0, "io": 2.0} == values(reading, "heptascope_host_pressure_waiting_seconds_total", "resource")


def test_a_kernel_without_pressure_files_gives_a_reason_and_no_zero(fake: FakeRoot) -> None:
    """Absent pressure is not supported, and no series."""
    for resource in ("cpu", "memory", "io"):
        (fake.root / f"proc/pressure/{resource}").unlink()
    reading = source(fake).read(100.0)
    assert {} == values(reading, "heptascope_host_pressure_waiting_seconds_total", "resource")
    assert Reason.NOT_SUPPORTED == reasons(reading)["heptascope_host_pressure_waiting_seconds_total"]


def test_without_proc_the_source_is_down(tmp_path: Path) -> None:
    """A machine that is no Linux is one clear failure."""
    with pytest.raises(SourceError, match="need Linux"):
        HostSource(tuple, root=str(tmp_path)).read(1.0)


def test_processes_get_engine_role_and_a_name_by_rank(fake: FakeRoot) -> None:
    """The listener is the API server, its descendants are told by title, workers are numbered by rank and not by pid."""
    fake.vllm(workers=2)
    fake.process(7, "bash")
    assert {
        "20": ("vllm", "api_server", "api_server"),
        "21": ("vllm", "other", "other"),
        "22": ("vllm", "engine_core", "engine_core"),
        "29": ("vllm", "worker", "worker"),
        "28": ("vllm", "worker", "worker-1"),
    } == infos(source(fake).read(100.0))


def test_a_restarted_process_takes_over_the_name_with_a_visible_reset(fake: FakeRoot) -> None:
    """A new engine core under the same server is found at once, under the same labels, with its own smaller counters."""
    fake.vllm()
    host = source(fake)
    host.read(100.0)
    fake.end(22)
    fake.process(60, "VLLM::EngineCor", ppid=20, user=0.1, start=900)
    reading = host.read(101.0)
    assert ("vllm", "engine_core", "engine_core") == infos(reading)["60"]
    assert 0.6 == pytest.approx(values(reading, PROCESS + "cpu_seconds_total")["engine_core"])


def test_a_restarted_server_is_found_again(fake: FakeRoot) -> None:
    """When the whole server is replaced, the next look finds it by its port."""
    fake.vllm(first=20)
    host = source(fake)
    host.read(100.0)
    for pid in (20, 21, 22):
        fake.end(pid)
    fake.vllm(first=70)
    assert {"70", "71", "72"} == set(infos(host.read(101.0)))


def test_a_process_that_reuses_a_pid_is_another_process(fake: FakeRoot) -> None:
    """Start times tell an engine core from a stranger with its old pid."""
    fake.vllm()
    host = source(fake)
    host.read(100.0)
    fake.end(22)
    fake.process(22, "sleep", ppid=1, start=999)
    assert "22" not in infos(host.read(101.0))


def test_a_process_that_gets_its_title_late_changes_its_role(fake: FakeRoot) -> None:
    """A core that was seen before it was titled is the engine core from the next look on."""
    fake.vllm()
    fake.process(22, "python3", ppid=20)
    host = source(fake)
    assert "other" == infos(host.read(0.0))["22"][1]
    fake.process(22, "VLLM::EngineCor", ppid=20)
    assert ("vllm", "engine_core", "engine_core") == infos(host.read(SCAN_SECONDS))["22"]


def test_the_processes_of_sglang_have_their_roles(fake: FakeRoot) -> None:
    """A scheduler for each GPU, in the order of the ranks in their titles, and the detokenizer beside them."""
    fake.process(40, "python3", command="python3 -m sglang.launch_server --port 30000")
    fake.process(41, "sglang::schedul", ppid=40, command="sglang::scheduler_TP1")
    fake.process(42, "sglang::schedul", ppid=40, command="sglang::scheduler_TP0")
    fake.process(43, "sglang::detoken", ppid=40, command="sglang::detokenizer")
    fake.listen(30000, 40)
    assert {
        "40": ("sglang", "api_server", "api_server"),
        "41": ("sglang", "engine_core", "engine_core-1"),
        "42": ("sglang", "engine_core", "engine_core"),
        "43": ("sglang", "other", "other"),
    } == infos(source(fake, ("sglang", 30000)).read(1.0))


def test_two_engines_are_kept_apart(fake: FakeRoot) -> None:
    """Each engine gets the processes behind its own port."""
    fake.vllm(8000, first=20)
    fake.vllm(8001, first=40)
    found = infos(source(fake, ("a", 8000), ("b", 8001)).read(1.0))
    assert ("a", "engine_core", "engine_core") == found["22"]
    assert ("b", "engine_core", "engine_core") == found["42"]


def test_hidden_sockets_leave_the_command_line_to_tell(fake: FakeRoot) -> None:
    """Where the server's open files are not ours to see, its `--port` says which engine it is."""
    fake.vllm(8000, first=20)
    fake.vllm(8001, first=40)
    for pid in (20, 40):
        for link in (fake.root / f"proc/{pid}/fd").iterdir():
            link.unlink()
    found = infos(source(fake, ("a", 8000), ("b", 8001)).read(1.0))
    assert ("a", "api_server", "api_server") == found["20"]
    assert ("b", "api_server", "api_server") == found["40"]


def test_engines_that_cannot_be_told_apart_are_ambiguous(fake: FakeRoot) -> None:
    """A server behind a mapped port is reported without an engine, and the engines say why they have no processes."""
    fake.vllm(9999, first=20)
    fake.elsewhere()
    reading = source(fake, ("a", 8000), ("b", 8001)).read(1.0)
    assert ("", "engine_core", "engine_core") == infos(reading)["22"]
    assert {Reason.AMBIGUOUS} == {m.reason for m in reading.missing if m.signal in PROCESS_SIGNALS}


def test_a_lone_engine_behind_a_mapped_port_is_the_lone_server(fake: FakeRoot) -> None:
    """One engine, one server: the port may differ (a mapped port), they still belong together."""
    fake.vllm(9999)
    fake.elsewhere()
    assert "vllm" == infos(source(fake, ("vllm", 8000)).read(1.0))["22"][0]


def test_a_server_at_a_port_of_its_own_is_no_other_engine(fake: FakeRoot) -> None:
    """A vLLM that listens here at the port that it names is not the lone engine at another port, whose processes are then not here."""
    fake.vllm(9999)
    reading = source(fake, ("vllm", 8000)).read(1.0)
    assert ("", "engine_core", "engine_core") == infos(reading)["22"]
    assert {Reason.SOURCE_DOWN} == {m.reason for m in reading.missing if m.signal in PROCESS_SIGNALS}


def test_a_sidecar_without_the_process_namespace_says_what_to_set(fake: FakeRoot) -> None:
    """The port listens, nobody is in sight: every process and control-group signal names shareProcessNamespace."""
    fake.listen(8000, table="tcp6")
    reading = source(fake).read(1.0)
    about = [m for m in reading.missing if m.signal in (*PROCESS_SIGNALS, *CGROUP_SIGNALS)]
    assert {*PROCESS_SIGNALS, *CGROUP_SIGNALS} == {m.signal for m in about}
    assert {Reason.NO_PERMISSION} == {m.reason for m in about}
    assert {labels(engine="vllm")} == {m.labels for m in about}
    assert all("shareProcessNamespace" in m.detail for m in about)


def test_an_engine_that_is_not_up_is_down_and_found_later(fake: FakeRoot) -> None:
    """Nothing listens: source_down; once the server is there it is found at the next look."""
    host = source(fake)
    assert Reason.SOURCE_DOWN == reasons(host.read(0.0))[PROCESS + "info"]
    fake.vllm()
    assert {} == infos(host.read(1.0))
    assert {"20", "21", "22"} == set(infos(host.read(LOOKUP_SECONDS)))


def test_without_engines_there_is_one_reason(fake: FakeRoot) -> None:
    """No engine known: no_source for processes and control groups."""
    reading = HostSource(tuple, root=str(fake.root)).read(1.0)
    assert Reason.NO_SOURCE == reasons(reading)[PROCESS + "info"]
    assert Reason.NO_SOURCE == reasons(reading)[CGROUP + "cpu_quota"]


def test_a_busy_neighbour_is_shown_and_an_idle_one_is_not(fake: FakeRoot) -> None:
    """A process outside the engines appears while it uses a quarter core or more."""
    fake.vllm()
    for pid in (5, 6):
        fake.process(pid, "python3", command="python3 job.py --password hunter2", user=1.0)
    host = source(fake)
    assert "5" not in infos(host.read(0.0))
    fake.process(5, "python3", command="python3 job.py --password hunter2", user=1.0 + 0.9 * SCAN_SECONDS)
    reading = host.read(SCAN_SECONDS)
    assert ("", "other", "other") == infos(reading)["5"]
    assert "6" not in infos(reading)
    assert "hunter2" not in str(reading.raw)


def test_several_api_servers_leave_the_launcher_as_other(fake: FakeRoot) -> None:
    """With titled API servers below it, the process that launched them only launches."""
    fake.vllm()
    fake.process(30, "VLLM::APIServer", ppid=20, command="VLLM::APIServer_0")
    fake.process(31, "VLLM::APIServer", ppid=20, command="VLLM::APIServer_1")
    found = infos(source(fake).read(1.0))
    assert "other" == found["20"][1]
    assert {"api_server", "api_server-1"} == {found["30"][2], found["31"][2]}


def test_the_command_line_of_a_launcher_is_kept(fake: FakeRoot) -> None:
    """The launcher's arguments hold the start settings, whatever its role; a stranger's are none of ours."""
    fake.vllm()
    fake.process(30, "VLLM::APIServer", ppid=20, command="VLLM::APIServer_0")
    row = source(fake).read(1.0).raw
    assert row is not None
    assert ["serve", "m", "--port", "8000"] == next(p["cmdline"] for p in row["procs"] if p["pid"] == 20)[-4:]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("vllm --api-key abc def --port 1", "vllm --api-key *** *** --port 1"),
        ("vllm --hf-token=abc -x", "vllm --hf-token=*** -x"),
        ("env HF_TOKEN=abc vllm", "env HF_TOKEN=*** vllm"),
        ("vllm --max-num-batched-tokens 8192 --tokenizer t", "vllm --max-num-batched-tokens 8192 --tokenizer t"),
    ],
)
def test_command_lines_are_kept_without_secrets(words: str, shown: str) -> None:
    """Values of flags that sound like secrets are hidden, flags that only count tokens are not."""
    assert shown.split() == visible_arguments(words.split())


def test_every_signal_of_the_table_has_a_value_or_a_reason(fake: FakeRoot) -> None:
    """Names and labels are those of the signal table, and none of its host rows is passed over in silence."""
    fake.vllm()
    fake.process(22, "VLLM::EngineCor", ppid=20, cgroup="/engine")
    put_group(fake, "sys/fs/cgroup/engine", "100000 100000\n", "1000\n")
    reading = source(fake).read(1.0)
    given, absent = {s.name for s in reading.samples}, {m.signal for m in reading.missing}
    assert {name for name in SCHEMA if name.startswith("heptascope_host_")} == given | absent
    assert {*PROCESS_SIGNALS, *CGROUP_SIGNALS} - {PROCESS + "busiest_thread_info"} <= given
    assert Reason.IDLE is reasons(reading)[PROCESS + "busiest_thread_info"]
    for sample in reading.samples:
        assert set(dict(sample.labels)) <= set(SCHEMA[sample.name].labels), sample


SERVER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
for line in sys.stdin:
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    print("done", flush=True)
"""


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a real process that listens on a port and burns 0.2 s of CPU for each line that it is sent."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


def test_a_real_process_is_found_by_its_port_and_its_cpu_time_is_true(server: tuple[subprocess.Popen[str], int]) -> None:
    """On this machine: the listener is found, and 0.2 s of its work read as 0.2 s, by process and by thread."""
    process, port = server
    assert process.stdin is not None
    assert process.stdout is not None
    host = HostSource(lambda: (("mine", port),))
    before = host.read(1000.0)
    assert ("mine", "api_server", "api_server") == infos(before)[str(process.pid)]
    process.stdin.write("work\n")
    process.stdin.flush()
    assert "done\n" == process.stdout.readline()
    after = host.read(1001.0)
    cpu, busiest = PROCESS + "cpu_seconds_total", PROCESS + "busiest_thread_cpu_seconds_total"
    assert 0.2 == pytest.approx(values(after, cpu, "engine")["mine"] - values(before, cpu, "engine")["mine"], abs=0.03)
    assert 0.2 == pytest.approx(values(after, busiest, "engine")["mine"], abs=0.02)
    host.close()


def test_closing_gives_the_descriptors_back(server: tuple[subprocess.Popen[str], int]) -> None:
    """The thread files that are kept open are closed with the source."""
    _, port = server
    open_before = len(os.listdir("/proc/self/fd"))
    host = HostSource(lambda: (("mine", port),))
    host.read(1000.0)
    assert open_before < len(os.listdir("/proc/self/fd"))
    host.close()
    assert open_before == len(os.listdir("/proc/self/fd"))
