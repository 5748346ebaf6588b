"""Whose the visible GPUs are: each way to tell, their order, and what is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heptascope.model import Missing, Reading, Reason, Sample, labels
from heptascope.sources.gpu.attribution import NODE, POD, SHARED, Allowed, Attributed, Attribution, Owned
from heptascope.sources.gpu.attribution_kubelet import kubelet
from heptascope.sources.gpu.attribution_ways import device_ids, explicit, listed_processes, process_environment, stated
from support.fake_nvml import FakeClock
from support.kubelet import a_kubelet, pod

BOARD, OTHER = "GPU-aaaa", "GPU-bbbb"


def reading(*uuids: str, instances: dict[str, tuple[str, ...]] | None = None) -> Reading:
    """Return a reading of boards, each with its MIG instances."""
    samples, rows = [], []
    for index, uuid in enumerate(uuids):
        pairs = labels(gpu=str(index), uuid=uuid)
        samples += [Sample("heptascope_gpu_up", pairs, 1.0), Sample("heptascope_gpu_info", pairs, 1.0)]
        for number in (instances or {}).get(uuid, ()):
            extra = labels(gpu=str(index), uuid=uuid, instance=number)
            samples.append(Sample("heptascope_gpu_instance_dram_active_ratio", extra, 0.5))
            info = labels(gpu=str(index), uuid=uuid, instance=number, mig_uuid=f"MIG-{uuid}-{number}")
            samples.append(Sample("heptascope_gpu_instance_info", info, 1.0))
        rows.append({"kind": "gpu", "t": 1.0, "gpu": index, "uuid": uuid, "procs": [[100 + index, 1]]})
    missing = [Missing("heptascope_gpu_dram_active_ratio", Reason.NOT_SUPPORTED, "", labels(gpu="0", uuid=uuids[0]))]
    return Reading("nvml", 1.0, samples, missing=missing, raw={"rows": rows})


class Given:
    """A source that reads what it is given."""

    name, kind, interval, timeout = "nvml", "gpu", 1.0, 10.0

    def __init__(self, what: Reading) -> None:
        """Read `what` always."""
        self.what, self.closed, self.header = what, False, {"kind": "header"}

    def read(self, now: float) -> Reading:
        """Return it."""
        return self.what

    def close(self) -> None:
        """Note it."""
        self.closed = True


def shown(owned: Owned | str, what: Reading) -> Reading:
    """Return what is left of a reading."""
    return Attributed(Given(what), Attribution([lambda: owned])).read(1.0)


def scopes(found: Reading) -> dict[str, str]:
    """Return the scope of each board that is shown."""
    return {dict(s.labels)["uuid"]: dict(s.labels)["scope"] for s in found.samples if s.name == "heptascope_gpu_info"}


def test_only_the_pods_gpus_are_shown() -> None:
    """Series, reasons and recorded rows of the other boards are left out; the count is of ours."""
    found = shown(Owned(frozenset({OTHER}), POD, "x"), reading(BOARD, OTHER))
    assert {OTHER: POD} == scopes(found)
    assert [] == found.missing
    assert found.raw is not None
    assert [OTHER] == [row["uuid"] for row in found.raw["rows"]]
    assert {"heptascope_gpus_visible": 1.0, "heptascope_gpus_expected": 1.0} == {s.name: s.value for s in found.samples if not s.labels}


def test_nothing_tells_so_all_are_the_nodes() -> None:
    """Without an answer every GPU is shown, as the node's: nothing is guessed."""
    found = shown("no idea", reading(BOARD, OTHER))
    assert {BOARD: NODE, OTHER: NODE} == scopes(found)
    assert 1 == len(found.missing)


def test_a_mig_instance_of_a_shared_board() -> None:
    """The pod has one instance: it is shown alone, and the board's own values are marked as shared."""
    what = reading(BOARD, OTHER, instances={BOARD: ("1", "2")})
    found = shown(Owned(frozenset({f"MIG-{BOARD}-2"}), POD, "x"), what)
    assert {BOARD: SHARED} == scopes(found)
    assert {"2"} == {dict(s.labels)["instance"] for s in found.samples if "instance" in dict(s.labels)}


def test_old_mig_ids_hold_board_and_instance() -> None:
    """Drivers before 470 name an instance by board, GPU instance and compute instance."""
    allowed = Allowed(Owned(frozenset({f"MIG-{BOARD}/7/0"}), POD, "x"), {})
    assert {(BOARD, "7")} == allowed.instances


def test_replicas_are_shared() -> None:
    """Time slicing and MPS give ids such as GPU-…::2: the board's values cover others too."""
    assert {BOARD: SHARED} == scopes(shown(Owned(frozenset({f"{BOARD}::2"}), SHARED, "x"), reading(BOARD, OTHER)))


def test_an_unknown_mig_uuid_is_no_answer() -> None:
    """A source that lists no instances cannot place a MIG uuid: all is shown as the node's, rather than nothing."""
    assert {BOARD: NODE} == scopes(shown(Owned(frozenset({"MIG-unknown"}), POD, "x"), reading(BOARD)))


def test_own_gpus_that_are_not_visible() -> None:
    """The pod's GPU is not among those that the source sees: no other's values are shown, and it is said."""
    found = shown(Owned(frozenset({"GPU-cccc"}), POD, "gpu list"), reading(BOARD))
    assert {} == scopes(found)
    assert ["none of the pod's GPUs (gpu list) is among those that are visible"] == [m.detail for m in found.missing]


def test_expected_is_configured_or_the_most_that_were_seen() -> None:
    """A GPU that is lost lowers what is visible, not what is expected."""
    what = reading(BOARD, OTHER)
    source = Attributed(Given(what), Attribution())
    source.read(1.0)
    what.samples[0] = what.samples[0]._replace(value=0.0)
    for expected, source_now in ((2.0, source), (8.0, Attributed(Given(what), Attribution(), expected=8))):
        found = {s.name: s.value for s in source_now.read(2.0).samples if not s.labels}
        assert {"heptascope_gpus_visible": 1.0, "heptascope_gpus_expected": expected} == found


def test_expected_does_not_hold_what_was_the_nodes() -> None:
    """Once it is told which GPUs are the pod's, the others are not expected any more."""
    clock, answers = FakeClock(), ["the engine is not up yet"]
    attribution = Attribution([lambda: Owned(frozenset({BOARD}), POD, "environment") if len(answers) > 1 else answers[0]], clock)
    source = Attributed(Given(reading(BOARD, OTHER)), attribution)
    before = {s.name: s.value for s in source.read(1.0).samples if not s.labels}
    answers.append("up")
    clock.t += 20.0
    after = {s.name: s.value for s in source.read(21.0).samples if not s.labels}
    assert [2.0, 1.0] == [found["heptascope_gpus_expected"] for found in (before, after)]
    assert 1.0 == after["heptascope_gpus_visible"]


def test_the_first_way_that_answers_counts_and_stays() -> None:
    """Ways are asked in order and again after a while; what was found stays while the engine restarts."""
    clock, answers = FakeClock(), ["first fails", Owned(frozenset({BOARD}), POD, "second")]
    attribution = Attribution([lambda: answers[0], lambda: answers[1]], clock)
    assert "second" == attribution.owned().how
    answers[1] = "gone"
    clock.t += 11.0
    assert "second" == attribution.owned().how
    answers[0] = Owned(frozenset({OTHER}), POD, "first")
    clock.t += 11.0
    assert "first" == attribution.owned().how


def test_reasons_of_all_ways_are_told() -> None:
    """Where none answers, each says why."""
    assert Owned(None, NODE, "a; b") == Attribution([lambda: "a", lambda: "b"]).owned()


def test_the_wrapper_is_the_source() -> None:
    """Name, times, header and closing are the inner source's."""
    inner = Given(reading(BOARD))
    source = Attributed(inner, Attribution())
    assert ("nvml", 1.0, 10.0, {"kind": "header"}) == (source.name, source.interval, source.timeout, source.header)
    source.close()
    assert inner.closed


def test_explicit_lists() -> None:
    """`gpu.devices` is kept by the sources; UUIDs that this container was given count too, `all` does not."""
    assert Owned(None, POD, "gpu.devices") == explicit(["0"], {})()
    given = explicit([], {"NVIDIA_VISIBLE_DEVICES": f"{BOARD},{OTHER}"})()
    assert Owned(frozenset({BOARD, OTHER}), POD, "NVIDIA_VISIBLE_DEVICES of this container") == given
    assert "no GPUs are configured" == explicit([], {"NVIDIA_VISIBLE_DEVICES": "all"})()


def test_a_stated_scope() -> None:
    """A shared claim cannot be seen from inside: it is said in the configuration."""
    assert [Owned(None, POD, "gpu.scope is pod"), Owned(None, NODE, "gpu.scope is node"), "gpu.scope is auto"] == [
        stated(scope)() for scope in ("pod", "node", "auto")
    ]


@pytest.mark.parametrize("text", ["all", "void", "none", "", "0,1", "nvidia.com/gpu=all"])
def test_what_names_no_device(text: str) -> None:
    """Indexes, words and CDI names name no board."""
    assert frozenset() == device_ids({"NVIDIA_VISIBLE_DEVICES": text, "CUDA_VISIBLE_DEVICES": text})


def test_the_engines_environment(tmp_path: Path) -> None:
    """UUIDs in the environment of the engine's processes; one that cannot be read says so."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "environ").write_bytes(f"A=1\0NVIDIA_VISIBLE_DEVICES=void\0CUDA_VISIBLE_DEVICES={BOARD}\0junk\0".encode())
    assert Owned(frozenset({BOARD}), POD, "the engine's environment") == process_environment(lambda: [7], tmp_path)()
    assert "the environment of process 8 cannot be read (No such file or directory)" == process_environment(lambda: [8], tmp_path)()
    assert "no engine process here names its GPUs in its environment" == process_environment(list, tmp_path)()


def test_process_ids_count_only_where_they_are_the_hosts(tmp_path: Path) -> None:
    """In a pid namespace of its own a small id may be anybody's: nothing is matched."""
    (tmp_path / "self" / "ns").mkdir(parents=True)
    link = tmp_path / "self" / "ns" / "pid"
    link.symlink_to("pid:[4026531836]")
    users = {BOARD: {100}, OTHER: {200}}
    assert Owned(frozenset({OTHER}), POD, "process ids on the GPU") == listed_processes(lambda: [200], lambda: users, tmp_path)()
    assert "no engine process is listed on a GPU" == listed_processes(lambda: [300], lambda: users, tmp_path)()
    link.unlink()
    link.symlink_to("pid:[4026532000]")
    assert "hostPID" in str(listed_processes(lambda: [200], lambda: users, tmp_path)())


def test_process_ids_are_learned_before_anything_is_left_out() -> None:
    """An engine may spread to a second GPU: the processes on boards that are not shown are known too."""
    attribution = Attribution([lambda: Owned(frozenset({BOARD}), POD, "x")])
    Attributed(Given(reading(BOARD, OTHER)), attribution).read(1.0)
    assert {BOARD: frozenset({100}), OTHER: frozenset({101})} == attribution.users


def test_asking_a_kubelet(tmp_path: Path) -> None:
    """Over a real gRPC socket; a replica's id says that the board is shared; no socket and no kubelet are told apart."""
    names = {"POD_NAME": "mine", "POD_NAMESPACE": "ml"}
    answer = pod("other", "ml", OTHER) + pod("mine", "ml", f"{BOARD}::3", "MIG-1") + pod("mine", "else", "GPU-x")
    with a_kubelet(tmp_path, answer) as path:
        assert Owned(frozenset({f"{BOARD}::3", "MIG-1"}), SHARED, "the kubelet") == kubelet(path, names)()
        assert {f"{BOARD}::3", "MIG-1", "GPU-x"} == kubelet(path, {"POD_NAME": "mine"})().ids
        assert "the kubelet gives no GPU to the pod x" == kubelet(path, {"HOSTNAME": "x"})()
    assert "cannot be asked: UNAVAILABLE" in str(kubelet(tmp_path / "none.sock", names)())
    assert "gpu.pod_resources is not set" == kubelet(None, os.environ)()
