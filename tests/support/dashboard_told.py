"""What heptascope would have read beside the recordings, had it run there: the servers' command lines, and traces."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heptascope.sources.recording import Event, Recording
from heptascope.sources.trace.watch import TraceFolderSource
from support.recordings import REPOSITORY, all_recordings

_GRAPHS = "--cudagraph-capture-sizes 1 2 4 8 16 24 32 48 64 96 128 192 256"
_MORE_GRAPHS = f"{_GRAPHS} 384 512"
_NGRAM = '--speculative-config {"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":1}'
_DRAFT = '--speculative-config {"method":"draft_model","model":"llama-1b-shape","num_speculative_tokens":4}'
_SERVERS = {
    "base": f"llama-8b-shape --max-model-len 16384 {_GRAPHS} --max-num-seqs 256",
    "small": f"llama-1b-shape --max-model-len 65536 {_MORE_GRAPHS} --max-num-seqs 512",
    "small-eager": "llama-1b-shape --max-model-len 8192 --enforce-eager --max-num-seqs 256",
    "few-blocks": f"llama-8b-shape --max-model-len 8192 {_GRAPHS} --max-num-seqs 256 --num-gpu-blocks-override 2048",
    "seqs-8": "llama-8b-shape --max-model-len 8192 --cudagraph-capture-sizes 1 2 4 8 16 24 --max-num-seqs 8",
    "no-prefix": f"llama-8b-shape --max-model-len 16384 {_GRAPHS} --max-num-seqs 128 --no-enable-prefix-caching",
    "ngram": f"llama-8b-shape --max-model-len 8192 {_GRAPHS} --max-num-seqs 64 {_NGRAM}",
    "draft": f"llama-8b-shape --max-model-len 8192 {_GRAPHS} --max-num-seqs 128 {_DRAFT}",
    "tp2": f"llama-8b-shape --max-model-len 16384 {_GRAPHS} --max-num-seqs 256 --tensor-parallel-size 2",
    "pp2": f"llama-8b-shape --max-model-len 16384 {_GRAPHS} --max-num-seqs 256 --pipeline-parallel-size 2",
}
"""Flags with which the servers of the recordings were started, as written down when they were made."""

_OF = {
    "small": ("graph-b8", "stream-flood", "tokenize-heavy"),
    "small-eager": ("eager-b8",),
    "few-blocks": ("kv-long", "kv-severe"),
    "seqs-8": ("seqs8-c6", "seqs8-c64"),
    "no-prefix": ("prefix-off",),
    "ngram": ("ngram-high", "ngram-low", "ngram-none"),
    "draft": ("draft-bad-c64", "draft-good"),
    "tp2": ("tp2-c64", "tp2-prefill", "tp2-straggler"),
    "pp2": ("pp2-c64",),
}
_TRACES = {
    "eager-b8": ("eager-b8.json.gz",),
    "tp2-c64": ("tp2-decode-c64-rank0.json.gz", "tp2-decode-c64-rank1.json.gz"),
    "seqs8-c64": ("h200-ncu-raw.csv",),
}
"""Of the same servers, but for the last: Nsight Compute's report of other kernels on the same card."""

_OLD_SECONDS = 900.0


class ToldRecording(Recording):
    """A recording whose host rows hold the server's command line."""

    def events(self) -> Iterator[Event]:
        """Yield everything in the order of time."""
        command = {"engine": "vllm", "cmdline": command_line(self.name)}
        for event in super().events():
            if event.kind == "host" and event.rows[0].get("procs"):
                first, *others = event.rows[0]["procs"]
                yield event._replace(rows=[{**event.rows[0], "procs": [{**first, **command}, *others]}])
            else:
                yield event


def told(name: str) -> Recording:
    """Open a recording with what its server was told."""
    return ToldRecording.open(all_recordings()[name])


def command_line(name: str) -> list[str]:
    """Return the command line of the server in a recording."""
    server = next((server for server, names in _OF.items() if name in names), "base")
    return ["vllm", "serve", *_SERVERS[server].split(" "), "--max-num-batched-tokens", "8192", "--dtype", "bfloat16"]


@contextmanager
def trace_sources(name: str, now: float) -> Iterator[list[TraceFolderSource]]:
    """Give the source of the trace that was taken of a recording's server, some minutes before `now`; none if there was no trace."""
    files = _TRACES.get(name, ())
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            path = Path(folder) / file
            path.write_bytes((REPOSITORY / "tests" / "traces" / file).read_bytes())
            os.utime(path, (now - _OLD_SECONDS, now - _OLD_SECONDS))
        source = TraceFolderSource(Path(folder))
        yield [source] if files else []
        source.close()
