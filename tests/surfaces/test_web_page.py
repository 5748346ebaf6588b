"""The page for people as the server sends it, which is what a browser without scripts shows."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from heptascope.model import Layer, Missing, Reason, SourceStatus, labels
from heptascope.signals.snapshot import EMPTY, Snapshot
from heptascope.surfaces.web.app import create_app
from support.snapshots import UUIDS, busy, complete, failing
from support.web_client import Client
from support.web_state import MemoryState

VOID = {"meta", "link", "input", "br", "wbr"}
LEFT_OPEN = {"th"}  # a table's head leaves its cells open, as HTML allows


class Outline(HTMLParser):
    """Reads a page: elements left open, texts by data-k, addresses, text of the whole."""

    def __init__(self, page: str) -> None:
        """Parse `page`."""
        super().__init__()
        self.open: list[str] = []
        self.cells: dict[str, str] = {}
        self.titles: dict[str, str] = {}
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self.words = ""
        self._key = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        found = dict(attrs)
        self.addresses += [found[name] or "" for name in ("href", "src") if name in found]
        self.inline += [name for name in found if name == "style" or name.startswith("on")]
        self._key = found.get("data-k") or ""
        if self._key:
            assert self._key not in self.cells, f"two cells for {self._key}"
            self.cells[self._key] = ""
            self.titles[self._key] = found.get("title") or ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        while self.open[-1] in LEFT_OPEN and self.open[-1] != tag:
            self.open.pop()
        assert tag == self.open.pop()
        self._key = ""

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.words += data
        if self._key:
            self.cells[self._key] += data


def page_of(snapshot: Snapshot, **fields: object) -> str:
    """Return the page that shows `snapshot`."""
    state = MemoryState(snapshot)
    for name, value in fields.items():
        setattr(state, name, value)
    answer = Client(create_app(state)).get("/")
    assert (200, "text/html; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    return answer.text


@pytest.mark.parametrize(
    "snapshot", [EMPTY, busy(), busy(gpus=8), failing(), complete()], ids=["empty", "busy", "eight", "failing", "complete"]
)
def test_well_formed_and_self_contained(snapshot: Snapshot) -> None:
    """Every element is closed, no series has two cells, nothing inline that the policy forbids, no address outside."""
    outline = Outline(page_of(snapshot))
    assert [] == outline.open
    assert [] == outline.inline
    assert not [address for address in outline.addresses if re.match(r"[a-z]+:|//|/", address)]
    assert "$" not in outline.words


def test_values_for_people_with_the_raw_ones_beside() -> None:
    """A cell shows a short text; its title is the series as Prometheus shows it."""
    outline = Outline(page_of(busy()))
    key = f"heptascope_gpu_sm_active_ratio{{gpu=0,uuid={UUIDS[0]}}}"
    assert "68.4 %" == outline.cells[key]
    assert f'heptascope_gpu_sm_active_ratio{{gpu="0", uuid="{UUIDS[0]}"}} 0.684' == outline.titles[key]


def test_keys_are_those_that_the_script_makes() -> None:
    """Each cell is named by name and labels in the order of the API's answer."""
    state = MemoryState(busy())
    client = Client(create_app(state))
    answered = {
        f"{row['name']}{{{','.join(f'{name}={text}' for name, text in value['labels'].items())}}}": value["text"]
        for row in client.get("/api/v1/signals").json()["signals"]
        for value in row["values"]
    }
    cells = Outline(client.get("/").text).cells
    assert len(cells) > 60
    steady = {key: text for key, text in cells.items() if not key.startswith("heptascope_process_")}
    assert steady == {key: answered[key] for key in steady}


def test_layers_in_order() -> None:
    """Signals stand under their layers, from the silicon up; a layer without signals is left out."""
    titles = re.findall(r"<h2>(.*?)</h2>", page_of(complete()))
    assert ["Sources", *Layer, "heptascope itself"] == titles
    assert "speculative" not in re.findall(r"<h2>(.*?)</h2>", page_of(busy()))


def test_one_card_and_engine_need_no_labels() -> None:
    """Labels that tell nothing apart are left out; with two cards they are there."""
    assert '<span class="where">gpu 0</span>' not in page_of(busy())
    two = page_of(busy(gpus=2))
    assert '<span class="where">gpu 0</span>' in two
    assert '<span class="where">gpu 1</span>' in two
    assert '<span class="where">vllm</span>' not in two


def test_what_is_watched() -> None:
    """The page begins with the engine and the cards, equal ones counted."""
    assert "Watching vllm 0.25.1 llama-8b · 2 × NVIDIA H200 driver 580.159.04" in Outline(page_of(busy(gpus=2))).words


def test_a_source_that_is_down() -> None:
    """State, age and the reason stand in the table of sources."""
    words = Outline(page_of(failing())).words
    assert "vllmdown47.3 s5 s12source down – http://127.0.0.1:8000/metrics: connection refused" in words


def test_gaps_by_reason() -> None:
    """What cannot be had is grouped by reason, with the remedy."""
    words = Outline(page_of(busy())).words
    assert "flag off: start vLLM with --enable-mfu-metricsengine_estimated_flops_total engine_estimated_dram_bytes_total" in words
    assert "not configured: the feature behind it is off" in words


def test_verdict() -> None:
    """The verdict's sentence leads, in the title its state."""
    limiter = {"summary": "DRAM bandwidth bounds the engine.", "actions": ["Quantise <weights>."]}
    page = page_of(busy(), found={"state": "healthy", "limiter": limiter})
    assert "<title>healthy · heptascope</title>" in page
    assert '<section class="verdict healthy" aria-label="Verdict"><h2>healthy</h2><p>DRAM bandwidth bounds the engine.' in page
    assert "Quantise &lt;weights&gt;." in page
    assert 'class="verdict' not in page_of(busy())


def test_before_the_first_snapshot() -> None:
    """The page says that it waits."""
    words = Outline(page_of(EMPTY)).words
    assert "Waiting for the first readings" in words
    assert "No source has been read yet." in words


def test_hostile_texts_stay_texts() -> None:
    """Labels, messages and details from outside cannot become markup."""
    evil = "<script>alert(1)</script>\"'&"
    snapshot = replace(
        EMPTY,
        version=1,
        values={"heptascope_engine_requests_running": ((labels(engine=evil), 1.0), (labels(engine="b\udcff"), 1.0))},
        missing=(Missing("heptascope_gpu_up", Reason.INVALID, evil, labels(gpu=evil)), Missing(evil, Reason.STALE)),
        sources=(SourceStatus(evil, "engine", False, None, None, Reason.INVALID, evil),),
    )
    page = page_of(snapshot, found={"state": evil, "faults": [{"summary": evil, "actions": [evil]}]})
    assert "<script>alert" not in page
    assert [] == Outline(page).open
    assert Outline(page).words.count(evil) >= 8


def test_small() -> None:
    """All files of the page together stay below 150 KB as they are sent, without a reference to the outside."""
    contents = [file.read_text(encoding="utf-8") for file in (files("heptascope.surfaces.web") / "static").iterdir()]
    assert sum(len(gzip.compress(content.encode(), 1)) for content in contents) <= 150_000
    outside = {address for content in contents for address in re.findall(r"(?:https?:)?//[\w.]+", content)} - {"http://www.w3.org"}
    assert not {address for address in outside if "." in address}


def test_names_may_break_where_words_end() -> None:
    """Long names wrap after an underscore, on narrow screens."""
    assert ">engine_<wbr>requests_<wbr>running</a>" in page_of(busy())
