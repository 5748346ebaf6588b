"""Where an engine writes its traces, and waiting for them to be whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heptascope.errors import UserError
from heptascope.sources.trace.profiler import Clock

LARGEST = 4 << 30
"""Bytes of one capture's files that are analysed without asking."""
QUIET = 1.0
"""Seconds for which a file must not grow to be whole."""
PATIENCE = 120.0
"""Seconds to wait for files after the profiler was stopped."""
_POLL = 0.2
_NAMES = re.compile(r"\.json(\.gz)?$")
_ENVIRONMENT = "VLLM_TORCH_PROFILER_DIR="
_State = dict[Path, tuple[int, float]]


@dataclass(slots=True)
class TraceFolder:
    """A folder in which traces are to appear; what was in it before does not count."""

    path: Path
    _before: _State

    @classmethod
    def watch(cls, path: Path) -> TraceFolder:
        """Note what is in the folder now. Raises UserError if it cannot be read."""
        try:
            return cls(path, dict(_files(path)))
        except OSError as error:
            raise UserError(error.strerror or str(error), where=str(path), hint="give the folder into which the engine writes") from error

    def new(self) -> _State:
        """Return the trace files that appeared or changed."""
        return {path: state for path, state in _files(self.path) if self._before.get(path) != state}

    def whole(self, clock: Clock, patience: float = PATIENCE) -> list[Path]:
        """Wait for traces that no longer grow. Raises UserError if none come or they are too large."""
        end, quiet_since, last = clock.now() + patience, clock.now(), self.new()
        while clock.now() < end and not (last and clock.now() - quiet_since >= QUIET):
            clock.pause(_POLL)
            state = self.new()
            if state != last:
                last, quiet_since = state, clock.now()
        if not last:
            hint = "give --trace-dir the folder into which the engine writes, as this machine sees it"
            raise UserError(f"no trace appeared within {patience:.0f} s", where=str(self.path), hint=hint)
        total = sum(size for size, _ in last.values())
        if total > LARGEST:
            hint = "record fewer steps, or analyse them with heptascope trace"
            raise UserError(f"the traces have {total >> 20} MiB", where=str(self.path), hint=hint)
        return sorted(last)


def _files(folder: Path) -> Iterator[tuple[Path, tuple[int, float]]]:
    if not folder.is_dir():
        raise NotADirectoryError(20, "not a folder")
    for path in folder.rglob("*"):
        try:
            if _NAMES.search(path.name) and path.is_file():
                found = path.stat()
                yield path, (found.st_size, found.st_mtime)
        except OSError:
            continue  # it went while we looked


def configured_folders(proc: Path = Path("/proc")) -> list[Path]:
    """Return the folders into which engines on this machine were told to write traces, as far as this user may see."""
    found = {folder for process in proc.glob("[0-9]*") for folder in _of_process(process)}
    return sorted(Path(folder) for folder in found if folder.startswith("/"))


def _of_process(process: Path) -> Iterable[str]:
    arguments = _strings(process / "cmdline")
    folders = _from_arguments(arguments)
    return folders or [line.removeprefix(_ENVIRONMENT) for line in _strings(process / "environ") if line.startswith(_ENVIRONMENT)]


def _strings(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def _from_arguments(arguments: Sequence[str]) -> list[str]:
    """Read vLLM's --profiler-config, as JSON or with a dot, with its value behind = or as the next argument."""
    found = []
    for at, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        name, value = name.replace("_", "-"), value or (arguments[at + 1] if at + 1 < len(arguments) else "")
        if name == "--profiler-config.torch-profiler-dir":
            found.append(value)
        elif name == "--profiler-config":
            found += _from_json(value)
    return found


def _from_json(text: str) -> list[str]:
    try:
        config = json.loads(text)
    except ValueError:
        return []
    folder = config.get("torch_profiler_dir") if isinstance(config, dict) else None
    return [folder] if isinstance(folder, str) else []
