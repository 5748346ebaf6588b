"""Start settings from vLLM command lines."""

from __future__ import annotations

import shlex

import pytest

from heptascope.sources.engine.cmdline import CommandLine, vllm_settings
from support.engine_pages import VLLM_032, truth

DEFAULTS = {"tensor_parallel_size": 1.0, "pipeline_parallel_size": 1.0, "enforce_eager": 0.0, "speculative": 0.0}


def told(flags: str, program: str = "/usr/bin/python3 /opt/venv/bin/vllm serve model") -> dict[str, float]:
    """Return the settings that go beyond or against the defaults."""
    found = vllm_settings(shlex.split(f"{program} {flags}")).settings
    return {k: v for k, v in found.items() if DEFAULTS.get(k) != v}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", {}),
        ("--max-num-seqs 8 --max-num-batched-tokens 8192", {"max_num_seqs": 8.0, "max_num_batched_tokens": 8192.0}),
        ("--max_num_seqs=8", {"max_num_seqs": 8.0}),
        ("--max-num-seqs 8 --max-num-seqs 16", {"max_num_seqs": 16.0}),
        ("--max-model-len 32k", {"max_model_len": 32000.0}),
        ("--max-model-len 32K", {"max_model_len": 32768.0}),
        ("--max-model-len 25.6k", {"max_model_len": 25600.0}),
        ("--max-model-len -1", {}),
        ("--max-model-len auto", {}),
        ("--max-num-seqs", {}),
        ("-tp 4 --pipeline-parallel-size 2", {"tensor_parallel_size": 4.0, "pipeline_parallel_size": 2.0}),
        ("--enforce-eager", {"enforce_eager": 1.0}),
        ("--no-enforce-eager", {}),
        ("--no-enable-prefix-caching", {"enable_prefix_caching": 0.0}),
        ("--enable-prefix-caching", {"enable_prefix_caching": 1.0}),
        ("--cudagraph-capture-sizes 1 2 4 256 --max-num-seqs 256", {"max_cudagraph_capture_size": 256.0, "max_num_seqs": 256.0}),
        ("--max-cudagraph-capture-size 64", {"max_cudagraph_capture_size": 64.0}),
        ("""--compilation-config '{"cudagraph_capture_sizes":[1,8]}'""", {"max_cudagraph_capture_size": 8.0}),
        ("""--compilation-config '{"cudagraph_mode":"NONE"}'""", {"enforce_eager": 1.0}),
        ("-cc.cudagraph_mode=none", {"enforce_eager": 1.0}),
        ("--compilation-config.max_cudagraph_capture_size 512", {"max_cudagraph_capture_size": 512.0}),
        ("""--compilation-config '{"use_cudagraph": false}'""", {"enforce_eager": 1.0}),
        ("--compilation-config {broken", {}),
        ("""--speculative-config '{"method":"ngram","num_speculative_tokens":4}'""", {"speculative": 1.0}),
        ("--speculative-config.method ngram", {"speculative": 1.0}),
        ("--speculative-model draft", {"speculative": 1.0}),
        ("--speculative-config null", {}),
        ("-asc 4", {"api_server_count": 4.0}),
    ],
)
def test_flags(flags: str, expected: dict[str, float]) -> None:
    """Each flag in each of its spellings; what cannot be read is left out."""
    assert expected == told(flags)


@pytest.mark.parametrize("flags", ["-O0", "--optimization-level 0", "-O 0", "-cc.mode=0", "--compilation-config.level 0"])
def test_level_0_leaves_graphs_open(flags: str) -> None:
    """Whether graphs are used at optimisation level 0 depends on the release."""
    assert "enforce_eager" not in vllm_settings(["vllm", "serve", "m", *flags.split()]).settings


def test_text_settings() -> None:
    """What is no number is text: method, backend, types."""
    found = vllm_settings(
        shlex.split(
            """vllm serve m -sc '{"method":"ngram","num_speculative_tokens":4}' --attention-config.backend FLASH_ATTN --kv-cache-dtype fp8
            --data-parallel-size 2"""
        )
    )
    assert {
        "speculative_method": "ngram",
        "speculative_tokens": "4",
        "attention_backend": "FLASH_ATTN",
        "kv_cache_dtype": "fp8",
        "data_parallel_size": "2",
    } == found.config


def test_a_config_file_leaves_defaults_open() -> None:
    """With --config only what stands on the command line is known."""
    assert {"max_num_seqs": 8.0} == vllm_settings(shlex.split("vllm serve --config c.yaml --max-num-seqs 8")).settings


@pytest.mark.parametrize("argv", [[], ["VLLM::EngineCore"], ["python3", "-m", "http.server"], ["bash", "-c", "vllm serve m"]])
def test_other_programs_tell_nothing(argv: list[str]) -> None:
    """No defaults are made up for a process that is no vLLM server."""
    assert CommandLine() == vllm_settings(argv)


def test_the_module_form_of_the_server() -> None:
    """Old deployments start the module."""
    assert {"max_num_seqs": 8.0} == told("--max-num-seqs 8", program="python3 -m vllm.entrypoints.openai.api_server --model m")


def test_command_lines_of_real_servers() -> None:
    """The captures' servers: what was on their command lines is found."""
    scenarios = ("saturated_queue", "eager_steady_16", "spec_ngram_high", "api_servers_2")
    lines = {s: vllm_settings(truth(VLLM_032, s)["server"]["argv"]) for s in scenarios}
    assert (4.0, 2048.0) == tuple(lines["saturated_queue"].settings[k] for k in ("max_num_seqs", "max_model_len"))
    assert [1.0, 0.0] == [lines[s].settings["enforce_eager"] for s in ("eager_steady_16", "saturated_queue")]
    assert (1.0, "ngram") == (lines["spec_ngram_high"].settings["speculative"], lines["spec_ngram_high"].config["speculative_method"])
    assert 2.0 == lines["api_servers_2"].settings["api_server_count"]
