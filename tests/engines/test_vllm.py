"""The daemon beside a real vLLM under load: our series against what the client itself saw."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

import httpx
import pytest

from support.engine_load import Load, Seen
from support.heptascope_process import Running, heptascope, running, until
from support.prometheus import program, running_prometheus
from support.real_vllm import MODEL, Vllm, install, make_model, serving

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]
LIMIT = 8
BLOCK_TOKENS = 128  # on CPU
_SERIES = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})?")


class Beside:
    """A real engine and the daemon that watches it."""

    def __init__(self, engine: Vllm, daemon: Running) -> None:
        """Warm the engine up and wait until the daemon has seen that and the engine is idle again."""
        self.engine, self.daemon = engine, daemon
        seen = Load(clients=2, requests=1, prompt=32, output=16).drive(engine.url, MODEL)
        until(lambda: self.read().get("generation_tokens_total") == seen.generated_tokens)
        self.growth({})

    def read(self) -> dict[str, float]:
        """Return the engine's values, each summed over its labels but for `le`."""
        found: dict[str, float] = {}
        for series, value in self.daemon.metrics().items():
            parts = _SERIES.fullmatch(series)
            assert parts is not None
            name = parts["name"].removeprefix("heptascope_engine_")
            if name != parts["name"] and not name.endswith("_bucket"):
                found[name] = found.get(name, 0.0) + value
        return found

    def buckets(self, histogram: str) -> dict[float, float]:
        """Return the cumulative counts of a histogram by upper bound."""
        name = f"heptascope_engine_{histogram}_bucket"
        series = {key: count for key, count in self.daemon.metrics().items() if key.startswith(name)}
        found = {float(key.partition('le="')[2].partition('"')[0]): count for key, count in series.items()}
        return dict(sorted(found.items()))

    def resolution(self, histogram: str) -> float:
        """Return the first bound of a histogram."""
        return min(self.buckets(histogram))

    def drive(self, load: Load) -> tuple[Seen, dict[str, float]]:
        """Run a load; return what the client saw and by how much our values grew."""
        before = self.read()
        seen = load.drive(self.engine.url, MODEL)
        return seen, self.growth(before)

    def growth(self, before: Mapping[str, float]) -> dict[str, float]:
        """Return by how much values grew once the engine is idle and two polls have seen the same."""

        def settled() -> dict[str, float]:
            page = self.read()
            time.sleep(2.2)  # two polls
            again = self.read()
            keys = ("generation_tokens_total", "prompt_tokens_total", "time_to_first_token_seconds_count")
            return again if again["requests_running"] == 0 and all(page[key] == again[key] for key in keys) else {}

        return {key: value - before.get(key, 0.0) for key, value in until(settled).items()}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the engine and write the model."""
    install()
    return make_model(tmp_path_factory.mktemp("model"))


@contextmanager
def beside(model: Path, folder: Path, *flags: str) -> Iterator[Beside]:
    """Serve the model with these flags, the daemon beside it."""
    with (
        serving(model, *flags, log=folder / "vllm.log") as engine,
        running("serve", "--gpu", "none", "--engine", engine.url, folder=folder) as daemon,
    ):
        yield Beside(engine, daemon)


@pytest.fixture(scope="module")
def plain(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """Serve in the ordinary way, with few requests at once."""
    with beside(model, tmp_path_factory.mktemp("plain"), "--max-num-seqs", str(LIMIT)) as both:
        yield both


def test_counts_are_exact(plain: Beside) -> None:
    """Requests, prompt tokens and generated tokens are those that the client sent and got."""
    seen, grown = plain.drive(Load(clients=4, requests=4, prompt=200, output=48, seed=1))
    assert (16, 3200, 768) == (seen.finished, seen.prompt_tokens, seen.generated_tokens)
    names = ("requests_finished_total", "prompt_tokens_total", "generation_tokens_total")
    assert (16.0, 3200.0, 768.0) == tuple(grown[name] for name in names)
    for name in ("e2e_latency_seconds", "time_to_first_token_seconds", "queue_time_seconds", "prompt_length_tokens"):
        assert (name, 16.0) == (name, grown[f"{name}_count"])
    assert (3200.0, 768.0) == (grown["prompt_length_tokens_sum"], grown["generation_length_tokens_sum"])
    assert 16.0 <= grown["http_requests_total"]


def median_bucket(before: Mapping[float, float], after: Mapping[float, float]) -> tuple[float, float]:
    """Return the bounds of the bucket that holds the median of what came in between."""
    counts = {bound: after[bound] - before.get(bound, 0.0) for bound in after}
    bounds = [0.0, *counts]
    upper = next(i for i, count in enumerate(counts.values()) if count * 2 >= max(counts.values()))
    return bounds[upper], bounds[upper + 1]


def gap(seen: Seen) -> float:
    """Return the mean time from one token to the next of the same request, in seconds."""
    return sum(seen.gaps) / (seen.generated_tokens - seen.finished)


def test_latencies_are_right_within_the_resolution_of_the_histogram(plain: Beside) -> None:
    """Engine and client agree within a bucket's width; a gap is seen for each token but the first.

    The client shares the cores with the engine and can only be late, by a quarter second at times: so its lower quartile counts, and gaps
    are counted by tokens, since the server sends as one event what a late client has not taken yet.
    """
    names = ("time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_latency_seconds")
    before = {name: plain.buckets(name) for name in names}
    seen, grown = plain.drive(Load(clients=2, requests=8, prompt=200, output=64, seed=2))
    for name, times in zip(names, (seen.first_token, seen.gaps, seen.whole), strict=True):
        low, high = median_bucket(before[name], plain.buckets(name))
        width = high - low
        theirs = quantiles(times)[0]
        assert low - width <= theirs <= high + width, (name, low, high, theirs)
    assert seen.generated_tokens - seen.finished == grown["inter_token_latency_seconds_count"]
    ours = grown["inter_token_latency_seconds_sum"] / grown["inter_token_latency_seconds_count"]
    assert ours == pytest.approx(gap(seen), abs=plain.resolution("inter_token_latency_seconds"))


def test_prefix_hits_are_exact(plain: Beside) -> None:
    """Of prompts that share eight blocks all but the first find those blocks, and nothing else."""
    seen, grown = plain.drive(Load(clients=1, requests=6, prompt=9 * BLOCK_TOKENS, shared=8 * BLOCK_TOKENS, output=4, seed=3))
    assert seen.prompt_tokens == grown["prefix_cache_queried_tokens_total"] == grown["prompt_tokens_total"]
    assert 5.0 * 8 * BLOCK_TOKENS == grown["prefix_cache_hit_tokens_total"] == grown["prompt_cached_tokens_total"]


def test_requests_that_clients_cut_show_as_first_tokens_without_an_end(plain: Beside) -> None:
    """Of an aborted request this release counts the first token, not the end."""
    seen, grown = plain.drive(Load(clients=3, requests=2, prompt=64, output=2000, cut_after=6, seed=4))
    assert (6, 0) == (seen.cut, seen.finished)
    assert (6.0, 0.0) == (grown["time_to_first_token_seconds_count"], grown["requests_finished_total"])


def test_a_full_batch_shows_as_such(plain: Beside) -> None:
    """With more clients than sequence slots the slots are full, the others wait, and the cap is known and seen."""
    clients = 3 * LIMIT
    levels: list[dict[str, float]] = []
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(Load(clients, requests=2, prompt=64, output=200, seed=5).drive, plain.engine.url, MODEL)
        while not done.done():
            levels.append(plain.read())
            time.sleep(0.5)
        assert 2 * clients == done.result().finished
    assert LIMIT == max(level["requests_running"] for level in levels)
    assert LIMIT < max(level["requests_waiting"] for level in levels) <= clients - LIMIT
    assert {LIMIT} == {level["sequence_limit"] for level in levels}
    assert LIMIT in [level.get("running_limit_observed") for level in levels]


def test_the_step_time_is_that_of_a_decode(plain: Beside) -> None:
    """While requests only decode, a step takes as long as the client waits for the next token."""
    seen, grown = plain.drive(Load(clients=4, requests=2, prompt=16, output=600, seed=6))
    step = grown["busy_seconds_total"] / grown["steps_total"]
    assert gap(seen) == pytest.approx(step, rel=0.25)
    assert grown["step_tokens_total"] == grown["prompt_tokens_total"] + grown["generation_tokens_total"]


def test_processes_and_start_settings_are_recognised(plain: Beside) -> None:
    """The three kinds of process have their roles, and the command line gives what the page does not."""
    page = plain.daemon.get("/metrics")
    roles = set(re.findall(r'heptascope_host_process_info\{.*engine="vllm".*role="(\w+)"', page))
    assert {"api_server", "engine_core", "worker"} <= roles
    values = plain.read()
    assert (1.0, 0.0, 4096.0, 1.0) == tuple(
        values[name] for name in ("eager_mode", "speculation_enabled", "model_length_limit", "tensor_parallel_size")
    )
    assert re.search(r'heptascope_engine_info\{[^}]*kind="vllm"[^}]*model="cycle"[^}]*version="0\.32\.0[^"]*"', page)
    assert plain.daemon.metrics()['heptascope_host_process_cpu_seconds_total{engine="vllm",process="worker",role="worker"}'] > 1.0


def test_the_page_is_clean_and_a_prometheus_scrapes_it(plain: Beside, tmp_path: Path) -> None:
    """`promtool check metrics` finds nothing, and a real Prometheus has the engine's counter."""
    page = plain.daemon.get("/metrics").encode()
    done = subprocess.run([program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False, timeout=60)
    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)
    job = f"{{job_name: h, scrape_interval: 1s, static_configs: [{{targets: ['{plain.daemon.url.removeprefix('http://')}']}}]}}"
    with running_prometheus(tmp_path, config=f"scrape_configs: [{job}]\n") as prometheus:
        found = until(lambda: prometheus.query("heptascope_engine_generation_tokens_total", time.time())["data"]["result"])
    assert plain.read()["generation_tokens_total"] == float(found[0]["value"][1])


def test_the_commands_say_what_is_there(plain: Beside) -> None:
    """`check` reads everything; `diagnose` under load sees work and does not claim what needs a GPU."""
    check = heptascope("check", "--gpu", "none", "--engine", plain.engine.url)
    assert (0, True) == (check.returncode, "Everything that is configured can be read." in check.stdout), check.stdout
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(Load(4, requests=12, prompt=64, output=200, seed=7).drive, plain.engine.url, MODEL)
        verdict = json.loads(
            heptascope("diagnose", "--gpu", "none", "--engine", plain.engine.url, "--for", "8s", "--format", "json").stdout
        )
        done.result()
    assert verdict["state"] in {"cannot-tell", "degraded"}, verdict["state"]
    assert verdict["cannot_tell"], verdict


def _with_page(engine: Vllm) -> Callable[[str], float]:
    """Return a look-up of one series on the engine's own page."""
    text = httpx.get(f"{engine.url}/metrics", trust_env=False).text
    return lambda name: sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name + "{"))


def test_preemptions_under_a_small_cache(model: Path, tmp_path: Path) -> None:
    """Too few blocks: preemptions are counted, usage comes near 1, and token counts stay exact in spite of the repeated work."""
    flags = ("--num-gpu-blocks-override", "36", "--max-num-seqs", "24", "--no-enable-prefix-caching")
    with beside(model, tmp_path, *flags) as both:
        levels: list[float] = []
        before = both.read()
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(Load(20, requests=2, prompt=100, output=420, seed=8).drive, both.engine.url, MODEL)
            while not done.done():
                levels.append(both.read()["kv_cache_usage_ratio"])
                time.sleep(0.5)
            seen = done.result()
        grown = both.growth(before)
        assert grown["preemptions_total"] == _with_page(both.engine)("vllm:num_preemptions_total") > 0
        assert max(levels) > 0.9
        assert (seen.generated_tokens, seen.prompt_tokens) == (grown["generation_tokens_total"], grown["prompt_tokens_total"])
        assert 36.0 * BLOCK_TOKENS == both.read()["kv_cache_capacity_tokens"]
        assert "prefix_cache_queried_tokens_total" not in both.read()


def test_speculation_that_is_always_right(model: Path, tmp_path: Path) -> None:
    """N-gram drafts of a looping model are accepted; what a client gets beyond one token at once was accepted."""
    speculation = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":3,"prompt_lookup_min":1}'
    with beside(model, tmp_path, "--speculative-config", speculation) as both:
        seen, grown = both.drive(Load(clients=2, requests=2, prompt=64, output=400, seed=9))
        accepted, drafted = grown["spec_accepted_tokens_total"], grown["spec_draft_tokens_total"]
        assert accepted / drafted > 0.9
        events = len(seen.gaps) + len(seen.first_token)  # each brings one token and those accepted, of which the last may be cut off
        assert accepted == pytest.approx(seen.generated_tokens - events, rel=0.05)
        assert accepted == grown["spec_accepted_tokens_per_position_total"]
        assert 1.0 == both.read()["speculation_enabled"]
