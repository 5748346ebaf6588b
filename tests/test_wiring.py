"""What the settings become: thresholds, GPU choices, stand-ins for what is not there yet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heptascope import seek, wiring
from heptascope.config import GpuSettings, PollSettings, RulesSettings, Settings
from heptascope.engines import Engines
from heptascope.errors import UserError
from heptascope.model import Reading, Reason, Sample, labels
from heptascope.rules.load import load
from heptascope.seek import EngineSeeker, GpuSeeker, MoreEngines
from heptascope.sources.base import Source, SourceError
from heptascope.sources.engine.discover import Found
from heptascope.sources.gpu.calls import LIBRARY_NOT_FOUND
from heptascope.sources.gpu.nvml import NvmlSource
from heptascope.wiring import GPU_CHOICES, build_pipeline, overridden_rules
from support.fake_nvml import FakeClock, FakeNvml, h200


def test_a_threshold_can_be_changed() -> None:
    """The configured value stands in the rule's expression; other rules keep theirs."""
    rule = next(rule for rule in load() if rule.thresholds)
    name = next(iter(rule.thresholds))
    changed = overridden_rules(load(), RulesSettings(overrides={rule.name: {name: 0.123}}))
    assert [(rule.name, {name: 0.123})] == [(r.name, r.overridden) for r in changed if r.overridden]
    assert 0.123 == next(r for r in changed if r.name == rule.name).threshold(name)


def test_an_unknown_rule_or_threshold_is_an_error_with_a_suggestion() -> None:
    """A typing mistake in `rules.overrides` is found at the start, not silently without effect."""
    rule = next(rule for rule in load() if rule.thresholds)
    name = next(iter(rule.thresholds))
    with pytest.raises(UserError, match=f"no such rule; did you mean {rule.name}\\?"):
        overridden_rules(load(), RulesSettings(overrides={f"{rule.name}s": {name: 1.0}}))
    with pytest.raises(UserError, match=f"the rule has no such threshold; did you mean {name}\\?"):
        overridden_rules(load(), RulesSettings(overrides={rule.name: {f"{name}x": 1.0}}))


def test_the_pipeline_has_the_configured_memory_and_objectives() -> None:
    """The window's length comes from the settings, and an engine's series show the objectives for its latencies."""
    settings = Settings.model_validate({"window": {"retention": "2m"}, "slo": {"e2e_latency": "7s"}})
    pipeline = build_pipeline(settings, {})
    engine = labels(engine="vllm", rank="0")
    pipeline.ingest(Reading("vllm", 10.0, [Sample("heptascope_engine_requests_running", engine, 1.0)]))
    objectives = dict(pipeline.step(10.5).values["heptascope_engine_slo_seconds"])
    assert 120.0 == pipeline.window.retention
    assert settings.slo.model_dump() == {dict(pairs)["latency"]: value for pairs, value in objectives.items()}
    assert 7.0 == settings.slo.e2e_latency


def test_every_gpu_source_of_the_configuration_has_its_choices() -> None:
    """The table knows each value that `gpu.source` may have."""
    allowed = Settings.model_json_schema()["$defs"]["GpuSettings"]["properties"]["source"]["enum"]
    assert set(allowed) == set(GPU_CHOICES)


def refuse(settings: GpuSettings) -> Sequence[Source]:
    """Be a way to read GPUs that is not there."""
    raise SourceError(Reason.NOT_SUPPORTED, "no driver")


def test_the_gpu_seeker_says_why_there_is_none_and_steps_aside_when_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each choice is tried in turn; the first that works replaces the seeker."""
    found: list[tuple[str, list[str], str]] = []
    seeker = GpuSeeker(GpuSettings(), lambda name, sources, why: found.append((name, [source.name for source in sources], why)))
    monkeypatch.setitem(wiring.GPU_CHOICES, "auto", (refuse, refuse))  # type: ignore[arg-type]  # read-only for the program
    with pytest.raises(SourceError, match=r"^no driver; no driver$") as caught:
        seeker.read(1.0)
    assert Reason.NO_SOURCE == caught.value.reason
    monkeypatch.setitem(wiring.GPU_CHOICES, "auto", (refuse, GPU_CHOICES["nvml"][0]))  # type: ignore[arg-type]  # as above
    assert Reading("gpu", 2.0) == seeker.read(2.0)
    assert [("gpu", ["nvml", "nvml_slow"], "nvml; before it: no driver")] == found


def test_auto_takes_nvml_where_its_library_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe starts NVML and gives it back; where that fails the reason is the library's own."""
    module = FakeNvml([h200()], FakeClock())
    monkeypatch.setattr(wiring.library, "load", lambda: module)
    assert ["nvml", "nvml_slow"] == [source.name for source in GPU_CHOICES["auto"][1](GpuSettings())]
    assert (["nvmlInit", "nvmlShutdown"], 0) == (module.calls, module.init_count)
    module.errors["nvmlInit"] = LIBRARY_NOT_FOUND
    with pytest.raises(SourceError, match=r"libnvidia-ml\.so\.1 is not there"):
        GPU_CHOICES["auto"][1](GpuSettings())


def test_nvml_sources_have_the_configured_intervals() -> None:
    """The fast source reads at `gpu.interval`, the slow one at `gpu.slow_interval`."""
    fast, slow = GPU_CHOICES["nvml"][0](GpuSettings(interval=0.1, slow_interval=9.0))
    assert isinstance(fast, NvmlSource)
    assert (0.1, 9.0) == (fast.interval, slow.interval)


def test_the_engine_seeker_names_the_ports_it_tried_and_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing found: the ports and the remedy. Something found: its source replaces the seeker, and the search for more goes on."""
    found: list[list[str]] = []
    engines = Engines(PollSettings())
    seeker = EngineSeeker(engines, lambda _, sources: found.append([source.name for source in sources]), lambda _: None)
    monkeypatch.setattr(seek, "discover_more", list)
    with pytest.raises(SourceError, match=r"no engine answers on this machine's ports 8000, .*; name one with --engine URL"):
        seeker.read(1.0)
    monkeypatch.setattr(seek, "discover_more", lambda: [Found("http://127.0.0.1:8000", "vllm")])
    assert Reading("engine", 2.0) == seeker.read(2.0)
    assert [["engine-8000", "engines"]] == found


def test_the_engine_seeker_passes_on_why_none_may_be_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pod's place in its group explains stands in place of the remedy."""
    monkeypatch.setattr(seek, "discover_more", list)
    seeker = EngineSeeker(Engines(PollSettings()), lambda _, __: None, lambda _: None, "this pod is a worker of vllm-0")
    with pytest.raises(SourceError, match=r"9090; this pod is a worker of vllm-0$"):
        seeker.read(1.0)


def test_engines_that_come_later_are_added_under_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second engine joins the first, which keeps its name; a server that is none is left alone after five minutes."""
    engines, added, skipped = Engines(PollSettings()), [], []
    engines.found([Found("http://127.0.0.1:8000", "vllm")])
    more = MoreEngines(engines, lambda sources: added.extend(sources), {8000})
    here = [[Found("http://127.0.0.1:8001", "vllm")]]
    monkeypatch.setattr(seek, "listening", lambda ports: [port for port in ports if port == 8080])
    monkeypatch.setattr(seek, "discover_more", lambda _, without: skipped.append(without) or (here.pop() if here else []))
    for step in range(seek.STRANGER_LOOKS + 1):
        assert Reading("engines", step * 1.0) == more.read(step * 1.0)
    assert ["engine-8001"] == [source.name for source in added]
    assert (set(), {8080}) == (skipped[-2], skipped[-1])
    assert "vllm-8001" == added[0].reader._naming("vllm")
