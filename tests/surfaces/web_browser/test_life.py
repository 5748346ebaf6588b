"""What happens while the page is open: news, a dead source, a stuck pipeline, a daemon that ends and comes back; the demo's picker."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

from playwright.sync_api import Browser

from heptascope.demo.scenarios import FOLDER
from heptascope.sources.recording import Recording
from support.browser import serving, visit
from support.heptascope_process import heptascope, running, until
from support.played import played
from support.snapshots import busy, failing
from support.web_state import MemoryState


def test_news_without_reload(browser: Browser) -> None:
    """Each second's values come by the stream, without another request for the page."""
    state = played(FOLDER / "kv-severe", seconds_before_end=12)
    with serving(state) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".tile .bar")
        before, stamp = seen.text(".tiles"), seen.text("#fresh")
        pages = seen.requests.count(url + "/")
        for _ in range(3):
            state.advance(1)
            seen.page.wait_for_timeout(300)
        seen.wait(f"() => document.querySelector('#fresh').innerText !== {json.dumps(stamp)}")
        assert before != seen.text(".tiles")
        assert 1 == pages == seen.requests.count(url + "/")


def test_only_what_changed_is_sent(browser: Browser) -> None:
    """A second later the stream carries a small part of the page."""
    state = played(FOLDER / "decode-c64", seconds_before_end=6)
    with serving(state) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".tiles")
        seen.page.evaluate(
            """() => { window.got = {}; const s = new EventSource('api/v1/stream');
            for (const kind of ['page', 'patch']) s.addEventListener(kind, (event) => { window.got[kind] = event.data; }); }"""
        )
        seen.wait("() => window.got.page")
        state.advance(1)
        seen.wait("() => window.got.patch")
        got = seen.page.evaluate("window.got")
        assert len(got["patch"]) < len(got["page"]) / 4
        assert "summary" not in got["patch"]


def test_a_dead_source_and_its_reason(browser: Browser) -> None:
    """The page of sources says which one is down, for how long, and why; what it supplied is listed as unavailable."""
    with serving(MemoryState(failing())) as url, visit(browser, url + "/#/sources") as seen:
        seen.page.wait_for_selector("tr[data-key=vllm]")
        row = seen.text("tr[data-key=vllm]")
        assert "down" in row
        assert "47.3 s" in row
        assert "connection refused" in row
        seen.page.wait_for_selector("text=engine_requests_running")
        assert "engine_requests_running" in seen.text("main")


def test_a_stuck_pipeline_is_told(browser: Browser) -> None:
    """Readings that stand still are not shown as fresh, and fresh ones are again."""
    state = MemoryState(busy())
    state.time += 60
    with serving(state) as url, visit(browser, url) as seen:
        seen.wait("() => document.body.classList.contains('stale')")
        assert seen.text("#fresh").startswith("Readings stand still since ")
        state.current = busy(state.time, 2)
        seen.wait("() => !document.body.classList.contains('stale')")


def test_the_daemon_ends_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    """The page says that it is stale, and goes on by itself when the daemon runs again on the same port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "heptascope", "demo", "--listen", f"127.0.0.1:{port}"], stdout=subprocess.PIPE)

    def serves() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    process = start()
    try:
        until(serves)
        with visit(browser, f"http://127.0.0.1:{port}") as seen:
            seen.page.wait_for_selector("#fresh .dot")
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(5)
            seen.wait("() => document.body.classList.contains('stale')")
            assert "No answer from heptascope; stale since" in seen.text("#fresh")
            process = start()
            seen.wait("() => !document.body.classList.contains('stale')", 20)
            assert seen.text("#fresh").startswith("● Live")
            assert all("ERR_" in error for error in seen.errors)
            seen.errors.clear()
    finally:
        process.terminate()
        process.wait(10)


def test_the_picker_of_the_demo(browser: Browser, tmp_path: Path) -> None:
    """Label and verdict stand side by side, another recording is a choice away, and what was read can be replayed."""
    with running("demo", "--scenario", "idle", folder=tmp_path) as demo, visit(browser, demo.url) as seen:
        seen.page.wait_for_selector("#pick")
        assert "Idle: no fault" in seen.text(".demo dd")
        seen.page.select_option("#pick", "cpu-starved")
        seen.wait("() => document.querySelector('.demo dd').innerText.includes('scheduling')")
        assert "settling" in seen.text(".demo dl > div:last-child dd")
        seen.wait("() => [...document.querySelectorAll('.demo dd')].at(-1).innerText.includes('agrees')", 30)
        assert "Degraded" in seen.text(".verdict h1")
        seen.page.wait_for_timeout(3000)  # so that what is taken away holds more than the first seconds of it
        with seen.page.expect_download() as download:
            seen.page.click("nav >> text=Sources")
            seen.page.click("text=Last ten minutes (recording)")
        archive = tmp_path / "taken.tar"
        download.value.save_as(archive)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "out", filter="data")
    (folder,) = (tmp_path / "out").iterdir()
    recording = Recording.open(folder)
    assert "NVIDIA H200" == recording.header["gpus"][0]["name"]
    result = heptascope("replay", folder, "--format", "json")
    verdict = json.loads(result.stdout.splitlines()[0])["verdict"]
    assert {"vllm"} == {row["entity"]["engine"] for row in verdict["faults"]}
