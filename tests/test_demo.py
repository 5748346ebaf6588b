"""The demo: bundled scenarios, one after the other."""

from __future__ import annotations

import pytest

from heptascope.commands.demo import Demo, about
from heptascope.config import Settings
from heptascope.demo.scenarios import FOLDER, chosen, scenarios
from heptascope.errors import UserError

MOST_BYTES = 3_000_000  # what the package may carry


def test_every_scenario_says_what_it_shows() -> None:
    """Each bundled recording has a state and the evidence in words, and all together stay small."""
    found = scenarios()
    assert "idle: idle: no requests" == about(found["idle"])
    assert "seqs8-c64: degraded (scheduling/sequence-cap): 8 running = cap, 56 waiting, KV 0.19" == about(found["seqs8-c64"])
    assert MOST_BYTES > sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())


def test_scenarios_are_chosen_by_name_or_all() -> None:
    """One name is one scenario, `all` is every one, anything else an error with the names."""
    assert ["idle"] == [scenario.name for scenario in chosen("idle")]
    assert list(scenarios()) == [scenario.name for scenario in chosen("all")]
    with pytest.raises(UserError, match=r"no scenario xyz; there are: cpu-starved, .*, all"):
        chosen("xyz")


def test_scenarios_follow_one_another() -> None:
    """A turn ends the sources of one recording, starts those of the next, and says so; after the last comes the first."""
    said: list[str] = []
    demo = Demo(Settings(), [*chosen("idle"), *chosen("tp2-straggler")], 20.0, said.append)
    try:
        first = {status.name for status in demo.daemon.statuses()}
        demo.turn()
        demo.turn()
        assert ["idle", "tp2-straggler", "idle"] == [line.partition(":")[0] for line in said]
        assert first == {status.name for status in demo.daemon.statuses()}
    finally:
        demo.stop()


def test_a_speed_out_of_bounds_is_the_users_mistake() -> None:
    """The bounds are in the message."""
    with pytest.raises(UserError, match=r"--speed: speed is 21.0; it can be 0.1 to 20"):
        Demo(Settings(), chosen("idle"), 21.0, print)
