"""What `heptascope check` prints for people."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from heptascope.checkup import Report
from heptascope.commands.check import show
from heptascope.model import Reason, SourceStatus
from heptascope.signals.snapshot import EMPTY


def test_a_path_longer_than_its_column_is_shown_whole() -> None:
    """Why a source is down is folded, not cut off."""
    path = "/usr/share/" + "long/" * 20 + "python3"
    told = StringIO()
    show(Report((SourceStatus("gpu", "gpu", False, None, None, Reason.NO_SOURCE, path),), {}, EMPTY), Console(file=told, width=80))
    assert path in "".join(told.getvalue().split())
