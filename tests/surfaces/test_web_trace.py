"""A served trace on the page and in the API: which it is, how old, and the claims that it makes surer."""

from __future__ import annotations

import json
from heapq import merge
from pathlib import Path

import pytest

from heptascope.demo.scenarios import FOLDER
from heptascope.model import Layer, Reading, Sample, labels
from heptascope.pipeline import Pipeline
from heptascope.rules.load import load
from heptascope.sources.recording import Recording
from heptascope.sources.replay import replay_readings
from heptascope.sources.trace.__main__ import measure
from heptascope.surfaces.report import verdict_lines
from heptascope.surfaces.web import desk_models as models
from heptascope.surfaces.web.app import create_app
from heptascope.surfaces.web.pageview import page
from support.played import Played
from support.trace_builder import TRACES
from support.web_client import Client

NOW = 1000.0
AGE = "heptascope_trace_age_seconds"


def _pipeline(age: float | None) -> Pipeline:
    pipeline = Pipeline()
    if age is not None:
        own = [Sample(AGE, (), age), Sample("heptascope_trace_info", labels(file="a.json", format="kineto"), 1.0)]
        pipeline.ingest(Reading("trace", NOW, own))
    pipeline.step(NOW)
    return pipeline


def test_the_page_names_the_trace_and_when_it_was_written() -> None:
    """File and time of writing; without a trace the page says nothing of it."""
    shown = page(_pipeline(60.0).snapshot, None, ())
    assert {"file": "a.json", "written": 940} == shown["trace"]
    models.Page.model_validate_json(json.dumps(shown))
    assert "trace" not in page(_pipeline(None).snapshot, None, ())


def _eager(age: float) -> Played:
    """Return the recording of an eager engine played beside a trace of the same engine that was written `age` seconds before."""
    recording = Recording.open(FOLDER / "eager-b8")
    samples = [
        Sample(name, tuple((k, v) for k, v in pairs), value)
        for name, pairs, value in measure([Path(TRACES / "eager-b8.json.gz")])["signals"]
    ]
    news = list(replay_readings(recording))
    begin = news[0].t
    own = labels(file="eager-b8.json.gz", format="kineto")
    traced = [
        Reading("trace", begin + s, [*samples, Sample(AGE, (), age + s), Sample("heptascope_trace_info", own, 1.0)])
        for s in range(0, 30, 5)
    ]
    state = Played(merge(news, traced, key=lambda item: item.t))
    state.advance(22)
    return state


@pytest.mark.parametrize(("age", "sure", "witness"), [(60.0, "direct", ["TraceLaunchGaps"]), (1000.0, "inferred", [])])
def test_a_fresh_trace_of_a_real_engine_makes_its_verdict_surer(age: float, sure: str, witness: list[str]) -> None:
    """Recording and trace of one eager engine: the fault is surer and names its witness everywhere, unless the trace is old."""
    state = _eager(age)
    assert state.found is not None
    fault = state.found["faults"][0]
    assert ("LaunchOverhead", sure, sure, witness) == (
        fault["rule"],
        fault["confidence"],
        state.found["confidence"],
        fault.get("corroborated_by", []),
    )
    client = Client(create_app(state))
    said = [client.get("/api/v1/export/ticket").text, "\n".join(verdict_lines(state.found))]
    assert [bool(witness)] * 2 == ["A fresh trace shows it too: TraceLaunchGaps" in text for text in said]
    shown = {signal["name"]: signal["values"] for signal in client.get("/api/v1/signals").json()["signals"]}
    assert age < shown[AGE][0]["value"] < age + 30
    assert "eager-b8.json.gz" == client.get("/api/v1/page").json()["trace"]["file"]


@pytest.mark.parametrize(("age", "firing"), [(60.0, 2), (1000.0, 0)])
def test_rules_about_traces_count_where_they_fire(age: float, firing: int) -> None:
    """That rules about traces are clear because there is no fresh one does not make a layer look better judged."""
    layer = Client(create_app(_eager(age))).get("/api/v1/page").json()["layers"]["vllm"]["operator"]
    live = sum(rule.layer is Layer.OPERATOR and not rule.about_trace for rule in load())
    assert live + firing == layer["rules"]
