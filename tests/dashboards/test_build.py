"""The generator: what is committed is what it makes, Grafana's own model reads it, and numbers come from the catalogue."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

import build
from boards import facts
from boards.board import without_menu
from boards.every import files
from boards.limits import Limit, Mark, steps
from boards.panel import Panel, Query
from boards.undrawn import undrawn
from heptascope.model import Layer
from heptascope.rules.load import load
from heptascope.rules.rule import Rule
from support.boards import FOLDER, Object, boards, panels

NAMES = {rule.name: rule for rule in load()}
each_board = pytest.mark.parametrize("uid", sorted(boards()))


def test_there_are_ten_boards() -> None:
    """Overview, one for each layer, capacity, heptascope itself."""
    assert {"heptascope-overview", "heptascope-capacity", "heptascope-exporter", *(f"heptascope-{layer}" for layer in Layer)} == set(
        boards()
    )


def test_every_board_is_described() -> None:
    """docs/dashboards.md has a paragraph for each board, under the board's title and uid."""
    page = (FOLDER.parents[1] / "docs" / "dashboards.md").read_text(encoding="utf-8")
    for uid, board in boards().items():
        assert f"**{board['title'].removeprefix('heptascope / ')}** (`{uid}`)" in page


def test_what_is_committed_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`build.py --check` finds no difference."""
    assert 0 == build.main(["--check"])
    assert "" == capsys.readouterr().out


def test_a_check_names_what_is_not_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed file, a missing one and one that no board makes are named; writing mends all three."""
    assert 0 == build.main(["--out", str(tmp_path)])
    changed, missing, foreign = (tmp_path / f"heptascope-{name}.json" for name in ("memory", "parallel", "old"))
    changed.write_text("{}", encoding="utf-8")
    missing.unlink()
    foreign.write_text("{}", encoding="utf-8")
    assert 1 == build.main(["--check", "--out", str(tmp_path)])
    assert {str(changed), str(missing), str(foreign)} == {line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()}
    assert 0 == build.main(["--out", str(tmp_path)])
    assert {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")} == {
        p.name: p.read_text("utf-8") for p in tmp_path.iterdir()
    }


@each_board
def test_grafanas_model_reads_and_writes_it_unchanged(uid: str) -> None:
    """A round trip through the SDK's own classes loses nothing and adds nothing but the menu that we take out."""
    register_default_plugins()
    text = (FOLDER / f"{uid}.json").read_text(encoding="utf-8")
    again = json.loads(json.dumps(Dashboard.from_json(json.loads(text)), cls=JSONEncoder))
    assert json.loads(text) == without_menu(again)


def test_files_are_small_enough_for_a_configmap() -> None:
    """A ConfigMap holds a mebibyte; a board takes a fifth of it at most."""
    assert all(len(text.encode()) < 200_000 for text in files().values())


def test_lines_follow_the_catalogue() -> None:
    """A threshold's number and colour are those of its rule, whatever they are."""
    rules = {rule.name: rule for rule in load()}
    for name, color in (("PowerBrake", "red"), ("KVCachePreemption", "orange"), ("PcieReplays", "yellow"), ("PowerCapLimit", "blue")):
        threshold = next(iter(rules[name].thresholds))
        line = Limit(name, threshold)
        assert (rules[name].thresholds[threshold], color) == (line.value, color)
        assert name in line.words()
        assert rules[name].summary in line.words()


def described(panel: Object) -> set[str]:
    """Return the rules that a panel's description names for its lines and for its other signs."""
    lists = re.findall(r"^\*\*(?:Lines|Rules):\*\*\n((?:- .*\n?)+)", panel["description"], flags=re.MULTILINE)
    lines = [line for found in lists for line in found.splitlines()]
    return {name for line in lines for name in NAMES if f": [{name}](" in line or f": {name}. " in line}


def drawn(layer: Layer) -> list[tuple[str, Object]]:
    """Return each rule that a layer's board draws, with the panel; the table of findings draws nothing."""
    found = (panel for panel in panels(boards()[f"heptascope-{layer}"]) if panel["type"] != "table")
    return [(name, panel) for panel in found for name in sorted(described(panel))]


@pytest.mark.parametrize("layer", Layer)
def test_every_rule_is_drawn_on_its_layers_board_or_listed_with_a_reason(layer: Layer) -> None:
    """A layer's rules are those that its board draws and those that are listed; none is both, and the table names the listed ones."""
    rules = {rule.name for rule in load() if rule.layer is layer}
    shown, listed = {name for name, _ in drawn(layer)} & rules, rules & undrawn().keys()
    assert (rules, set()) == (shown | listed, shown & listed)
    assert listed == {name for panel in panels(boards()[f"heptascope-{layer}"]) if panel["type"] == "table" for name in described(panel)}


def test_the_list_of_rules_that_are_not_drawn_has_reasons_for_rules_that_exist() -> None:
    """Each entry is a rule of the catalogue, and its reason is a sentence."""
    assert set() == undrawn().keys() - NAMES.keys()
    assert all(len(reason) > 20 for reason in undrawn().values())


@pytest.mark.parametrize("layer", Layer)
def test_a_rule_is_drawn_where_its_signals_are(layer: Layer) -> None:
    """A panel that draws a rule shows a series that the rule reads or has as its evidence."""
    for name, panel in drawn(layer):
        read = {stem(metric) for metric in (*facts.metrics(NAMES[name].expr), *(item.signal for item in NAMES[name].evidence))}
        shown = {stem(metric) for target in panel["targets"] for metric in facts.metrics(target["expr"])}
        assert name in ELSEWHERE or read & shown - {"heptascope_engine_info"}, (name, panel["title"])


ELSEWHERE = {"HostStepLimit": "the host's pressure is the same number as the gap that is drawn"}
"""Rules whose evidence is drawn under another name."""


def stem(signal: str) -> str:
    """Return what is common to a ratio, its counters and the engine's mean of it."""
    base = re.sub(r"_ratio$|(?:_sampled)?_seconds_total$|_seconds_(?:sum|count|bucket)$", "", signal).replace(
        "heptascope_engine_gpu_", "heptascope_gpu_"
    )
    return base.replace("heptascope_gpu_active", "heptascope_gpu_graphics_engine_active")


@pytest.mark.parametrize("rule", load(), ids=lambda rule: rule.name)
def test_evidence_of_every_rule_is_on_its_layers_board(rule: Rule) -> None:
    """What a rule compares with a threshold can be seen on its layer's board."""
    text = json.dumps([panel["targets"] for panel in panels(boards()[f"heptascope-{rule.layer}"])])
    compared = {stem(item.signal) for item in rule.evidence if item.threshold}
    assert rule.name in ELSEWHERE or not compared or any(one in text or one in stem(text) for one in compared), sorted(compared)


def test_lines_on_both_sides_are_refused() -> None:
    """Grafana cannot draw a floor and a ceiling from one list of steps."""
    with pytest.raises(ValueError, match="all be above or all be below"):
        steps([Mark(1, "red", ""), Mark(0, "red", "", below=True)])


def test_steps_below_end_transparent() -> None:
    """A floor has its colour under it, so that Grafana draws the line in that colour."""
    assert [(None, "red"), (0.2, "orange"), (0.5, "transparent")] == [
        (step.value, step.color) for step in steps([Mark(0.5, "orange", "", below=True), Mark(0.2, "red", "", below=True)])
    ]


def test_a_series_that_nobody_makes_is_refused() -> None:
    """A panel about an unknown signal or an unknown recording cannot be written down."""
    for name in ("heptascope_engine_nonsense", "cluster:heptascope_nonsense:rate5m"):
        with pytest.raises(KeyError, match="nonsense"):
            Panel("timeseries", "T", (Query(name, ""),), "short", "shows", "normal", "act")


@pytest.mark.parametrize(
    ("name", "title", "unit"),
    [
        ("heptascope_gpu_sm_clock_hertz", "SM clock", "hertz"),
        ("heptascope_engine_kv_cache_usage_ratio", "KV cache usage", "percentunit"),
        ("heptascope_gpu_dram_throughput_bytes_per_second", "DRAM throughput", "Bps"),
        ("heptascope_engine_preemptions_total", "Preemptions", "short"),
        ("heptascope_engine_inter_token_latency_seconds", "Inter token latency", "s"),
    ],
)
def test_titles_and_units_come_from_the_signal_table(name: str, title: str, unit: str) -> None:
    """A signal's name and unit are enough for a panel's title and unit."""
    assert (title, unit) == (facts.title(name), facts.unit(name))


def test_rates_have_units_of_their_own() -> None:
    """Seconds per second are a share, joules per second watts, bytes per second decimal."""
    found = {name: facts.rate_unit(f"heptascope_{name}") for name in ("gpu_throttle_seconds_total", "gpu_energy_joules_total")}
    assert {"gpu_throttle_seconds_total": "percentunit", "gpu_energy_joules_total": "watt"} == found
    assert "Bps" == facts.rate_unit("heptascope_gpu_pcie_receive_bytes_total")
