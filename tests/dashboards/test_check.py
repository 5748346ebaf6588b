"""`heptascope check --dashboards`: which panels are empty, here or in somebody's Prometheus, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from heptascope.sources.prometheus_api import PrometheusApi
from heptascope.surfaces.dashboards import empty, here
from heptascope.surfaces.dashboards.board import load_boards
from heptascope.surfaces.dashboards.empty import CAUSE_WORDS, Cause, Empty, Looked
from heptascope.surfaces.dashboards.report import as_object, lines
from heptascope.surfaces.dashboards.scope import Scope
from support.dashboard_fleet import END, Pod
from support.dashboard_world import world
from support.engine_pages import VLLM_032, capture
from support.engine_server import Answer, EngineServer
from support.heptascope_process import heptascope
from support.played import played
from support.prometheus import running_prometheus
from support.recordings import all_recordings

TEN_MINUTES = 600
HELP = "; see heptascope check --help"
UNTIL = ("--until", str(END))


def causes(found: Iterator[Looked]) -> dict[str, str]:
    """Return the cause of each empty panel, by board and title."""
    return {f"{gap.board.removeprefix('heptascope-')}: {gap.panel}": gap.cause for one in found for gap in one.empty}


def play(pod: Pod, folder: Any, *, rules: bool) -> dict[str, str]:
    """Return the causes where one pod has played for ten minutes."""
    with world(folder, (pod,), END - TEN_MINUTES, rules=rules) as api:
        return causes(empty.look(load_boards(), api, Scope(END - TEN_MINUTES, END)))


def test_without_traffic_without_rules(tmp_path: Any) -> None:
    """With an idle pod the panels about its work wait for traffic, those of recorded series say that the rules are not loaded."""
    found = play(Pod("lab", "spare", 0, (("idle", 0),)), tmp_path, rules=False)
    assert {Cause.NO_TRAFFIC, Cause.NO_RULES, "not_configured"} <= set(found.values())
    assert Cause.NO_RULES == found["capacity: Saturation by deployment"]
    assert Cause.QUIET == found["overview: Root faults now"]
    assert "hardware: Power, of the limit" not in found


def test_with_rules_and_with_work(tmp_path: Any) -> None:
    """Where the rules are loaded and an engine works, nothing is said to wait for either; what the engine has not, is named."""
    found = play(Pod("chat", "assistant", 0, (("kv-severe", 0),)), tmp_path, rules=True)
    assert not {Cause.NO_TRAFFIC, Cause.NO_RULES, Cause.NOT_SCRAPED, Cause.QUERY} & set(found.values())
    assert "not_configured" == found["speculative: Accepted at each draft position"]
    assert Cause.NO_HISTORY in found.values()
    assert Cause.QUIET == found["exporter: Series dropped"]
    assert not {"memory: KV cache usage", "memory: Preemptions"} & set(found)


def test_an_empty_prometheus_is_not_scraping(tmp_path: Any) -> None:
    """The command says so in one line, in JSON for every panel, and ends with status 1."""
    with running_prometheus(tmp_path) as server:
        done = heptascope("check", "--dashboards", "--prometheus", server.url, "--format", "json", *UNTIL)
        text = heptascope("check", "--dashboards", "--prometheus", server.url, *UNTIL)
    found = json.loads(done.stdout)
    assert (1, "") == (done.returncode, done.stderr)
    assert {"not_scraped"} == {gap["cause"] for board in found["boards"] for gap in board["empty"]}
    assert found["panels"] == sum(len(board["empty"]) for board in found["boards"])
    line = f"not_scraped: {CAUSE_WORDS[Cause.NOT_SCRAPED]}; {found['panels']} of {found['panels']} panels are empty\n"
    assert (1, line, "") == (text.returncode, text.stdout, text.stderr)


def test_what_can_never_be_filled_here() -> None:
    """Beside a recording without speculation its panels stay empty, with the reason; what the recording fills is not named."""
    found = {
        (one.uid, gap.panel): gap for one in here.look(load_boards(), played(all_recordings()["kv-severe"]).snapshot()) for gap in one.empty
    }
    drafted = found["heptascope-speculative", "Accepted at each draft position"]
    assert ("not_configured", "speculative decoding is not configured") == (drafted.cause, drafted.detail)
    assert not {("heptascope-memory", "Preemptions"), ("heptascope-hardware", "DRAM traffic")} & set(found)
    assert not {"heptascope-overview"} & {uid for uid, _ in found}


def test_idleness_is_not_for_good() -> None:
    """Beside an idle engine panels about its work are not said to stay empty."""
    found = causes(here.look(load_boards(), played(all_recordings()["idle"]).snapshot()))
    assert not {"memory: Preemptions", "scheduling: Step time: GPU and host", "application: Whole request"} & set(found)


def test_the_command_looks_at_this_machine() -> None:
    """Without a Prometheus the sources here are read; without a GPU the hardware board stays empty."""
    with EngineServer() as engine:
        engine.page(capture(VLLM_032, "steady_16"))
        engine.answers["/version"] = Answer(b'{"version":"0.32.0"}', "application/json")
        done = heptascope("check", "--dashboards", "--gpu", "none", "--engine", engine.url, "--format", "json")
    assert (0, "") == (done.returncode, done.stderr)
    boards = {board["board"]: board["empty"] for board in json.loads(done.stdout)["boards"]}
    powerless = next(gap for gap in boards["heptascope-hardware"] if gap["panel"] == "Power, of the limit")
    assert ("no_source", "gpu.source is none") == (powerless["cause"], powerless["detail"])
    found_here = {"heptascope_finding", "heptascope_finding_root", "heptascope_limiter", "heptascope_layer_state", "heptascope_verdict"}
    assert [] == [gap["panel"] for board in boards.values() for gap in board if found_here & set(gap["signals"])]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--rules", "--dashboards"], "--rules and --dashboards exclude each other; give one of them"),
        (["--prometheus", "http://h"], "--prometheus does nothing by itself; give --dashboards too"),
        (["--dashboards", "--until", "5"], "--until does nothing by itself; give --prometheus too"),
        (
            ["--dashboards", "--prometheus", "localhost:9090"],
            "localhost:9090: not the address of a Prometheus; write it as http://HOST:PORT",
        ),
        (
            ["--dashboards", "--prometheus", "http://127.0.0.1:1"],
            "http://127.0.0.1:1: Connection refused; check the address, and that Prometheus runs there",
        ),
        (
            ["--dashboards", "--prometheus", "http://h", "--until", "noon"],
            "Invalid value for '--until': noon: not a time; write it as 2026-11-29T17:05:00Z or as Unix seconds" + HELP,
        ),
        *(
            (
                ["--dashboards", "--prometheus", "http://h", "--until", time],
                f"Invalid value for '--until': {time}: not a time; write it as 2026-11-29T17:05:00Z or as Unix seconds" + HELP,
            )
            for time in ("nan", "inf", "-5", "1795972200000", "0001-01-01T00:00:00Z")
        ),
        (
            ["--dashboards", "--prometheus", "http://h", "--until", "2026-11-29T17:05:00"],
            "Invalid value for '--until': 2026-11-29T17:05:00: the time zone is missing; write Z for UTC at the end" + HELP,
        ),
    ],
)
def test_bad_input_is_one_line(options: list[str], line: str) -> None:
    """What is wrong with the options or the address is said in one line, with status 2."""
    done = heptascope("check", *options)
    assert (2, "", f"heptascope: {line}\n") == (done.returncode, done.stdout, done.stderr)


def test_people_read_panels_by_cause() -> None:
    """Text groups a board's panels by cause and ends with the sum; JSON has each with words for its cause."""
    gaps = (Empty("b", "One", "quiet"), Empty("b", "Two", "engine", "", ("heptascope_engine_x",)), Empty("b", "Three", "quiet"))
    looked = [Looked("b", "Board", 5, gaps), Looked("c", "Other", 2, ())]
    assert [
        "Board (b): 3 of 5 panels are empty",
        "  quiet: nothing of the kind has happened in this time",
        "    One",
        "    Three",
        "  engine: the engine does not export it",
        "    Two  (without engine_x)",
        "Other (c): all 2 panels have data",
        "\n3 of 7 panels are empty.",
    ] == list(lines(looked, "are empty"))
    found = as_object(looked)
    assert (7, "the engine does not export it") == (found["panels"], found["boards"][0]["empty"][1]["detail"])
    assert "\nEach of 2 panels has data." == list(lines(looked[1:], "are empty"))[-1]


def test_a_refused_query_is_named(tmp_path: Any) -> None:
    """A query that Prometheus cannot read is the panel's cause, not the end of the look."""
    board = load_boards()[0]
    panel = next(panel for panel in board.panels if panel.targets)
    broken = panel.targets[0]._replace(expr="sum by (, pod) (up)")
    changed = type(board)(board.uid, board.title, (type(panel)(1, "Broken", panel.kind, (broken,), {}),), (), (), {})
    with running_prometheus(tmp_path) as server, PrometheusApi(server.url) as api:
        (found,) = empty.look((changed,), api, Scope(END - 60, END))
    assert (Cause.QUERY, True) == (found.empty[0].cause, "parse error" in found.empty[0].detail)
