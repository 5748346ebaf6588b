"""The bundled recordings, by name, with what each shows."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.errors import UserError
from heptascope.sources.recording import Recording

FOLDER = Path(__file__).parent / "recordings"
DEFAULT = "kv-severe"
ALL = "all"


class Scenario(NamedTuple):
    """One recording: `state` and `faults` are what a right verdict says, `why` is the evidence, in words."""

    name: str
    path: Path
    state: str
    faults: tuple[str, ...]
    why: str
    label: Mapping[str, Any]


def scenarios() -> dict[str, Scenario]:
    """Return every bundled recording by name."""
    return {path.name: _scenario(path) for path in sorted(FOLDER.iterdir()) if path.is_dir()}


def chosen(name: str) -> list[Scenario]:
    """Return the scenario `name`, or every one for `all`. Raises UserError that lists them."""
    known = scenarios()
    if name == ALL:
        return list(known.values())
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? There are: " if close else "there are: "
        raise UserError(f"no scenario {name}", where="--scenario", hint=hint + ", ".join([*known, ALL]))
    return [known[name]]


def scenario_of(recording: Recording) -> Scenario:
    """Return a recording as a scenario; without a label it says nothing of what is right."""
    label = recording.label or {}
    state, faults = " or ".join(label.get("state", ())), tuple(label.get("fault", ()))
    return Scenario(recording.name, recording.path, state, faults, label.get("why", ""), label)


def _scenario(path: Path) -> Scenario:
    label = json.loads((path / "label.json").read_text(encoding="utf-8"))
    return Scenario(path.name, path, " or ".join(label["state"]), tuple(label["fault"]), label["why"], label)
