"""`heptascope diagnose`: signals from a file, or an engine that is there; one verdict, one exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heptascope.cli import run
from support.engine_pages import VLLM_032, capture
from support.engine_server import EngineServer

RUNNING = "heptascope_engine_requests_running"
STATES = {"healthy": 0, "idle": 0, "degraded": 1, "cannot-tell": 3}
DECODE = """\
signals:
  - {name: heptascope_engine_requests_running, value: 1}
  - {name: heptascope_engine_requests_waiting, value: 0}
  - {name: heptascope_gpu_graphics_engine_active_ratio, value: 0.99}
  - {name: heptascope_gpu_dram_active_ratio, value: 0.67}
  - {name: heptascope_gpu_tensor_active_ratio, value: 0.03}
"""
PREEMPTING = (
    DECODE.replace("waiting, value: 0", "waiting, value: 33")
    + """\
  - {name: heptascope_engine_kv_cache_usage_ratio, value: 0.99}
  - {name: heptascope_engine_preemptions_total, rate: 6}
  - {name: heptascope_engine_requests_finished_total, labels: {reason: stop}, rate: 4}
"""
)
ASLEEP = "signals:\n  - {name: heptascope_engine_requests_running, value: 0}\n"
UTILISED = "signals:\n  - {name: heptascope_gpu_utilization_ratio, value: 0.56}\n"


def file_of(folder: Path, text: str) -> str:
    """Write a file of signals; return its name."""
    path = folder / "case.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command; return status, output and errors."""
    status = run(["diagnose", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def verdict(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run the command; return the verdict as it prints it in JSON."""
    found: dict[str, Any] = json.loads(answer(capsys, "--format", "json", *arguments)[1])
    return found


@pytest.mark.parametrize(
    ("text", "state", "first"),
    [
        (DECODE, "healthy", "HEALTHY: nothing to fix; throughput is bound by hardware/dram [seen directly]"),
        (
            PREEMPTING,
            "degraded",
            "DEGRADED: Running requests are thrown out for lack of KV cache and computed again. [memory/preemption, seen directly]",
        ),
        (ASLEEP, "idle", "IDLE: no requests"),
        (UTILISED, "cannot-tell", "CANNOT TELL: too little can be read to judge"),
    ],
)
def test_signals_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, state: str, first: str) -> None:
    """Each state has its first line and its exit status, in text and in JSON, and nothing goes to stderr."""
    path = file_of(tmp_path, text)
    status, out, err = answer(capsys, "--signals", path)
    assert (STATES[state], first, "") == (status, out.splitlines()[0], err)
    assert (STATES[state], state) == (
        run(["diagnose", "--signals", path, "--format", "json"]),
        json.loads(capsys.readouterr().out)["state"],
    )


def test_the_verdict_is_the_one_that_all_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON is the verdict object, with claims, evidence and what could not be judged."""
    found = verdict(capsys, "--signals", file_of(tmp_path, PREEMPTING))
    assert ("memory", "preemption") == (found["faults"][0]["layer"], found["faults"][0]["topic"])
    assert [6.0] == [round(e["value"], 9) for e in found["faults"][0]["evidence"] if e["signal"] == "heptascope_engine_preemptions_total"]
    assert {"KVCacheExhausted"} <= {claim["rule"] for claim in found["consequences"]}
    assert found["cannot_tell"]


def test_the_text_has_what_one_needs_at_night(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer, numbers with thresholds, the next step, and what could not be judged."""
    _, out, _ = answer(capsys, "--signals", file_of(tmp_path, PREEMPTING))
    assert "    engine_preemptions_total = 6/s  (rule: > 0.1/s)" in out.splitlines()
    assert "  Next: " in out
    assert "Could not be judged: " in out


def test_the_configuration_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Overridden thresholds, and objectives, are those of the configuration file."""
    config = tmp_path / "h.yaml"
    config.write_text("rules:\n  overrides:\n    KVCachePreemption: {preemptions_per_second: 100}\n", encoding="utf-8")
    rules = [claim["rule"] for claim in verdict(capsys, "--signals", file_of(tmp_path, PREEMPTING), "--config", str(config))["faults"]]
    assert "KVCachePreemption" not in rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"signals:\n  - {{name: {RUNNING[:-1]}, value: 1}}\n", f"case.yaml:2: unknown signal '{RUNNING[:-1]}'; did you mean '{RUNNING}'?"),
        (f"signals:\n  - {{name: {RUNNING}, rate: 1}}\n", f"case.yaml:2: {RUNNING} is a gauge, which has no 'rate'"),
        (
            "signals:\n  - {name: heptascope_engine_steps_total, rate: -1}\n",
            "case.yaml:2: heptascope_engine_steps_total is a counter; its rate",
        ),
        ("", "case.yaml:1: the file must hold one key, `signals`, with a list; see heptascope diagnose --help"),
        ("signals: [", "case.yaml:1: not valid YAML"),
        ("signals: &a [*a]\n", "case.yaml:"),
        ("just words\n", "case.yaml:1: the file must hold `key: value` lines"),
    ],
)
def test_a_bad_file_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    """Whatever is wrong with the file: one line on stderr, nothing on stdout."""
    status, out, err = answer(capsys, "--signals", file_of(tmp_path, text))
    assert (2, "", 1) == (status, out, err.count("\n"))
    assert f"heptascope: {tmp_path}/{message}" == err[: len(f"heptascope: {tmp_path}/{message}")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--signals", "/does/not/exist.yaml"], "heptascope: /does/not/exist.yaml: cannot read the file: No such file or directory"),
        (["--signals", "/"], "heptascope: /: cannot read the file: Is a directory"),
        (["--for", "soon"], "heptascope: Invalid value for '--for': soon: not a duration; write 100ms, 1s, 5m or 1h"),
        (["--format", "xml"], "heptascope: Invalid value for '--format': 'xml' is not one of 'text', 'json'"),
        (["--engine", "nowhere"], "heptascope: flag --engine: "),
    ],
)
def test_a_bad_option_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """So is a mistake in the options."""
    status, out, err = answer(capsys, *arguments)
    assert (2, "", 1, message) == (status, out, err.count("\n"), err[: len(message)])


def test_a_live_engine(capsys: pytest.CaptureFixture[str]) -> None:
    """A real page that stands still is an engine at work whose limiter cannot be told without a GPU; the GPU's absence is said."""
    with EngineServer() as server:
        server.page(capture(VLLM_032, "steady_16"))
        status, out, err = answer(capsys, "--engine", server.url, "--gpu", "none", "--for", "1500ms", "--log-level", "error")
    assert (3, "", True) == (status, err, out.startswith("CANNOT TELL"))
    assert "gpu.source is none" in out


def test_an_engine_that_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that can be read: it cannot be told, and why is the last thing said."""
    status, out, _ = answer(capsys, "--engine", "http://127.0.0.1:1", "--gpu", "none", "--for", "1500ms", "--log-level", "error")
    assert (3, True) == (status, out.startswith("CANNOT TELL: too little can be read to judge"))
    assert "refused" in out.partition("Could not be read:")[2]
