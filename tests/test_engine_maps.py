"""Adapters from a YAML file: the example of the documentation, and one clear line for each mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heptascope.config import EngineSettings, PollSettings
from heptascope.engine_maps import map_adapter
from heptascope.engines import Engines
from heptascope.errors import UserError
from heptascope.model import Quality
from heptascope.sources.engine.reader import EngineReader
from support.engine_pages import histogram, quality, reason, value
from support.engine_server import Answer, EngineServer
from support.page_text import page

DOCS = Path(__file__).parents[1] / "docs" / "engines.md"
EXAMPLE = re.findall(r"```yaml\n(# acme\.yaml.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)[0]
ACME = page(
    """
    gauge acme_active{shard="0",model="chat",host="a"} 5
    gauge acme_queued{shard="0",model="chat",host="a"} 2
    gauge acme_blocks_used{shard="0",model="chat"} 30
    gauge acme_blocks{shard="0",model="chat"} 120
    counter acme_tokens_total{shard="0",model="chat",kind="prompt"} 900
    counter acme_tokens_total{shard="0",model="chat",kind="output"} 400
    counter acme_done_total{shard="0",model="chat",why="stop"} 7
    counter acme_loops_total{shard="0",model="chat"} 350
    histogram acme_first_token_ms{shard="0",model="chat"} 50=3 +Inf=7 sum=420
    """
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the documented example."""
    path = tmp_path / "acme.yaml"
    path.write_text(EXAMPLE, encoding="utf-8")
    return path


def test_the_documented_example_reads_its_page(file: Path) -> None:
    """Selectors, renamed labels, units, quotients and ranks, as the file says."""
    out = EngineReader(None, map_adapter(file)).read_page(ACME, "", 1.0)
    signals = (
        "requests_running",
        "requests_waiting",
        "kv_cache_usage_ratio",
        "prompt_tokens_total",
        "generation_tokens_total",
        "steps_total",
    )
    assert (5.0, 2.0, 0.25, 900.0, 400.0, 350.0) == tuple(value(out, s, rank="0") for s in signals)
    assert 7.0 == value(out, "requests_finished_total", reason="stop")
    assert (0.05, 0.42) == (histogram(out, "time_to_first_token_seconds").bounds[0], histogram(out, "time_to_first_token_seconds").sum)
    assert Quality.APPROXIMATE is quality(out, "steps_total")
    info = next(dict(s.labels) for s in out.samples if s.name.endswith("engine_info"))
    assert ("acme", "chat") == (info["kind"], info["model"])
    assert "engine" == reason(out, "preemptions_total")


def test_a_configured_engine_is_read_by_its_file(file: Path) -> None:
    """From the configuration to a reading, information page included."""
    with EngineServer() as server:
        server.page(ACME)
        server.answers["/about"] = Answer(
            b'{"release": {"version": "2.1"}, "limits": {"batch": 32}, "numbers": "bf16"}', "application/json"
        )
        (source,) = Engines(PollSettings()).configured([EngineSettings(url=server.url, kind="table", map=file)])
        out = source.read(1.0)
        source.close()
    assert ("acme", 32.0) == (source.reader.name, value(out, "sequence_limit"))
    assert "2.1" == next(dict(s.labels)["version"] for s in out.samples if s.name.endswith("engine_info"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "signal: requests_running",
            "signal: requests_runing",
            r"acme.yaml:\d+: rows\[0\]: there is no engine signal 'requests_runing'; docs/metrics.md",
        ),
        ("read: gauge", "read: counter", r"acme.yaml:\d+: rows\[0\]: requests_running is a gauge; read it as gauge or ratio"),
        ("read: gauge", "read: level", r"acme.yaml:\d+: rows\[0\].read: Input should be 'gauge'"),
        ("kind: acme", "kind: vllm", r"acme.yaml:\d+: kind vllm is built in; choose another name"),
        ("rank_label: shard", "rank: shard", r"acme.yaml:\d+: unknown key 'rank'; docs/engines.md lists the keys"),
        ("keep: {why: reason}", "keep: {why: cause}", r"requests_finished_total has the label reason; fit keep"),
        ("max_num_seqs: limits.batch", "batch: limits.batch", r"acme.yaml:\d+: info: there is no setting 'batch'; use one of max_num_seqs"),
        ("prefix: acme_", "", r"acme.yaml:1: prefix: Field required"),
        ("read: gauge", "read: gauge\n    scale: .inf", r"acme.yaml:\d+: rows\[0\].scale: Input should be a finite number"),
        pytest.param("prefix: acme_", "prefix: " + "[" * 5000, r"acme.yaml: nested deeper than 20 levels", id="nested"),
    ],
)
def test_mistakes_are_named(file: Path, old: str, new: str, message: str) -> None:
    """File, line, key, and what is allowed."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        map_adapter(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The path stands in the line."""
    with pytest.raises(UserError, match=r"missing.yaml: cannot read the file"):
        map_adapter(tmp_path / "missing.yaml")


@pytest.mark.parametrize("given", [{"kind": "table"}, {"map": "x.yaml"}, {"kind": "vllm", "map": "x.yaml"}])
def test_kind_and_map_go_together(given: dict[str, str]) -> None:
    """One without the other is a mistake of the configuration."""
    with pytest.raises(ValueError, match="kind: table and map go together"):
        EngineSettings.model_validate({"url": "http://h:1", **given})
