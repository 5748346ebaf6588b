"""DCGM's own Python bindings, found at run time: they are a folder of modules that comes with DCGM, not a package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from heptascope.model import Reason
from heptascope.sources.base import SourceError

USUAL_PLACES = (
    Path("/usr/share/datacenter-gpu-manager-4/bindings/python3"),  # packages of DCGM 4
    Path("/usr/local/dcgm/bindings/python3"),  # packages of DCGM 3
)
_LIBRARY_NAMES = ("libdcgm.so.4", "libdcgm.so.3")
_LIBRARY_FOLDERS = (".", "lib", "../lib", "../../lib", "../../lib64")


class Bindings(NamedTuple):
    """The two modules that are used, and where they are from."""

    structs: Any
    agent: Any
    folder: Path


def find(configured: Path | None) -> Path:
    """Return the folder of the bindings: the configured one, or the first of the usual places. Raises SourceError."""
    places = (configured,) if configured is not None else USUAL_PLACES
    for place in places:
        if (place / "dcgm_agent.py").is_file():
            return place
    looked = ", ".join(str(place) for place in places)
    remedy = "install datacenter-gpu-manager-4-core or set gpu.dcgm.bindings"
    raise SourceError(Reason.NO_SOURCE, f"DCGM: no Python bindings in {looked}; {remedy}")


def load(configured: Path | None = None) -> Bindings:
    """Load bindings and library. Raises SourceError with one line that names the place and the remedy."""
    folder = find(configured)
    try:
        with _first_on_path(folder):
            structs, agent = importlib.import_module("dcgm_structs"), importlib.import_module("dcgm_agent")
    except Exception as exc:  # foreign modules may raise anything while they load
        raise SourceError(Reason.NOT_SUPPORTED, f"DCGM: the bindings in {folder} cannot be loaded: {type(exc).__name__}: {exc}") from exc
    _check(agent, folder)
    bindings = Bindings(structs, agent, folder)
    _start(bindings)
    return bindings


def _check(agent: ModuleType, folder: Path) -> None:
    """Refuse a foreign module of this name, or bindings that were loaded from elsewhere before."""
    where = Path(agent.__file__ or "").parent
    if where.resolve() != folder.resolve():
        raise SourceError(
            Reason.NOT_SUPPORTED, f"DCGM: other bindings are loaded already, from {where}; restart heptascope to use {folder}"
        )


def _start(bindings: Bindings) -> None:
    """Load libdcgm and initialise it; both may be done many times."""
    error = bindings.structs.DCGMError
    try:
        bindings.structs._dcgmInit(_library_folder(bindings.folder))
        bindings.agent.dcgmInit()
    except (error, OSError) as exc:
        remedy = "install the library of the same version, or put its folder on LD_LIBRARY_PATH"
        raise SourceError(Reason.NOT_SUPPORTED, f"DCGM: the bindings in {bindings.folder} cannot load libdcgm ({exc}); {remedy}") from exc


def _library_folder(folder: Path) -> str | None:
    """Return a folder near the bindings that holds the library; None leaves it to the bindings' own search."""
    near = [folder / part for part in _LIBRARY_FOLDERS]
    return next((str(place.resolve()) for place in near if any((place / name).is_file() for name in _LIBRARY_NAMES)), None)


@contextmanager
def _first_on_path(folder: Path) -> Iterator[None]:
    """Put `folder` first on sys.path for the block alone: it also holds modules with general names, such as `logger` and `common`."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
