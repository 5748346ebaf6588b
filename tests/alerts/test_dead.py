"""Alerts that can never fire: only those that lack a signal for good are named, with the reason."""

from __future__ import annotations

import json

import pytest

from heptascope.config import Settings
from heptascope.model import Reason
from heptascope.offline import passes
from heptascope.rules.load import load
from heptascope.signals.snapshot import EMPTY, Snapshot
from heptascope.sources.recording import Recording
from heptascope.sources.replay import replay_readings
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.dead import as_object, dead_alerts, lines
from heptascope.surfaces.alerts.settings import RenderSettings, load_settings
from heptascope.surfaces.alerts.slo import INDICATORS
from heptascope.surfaces.alerts.written import entries
from heptascope.wiring import build_pipeline
from support.engine_pages import VLLM_032, capture
from support.engine_server import Answer, EngineServer
from support.heptascope_process import heptascope
from support.recordings import all_recordings

FLEET = {entry["alert"] for entry in entries("fleet") if "alert" in entry}
ALL = len(alerting(load())) + len(INDICATORS) + len(FLEET)


def _seen(name: str) -> Snapshot:
    """Return what can be read at the end of a recording."""
    pipeline = build_pipeline(Settings(), {})
    for _ in passes(replay_readings(Recording.open(all_recordings()[name])), pipeline):
        pass
    return pipeline.snapshot


def _dead(snapshot: Snapshot, *changes: str) -> dict[str, set[str]]:
    """Return each dead alert with its reasons."""
    found = dead_alerts(load(), snapshot, load_settings(None, changes))
    return {one.alert: {gap.reason.value for gap in one.missing} for one in found}


def test_an_alert_that_fires_is_not_dead() -> None:
    """Of the alerts that a recording fires none is called dead."""
    dead = _dead(_seen("kv-severe"))
    assert not {"KVCachePreemption", "KVCacheExhausted", "RecomputeTax", "TimeToFirstTokenHigh"} & set(dead)
    assert not set(_dead(_seen("eager-b8"))) & {"LaunchOverhead", "EngineCoreSaturated"}
    assert not set(_dead(_seen("ngram-low"))) & {"SpeculationBelowBreakEven"}


def test_what_is_switched_off_can_not_fire() -> None:
    """Without speculation the alerts about it are dead, and the reason says that it is not configured."""
    dead = _dead(_seen("kv-severe"))
    assert {"not_configured"} == dead["SpeculationBelowBreakEven"]
    assert {"not_configured"} == dead["OffloadSlowerThanRecompute"]


def test_idleness_is_not_death() -> None:
    """On an idle server, where derived signals have no value, the alerts about work only sleep."""
    dead = _dead(_seen("idle"))
    assert not {"KVCachePreemption", "HostStepBound", "Overload", "TimeToFirstTokenHigh", "StepTimeRegression"} & set(dead)


def test_without_anything_all_are_dead() -> None:
    """Where nothing can be read nothing can fire, and each alert says what it lacks."""
    found = dead_alerts(load(), EMPTY, RenderSettings())
    sleeping = {"FrontendSlow", "StepTimeRegression", "PrefixCacheCollapsed", "AcceptanceCollapsed"}
    assert ALL - len(sleeping) <= len(found)
    assert {Reason.NO_SOURCE} == {gap.reason for one in found for gap in one.missing}


def test_an_objective_between_two_buckets_cannot_be_watched() -> None:
    """The indicator's alert is dead, and the neighbouring bounds are named; at a bound of the engine it lives."""
    seen = _seen("decode-c64")
    assert "TimeToFirstTokenErrorBudgetBurn" not in _dead(seen)
    found = dead_alerts(load(), seen, load_settings(None, ["slo.time_to_first_token.seconds=3"]))
    gap = next(one.missing[0] for one in found if one.alert == "TimeToFirstTokenErrorBudgetBurn")
    assert (Reason.ENGINE, "no bucket ends at 3s; near it 2.5 s and 5.0 s") == (gap.reason, gap.detail)


def test_fleets_need_what_their_recordings_are_made_from() -> None:
    """Alerts about fleets live beside a server, though no recording rule is in sight; where nothing is read they lack the signals below."""
    assert not FLEET & set(_dead(_seen("decode-c64")))
    found = {one.alert: {gap.signal for gap in one.missing} for one in dead_alerts(load(), EMPTY, RenderSettings())}
    assert set(found) >= FLEET
    assert {"heptascope_engine_requests_running", "heptascope_engine_requests_waiting"} <= found["ReplicaImbalance"]
    assert {"heptascope_engine_info"} == found["EngineVersionSkew"]


def test_the_command_takes_the_objectives_of_the_configuration() -> None:
    """What the exporter promises is what must be a bucket."""
    with EngineServer() as engine:
        engine.page(capture(VLLM_032, "steady_16"))
        slo = {"HEPTASCOPE_SLO_TIME_TO_FIRST_TOKEN": "3s"}
        done = heptascope("check", "--rules", "--gpu", "none", "--engine", engine.url, env=slo)
    assert "no bucket ends at 3s; near it 2.5 s and 5.0 s" in done.stdout


def test_people_read_reasons_and_machines_all_signals() -> None:
    """Text groups alerts by reason; JSON has every alert with every signal that it lacks."""
    found = dead_alerts(load(), _seen("kv-severe"), RenderSettings())
    text = "\n".join(lines(found, ALL))
    assert "  not_configured: speculative decoding is not configured\n" in text
    assert text.startswith(f"{len(found)} of {ALL} alerts can never fire here:")
    assert [f"Each of {ALL} alerts can fire here."] == lines([], ALL)
    rows = {row["alert"]: row["missing"] for row in as_object(found, ALL)["dead"]}
    assert {"signal", "reason", "detail"} == set(rows["SpeculationAtLargeBatch"][0])


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_command_says_it_for_a_real_page(form: str) -> None:
    """`heptascope check --rules` beside a vLLM without a GPU source: GPU alerts are dead, those of the cache are not."""
    with EngineServer() as engine:
        engine.page(capture(VLLM_032, "steady_16"))
        engine.answers["/version"] = Answer(b'{"version":"0.32.0"}', "application/json")
        done = heptascope("check", "--rules", "--gpu", "none", "--engine", engine.url, "--format", form)
    assert (0, "") == (done.returncode, done.stderr)
    assert not [name for name in FLEET if name in done.stdout]
    if form == "text":
        assert "no_source: gpu.source is none" in done.stdout
        return
    found = json.loads(done.stdout)
    dead = {row["alert"] for row in found["dead"]}
    assert (True, False, False) == ("GpuLost" in dead, "KVCachePreemption" in dead, "TimeToFirstTokenErrorBudgetBurn" in dead)
    assert ALL == found["alerts"]
