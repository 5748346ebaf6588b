"""Eight GPUs and two engines in one pod."""

from __future__ import annotations

import heapq
from functools import cache

from playwright.sync_api import Browser

from heptascope.demo.scenarios import FOLDER
from heptascope.sources.recording import Recording
from heptascope.sources.replay import replay_readings
from support.browser import serving, visit
from support.played import Played, played, relabelled

GPUS = {"vllm-8000": ["0", "1", "2", "3"], "vllm-8001": ["4", "5", "6", "7"]}


@cache
def pod() -> Played:
    """Return two engines on four GPUs each: one healthy, one that runs out of sequence slots."""
    first, second = Recording.open(FOLDER / "decode-c64"), Recording.open(FOLDER / "seqs8-c64")
    later = first.steady.start - second.steady.start
    news = heapq.merge(
        relabelled(replay_readings(first), "vllm-8000", GPUS["vllm-8000"], 0.0),
        relabelled(replay_readings(second), "vllm-8001", GPUS["vllm-8001"], later),
        key=lambda reading: reading.t,
    )
    state = Played(news, GPUS)
    state.advance_to(first.steady.start + 16)
    return state


def test_the_matrix_comes_first(browser: Browser) -> None:
    """Engines by layers, then the GPUs; the worst engine is shown below, and a click leads to the other."""
    with serving(pod()) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".matrix tbody tr")
        rows = {row: seen.text(f"tr[data-key={row}]") for row in GPUS}
        assert "Healthy" in rows["vllm-8000"]
        assert "Degraded" in rows["vllm-8001"]
        assert "Fault" in rows["vllm-8001"]
        assert 8 == seen.page.locator(".matrix tbody th", has_text="GPU ").count()
        assert "Requests wait behind the sequence cap" in seen.text(".verdict h1")
        seen.page.click("tr[data-key=vllm-8000] a")
        seen.wait("() => document.querySelector('.verdict h1').innerText.includes('Healthy')")
        seen.page.click("#layer-scheduling")
        seen.page.wait_for_selector(".rules details")
        assert not seen.page.locator(".rules details[data-rule=SequenceCapReached] > summary .s-firing").count()


def test_eight_lines_can_be_told_apart(browser: Browser) -> None:
    """Each GPU has its own line and its own name and value beside the chart."""
    with serving(pod()) as url, visit(browser, url + "/#/time") as seen:
        seen.page.wait_for_selector("figure[data-key=sm] .key")
        named = [key.split(" ", 1)[1][:5] for key in seen.page.locator("figure[data-key=sm] .key").all_inner_texts()]
        assert ["GPU 4", "GPU 5", "GPU 6", "GPU 7"] == named


def test_the_odd_gpu_of_a_group_is_marked(browser: Browser) -> None:
    """Of two GPUs that share a model, the one with a neighbour is named odd, with the rule and the values that differ."""
    with serving(played(FOLDER / "tp2-straggler")) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".matrix .oddmark")
        assert "odd: GpuContention" in seen.text(".matrix tr[data-key='1'] th")
        assert 0 == seen.page.locator(".matrix tr[data-key='0'] .odd").count()
        assert seen.page.locator(".matrix tr[data-key='1'] .odd").count() >= 2
