"""The choice among the ways to read GPUs, its explanation, and the way back when a host engine stays away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from heptascope import wiring
from heptascope.config import GpuSettings
from heptascope.config_load import load
from heptascope.errors import UserError
from heptascope.gpus import FALL_BACK_SECONDS, IN_KUBERNETES, RETRY_SECONDS, Gpus
from heptascope.model import Reading, Reason, SourceStatus
from heptascope.sources.base import Source, SourceError
from heptascope.sources.gpu import dcgm_bindings, library
from heptascope.wiring import GPU_CHOICES
from support.fake_nvml import FakeClock, FakeNvml, h200


class Readers:
    """What the daemon does with sources."""

    def __init__(self) -> None:
        """Read nothing."""
        self.sources: dict[str, Source] = {}
        self.retries: dict[str, float] = {}

    def add(self, sources: Sequence[Source], longest_backoff: float = 30.0) -> None:
        """Take sources."""
        self.sources.update((source.name, source) for source in sources)
        self.retries.update((source.name, longest_backoff) for source in sources)

    def replace(self, name: str, sources: Sequence[Source], longest_backoff: float = 30.0) -> None:
        """Take sources in place of one."""
        del self.sources[name]
        self.add(sources, longest_backoff)


class Named:
    """A source with a name."""

    kind, interval, timeout = "gpu", 1.0, 10.0

    def __init__(self, name: str) -> None:
        """Be `name`."""
        self.name = name

    def read(self, now: float) -> Reading:
        """Read nothing."""
        return Reading(self.name, now)

    def close(self) -> None:
        """Do nothing."""


def gives(*names: str) -> wiring.GpuChoice:
    """Return a choice that gives sources of these names, or where there are none says why not."""

    def choice(settings: GpuSettings) -> Sequence[Source]:
        if not names:
            raise SourceError(Reason.NO_SOURCE, "DCGM: no host engine")
        return [Named(name) for name in names]

    return choice


@pytest.fixture
def clock() -> FakeClock:
    """Return a clock that stands."""
    return FakeClock()


def started(monkeypatch: pytest.MonkeyPatch, clock: FakeClock, *choices: wiring.GpuChoice) -> tuple[Gpus, Readers]:
    """Return GPUs under `auto` with these choices, after one look."""
    monkeypatch.setitem(wiring.GPU_CHOICES, "auto", choices)  # type: ignore[arg-type]  # read-only for the program
    gpus, readers = Gpus(GpuSettings(), {}, clock), Readers()
    gpus.start(readers)
    readers.sources["gpu"].read(1.0)
    return gpus, readers


def test_the_choice_is_explained(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """What is used, and why not what stands before it; whose the GPUs are is told after the first read."""
    gpus, readers = started(monkeypatch, clock, gives(), gives("nvml", "nvml_slow"))
    assert ["nvml", "nvml_slow"] == list(readers.sources)
    assert RETRY_SECONDS == readers.retries["nvml"]
    assert ("nvml; before it: DCGM: no host engine", "") == (gpus.explanation, gpus.whose)
    readers.sources["nvml"].read(1.0)
    assert "node: no GPUs are configured; gpu.scope is auto; this is no pod" == gpus.whose


def test_what_nvml_would_add_is_told(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """A host engine goes first; where NVML could be read as well it is said what that would give."""
    alone = started(monkeypatch, clock, gives("dcgm", "dcgm_slow"))[0].explanation
    monkeypatch.setattr(library, "load", lambda: FakeNvml([h200()], clock))
    assert alone == "dcgm"
    both = started(monkeypatch, clock, gives("dcgm", "dcgm_slow"))[0].explanation
    assert "dcgm; NVML answers too and would add processes, NVLink speed and on Hopper and later exact means: gpu.source nvml" == both


def test_a_configured_source_is_not_looked_for(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """`gpu.source` names it; `none` starts nothing."""
    gpus, readers = Gpus(GpuSettings(source="nvml"), {}, clock), Readers()
    assert gpus.start(readers)
    assert (["nvml", "nvml_slow"], "nvml, as gpu.source says") == (list(readers.sources), gpus.explanation)
    assert not Gpus(GpuSettings(source="none"), {}, clock).start(Readers())


def test_a_host_engine_that_stays_away(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """After a minute without it the ways are tried again: NVML takes over. A short restart changes nothing."""
    gpus, readers = started(monkeypatch, clock, gives("dcgm", "dcgm_slow"))
    down = SourceStatus("dcgm", "gpu", False, None, None, Reason.SOURCE_DOWN, "gone")
    gpus.write_failure(down, {})
    clock.t += FALL_BACK_SECONDS
    gpus.write(Reading("dcgm", 1.0))
    gpus.write_failure(down, {})
    clock.t += FALL_BACK_SECONDS
    gpus.write(Reading("host", 1.0))
    assert {"dcgm", "dcgm_slow"} == set(readers.sources)
    monkeypatch.setitem(wiring.GPU_CHOICES, "auto", (gives(), gives("nvml")))  # type: ignore[arg-type]  # as above
    clock.t += 1.0
    gpus.write(Reading("host", 1.0))
    assert {"gpu"} == set(readers.sources)
    readers.sources["gpu"].read(1.0)
    assert {"nvml"} == set(readers.sources)


def test_ways_in_a_pod(clock: FakeClock, tmp_path: Path) -> None:
    """In Kubernetes the engine's processes and the kubelet are asked; each that cannot tell says why."""
    settings = GpuSettings(source="nvml", pod_resources=tmp_path / "none.sock")
    gpus, readers = Gpus(settings, {IN_KUBERNETES: "10.0.0.1", "HOSTNAME": "pod"}, clock), Readers()
    gpus.start(readers)
    attribution = gpus._sources[0]._attribution
    told = attribution.owned().how
    for part in ("no engine process here names its GPUs", "the kubelet at"):
        assert part in told


@pytest.mark.parametrize("scope", ["node", "auto"])
def test_a_node_s_gpus_are_shown_with_their_pods(scope: str, clock: FakeClock, tmp_path: Path) -> None:
    """The kubelet is a source where heptascope speaks for a whole node; in a pod it only tells which GPUs are the pod's."""
    settings = GpuSettings(source="auto", scope=scope, pod_resources=tmp_path / "kubelet.sock")  # type: ignore[arg-type]  # a literal each
    readers = Readers()
    Gpus(settings, {IN_KUBERNETES: "10.0.0.1"}, clock).start(readers)
    assert (scope == "node") == ("kubelet" in readers.sources)


def test_auto_tries_dcgm_nvml_and_then_an_exporter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The order of the table, and what each says on a machine that has none of them."""
    monkeypatch.setattr(dcgm_bindings, "USUAL_PLACES", (tmp_path,))
    reasons = []
    for choice in (GPU_CHOICES["auto"][0], GPU_CHOICES["auto"][2]):
        with pytest.raises(SourceError) as caught:
            choice(GpuSettings())
        reasons.append(str(caught.value))
    assert f"DCGM: no Python bindings in {tmp_path}; install datacenter-gpu-manager-4-core or set gpu.dcgm.bindings" == reasons[0]
    assert "dcgm-exporter: gpu.dcgm_exporter.urls is not set" == reasons[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{source: dcgm-exporter}", "gpu: dcgm-exporter needs dcgm_exporter.urls; set it to http://host:9400"),
        ("{dcgm: {address: h, socket: /s}}", "gpu.dcgm: address and socket exclude each other; set one"),
        ("{dcgm_exporter: {urls: [node]}}", "gpu.dcgm_exporter.urls[0] = node: not a URL of a dcgm-exporter; write http://host:9400"),
        ("{expected: 0}", "gpu.expected = 0: must be greater than or equal to 1"),
    ],
)
def test_mistakes_in_the_configuration(tmp_path: Path, text: str, expected: str) -> None:
    """Each is one line with its place and what to write."""
    path = tmp_path / "heptascope.yaml"
    path.write_text(f"gpu: {text}\n")
    with pytest.raises(UserError) as caught:
        load(path)
    assert str(caught.value).endswith(expected)


def test_pages_of_exporters_without_a_path() -> None:
    """A URL without a path means /metrics; any other is taken as it is."""
    settings = GpuSettings.model_validate({"dcgm_exporter": {"urls": ["http://a:9400", "http://b:9400/", "http://c/x"]}})
    assert ("http://a:9400/metrics", "http://b:9400/metrics", "http://c/x") == settings.dcgm_exporter.urls
