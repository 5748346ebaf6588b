"""Control groups of both versions, and where processes may run against where their GPU sits."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.model import Reading, Reason
from heptascope.sources.host.numa import parse_cpus
from heptascope.sources.host.source import HostSource
from support.procfs import FakeRoot, put_group

CGROUP = "heptascope_host_cgroup_"
REMOTE = "heptascope_host_process_remote_cpu_ratio"


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    """Start with a machine of four CPUs and no process."""
    return FakeRoot(tmp_path)


def source(fake: FakeRoot) -> HostSource:
    """Return a host source for one vLLM on port 8000."""
    return HostSource(lambda: (("vllm", 8000),), root=str(fake.root))


def reasons(reading: Reading) -> dict[str, Reason]:
    """Return why signals are missing."""
    return {m.signal: m.reason for m in reading.missing}


def far(reading: Reading) -> dict[str, float]:
    """Return the share of far CPUs by process."""
    return {dict(s.labels)["process"]: s.value for s in reading.samples if s.name == REMOTE}


def cgroup(reading: Reading) -> dict[str, float]:
    """Return the control-group values of the engine `vllm`."""
    return {s.name.removeprefix(CGROUP): s.value for s in reading.samples if s.name.startswith(CGROUP) and ("engine", "vllm") in s.labels}


def test_the_tightest_group_above_the_engine_counts(fake: FakeRoot) -> None:
    """The pod's limit is tighter than the container's: quota and throttling come from the pod's group."""
    fake.vllm()
    fake.process(22, "VLLM::EngineCor", ppid=20, cgroup="/pod/engine")
    put_group(fake, "sys/fs/cgroup/pod/engine", "800000 100000", "1073741824", throttled=1)
    put_group(fake, "sys/fs/cgroup/pod", "250000 100000", throttled=3_000_000)
    assert {
        "cpu_quota": 2.5,
        "cpu_seconds_total": 5.0,
        "cpu_throttled_seconds_total": 3.0,
        "cpu_periods_total": 100.0,
        "cpu_throttled_periods_total": 40.0,
        "memory_used_bytes": 1048576.0,
        "memory_limit_bytes": 1073741824.0,
        "page_cache_bytes": 4096.0,
    } == cgroup(source(fake).read(1.0))


def test_no_limit_is_no_series_and_a_reason(fake: FakeRoot) -> None:
    """`max` is not a number: the quota is absent as not configured, throttling is a true zero."""
    fake.vllm()
    fake.process(22, "VLLM::EngineCor", ppid=20, cgroup="/engine")
    put_group(fake, "sys/fs/cgroup/engine", "max 100000\n", "max\n")
    reading = source(fake).read(1.0)
    assert "cpu_quota" not in cgroup(reading)
    assert 0.0 == cgroup(reading)["cpu_throttled_seconds_total"]
    assert Reason.NOT_CONFIGURED == reasons(reading)[CGROUP + "cpu_quota"]
    assert Reason.NOT_CONFIGURED == reasons(reading)[CGROUP + "memory_limit_bytes"]


def test_a_group_outside_our_namespace_is_read_through_the_engine(fake: FakeRoot) -> None:
    """A sidecar's own mount shows only its own group: the engine's is read below /proc/PID/root, never our own in its place."""
    fake.vllm()
    fake.process(22, "VLLM::EngineCor", ppid=20, cgroup="/../engine.scope")
    put_group(fake, "sys/fs/cgroup", "10000 100000")
    hidden = source(fake).read(1.0)
    assert {} == cgroup(hidden)
    assert Reason.NO_PERMISSION == reasons(hidden)[CGROUP + "cpu_quota"]
    put_group(fake, "proc/22/root/sys/fs/cgroup", "400000 100000")
    assert 4.0 == cgroup(source(fake).read(1.0))["cpu_quota"]


def put_v1_group(fake: FakeRoot, folder: str, path: str, quota: int, limit: int) -> None:
    """Write a group of version 1 in the trees of CPU and memory; times are nanoseconds."""
    fake.write(f"{folder}/cpu,cpuacct{path}/cpu.cfs_quota_us", f"{quota}\n")
    fake.write(f"{folder}/cpu,cpuacct{path}/cpu.cfs_period_us", "100000\n")
    fake.write(f"{folder}/cpu,cpuacct{path}/cpu.stat", f"nr_periods 100\nnr_throttled 40\nthrottled_time {3 * 10**9 if quota > 0 else 0}\n")
    fake.write(f"{folder}/cpu,cpuacct{path}/cpuacct.usage", "5000000000\n")
    fake.write(f"{folder}/memory{path}/memory.usage_in_bytes", "1048576\n")
    fake.write(f"{folder}/memory{path}/memory.limit_in_bytes", f"{limit}\n")
    fake.write(f"{folder}/memory{path}/memory.stat", "cache 10\ntotal_cache 4096\n")


V1_UNLIMITED = 9223372036854771712
V1_PATHS = "11:memory:{0}\n4:cpu,cpuacct:{0}\n1:name=systemd:{0}\n0::/\n"


def test_control_groups_of_version_1(fake: FakeRoot) -> None:
    """The tightest of the groups above the engine counts, as in version 2; nanoseconds and a limit beyond any machine are understood."""
    fake.vllm()
    fake.write("proc/22/cgroup", V1_PATHS.format("/pod/engine"))
    put_v1_group(fake, "sys/fs/cgroup", "/pod/engine", -1, V1_UNLIMITED)
    put_v1_group(fake, "sys/fs/cgroup", "/pod", 250000, 1073741824)
    assert {
        "cpu_quota": 2.5,
        "cpu_seconds_total": 5.0,
        "cpu_throttled_seconds_total": 3.0,
        "cpu_periods_total": 100.0,
        "cpu_throttled_periods_total": 40.0,
        "memory_used_bytes": 1048576.0,
        "memory_limit_bytes": 1073741824.0,
        "page_cache_bytes": 4096.0,
    } == cgroup(source(fake).read(1.0))


def test_version_1_without_limits_and_out_of_sight(fake: FakeRoot) -> None:
    """No limit is a reason and no series; a group outside our mount is read through the engine's own, or names what is lost."""
    fake.vllm()
    fake.write("sys/fs/cgroup/cpu,cpuacct/cpu.shares", "1024\n")
    fake.write("proc/22/cgroup", V1_PATHS.format("/docker/engine"))
    assert Reason.NO_PERMISSION == reasons(source(fake).read(1.0))[CGROUP + "cpu_quota"]
    put_v1_group(fake, "proc/22/root/sys/fs/cgroup", "", -1, V1_UNLIMITED)
    reading = source(fake).read(1.0)
    assert (5.0, 0.0) == (cgroup(reading)["cpu_seconds_total"], cgroup(reading)["cpu_throttled_seconds_total"])
    assert {Reason.NOT_CONFIGURED} == {reasons(reading)[CGROUP + what] for what in ("cpu_quota", "memory_limit_bytes")}


def put_gpus(fake: FakeRoot) -> None:
    """Write a machine of two nodes with two CPUs each, and a GPU on each node."""
    for node in (0, 1):
        fake.write(f"sys/devices/system/node/node{node}/cpulist", f"{2 * node}-{2 * node + 1}\n")
        fake.write(f"proc/driver/nvidia/gpus/0000:{node}A:00.0/information", f"Model: x\nDevice Minor: \t {node}\n")
        fake.write(f"sys/bus/pci/devices/0000:{node}a:00.0/numa_node", f"{node}\n")


def hold_gpu(fake: FakeRoot, pid: int, minor: int) -> None:
    """Let a process hold a GPU open."""
    (fake.root / f"proc/{pid}/fd/{minor + 40}").symlink_to(f"/dev/nvidia{minor}")


def test_cpus_far_from_the_gpu(fake: FakeRoot) -> None:
    """Of CPUs 0, 1 and 3 a worker of the GPU on node 0 has one that is far; the core, which holds none, goes by its workers."""
    fake.vllm(workers=1)
    put_gpus(fake)
    hold_gpu(fake, 29, 0)
    near = far(source(fake).read(1.0))
    assert {"worker": pytest.approx(1 / 3), "engine_core": pytest.approx(1 / 3)} == {role: near[role] for role in ("worker", "engine_core")}
    (fake.root / "proc/29/fd/40").unlink()
    hold_gpu(fake, 29, 1)
    assert pytest.approx(2 / 3) == far(source(fake).read(1.0))["worker"]


def test_without_a_gpu_there_is_no_far_cpu(fake: FakeRoot) -> None:
    """Nobody holds a GPU whose node is known: no value, and the reason."""
    fake.vllm(workers=1)
    reading = source(fake).read(1.0)
    assert {} == far(reading)
    assert Reason.NO_SOURCE == reasons(reading)[REMOTE]


@pytest.mark.parametrize(("text", "cpus"), [("0-2,8\n", {0, 1, 2, 8}), ("5", {5}), ("", set()), ("a-b", set())])
def test_lists_of_cpus(text: str, cpus: set[int]) -> None:
    """The kernel's lists, and what is none."""
    assert cpus == parse_cpus(text)
