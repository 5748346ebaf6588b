"""dashboard-linter's rules, and our own, on every committed board."""

from __future__ import annotations

import re

import promql_parser as syntax
import pytest
import yaml

from heptascope.rules.load import load
from heptascope.signals.schema import signal_of
from heptascope.surfaces.alerts.render import rule_files
from heptascope.surfaces.alerts.settings import RenderSettings
from support.boards import ROOT, VARIABLE, Object, boards, panels, parsed, targets, texts
from support.pint_labels import labels_of, walk

each_board = pytest.mark.parametrize("uid", sorted(boards()))
RATES = ("rate", "irate", "increase")
ALL = ".*"
PLACE = {"cluster", "namespace", "workload", "job", "pod", "instance"}
MOST_QUERIES = 30
CUSTOM_UNIT = re.compile(r"^(suffix|prefix|count|si|time|currency):.+")
UNITS = {"short", "percentunit", "s", "bytes", "Bps", "watt", "joule", "hertz", "celsius", "flops", "reqps"}
"""Grafana's own names of units that the boards use; dashboard-linter knows all of them."""

COLORS = re.compile(
    r"^((semi-)?(dark|light)-)?(semi-dark-|dark-|light-)?(red|orange|yellow|green|blue|purple)$|^(text|transparent)$|^#[0-9a-f]{6}$"
)
BUILT_IN = {"__rate_interval", "__interval", "__range", "__url_time_range", "__data", "__field", "__all"}


def queries(board: Object) -> list[Object]:
    """Return the variables that ask Prometheus for their values."""
    return [variable for variable in board["templating"]["list"] if variable["type"] == "query"]


def metrics(expr: str) -> list[str]:
    """Return the names of the series that a query reads."""
    return [part.name for part, _ in walk(parsed(expr)) if isinstance(part, syntax.VectorSelector)]


@each_board
def test_the_data_source_is_a_variable(uid: str) -> None:
    """A variable `datasource` labelled "Data source"; panels, queries, variables and annotations all point at it."""
    board = boards()[uid]
    first = board["templating"]["list"][0]
    assert ("datasource", "datasource", "Data source", "prometheus") == (first["type"], first["name"], first["label"], first["query"])
    users = [*panels(board), *(t for p in panels(board) for t in p["targets"]), *queries(board), *board["annotations"]["list"]]
    assert {("prometheus", "${datasource}")} == {(one["datasource"]["type"], one["datasource"]["uid"]) for one in users}


@each_board
def test_variables_are_chained_and_offer_all(uid: str) -> None:
    """Each query variable takes several values and All, is asked again when the time changes, and is narrowed by those before it."""
    board = boards()[uid]
    names = [variable["name"] for variable in board["templating"]["list"]]
    for variable in queries(board):
        assert (True, True, ALL, 2) == (variable["multi"], variable["includeAll"], variable["allValue"], variable["refresh"])
        assert {"selected": True, "text": ["All"], "value": ["$__all"]} == variable["current"]
        assert variable["query"] == variable["definition"]
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
        assert asked is not None
        assert asked.group(2) == variable["name"]
        used = set(VARIABLE.findall(asked.group(1)))
        assert used <= set(names[: names.index(variable["name"])])
        assert variable["name"] in ("cluster", "model") or {"cluster"} <= used
        assert all(signal_of(name) for name in metrics(asked.group(1)))
    assert {"job", "instance", "pod"} <= set(names)
    assert {"job": "Job", "instance": "Instance"} == {v["name"]: v["label"] for v in queries(board) if v["name"] in ("job", "instance")}


@each_board
def test_every_variable_that_is_used_is_there_and_the_other_way_round(uid: str) -> None:
    """No query, link or text asks for a variable that the board lacks, and none is offered that changes nothing."""
    board = boards()[uid]
    names = {variable["name"] for variable in board["templating"]["list"]}
    used = {name for text in texts([board["panels"], board["annotations"]]) for name in VARIABLE.findall(text)}
    assert set() == used - names - BUILT_IN
    asked = {name for target in targets(board) for name in VARIABLE.findall(target.expr)}
    assert {"datasource", "runbooks"} >= names - asked


@each_board
def test_panels_explain_themselves(uid: str) -> None:
    """Title, what is shown, what is normal, what to do; a unit; what stands there without data; at least one query."""
    for panel in panels(boards()[uid]):
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["title"]
        assert panel["targets"]
        assert defaults["unit"] in UNITS or CUSTOM_UNIT.match(defaults["unit"]), panel["title"]
        assert len(defaults["noValue"]) > 5
        assert ["**Normal:** ", "**Otherwise:** "] == re.findall(r"\*\*(?:Normal|Otherwise):\*\* ", panel["description"])
        assert not panel["description"].startswith("**")


@each_board
def test_titles_and_numbers_are_unique(uid: str) -> None:
    """Panels have numbers of their own, queries of a panel letters of their own, and no title stands twice."""
    board = boards()[uid]
    every = [panel for top in board["panels"] for panel in (top, *top.get("panels", ()))]
    assert len(every) == len({panel["id"] for panel in every})
    assert len(every) == len({panel["title"] for panel in every})
    for panel in panels(board):
        assert len(panel["targets"]) == len({target["refId"] for target in panel["targets"]})


@each_board
def test_lines_have_names(uid: str) -> None:
    """Every series has a legend made of its labels; the legend is shown and ends with the last value."""
    for panel in panels(boards()[uid]):
        if panel["type"] == "table":
            continue
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
        if panel["type"] == "timeseries":
            assert (True, "table", "lastNotNull") == (
                panel["options"]["legend"]["showLegend"],
                panel["options"]["legend"]["displayMode"],
                panel["options"]["legend"]["calcs"][0],
            )


@each_board
def test_legends_use_labels_that_survive(uid: str) -> None:
    """A legend asks for no label that the query drops on the way."""
    for target in targets(boards()[uid]):
        legend = next(t.get("legendFormat", "") for t in target.panel["targets"] if t["refId"] == target.ref)
        if target.panel["type"] != "table":
            assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= (labels_of(parsed(target.expr)) or set()), target


@each_board
def test_queries_are_promql_about_series_that_exist(uid: str) -> None:
    """Every query parses and reads only series of the signal table or of a recording rule."""
    recorded = {rule.name for file in rule_files(load(), RenderSettings()) for rule in file.recordings}
    for target in targets(boards()[uid]):
        names = metrics(target.expr)
        assert names
        assert [] == [name for name in names if name not in recorded and signal_of(name) is None], target


@each_board
def test_counters_are_rated_over_the_panels_own_interval(uid: str) -> None:
    """A counter stands inside rate, irate or increase; rate and irate use `$__rate_interval`."""
    for target in targets(boards()[uid]):
        assert set() == set(re.findall(r"i?rate\([^\[]*\[([^\]]*)\]", target.expr)) - {"$__rate_interval"}
        for part, above in walk(parsed(target.expr)):
            if (
                isinstance(part, syntax.VectorSelector)
                and ":" not in part.name
                and part.name.endswith(("_total", "_bucket", "_sum", "_count"))
            ):
                assert any(isinstance(outer, syntax.Call) and outer.func.name in RATES for outer in above), target


@each_board
def test_every_selector_follows_the_place(uid: str) -> None:
    """Each series of the exporter is chosen by all labels of the place; recorded ones by those that their level names."""
    exempt = {"slo:heptascope_slo_objective:ratio"}
    for target in targets(boards()[uid]):
        for part, _ in walk(parsed(target.expr)):
            if isinstance(part, syntax.VectorSelector) and part.name not in exempt:
                level = part.name.partition(":")[0]
                whole = ":" not in part.name or level.startswith("pod")
                wanted = PLACE if whole else {"cluster", "namespace", "workload"} & set(level.split("_"))
                assert wanted <= {matcher.name for matcher in part.matchers.matchers}, target


@each_board
def test_few_queries(uid: str) -> None:
    """At most thirty queries make a board."""
    assert MOST_QUERIES >= len(list(targets(boards()[uid])))


@each_board
def test_the_board_itself(uid: str) -> None:
    """A fixed uid, a prefix, one tag, not editable, a sensible range and refresh, a shared crosshair, a model that Grafana 10.4 reads."""
    board = boards()[uid]
    assert uid.startswith("heptascope-")
    assert board["title"].startswith("heptascope / ")
    assert (["heptascope"], False, 1, 39) == (board["tags"], board["editable"], board["graphTooltip"], board["schemaVersion"])
    assert board["time"]["from"] in ("now-1h", "now-7d")
    assert board["refresh"] in ("30s", "5m")
    assert board["timezone"] == "browser"


@each_board
def test_links_keep_variables_and_time(uid: str) -> None:
    """The links above the board carry both on; those inside panels name both, and lead to boards that exist."""
    board = boards()[uid]
    assert {(True, True)} == {(link["includeVars"], link["keepTime"]) for link in board["links"]}
    assert all("placement" not in one for one in (*board["links"], *board["annotations"]["list"]))
    inside = [text for text in texts(board["panels"]) if text.startswith("/d/")]
    for url in inside:
        assert "${__url_time_range}" in url
        assert "${datasource:queryparam}" in url
        target = url.removeprefix("/d/").partition("?")[0]
        assert target in boards() or target in ("heptascope-${__field.labels.layer}", "heptascope-${__data.fields.Layer}")


@each_board
def test_tables_show_each_label_or_hide_it(uid: str) -> None:
    """Every label of a table's query is a column or is left out on purpose, so that none appears under its raw name."""
    for panel in panels(boards()[uid]):
        if panel["type"] == "table":
            options = next(t["options"] for t in panel["transformations"] if t["id"] == "organize")
            shown = {*options["renameByName"], *options["excludeByName"]}
            labels = {
                label
                for t in panel["targets"]
                for label in re.findall(r"^(?:sort_desc)?\(?(?:\w+, )?(?:max|count|sum) by \(([^)]*)\)", t["expr"])
            }
            assert set() == {one for group in labels for one in group.split(", ")} - shown, panel["title"]


@each_board
def test_colours_read_in_light_and_dark(uid: str) -> None:
    """Colours are Grafana's names, which follow the theme, or middling tones; never white or black."""
    found = re.findall(r'"(?:color|fixedColor|iconColor)": "([^"]+)"', (ROOT / "dashboards" / "json" / f"{uid}.json").read_text("utf-8"))
    for color in found:
        assert COLORS.match(color), color
        if color.startswith("#"):
            assert 80 < sum(int(color[i : i + 2], 16) for i in (1, 3, 5)) / 3 < 190


@each_board
def test_thresholds_are_drawn_on_the_right_side(uid: str) -> None:
    """Grafana draws a line in the colour of the step above it, or below it if a later step is transparent; one of the two is meant."""
    for panel in panels(boards()[uid]):
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None
        assert [step["value"] for step in steps[1:]] == sorted(step["value"] for step in steps[1:])
        if panel["type"] == "timeseries" and len(steps) > 1:
            assert 1 == sum(step["color"] == "transparent" for step in steps)
            assert "transparent" in (steps[0]["color"], steps[-1]["color"])
            assert "dashed" == panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"]
            assert "**Lines:**" in panel["description"]


def test_exceptions_have_reasons() -> None:
    """The exceptions for dashboard-linter name its rules, and each says why."""
    exclusions = yaml.safe_load((ROOT / "dashboards" / ".lint").read_text(encoding="utf-8"))["exclusions"]
    assert {"template-job-rule", "template-instance-rule", "target-job-rule", "target-instance-rule"} == set(exclusions)
    assert all(len(entry["reason"]) > 20 for entry in exclusions.values())
