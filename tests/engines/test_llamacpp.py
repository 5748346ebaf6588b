"""The daemon beside a real llama.cpp server under load: our series against what the client itself saw."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.engine_load import Load
from support.heptascope_process import Running, heptascope, running, until
from support.real_llamacpp import MODEL, install, make_model, serving
from support.real_server import Server

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]
SLOTS, CONTEXT = 4, 8192
PAIRS = 'engine="llamacpp",'


class Beside:
    """A real server and the daemon that watches it."""

    def __init__(self, server: Server, daemon: Running) -> None:
        """Wait until the daemon has seen the server."""
        self.server, self.daemon = server, daemon
        until(lambda: self.value("requests_running") is not None)

    def value(self, signal: str, more: str = "") -> float | None:
        """Return one value of the engine, None where there is none."""
        pairs = ",".join(sorted(['engine="llamacpp"', 'rank="0"', *([more] if more else [])]))
        return self.daemon.metric(f"heptascope_engine_{signal}{{{pairs}}}")

    def counters(self) -> dict[str, float]:
        """Return the counters that a load moves, once the engine is idle and two polls have seen the same."""

        def read() -> dict[str, float]:
            names = ("prompt_tokens_total", "generation_tokens_total", "prompt_cached_tokens_total", "steps_total")
            mean = {f"latency_{what}": f"latency_{what}_total" for what in ("seconds", "observations")}
            found = {name: self.value(name) or 0.0 for name in names}
            return found | {key: self.value(name, 'latency="time_per_output_token"') or 0.0 for key, name in mean.items()}

        def settled() -> dict[str, float]:
            page = read()
            time.sleep(2.2)  # two polls
            return page if self.value("requests_running") == 0 and page == read() else {}

        return until(settled)


@contextmanager
def beside(model: Path, folder: Path, *flags: str) -> Iterator[Beside]:
    """Serve the model with these flags, the daemon beside it."""
    slots = ("--parallel", str(SLOTS), "--ctx-size", str(CONTEXT))
    with (
        serving(model, *slots, *flags, log=folder / "llamacpp.log") as server,
        running("serve", "--gpu", "none", "--engine", server.url, folder=folder) as daemon,
    ):
        yield Beside(server, daemon)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the server and write the model."""
    install()
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def plain(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """Serve in the ordinary way."""
    with beside(model, tmp_path_factory.mktemp("plain")) as both:
        yield both


def test_counts_are_exact(plain: Beside) -> None:
    """Prompt and generated tokens are those that the client sent and got; the mean time per token is the one that it waited."""
    before = plain.counters()
    seen = Load(clients=2, requests=4, prompt=200, output=64, seed=1).drive(plain.server.url, MODEL)
    grown = {name: value - before[name] for name, value in plain.counters().items()}
    assert (1600, 512) == (seen.prompt_tokens, seen.generated_tokens)
    assert (1600.0, 512.0) == (grown["prompt_tokens_total"], grown["generation_tokens_total"])
    mean = grown["latency_seconds"] / grown["latency_observations"]
    assert sum(seen.gaps) / seen.generated_tokens == pytest.approx(mean, rel=0.3)


def test_a_prefix_that_is_still_in_the_slot_is_found(plain: Beside) -> None:
    """Of prompts that share most of their tokens all but the first find those, and nothing else."""
    before = plain.counters()
    Load(clients=1, requests=5, prompt=700, shared=640, output=4, seed=3).drive(plain.server.url, MODEL)
    grown = {name: value - before[name] for name, value in plain.counters().items()}
    assert 3500.0 == grown["prompt_tokens_total"]
    assert grown["prompt_cached_tokens_total"] == pytest.approx(4 * 640, abs=4 * 3)


def test_full_slots_a_queue_and_the_cache(plain: Beside) -> None:
    """With more clients than slots the slots are full, the others wait, and the cache holds what running requests have so far."""
    levels: list[tuple[float, float, float]] = []
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(Load(3 * SLOTS, requests=2, prompt=600, output=200, seed=5).drive, plain.server.url, MODEL)
        while not done.done():
            found = [plain.value(name) for name in ("requests_running", "requests_waiting", "kv_cache_usage_ratio")]
            levels += [(a, b, c) for a, b, c in [found] if a is not None and b is not None and c is not None]
            time.sleep(0.5)
        assert 6 * SLOTS == done.result().finished
    running_requests, waiting, usage = (max(column) for column in zip(*levels, strict=True))
    assert SLOTS == running_requests
    assert SLOTS < waiting <= 2 * SLOTS
    assert 0.5 * SLOTS * 600 / CONTEXT < usage <= SLOTS * 820 / CONTEXT
    assert (CONTEXT, SLOTS) == (plain.value("kv_cache_capacity_tokens"), plain.value("sequence_limit"))


def test_the_process_and_its_command_line_are_recognised(plain: Beside) -> None:
    """One process is the whole engine; its command line tells how the slots share the cache; `check` reads everything."""
    page = plain.daemon.get("/metrics")
    assert f'{PAIRS}pid="{plain.server.process.pid}",process="api_server",role="api_server"' in page
    assert f'{PAIRS}rank="0",setting="kv_unified",value="0"' in page
    check = heptascope("check", "--gpu", "none", "--engine", plain.server.url)
    assert (0, True) == (check.returncode, "Everything that is configured can be read." in check.stdout), check.stdout


def test_speculation_that_is_always_right(model: Path, tmp_path: Path) -> None:
    """A model that drafts for itself is always right; tokens that the client got beyond one a check were accepted."""
    with beside(model, tmp_path, "--model-draft", str(model), "--spec-type", "draft-simple") as both:
        seen = Load(clients=1, requests=2, prompt=64, output=200, seed=9).drive(both.server.url, MODEL)
        both.counters()
        drafts, drafted, accepted = (both.value(f"spec_{what}_total") or 0.0 for what in ("drafts", "draft_tokens", "accepted_tokens"))
        assert accepted / drafted > 0.9
        assert accepted == pytest.approx(seen.generated_tokens - drafts, rel=0.1)
        assert 1.0 == both.value("speculation_enabled")
