"""Which container has which GPU, as the kubelet of a node tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.model import Reason
from heptascope.signals.schema import SCHEMA
from heptascope.sources.base import SourceError
from heptascope.sources.kubelet import DEVICE_INFO, Held, KubeletSource, devices_in
from support.kubelet import a_kubelet, pod

BOARD, OTHER = "GPU-aaaa", "GPU-bbbb"


def test_the_devices_in_an_answer() -> None:
    """GPUs and MIG instances of all pods with namespace, pod and container; other devices are left out."""
    answer = pod("other", "ml", OTHER) + pod("mine", "ml", BOARD, "MIG-1", "weird") + pod("none", "ml")
    assert [
        Held(OTHER, "ml", "other", "server"),
        Held(BOARD, "ml", "mine", "server"),
        Held("MIG-1", "ml", "mine", "server"),
    ] == list(devices_in(answer))


def test_a_damaged_answer_gives_what_could_be_read() -> None:
    """What stands before the damage counts, what stands behind it is lost."""
    answer = pod("mine", "ml", BOARD)
    assert [Held(BOARD, "ml", "mine", "server")] == list(devices_in(answer + b"\x0f\xff"))
    assert [] == list(devices_in(answer[:12] + b"\xff"))


def test_the_source_shows_who_has_which_gpu(tmp_path: Path) -> None:
    """Each container has a series for each board; replicas of a shared board are the board."""
    with a_kubelet(tmp_path, pod("a", "ml", f"{BOARD}::0", f"{BOARD}::1") + pod("b", "ml", f"{BOARD}::2")) as socket:
        found = KubeletSource(socket).read(1.0)
    assert [{"uuid": BOARD, "pod_namespace": "ml", "pod_name": name, "container_name": "server"} for name in ("a", "b")] == [
        dict(sample.labels) for sample in found.samples
    ]
    row = SCHEMA[DEVICE_INFO]
    assert ({"uuid", "pod_namespace", "pod_name", "container_name"}, ("kubelet",)) == (set(row.labels), row.suppliers)


def test_a_kubelet_that_does_not_answer_is_a_source_that_is_down(tmp_path: Path) -> None:
    """The message names the socket."""
    with pytest.raises(SourceError, match=r"the kubelet at .*none\.sock cannot be asked: UNAVAILABLE") as caught:
        KubeletSource(tmp_path / "none.sock").read(1.0)
    assert Reason.SOURCE_DOWN is caught.value.reason
