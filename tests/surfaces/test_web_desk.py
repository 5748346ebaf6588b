"""The page as an object, its stream, and what can be taken away."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from heptascope.demo.scenarios import FOLDER
from heptascope.model import FindingState, Reading, Reason, Sample, SourceStatus, labels
from heptascope.rules.diagnose import Diagnoser
from heptascope.sources.recording import Recording
from heptascope.surfaces.web import desk, lookback
from heptascope.surfaces.web import desk_models as models
from heptascope.surfaces.web.app import create_app
from heptascope.surfaces.web.chronicle import KEPT_SECONDS, Chronicle
from heptascope.surfaces.web.lookback import Lookback
from heptascope.surfaces.web.patch import merge_patch
from heptascope.surfaces.web.site import Site
from heptascope.surfaces.web.stream import MOST_WAITING, Broadcaster, message
from heptascope.surfaces.web.ticket import escaped
from support.degrade import without_engine
from support.played import played, severe
from support.snapshots import busy, failing
from support.web_client import Client
from support.web_state import MemoryState


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/api/v1/page", models.Page),
        ("/api/v1/charts", models.Charts),
        ("/api/v1/rules", models.Rules),
        ("/api/v1/findings", models.Findings),
        ("/api/v1/trends?rule=KVCachePreemption", models.Trends),
    ],
)
def test_answers_have_the_documented_shape(path: str, model: type[BaseModel]) -> None:
    """What is sent is what OpenAPI promises: every field, and no other."""
    answer = Client(create_app(severe())).get(path)
    assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])
    model.model_validate_json(answer.content)


@pytest.mark.parametrize("state", [MemoryState(), MemoryState(busy()), MemoryState(failing())], ids=["empty", "busy", "failing"])
def test_without_rules_there_is_a_page_too(state: MemoryState) -> None:
    """Before the first verdict the page has engines, cards and sources, and no verdict."""
    client = Client(create_app(state))
    page = models.Page.model_validate_json(client.get("/api/v1/page").content)
    assert {} == page.verdicts
    assert [] == client.get("/api/v1/findings").json()["findings"]
    assert 404 == client.get("/api/v1/export/ticket").status_code


def test_the_page_says_what_the_verdict_says() -> None:
    """State, limiter, faults, consequences and what could not be judged are those of the verdict."""
    state = severe()
    page = Client(create_app(state)).get("/api/v1/page").json()
    verdict, said = state.found, page["verdicts"]["vllm"]
    assert verdict is not None
    assert verdict["state"] == said["state"]
    for name in ("faults", "consequences", "symptoms"):
        assert [claim["rule"] for claim in verdict[name]] == [page["claims"][key]["rule"] for key in said[name]]
    assert verdict["limiter"]["rule"] == page["claims"][said["limiter"]]["rule"]
    assert {row["rule"] for row in verdict["cannot_tell"]} == set(said["unknown"])
    memory = page["layers"]["vllm"]["memory"]
    assert "faulty" == memory["state"]
    assert 0 < memory["judged"] < memory["rules"]


def test_nothing_in_the_page_is_null() -> None:
    """A merge patch cannot tell a null from something gone, so there is none."""

    def nulls(value: Any) -> bool:
        return value is None or any(map(nulls, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()))

    assert not nulls(Client(create_app(severe())).get("/api/v1/page").json())


def test_runbooks_in_another_language(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Chinese page is found in the folder of that language; where there is none, the text is empty."""
    (tmp_path / "zh").mkdir()
    (tmp_path / "KVCachePreemption.md").write_text("# In English", encoding="utf-8")
    (tmp_path / "zh" / "KVCachePreemption.md").write_text("# 中文", encoding="utf-8")
    monkeypatch.setattr(desk, "_runbook_folders", lambda: (tmp_path,))
    monkeypatch.setattr(desk, "runbook", desk.runbook.__wrapped__)
    rules = {row["rule"]: row for row in Client(create_app(severe())).get("/api/v1/rules?layer=memory").json()["rules"]}
    assert ("# In English", "# 中文") == (rules["KVCachePreemption"]["runbook"], rules["KVCachePreemption"]["runbook_zh"])
    assert ("", "") == (rules["KVCacheExhausted"]["runbook"], rules["KVCacheExhausted"]["runbook_zh"])


def test_rules_and_findings_by_layer() -> None:
    """A layer's rules carry their PromQL filled in; its findings the state, values and reasons."""
    client = Client(create_app(severe()))
    rules = {row["rule"]: row for row in client.get("/api/v1/rules?layer=memory").json()["rules"]}
    assert "$" not in "".join(row["promql"] for row in rules.values())
    assert "KVCacheExhausted" in rules["KVCachePreemption"]["explains"]
    assert "KVCachePreemption" in rules["KVCacheExhausted"]["explained_by"]
    assert rules["KVCachePreemption"]["runbook"].startswith("# KVCachePreemption")
    findings = client.get("/api/v1/findings?layer=memory").json()["findings"]
    assert {"memory"} == {row["layer"] for row in findings}
    fired = next(row for row in findings if row["rule"] == "KVCachePreemption")
    assert (FindingState.FIRING, 0.1) == (fired["state"], fired["evidence"][0]["threshold"])
    assert all(row["missing"] for row in findings if row["state"] == FindingState.CANNOT_TELL)
    assert 404 == client.get("/api/v1/trends?rule=Nonsense").status_code


def test_what_was_said_is_kept_for_ten_minutes() -> None:
    """Each change is kept with its time, a finding's band has a beginning and an end, and old ones go."""
    state = played(FOLDER / "kv-severe", seconds_before_end=25)
    chronicle, judge = Chronicle(), state.judge
    assert isinstance(judge, Diagnoser)
    state.follow(lambda: chronicle.note(judge))
    state.advance(20)
    first, latest = chronicle.at(state.time - 20), chronicle.latest
    assert first is not None
    assert latest is not None
    assert first.t <= state.time - 20 < latest.t
    assert chronicle.at(first.t - 60) is None
    band = next(band for band in chronicle.bands(state.time) if band.finding.rule.name == "KVCachePreemption")
    assert band.end is None
    judge.findings, judge.judge.version = [], judge.judge.version + 1
    chronicle.note(judge)
    ended = next(b for b in chronicle.bands(state.time) if b.key == band.key)
    assert state.time == ended.end
    assert [] == [b for b in chronicle.bands(state.time + KEPT_SECONDS + 1) if b.key == band.key]


def test_rules_of_an_engine_that_was_never_read_are_counted() -> None:
    """While no engine is known its rules count all the same, nearly all of them as not judged."""
    state = played(FOLDER / "decode-c64", without_engine)
    (layers,) = Client(create_app(state)).get("/api/v1/page").json()["layers"].values()
    for name in ("application", "scheduling", "memory"):
        assert layers[name]["rules"] > 5
        assert layers[name]["judged"] <= 1


def test_the_past_can_be_asked_for() -> None:
    """`at` brings back what was said then; of a time before there is no verdict."""
    state = played(FOLDER / "kv-severe", seconds_before_end=25)
    client = Client(create_app(state))
    began = state.time
    state.advance(10)
    assert began >= client.get("/api/v1/page", params={"at": began + 0.5}).json()["said"] > began - 1
    assert {} == client.get("/api/v1/page", params={"at": began - 100}).json()["verdicts"]
    assert 400 == client.get("/api/v1/page?at=yesterday").status_code


def test_the_rules_of_the_past_can_be_asked_for() -> None:
    """Each rule's state, since when, and its values are those of the instant, whatever happened after it."""
    state = played(FOLDER / "kv-severe", seconds_before_end=25)
    client = Client(create_app(state))
    address = "/api/v1/findings?layer=memory"
    then, began = client.get(address).json()["findings"], state.time
    state.advance(20)
    judge = state.judge
    assert isinstance(judge, Diagnoser)
    now = client.get(address).json()["findings"]
    back = client.get(f"{address}&at={began}").json()
    assert (began, then) == (back["t"], back["findings"])
    assert now != then
    assert [] == client.get(f"{address}&at={began - 100}").json()["findings"]


def test_the_last_minutes_can_be_replayed(tmp_path: Path) -> None:
    """The archive is a recording: header, GPU and host rows, the engine's pages, all in their order."""
    state = severe()
    answer = Client(create_app(state)).get("/api/v1/export/recording")
    assert "application/x-tar" == answer.headers["content-type"]
    assert answer.headers["content-disposition"].startswith('attachment; filename="heptascope-')
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    taken, original = Recording.open(folder), Recording.open(FOLDER / "kv-severe")
    kinds = [event.kind for event in taken.events()]
    assert [] == taken.damage
    assert {"header", "gpu", "slow", "host", "engine"} == set(kinds)
    assert ("vllm",) == taken.engines
    assert original.header["gpus"] == taken.header["gpus"]
    assert kinds.count("engine") >= 20


def test_a_played_recording_gets_the_times_of_now() -> None:
    """Rows with another clock than the reading are moved to it, and a row that is shown again is kept once."""
    kept = Lookback()
    raw = {"t": 1000.0, "dt": 0.1, "status": 200, "text": "x 1\n"}
    reading = Reading("source", 5000.0, [Sample("heptascope_engine_requests_running", labels(engine="vllm"), 1.0)], raw=raw)
    kept.write(reading)
    kept.write(reading)
    down = SourceStatus("source", "engine", False, None, None, Reason.SOURCE_DOWN)
    kept.write_failure(down, {"t": 5001.0, "dt": 1.0, "error": "refused", "reason": "source_down"})
    with tarfile.open(fileobj=io.BytesIO(kept.tar(None, 5002.0))) as archive:
        names = [name.split("/")[1] for name in archive.getnames()]
        assert ["gpu.jsonl.gz", "engine.jsonl.gz"] == names
        body = archive.extractfile(archive.getmembers()[1])
        assert body is not None
        rows = [json.loads(line) for line in lookback.gzip.decompress(body.read()).splitlines()]
    assert [5000.0, 5001.0] == [row["t"] for row in rows]
    assert {"vllm"} == {row["engine"] for row in rows}


def test_pages_are_kept_as_changes_and_given_back_whole() -> None:
    """Ten pages that differ in a line take little more room than one; what is taken away holds each as it was, whatever its shape."""
    kept, noise = Lookback(), [f"line_{i * 7919 % 10007} {i}" for i in range(1500)]
    pages = ["\n".join([*noise, f"steps_total {second}", *(["new 1"] if second > 20 else []), ""]) for second in range(25)]
    for second, page in enumerate(pages):
        kept.write(Reading("vllm", 1000.0 + second, raw={"t": 1000.0 + second, "dt": 0.0, "status": 200, "text": page}))
    first, second = kept._chunks
    assert len(first.body) + len(second.body) < 3 * len(lookback.gzip.compress(pages[0].encode(), 1))
    with tarfile.open(fileobj=io.BytesIO(kept.tar(None, 1025.0))) as archive:
        body = archive.extractfile(archive.getmembers()[1])
        assert body is not None
        rows = [json.loads(line) for line in lookback.gzip.decompress(body.read()).splitlines()]
    assert pages == [row["text"] for row in rows]
    assert not [row for row in rows if "changed" in row]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit the oldest rows go, and so does what is older than ten minutes."""
    monkeypatch.setattr(lookback, "MOST_BYTES", 2000)
    kept = Lookback()
    for second in range(600):
        kept.write(Reading("vllm", 1000.0 + second, raw={"t": 1000.0 + second, "dt": 0.0, "status": 200, "text": f"{second * 7919}" * 20}))
    assert len(kept.tar(None, 1600.0)) < 20_000
    with tarfile.open(fileobj=io.BytesIO(kept.tar(None, 9999.0))) as archive:
        assert [] == [name for name in archive.getnames() if "engine" in name]


def test_the_ticket() -> None:
    """The Markdown names state, engine, fault with evidence and next step, and what could not be judged."""
    answer = Client(create_app(severe())).get("/api/v1/export/ticket")
    assert "text/markdown; charset=utf-8" == answer.headers["content-type"]
    assert answer.text.startswith("# DEGRADED: Running requests are thrown out")
    for part in ("## Root fault: KVCachePreemption on vllm", "(rule: > 0.1/s)", "Next:", "## Could not be judged:", "NVIDIA H200"):
        assert part in answer.text
    assert "\\<b\\>\\[x\\](y) z" == escaped("<b>[x](y)\nz")


def test_the_stream_begins_with_the_page() -> None:
    """A client gets the page, then patches and points; following them leads to the page as it is."""
    state = {"version": 1, "page": {"a": 1}, "points": [{"t": 1}]}

    async def run() -> list[bytes]:
        maker = Broadcaster(lambda: int(str(state["version"])), lambda: 0.5, lambda: dict(state["page"]), lambda: list(state["points"]))  # type: ignore[call-overload]
        stream = maker.listen()
        got = [await anext(stream)]
        state.update(version=2, page={"a": 2})
        got.append(await asyncio.wait_for(anext(stream), 5))
        await stream.aclose()
        assert 0 == maker.clients
        return got

    first, second = asyncio.run(run())
    assert message("page", {"a": 1}) + message("beat", {"age": 0.5}) == first
    assert message("patch", merge_patch({"a": 1}, {"a": 2})) + message("points", {"t": 1}) == second


def test_a_stream_begins_anew() -> None:
    """Where what is shown has no past any more, everybody gets the whole page."""
    state = {"version": 1, "page": {"a": 1}}

    async def run() -> bytes:
        maker = Broadcaster(lambda: int(str(state["version"])), lambda: 0.5, lambda: dict(state["page"]), list)  # type: ignore[call-overload]
        stream = maker.listen()
        await anext(stream)
        maker.begin_anew()
        state.update(version=2, page={"b": 2})
        return await asyncio.wait_for(anext(stream), 5)

    assert message("page", {"b": 2}) == asyncio.run(run())


def test_another_judge_begins_anew() -> None:
    """When another recording plays, nothing stays of the moments, bands and rows of the last one."""
    state = MemoryState()
    found = desk.Desk(Site(state))
    for name, fault in (("kv-severe", "KVCachePreemption"), ("tokenize-heavy", "FrontendSaturated")):
        other = played(FOLDER / name)
        state.current, state.time, state.judge = other.current, other.time, other.judge
        for reading in other.readings[-4:]:
            found.lookback.write(reading)
        kept = len(found.lookback.tar(None, state.time))
        for follow in state.followers:
            follow()
        assert {fault} <= {band["rule"] for band in found.page()["bands"].values()}
    assert "KVCachePreemption" not in {band["rule"] for band in found.page()["bands"].values()}
    assert kept > len(found.lookback.tar(None, state.time))


def test_a_slow_client_is_cut_off() -> None:
    """Who does not read is dropped, so that what waits for it stays bounded."""

    async def run() -> int:
        maker = Broadcaster(lambda: 1, lambda: 0.0, lambda: {"a": 1}, list)
        stream = maker.listen()
        await anext(stream)
        for _ in range(MOST_WAITING + 1):
            maker._send(b"x")
        assert 0 == maker.clients
        return len([part async for part in stream])

    assert MOST_WAITING == asyncio.run(run())


def test_head_of_the_stream_ends() -> None:
    """HEAD gets the headers of the stream and no endless answer."""
    answer = Client(create_app(severe())).head("/api/v1/stream")
    assert (200, b"") == (answer.status_code, answer.content)
    assert answer.headers["content-type"].startswith("text/event-stream")


class Stage:
    """A stage with two recordings."""

    def __init__(self) -> None:
        """Play the first."""
        self.now = "one"

    def playing(self) -> str:
        """Return what plays."""
        return self.now

    def labels(self) -> dict[str, dict[str, Any]]:
        """Return both labels."""
        return {"one": {"state": ["idle"], "limiter": [], "fault": [], "why": "", "must_not": []}, "two": {}}

    def match(self, verdict: Any) -> str:
        """Say that all is right."""
        return "right"

    def play(self, name: str) -> None:
        """Play another."""
        self.now = {"one": "one", "two": "two"}[name]


def test_the_picker() -> None:
    """Another recording is asked for by POST of type JSON, which pages of other origins cannot send; everything else is refused."""
    client = Client(create_app(severe(), stage=Stage()))
    asked = {"headers": {"content-type": "application/json"}}
    assert ("one", "right") == ((now := client.get("/api/v1/demo").json())["playing"], now["match"])
    assert "two" == client.request("POST", "/api/v1/demo?scenario=two", **asked).json()["playing"]
    assert 404 == client.request("POST", "/api/v1/demo?scenario=three", **asked).status_code
    assert 415 == client.request("POST", "/api/v1/demo?scenario=one").status_code
    assert 405 == client.request("POST", "/api/v1/verdict", **asked).status_code
    assert 404 == Client(create_app(severe())).get("/api/v1/demo").status_code
    assert 405 == Client(create_app(severe())).request("POST", "/api/v1/demo?scenario=two", **asked).status_code
