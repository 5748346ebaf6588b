"""Measure traces and print the signals as JSON, in a process of its own: `python -m heptascope.sources.trace FILE...`.

The first file is the newest; files that are not ranks of its run are left out. A failure is one line on standard
error and status 2.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heptascope.errors import UserError
from heptascope.sources.trace import run
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.load import load


def measure(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the signals of the first file's run. Raises UserError if the first file cannot be used."""
    newest = load(paths[0])
    if not isinstance(newest, Trace):
        return _document(newest.format, [newest.path], newest.to_samples())
    others = [trace for path in paths[1:] if (trace := _usable(path)) is not None]
    ranks = run.runs([newest, *others])[0]
    measured = run.measure(ranks)
    return _document(newest.format, [trace.path for trace in ranks], measured.to_samples())


def _usable(path: Path) -> Trace | None:
    try:
        found = load(path)
    except UserError:
        return None
    return found if isinstance(found, Trace) and len(found.gpu) else None


def _document(form: str, files: Sequence[str], samples: Sequence[tuple[str, Any, float]]) -> dict[str, Any]:
    return {"format": form, "files": list(files), "signals": [[name, list(pairs), value] for name, pairs, value in samples]}


def main(arguments: Sequence[str]) -> int:
    """Print the signals; return the exit status."""
    try:
        print(json.dumps(measure([Path(argument) for argument in arguments])))
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
