"""Runbooks: one page for each alert, one alert for each page, complete and with queries that run."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest

from heptascope.errors import UserError
from heptascope.rules.load import load
from heptascope.surfaces.alerts.model import Recording
from heptascope.surfaces.alerts.pages import SECTIONS, refreshed
from heptascope.surfaces.alerts.render import rule_files
from heptascope.surfaces.alerts.settings import RenderSettings, load_settings
from support.pint import unknown_names

ALERTS = Path(__file__).parents[2] / "alerts"
FILES = rule_files(load(), RenderSettings())
URLS = {alert.name: alert.annotations["runbook_url"] for file in FILES for alert in file.alerts}
RECORDED = {rule.name for file in FILES for rule in file.recordings if isinstance(rule, Recording)}
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ALERTS / "runbooks").glob("*.md"))}
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_GENERATED = re.compile(r"<!-- generated: \w+ -->.*?<!-- end: \w+ -->", re.DOTALL)
_LINK = re.compile(r"\]\(([^)]+)\)")


def _section(page: str, title: str) -> str:
    return page.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_alerts_pages_and_addresses_are_one_to_one() -> None:
    """Each alert has a page of its name, each page an alert, and each alert's address ends in its own page."""
    assert sorted(URLS) == sorted(PAGES)
    assert {name: f"{RenderSettings().runbooks}/{name}.md" for name in URLS} == URLS


def test_every_language_has_every_page() -> None:
    """A folder of another language holds the same pages."""
    folders = [path for path in (ALERTS / "runbooks").iterdir() if path.is_dir()]
    assert {folder.name: sorted(PAGES) for folder in folders} == {
        folder.name: sorted(p.stem for p in folder.glob("*.md")) for folder in folders
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_complete(name: str) -> None:
    """Its title is the alert; every section is there, in order, with something in it; what to confirm are one command and one query."""
    page = PAGES[name]
    assert page.startswith(f"# {name}\n")
    assert list(SECTIONS) == re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert [] == [title for title in SECTIONS if len(_section(page, title).split()) < 4]
    assert ["sh", "promql"] == [kind for kind, _ in _BLOCK.findall(_section(page, "Confirm"))]
    assert [] == [
        title for title in ("Likely causes", "Fixes", "What not to do") if not re.search(r"^(- |1\. )", _section(page, title), re.MULTILINE)
    ]


@pytest.mark.parametrize("name", PAGES)
def test_queries_run_as_they_stand(name: str) -> None:
    """Each query parses and reads only series that exist."""
    for kind, text in _BLOCK.findall(PAGES[name]):
        if kind == "promql":
            promql_parser.parse(text)
            assert [] == unknown_names(text, RECORDED)


@pytest.mark.parametrize("name", PAGES)
def test_signals_in_the_text_exist(name: str) -> None:
    """What a page calls a series of heptascope's is one."""
    named = set(re.findall(r"(?<![:\w])heptascope_(?:gpu|engine|host|source|signal)_[a-z0-9_]+", PAGES[name]))
    assert [] == [signal for signal in named if unknown_names(signal, RECORDED)]


def test_engines_have_their_fixes() -> None:
    """Every page of a catalogue rule says what to do for vLLM, SGLang and TensorRT-LLM, unless the hardware is at fault."""
    rules = {rule.name: rule for rule in load()}
    lacking = {
        name: [engine for engine in ("vLLM", "SGLang", "TensorRT-LLM") if engine not in _section(page, "Fixes")]
        for name, page in PAGES.items()
        if name in rules and {action.when for action in rules[name].actions} & {"vllm", "sglang", "tensorrt-llm"}
    }
    assert {} == {name: engines for name, engines in lacking.items() if engines}


def test_links_lead_somewhere() -> None:
    """Every relative link of a page and of the index is a file."""
    texts = {ALERTS / "runbooks" / f"{name}.md": page for name, page in PAGES.items()} | {
        ALERTS / "README.md": (ALERTS / "README.md").read_text(encoding="utf-8")
    }
    broken = [
        (path.name, link)
        for path, text in texts.items()
        for link in _LINK.findall(text)
        if not (path.parent / link.partition("#")[0]).exists()
    ]
    assert [] == broken


def test_thresholds_are_typed_once() -> None:
    """The prose names no threshold's number beside its name: the numbers stand in the generated part."""
    for rule in load():
        prose = _GENERATED.sub("", PAGES.get(rule.name, ""))
        assert [] == [name for name in rule.thresholds if re.search(rf"`{name}`\s*(=|is)\s*\d", prose)], rule.name


def test_a_page_without_an_alert_is_refused(tmp_path: Path) -> None:
    """A page that nobody links to is an error with its path."""
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "Nonsense.md").write_text("# Nonsense\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"Nonsense.md: there is no alert of this name; rename or remove the page"):
        refreshed(tmp_path, load(), RenderSettings())


def _page(folder: Path, name: str) -> Path:
    """Return an empty page of an alert."""
    (path := folder / "runbooks" / f"{name}.md").parent.mkdir(exist_ok=True)
    path.write_text("<!-- generated: facts -->\n<!-- end: facts -->\n<!-- generated: links -->\n<!-- end: links -->\n", encoding="utf-8")
    return path


def test_the_page_of_an_alert_that_is_switched_off_stays(tmp_path: Path) -> None:
    """It is neither refused nor touched, and the index no longer names the alert."""
    off, on = _page(tmp_path, "EvictionChurn"), _page(tmp_path, "KVCachePreemption")
    (index := tmp_path / "README.md").write_text("<!-- generated: alerts -->\n<!-- end: alerts -->\n", encoding="utf-8")
    texts = refreshed(tmp_path, load(), load_settings(None, ["EvictionChurn.enabled=false"]))
    assert (False, True) == (off in texts, on in texts)
    assert (False, True) == ("EvictionChurn" in texts[index], "KVCachePreemption" in texts[index])


@pytest.mark.parametrize(
    ("change", "page", "row"),
    [
        ("KVCachePreemption.preemptions_per_second=0.5", "KVCachePreemption", "`preemptions_per_second` = 0.5 | changed when it was"),
        ("ReplicaImbalance.factor=3", "ReplicaImbalance", "`factor` = 3 | changed when it was rendered; else 2: "),
        ("AvailabilityErrorBudgetBurn.events_per_second=1", "AvailabilityErrorBudgetBurn", "`events_per_second` = 1 | changed when it"),
    ],
)
def test_a_page_has_the_thresholds_that_were_rendered(change: str, page: str, row: str, tmp_path: Path) -> None:
    """Whoever is woken reads the number that woke them, and what it is otherwise."""
    path = _page(tmp_path, page)
    assert (True, False) == tuple(row in refreshed(tmp_path, load(), load_settings(None, changes))[path] for changes in ([change], []))


def test_a_page_without_its_marks_is_refused(tmp_path: Path) -> None:
    """A page whose generated part cannot be found is an error that says what to put there."""
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "GpuLost.md").write_text("# GpuLost\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"must hold one part 'facts'; put <!-- generated: facts -->"):
        refreshed(tmp_path, load(), RenderSettings())


def test_another_language_gets_facts_and_links_too(tmp_path: Path) -> None:
    """A page one folder deeper has its generated parts renewed, with links that fit."""
    page = tmp_path / "runbooks" / "de" / "GpuLost.md"
    page.parent.mkdir(parents=True)
    page.write_text(
        "<!-- generated: facts -->\n<!-- end: facts -->\nText\n<!-- generated: links -->\n<!-- end: links -->\n", encoding="utf-8"
    )
    text = refreshed(tmp_path, load(), RenderSettings())[page]
    assert (True, True, True) == ("| Severity | critical |" in text, "../../rules/hardware.yaml" in text, "\nText\n" in text)
