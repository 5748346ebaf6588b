"""The `/metrics` page."""

from __future__ import annotations

import gzip
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import CollectorRegistry

from heptascope.model import labels
from heptascope.signals.snapshot import EMPTY, Snapshot
from heptascope.surfaces.exposition import Exposition, Format, negotiate
from heptascope.surfaces.own import own_values
from heptascope.surfaces.prometheus import SnapshotCollector
from support.prometheus import program
from support.snapshots import T0, busy, complete, failing

TEXT = negotiate("")
OPENMETRICS = negotiate("application/openmetrics-text;version=1.0.0")
# What Prometheus 2.42 and 3.x send.
PROMETHEUS_2 = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5"
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,*/*;q=0.1"
)
SNAPSHOTS = [busy(), busy(gpus=3), failing(), complete(), replace(EMPTY, version=1, t=T0)]


@pytest.mark.parametrize("format", [TEXT, OPENMETRICS, negotiate(PROMETHEUS_2), negotiate(PROMETHEUS_3)], ids=lambda f: f.content_type)
def test_the_page_is_what_the_client_library_writes(format: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte, over snapshots whose series come and go, with the templates of the one before."""
    monkeypatch.setattr("heptascope.surfaces.own.time.process_time", lambda: 1.5)
    monkeypatch.setattr("heptascope.surfaces.own.resident_bytes", lambda: 2.0**20)
    exposition = Exposition()
    for version, snapshot in enumerate([*SNAPSHOTS, *SNAPSHOTS, busy(T0 + 90)], start=1):
        one = replace(snapshot, version=version)
        exposition._render_seconds = None  # the one number that no second rendering can repeat
        page = exposition.page(one, one.t, format)
        expected = format.encode(SnapshotCollector(one.with_values(own_values(one, one.t))))
        assert expected == page.plain


@pytest.mark.parametrize("snapshot", SNAPSHOTS[:4])
def test_both_formats_say_the_same(snapshot: Snapshot) -> None:
    """The OpenMetrics page, read by the client's parser, holds the series and values of the text page."""
    exposition = Exposition()
    text = exposition.page(snapshot, snapshot.t, TEXT).plain.decode()
    openmetrics = exposition.page(snapshot, snapshot.t, OPENMETRICS).plain.decode()
    moving = {"heptascope_process_cpu_seconds_total", "heptascope_process_resident_bytes", "heptascope_pass_duration_seconds"}
    pages = [
        {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families
            for sample in family.samples
            if sample.name not in moving
        }
        for families in (parse_text(text), parse_openmetrics(openmetrics))
    ]
    assert pages[0] == pages[1]
    assert len(pages[0]) > 50


@pytest.mark.parametrize("snapshot", SNAPSHOTS[:4])
def test_promtool_has_nothing_to_say(snapshot: Snapshot) -> None:
    """The real promtool accepts the page of every signal there is, and of real ones, without a remark."""
    page = Exposition().page(snapshot, snapshot.t, TEXT).plain
    done = subprocess.run([program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False, timeout=60)
    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("format", [TEXT, OPENMETRICS])
def test_no_created_series(format: Format) -> None:
    """The page has no `_created` series, which double the number of counters."""
    assert b"_created" not in Exposition().page(complete(), T0, format).plain


def test_openmetrics_units() -> None:
    """A unit is told where the name ends in it, and only there, as OpenMetrics demands."""
    page = Exposition().page(complete(), T0, OPENMETRICS).plain.decode()
    assert "# UNIT heptascope_gpu_power_watts watts\n" in page
    assert "# UNIT heptascope_engine_spec_accepted_tokens_per_position" not in page
    assert page.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html,application/xhtml+xml", "text/plain; version=0.0.4; charset=utf-8"),
        (PROMETHEUS_2, "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"),
        (PROMETHEUS_3, "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        ("text/plain;version=1.0.0", "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"),
        ("application/openmetrics-text;version=9.9.9", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text;version=1.0.0;escaping=dots", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text;version=x.y", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_negotiation(accept: str, content_type: str) -> None:
    """Real scrapers get OpenMetrics 1.0; odd versions and escapings get the text that everyone reads."""
    assert content_type == negotiate(accept).content_type


def test_eight_scrapers_cost_one_rendering() -> None:
    """Within a snapshot the very same body is handed out, compressed once."""
    exposition, snapshot = Exposition(), busy()
    pages = [exposition.page(snapshot, snapshot.t + i / 10, OPENMETRICS) for i in range(8)]
    assert {id(pages[0])} == {id(page) for page in pages}
    assert {id(pages[0].gzipped)} == {id(page.gzipped) for page in pages}
    assert pages[0].plain == gzip.decompress(pages[0].gzipped)


def test_a_new_snapshot_is_a_new_page() -> None:
    """The page follows the snapshot's version."""
    exposition = Exposition()
    before = exposition.page(busy(T0 + 60, 1), T0 + 60, TEXT).plain
    after = exposition.page(busy(T0 + 61, 2), T0 + 61, TEXT).plain
    steps = 'heptascope_engine_steps_total{engine="vllm",rank="0"}'
    assert f"{steps} {124 * 60.0}".encode() in before
    assert f"{steps} {124 * 61.0}".encode() in after


def test_ages_grow_while_the_pipeline_hangs() -> None:
    """The same snapshot a minute later shows sources that are a minute older."""
    exposition, snapshot = Exposition(), busy(T0 + 60)
    exposition.page(snapshot, T0 + 60, TEXT)
    later = exposition.page(snapshot, T0 + 120, TEXT).plain.decode()
    age = next(line for line in later.splitlines() if line.startswith('heptascope_source_age_seconds{source="nvml"}'))
    assert 60.2 == pytest.approx(float(age.split()[1]), abs=1e-3)


def test_the_rendering_tells_its_own_time() -> None:
    """The time of the last rendering stands beside the pipeline's stages."""
    exposition = Exposition()
    stage = "heptascope_pass_duration_seconds"
    with_stage = busy(T0 + 60, 1).with_values({stage: ((labels(stage="rules"), 0.004),)})
    first = exposition.page(with_stage, T0 + 60, TEXT).plain
    second = exposition.page(replace(with_stage, version=2), T0 + 61, TEXT).plain
    assert b'stage="render"' not in first
    assert f'{stage}{{stage="rules"}} 0.004\n{stage}{{stage="render"}} '.encode() in second


def test_names_restrict_the_page() -> None:
    """`name[]` asks for some series, heptascope's own ones included; unknown names give an empty page."""
    exposition, snapshot = Exposition(), busy()
    page = exposition.page(snapshot, snapshot.t, TEXT, ["heptascope_source_up", "heptascope_gpu_power_watts"]).plain.decode()
    assert {"heptascope_source_up", "heptascope_gpu_power_watts"} == {
        line.split("{")[0] for line in page.splitlines() if not line.startswith("#")
    }
    assert b"" == exposition.page(snapshot, snapshot.t, TEXT, ["nothing"]).plain
    assert b"# EOF\n" == exposition.page(snapshot, snapshot.t, OPENMETRICS, ["nothing"]).plain


def test_a_registry_takes_the_collector() -> None:
    """The families can join a registry beside others; no two of them clash."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(complete()))
    assert 1.0 == registry.get_sample_value("heptascope_host_cpus", {})
