"""Every recording is judged right also where the server's start flags can be read, as beside a live engine."""

from __future__ import annotations

import pytest

from heptascope.labels import Match
from support.recordings import all_recordings
from support.replays import TOLD, match, verdict


@pytest.mark.parametrize("name", sorted(all_recordings()))
def test_right_by_its_label_with_its_flags(name: str) -> None:
    """Knowing the sequence cap, the graph sizes and the rest changes no verdict for the worse."""
    assert Match.RIGHT is match(name, TOLD), verdict(name, TOLD)
