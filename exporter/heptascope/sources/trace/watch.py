"""Watches a folder for traces and serves the last one's measures with its age.

The measuring runs in a process of its own: a large or broken trace costs the daemon neither memory nor life.
"""

from __future__ import annotations

import json
import logging
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.model import Missing, Reading, Reason, Sample, labels
from heptascope.sources.base import SourceError

log = logging.getLogger(__name__)

INTERVAL = 5.0
"""Seconds between looks at the folder."""
MEASURING = 300.0
"""Seconds that measuring may take; a gigabyte takes about fifteen."""
TOGETHER = 60.0
"""Seconds between the first and the last file of one run: ranks write at about the same time."""
MOST_FILES = 64
OWN_SIGNALS = {"heptascope_trace_age_seconds": (), "heptascope_trace_info": ("file", "format")}
"""What this source adds to a trace's measures, with its labels."""
_NAMES = re.compile(r"\.(json|json\.gz|sqlite|nsys-rep|csv)$")


class _File(NamedTuple):
    modified: float
    size: int
    path: Path


@dataclass(slots=True)
class _Result:
    """The last trace that could be measured."""

    newest: _File
    samples: list[Sample] = field(default_factory=list)
    info: dict[str, str] = field(default_factory=dict)


class TraceFolderSource:
    """A source of `heptascope_trace_*`: the newest trace of a folder."""

    kind = "trace"

    def __init__(self, folder: Path, *, name: str = "trace", interval: float = INTERVAL, python: str = sys.executable) -> None:
        """Watch `folder`, and what is below it."""
        self.name, self.interval, self.timeout = name, interval, MEASURING + interval
        self._folder, self._python = folder, python
        self._seen: list[_File] = []
        self._tried: _File | None = None
        self._result: _Result | None = None
        self._problem = ""

    def read(self, now: float) -> Reading:
        """Measure a trace that is new and no longer grows; return the last result, if there is any.

        Raises SourceError if the folder cannot be read, or if what lies in it cannot be measured and nothing was before.
        """
        files = self._files()
        steady = files and files == self._seen
        self._seen = files
        if steady and files[0] != self._tried:
            self._tried = files[0]
            self._measure(files)
            if self._problem and self._result is not None:  # else the source is down, and says so
                log.warning("%s; the trace before it is shown on", self._problem)
        if self._result is None:
            if self._problem:
                raise SourceError(Reason.INVALID, self._problem)
            nothing = f"no trace in {self._folder} yet"
            return Reading(self.name, now, missing=[Missing(name, Reason.NOT_CONFIGURED, nothing) for name in OWN_SIGNALS])
        return Reading(self.name, now, [*self._result.samples, *self._own(self._result, now)])

    def close(self) -> None:
        """Hold nothing."""

    def _files(self) -> list[_File]:
        """Return the traces of the folder, the newest first."""
        try:
            if not self._folder.is_dir():
                raise SourceError(Reason.NO_SOURCE, f"{self._folder} is not a folder")
            found = [_look(path) for path in self._folder.rglob("*") if _NAMES.search(path.name)]
        except OSError as error:
            raise SourceError(Reason.NO_PERMISSION, f"{self._folder}: {error.strerror or error}") from error
        return sorted((file for file in found if file is not None), reverse=True)

    def _measure(self, files: Sequence[_File]) -> None:
        newest = files[0]
        together = [file.path for file in files if newest.modified - file.modified <= TOGETHER][:MOST_FILES]
        command = [self._python, "-m", "heptascope.sources.trace", *map(str, together)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MEASURING, check=False)  # noqa: S603  # our own module
        except subprocess.TimeoutExpired:
            self._problem = f"{newest.path}: measuring took more than {MEASURING:.0f} s"
            return
        if done.returncode:
            self._problem = (done.stderr.strip().splitlines() or [f"{newest.path}: measuring ended with status {done.returncode}"])[-1]
            return
        self._result, self._problem = _result(newest, json.loads(done.stdout)), ""

    def _own(self, result: _Result, now: float) -> list[Sample]:
        return [
            Sample("heptascope_trace_age_seconds", labels(), max(now - result.newest.modified, 0.0)),
            Sample("heptascope_trace_info", labels(**result.info), 1.0),
        ]


def _look(path: Path) -> _File | None:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None  # it went while we looked
    if not stat.S_ISREG(state.st_mode):
        return None  # a folder, or a pipe that would keep us waiting
    return _File(state.st_mtime, state.st_size, path)


def _result(newest: _File, document: dict[str, Any]) -> _Result:
    samples = [Sample(name, tuple((str(key), str(text)) for key, text in pairs), value) for name, pairs, value in document["signals"]]
    return _Result(newest, samples, {"file": newest.path.name, "format": str(document["format"])})
