"""What `heptascope capture` does: record with the engine's profiler, wait for the files, analyse them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import httpx

from heptascope.errors import UserError
from heptascope.sources.trace import capture_files
from heptascope.sources.trace.capture_files import TraceFolder
from heptascope.sources.trace.profiler import MOST_SECONDS, MOST_STEPS, Clock, Engine, Wanted, capture
from heptascope.surfaces import trace_command
from heptascope.surfaces.trace_report import Report


def wanted(steps: int | None, seconds: float) -> Wanted:
    """Check the bounds. Raises UserError beyond them."""
    if steps is not None and steps > MOST_STEPS:
        raise UserError(f"--steps {steps} is too much", hint=f"at most {MOST_STEPS}")
    if not seconds <= MOST_SECONDS:  # nor what is no number
        raise UserError(f"--seconds {seconds:g} is too long", hint=f"at most {MOST_SECONDS:g}")
    return Wanted(steps, seconds)


def run(url: str, amount: Wanted, trace_dir: Path | None, clock: Clock | None = None) -> Report:
    """Record and analyse. Raises UserError for whatever keeps it from that."""
    clock = clock or Clock()
    with httpx.Client(follow_redirects=False, trust_env=False) as client:
        engine = Engine(url, client)
        folder = TraceFolder.watch(trace_dir or _folder(engine))
        found = capture(engine, amount, str(folder.path.resolve()), lambda: bool(folder.new()), clock)
    report = trace_command.build(folder.whole(clock), one_run=True)
    report.lead = [found.note] if found.note else []
    return report


def _folder(engine: Engine) -> Path:
    """Return where the engine writes: SGLang takes any folder, vLLM has one from its start."""
    if engine.kind == "sglang":
        return _scratch(engine)
    found = capture_files.configured_folders()
    if len(found) == 1:
        return found[0]
    what = "no engine on this machine shows its trace folder" if not found else f"several trace folders: {', '.join(map(str, found))}"
    raise UserError(what, where=engine.url, hint=f"give --trace-dir; if the engine has none, {engine.flag}")


def _scratch(engine: Engine) -> Path:
    """Return a new folder. Raises UserError where nothing can be written, as in a container with a read-only root."""
    try:
        return Path(tempfile.mkdtemp(prefix="heptascope-trace-"))
    except OSError as error:
        hint = "give --trace-dir, a folder that the engine can write to and that is seen from here"
        raise UserError("there is no folder for the trace here", where=engine.url, hint=hint) from error
