"""The demo: bundled scenarios, one after the other."""

from __future__ import annotations

import pytest

from heptascope.commands.demo import Demo, about
from heptascope.config import Settings
from heptascope.demo.scenarios import FOLDER, chosen, scenario_of, scenarios
from heptascope.errors import UserError
from heptascope.sources.recording import Recording

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


def test_the_picker_stays_with_what_was_picked() -> None:
    """A picked scenario plays, its label is what verdicts are compared with, and an unknown one is refused."""
    demo = Demo(Settings(), chosen("idle"), 1.0, lambda _: None)
    try:
        assert "idle" == demo.playing()
        assert "right" == demo.match({"state": "idle", "faults": [], "limiter": None})
        demo.play("kv-severe")
        assert "kv-severe" == demo.playing()
        assert "missed" == demo.match({"state": "idle", "faults": [], "limiter": None})
        assert "NVIDIA H200" == (demo.daemon.header() or {})["gpus"][0]["name"]
        assert set(scenarios()) == set(demo.labels())
        with pytest.raises(KeyError):
            demo.play("xyz")
    finally:
        demo.stop()


def test_recordings_of_ones_own_can_be_shown() -> None:
    """A recording without a label plays too, and nothing is said about right or wrong."""
    own = scenario_of(Recording.open(FOLDER / "idle"))._replace(label={}, name="mine")
    demo = Demo(Settings(), [own], 1.0, lambda _: None, [own])
    try:
        assert {"mine": {}} == demo.labels()
        assert "" == demo.match({"state": "idle"})
    finally:
        demo.stop()


def test_a_speed_out_of_bounds_is_the_users_mistake() -> None:
    """The bounds are in the message."""
    with pytest.raises(UserError, match=r"--speed: speed is 21.0; it can be 0.1 to 20"):
        Demo(Settings(), chosen("idle"), 21.0, print)
