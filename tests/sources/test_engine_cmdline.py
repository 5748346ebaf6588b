"""Start settings from command lines: vLLM's in all spellings, and the tables of the other engines."""

from __future__ import annotations

import shlex

import pytest

from heptascope.sources.commandlines import read_command, settings_by_engine
from heptascope.sources.engine.cmdline import CommandLine
from heptascope.sources.engine.names import SETTINGS
from support.engine_pages import VLLM_032, truth

DEFAULTS = {"tensor_parallel_size": 1.0, "pipeline_parallel_size": 1.0, "enforce_eager": 0.0, "speculative": 0.0}


def told(flags: str, program: str = "/usr/bin/python3 /opt/venv/bin/vllm serve model") -> dict[str, float]:
    """Return the settings that go beyond or against the defaults."""
    found = read_command(shlex.split(f"{program} {flags}")).settings
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
        ("--compilation-config.cudagraph_capture_sizes [1,2,128]", {"max_cudagraph_capture_size": 128.0}),
        ("""--compilation-config '{"cudagraph_capture_sizes":64}'""", {"max_cudagraph_capture_size": 64.0}),
        pytest.param("--compilation-config " + "[" * 100_000, {}, id="nested"),
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
    assert "enforce_eager" not in read_command(["vllm", "serve", "m", *flags.split()]).settings


def test_text_settings() -> None:
    """What is no number is text: method, backend, types."""
    found = read_command(
        shlex.split(
            """vllm serve m -sc '{"method":"ngram","num_speculative_tokens":4}' --attention-config.backend FLASH_ATTN --kv-cache-dtype fp8
            -tp 4 --data-parallel-size 2 --enable-expert-parallel"""
        )
    )
    assert {
        "speculative_method": "ngram",
        "speculative_tokens": "4",
        "attention_backend": "FLASH_ATTN",
        "kv_cache_dtype": "fp8",
        "data_parallel_size": "2",
        "expert_parallel_size": "8",
    } == found.config


def test_a_config_file_leaves_defaults_open() -> None:
    """With --config only what stands on the command line is known."""
    assert {"max_num_seqs": 8.0} == read_command(shlex.split("vllm serve --config c.yaml --max-num-seqs 8")).settings


@pytest.mark.parametrize("argv", [[], ["VLLM::EngineCore"], ["python3", "-m", "http.server"], ["bash", "-c", "vllm serve m"]])
def test_other_programs_tell_nothing(argv: list[str]) -> None:
    """No defaults are made up for a process that is no vLLM server."""
    assert CommandLine() == read_command(argv)


def test_the_module_form_of_the_server() -> None:
    """Old deployments start the module."""
    assert {"max_num_seqs": 8.0} == told("--max-num-seqs 8", program="python3 -m vllm.entrypoints.openai.api_server --model m")


def test_command_lines_of_real_servers() -> None:
    """The captures' servers: what was on their command lines is found."""
    scenarios = ("saturated_queue", "eager_steady_16", "spec_ngram_high", "api_servers_2")
    lines = {s: read_command(truth(VLLM_032, s)["server"]["argv"]) for s in scenarios}
    assert (4.0, 2048.0) == tuple(lines["saturated_queue"].settings[k] for k in ("max_num_seqs", "max_model_len"))
    assert [1.0, 0.0] == [lines[s].settings["enforce_eager"] for s in ("eager_steady_16", "saturated_queue")]
    assert (1.0, "ngram") == (lines["spec_ngram_high"].settings["speculative"], lines["spec_ngram_high"].config["speculative_method"])
    assert 2.0 == lines["api_servers_2"].settings["api_server_count"]


@pytest.mark.parametrize(
    ("line", "settings", "config"),
    [
        (
            "python -m sglang.launch_server --model-path m --tp 4 --dp 2 --max-running-requests 64 --chunked-prefill-size 8192 "
            "--attention-backend fa3 --disable-cuda-graph --disable-radix-cache --speculative-algorithm EAGLE "
            "--speculative-num-draft-tokens 4 --context-length 32768 --page-size 16",
            {
                "tensor_parallel_size": 4.0,
                "pipeline_parallel_size": 1.0,
                "max_num_seqs": 64.0,
                "max_model_len": 32768.0,
                "enforce_eager": 1.0,
                "enable_prefix_caching": 0.0,
                "speculative": 1.0,
            },
            {
                "data_parallel_size": "2",
                "chunked_prefill_size": "8192",
                "attention_backend": "fa3",
                "speculative_method": "EAGLE",
                "speculative_tokens": "4",
                "block_size": "16",
            },
        ),
        ("/opt/venv/bin/sglang serve --config c.yaml --tensor-parallel-size=2", {"tensor_parallel_size": 2.0}, {}),
        (
            "/usr/bin/python3 /usr/local/bin/trtllm-serve m --tp_size 2 --max_batch_size 128 --max_num_tokens 8192 --max_seq_len 4096 "
            "--backend pytorch --kv_cache_free_gpu_memory_fraction 0.9",
            {
                "tensor_parallel_size": 2.0,
                "pipeline_parallel_size": 1.0,
                "max_num_seqs": 128.0,
                "max_num_batched_tokens": 8192.0,
                "max_model_len": 4096.0,
            },
            {"backend": "pytorch", "gpu_memory_utilization": "0.9"},
        ),
        ("trtllm-serve m --extra_llm_api_options o.yaml --pipeline_parallel_size 2", {"pipeline_parallel_size": 2.0}, {}),
        (
            "text-generation-launcher --model-id m --num-shard 2 --max-total-tokens 8192 --max-batch-prefill-tokens 4096 --speculate 3 "
            "--cuda-graphs 1,2,4,8,32 --quantize awq",
            {
                "tensor_parallel_size": 2.0,
                "max_model_len": 8192.0,
                "speculative": 1.0,
                "enforce_eager": 0.0,
                "max_cudagraph_capture_size": 32.0,
            },
            {"max_prefill_tokens": "4096", "speculative_tokens": "3", "quantization": "awq"},
        ),
        ("text-generation-launcher --model-id m --cuda-graphs 0", {"enforce_eager": 1.0}, {}),
        (
            "/usr/bin/python3 /usr/local/bin/lmdeploy serve api_server m --tp 2 --max-batch-size 128 --session-len 8192 --eager-mode "
            "--cache-max-entry-count 0.8 --enable-prefix-caching --backend pytorch",
            {
                "tensor_parallel_size": 2.0,
                "max_num_seqs": 128.0,
                "max_model_len": 8192.0,
                "enforce_eager": 1.0,
                "enable_prefix_caching": 1.0,
            },
            {"cache_max_entry_count": "0.8", "backend": "pytorch"},
        ),
        (
            "/app/llama-server -m m.gguf -np 4 -c 8192 -b 2048 -ctk q8_0 -md d.gguf --draft-max 8",
            {"max_num_seqs": 4.0, "max_num_batched_tokens": 2048.0, "speculative": 1.0},
            {"kv_cache_dtype": "q8_0", "speculative_tokens": "8", "kv_unified": "0"},
        ),
        ("llama-server -m m.gguf", {}, {"kv_unified": "1"}),
        ("llama-server -m m.gguf -np 2 -kvu", {"max_num_seqs": 2.0}, {"kv_unified": "1"}),
        (
            "python3 -m dynamo.vllm --model m --tensor-parallel-size 2",
            {"tensor_parallel_size": 2.0, "pipeline_parallel_size": 1.0, "enforce_eager": 0.0, "speculative": 0.0},
            {},
        ),
    ],
)
def test_the_tables_of_the_engines(line: str, settings: dict[str, float], config: dict[str, str]) -> None:
    """Each server's own flags lead to the same settings; defaults are told only where they are sure."""
    found = read_command(shlex.split(line))
    assert (settings, config) == (found.settings, found.config)
    assert set(settings) <= set(SETTINGS)


def test_the_first_process_that_tells_counts() -> None:
    """TGI's launcher and its router both tell; processes without an engine, or of other programs, do not."""
    launcher, router = ["text-generation-launcher", "--num-shard", "2"], ["text-generation-router", "--max-batch-size", "8"]
    rows = [
        {"engine": "tgi", "cmdline": ["bash"]},
        {"engine": "tgi", "cmdline": launcher},
        {"engine": "tgi", "cmdline": router},
        {"engine": "", "cmdline": launcher},
    ]
    assert {"tgi": CommandLine({"tensor_parallel_size": 2.0})} == settings_by_engine(rows)
