"""The in-engine probe in real vLLM servers: what it counts, that it changes no output, and how far the derivation from the page is off."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from heptascope.sources.engine.probe import ProbeReader
from heptascope.vllm_probe import frontend, layout
from heptascope.vllm_probe.publishing import PUBLISH_SECONDS
from support.engine_load import Load
from support.heptascope_process import Running, running, until
from support.real_vllm import ENVIRONMENT, MODEL, ROOT, VERSION, Vllm, install, make_model, serving

pytestmark = [pytest.mark.engines, pytest.mark.timeout(2400)]
RANK = 'engine="vllm",rank="0"'
LOADS = {
    "one client": Load(clients=1, requests=4, prompt=64, output=64, seed=11),
    "decode": Load(clients=8, requests=2, prompt=32, output=300, seed=12),
    "prefill": Load(clients=4, requests=4, prompt=3000, output=4, seed=13),
}
VERSIONS = {VERSION: ENVIRONMENT, "0.11.0.post2": ROOT / ".venv-vllm11"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the model."""
    install()
    return make_model(tmp_path_factory.mktemp("model"))


def plugin(folder: Path) -> Path:
    """Return a folder that holds the package with its entry point, as an installation has it."""
    (folder / "heptascope").symlink_to(ROOT / "exporter/heptascope")
    info = folder / "heptascope-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: heptascope\nVersion: 0.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[vllm.general_plugins]\nheptascope = heptascope.vllm_probe:install\n", encoding="utf-8")
    return folder


SMALL_BATCHES = ("--max-num-seqs", "4", "--max-num-batched-tokens", "1024")


@contextmanager
def probed(model: Path, folder: Path, version: str, *flags: str) -> Iterator[tuple[Vllm, Path]]:
    """Serve the model with the probe in it; yield the server and the probe's folder."""
    install(VERSIONS[version], version)
    (folder / "plugin").mkdir()
    (folder / "probe").mkdir()
    env = {"PYTHONPATH": str(plugin(folder / "plugin")), "HEPTASCOPE_PROBE_DIR": str(folder / "probe")}
    with serving(model, *flags, log=folder / "vllm.log", environment=VERSIONS[version], env=env) as engine:
        yield engine, folder / "probe"


def value(daemon: Running, signal: str, more: str = "") -> float:
    """Return one value of the engine, 0 where there is none."""
    pairs = ",".join(sorted([*RANK.split(","), *([more] if more else [])]))
    return daemon.metric(f"heptascope_engine_{signal}{{{pairs}}}") or 0.0


def config(folder: Path, engine: Vllm, probe: Path) -> Path:
    """Write the configuration of a daemon that knows the probe."""
    path = folder / "config.yaml"
    path.write_text(json.dumps({"gpu": {"source": "none"}, "engines": [{"url": engine.url, "probe": str(probe)}]}), encoding="utf-8")
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_the_probe_counts_and_the_derivation_comes_near(
    model: Path, tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tokens, steps and limits are exact; step times derived from the page lie within a quarter of the probe's while requests decode."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with (
        probed(model, tmp_path, version, *SMALL_BATCHES) as (engine, folder),
        running("serve", "--config", config(tmp_path, engine, folder), folder=tmp_path / "one") as with_probe,
        running("serve", "--gpu", "none", "--engine", engine.url, folder=tmp_path / "two") as without,
    ):
        Load(clients=1, requests=1, prompt=16, output=8).drive(engine.url, MODEL)
        until(lambda: value(with_probe, "steps_total") >= 8 and value(without, "steps_total") >= 8)
        rows = []
        for name, load in LOADS.items():
            until(lambda: _settled(with_probe) and _settled(without))
            before = {daemon: _numbers(daemon) for daemon in (with_probe, without)}
            seen = load.drive(engine.url, MODEL)
            until(lambda tokens=before[without]["tokens"] + seen.generated_tokens: value(without, "generation_tokens_total") >= tokens)
            until(lambda: _settled(with_probe) and _settled(without))
            exact, near = ({k: v - before[d][k] for k, v in _numbers(d).items()} for d in (with_probe, without))
            host = sum(exact[phase] for phase in ("schedule", "update", "output")) / exact["busy"]
            assert (seen.prompt_tokens, seen.generated_tokens - seen.finished) == (exact["prefill"], exact["decoded"])
            rows.append((name, exact["busy"] / exact["steps"], near["busy"] / near["steps"], exact["steps"], near["steps"], host))
        with capsys.disabled():
            print(f"\nvLLM {version}: step of the probe, derived step, steps of the probe, steps on the page, host share of busy time")
            for name, *numbers in rows:
                print(f"  {name:12}", *(f"{number:10.4g}" for number in numbers))
        decode = next(row for row in rows if row[0] == "decode")
        assert decode[1] == pytest.approx(decode[2], rel=0.25)
        assert decode[3] == pytest.approx(decode[4], rel=0.05)
        assert value(with_probe, "step_bound_total", 'limit="sequences"') > 0
        quality = [s for s in with_probe.metrics() if s.startswith("heptascope_engine_signal_quality_info") and "steps_total" in s]
        assert [] == quality
        assert value(with_probe, "frontend_event_loop_lag_seconds_count") > 100
        late = value(with_probe, "frontend_event_loop_lag_seconds_sum") / value(with_probe, "frontend_event_loop_lag_seconds_count")
        assert 0 < late < 1
        assert "switched itself off" not in engine.log.read_text(encoding="utf-8", errors="replace")


def answers(engine: Vllm) -> list[tuple[str, list[float], int]]:
    """Return texts, log probabilities and prompt tokens of random, seeded continuations."""
    found = []
    for number in range(8):
        prompt = " ".join(f"w{(number * 97 + word * 13) % 1000 + 2}" for word in range(40))
        body = {"model": MODEL, "prompt": prompt, "max_tokens": 48, "temperature": 1.0, "seed": number, "logprobs": 1, "ignore_eos": True}
        answer = httpx.post(f"{engine.url}/v1/completions", json=body, timeout=120, trust_env=False)
        told = answer.raise_for_status().json()
        choice = told["choices"][0]
        found.append((choice["text"], choice["logprobs"]["token_logprobs"], told["usage"]["prompt_tokens"]))
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_the_probe_changes_no_output(tmp_path: Path, version: str) -> None:
    """Same prompts, same seeds: with the probe and without it the engine answers the same tokens with the same probabilities."""
    install()
    model = make_model(tmp_path, doubt=100.0)
    with probed(model, tmp_path, version, *SMALL_BATCHES) as (engine, folder):
        observed = answers(engine)
        rows = until(lambda: [row for row in ProbeReader(folder).rows(time.time()) if _count(row, frontend.TOKENIZE) >= 8])
        assert ["frontend"] == [key for row in rows for key in row if key not in ("start", "values")]
        time.sleep(2 * PUBLISH_SECONDS)
        cores = [row["values"] for row in ProbeReader(folder).rows(time.time()) if "rank" in row]
        assert [sum(prompt for *_, prompt in observed)] == [values[layout.PREFILL] for values in cores]
    with serving(model, *SMALL_BATCHES, log=tmp_path / "plain.log", environment=VERSIONS[version]) as engine:
        plain = answers(engine)
    assert plain == observed
    assert len({text for text, *_ in plain}) == len(plain)


def _count(row: dict[str, Any], at: int) -> int:
    return sum(row["values"][at : at + layout.BUCKETS])


def test_work_that_preemptions_waste_is_counted(model: Path, tmp_path: Path) -> None:
    """With too few blocks requests are preempted: what they had computed is prefill once more, but for a token each.

    Not with 0.11, whose CPU build ends in a native fault when it preempts, with or without the probe.
    """
    flags = ("--num-gpu-blocks-override", "36", "--max-num-seqs", "24", "--no-enable-prefix-caching")
    with probed(model, tmp_path, VERSION, *flags) as (engine, folder):
        seen = Load(20, requests=2, prompt=100, output=420, seed=8).drive(engine.url, MODEL)
        page = httpx.get(f"{engine.url}/metrics", trust_env=False).text
        preempted = sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith("vllm:num_preemptions_total{"))
        time.sleep(2 * PUBLISH_SECONDS)
        (core,) = (row["values"] for row in ProbeReader(folder).rows(time.time()) if "rank" in row)
    assert preempted > 0
    assert 100 * preempted < core[layout.RECOMPUTED] < 520 * preempted
    assert core[layout.PREFILL] == pytest.approx(seen.prompt_tokens + core[layout.RECOMPUTED], abs=2 * preempted)


def _settled(daemon: Running) -> bool:
    """Return whether two polls have seen the same idle engine; the probe writes twice a second."""
    before = _numbers(daemon)
    time.sleep(2.2)
    return value(daemon, "requests_running") == 0 and before == _numbers(daemon)


def _numbers(daemon: Running) -> dict[str, float]:
    phases = {phase: value(daemon, "step_phase_seconds_sum", f'phase="{phase}"') for phase in ("schedule", "model", "update", "output")}
    return phases | {
        "busy": value(daemon, "busy_seconds_total"),
        "steps": value(daemon, "steps_total"),
        "tokens": value(daemon, "generation_tokens_total"),
        "prefill": value(daemon, "batch_tokens_total", 'kind="prefill"'),
        "decoded": value(daemon, "batch_tokens_total", 'kind="decode"'),
    }
