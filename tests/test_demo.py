"""The demo: bundled scenarios, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from heptascope.commands.demo import SETTLE_SECONDS, Demo, about
from heptascope.config import Settings
from heptascope.daemon import Daemon
from heptascope.demo.scenarios import FOLDER, Scenario, chosen, scenario_of, scenarios
from heptascope.errors import UserError
from heptascope.labels import Match, compare
from heptascope.sources.base import SourceError
from heptascope.sources.playback import replay_sources
from heptascope.sources.recording import Recording
from heptascope.wiring import build_pipeline
from support.fakes import ManualClock

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


def test_the_picker_stays_with_what_was_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picked scenario plays; verdicts are compared with its label once the window is full of it; an unknown one is refused."""
    demo = Demo(Settings(), chosen("idle"), 1.0, lambda _: None)
    now, idle = 5e9, {"state": "idle", "faults": [], "limiter": None}
    monkeypatch.setattr(demo.daemon, "now", lambda: now)
    try:
        assert ("idle", "right") == (demo.playing(), demo.match(idle))
        demo.play("kv-severe")
        assert ("kv-severe", "settling") == (demo.playing(), demo.match(idle))
        now += Settings().rules.window + SETTLE_SECONDS - 0.1
        assert "settling" == demo.match(idle)
        now += 0.2
        assert "missed" == demo.match(idle)
        assert "NVIDIA H200" == (demo.daemon.header() or {})["gpus"][0]["name"]
        assert set(scenarios()) == set(demo.labels())
        with pytest.raises(KeyError):
            demo.play("xyz")
    finally:
        demo.stop()


def played(daemon: Daemon, clock: ManualClock, scenario: Scenario, seconds: int) -> Iterator[Any]:
    """Let a daemon start anew with a scenario; yield each second's verdict."""
    daemon.start_anew(build_pipeline(Settings(), {}), [])
    sources = replay_sources(Recording.open(scenario.path))
    for _ in range(seconds):
        for source in sources:
            try:
                daemon.say(source.read(clock.now))
            except SourceError:
                continue  # the recording has nothing of it yet
        daemon.step()
        yield daemon.verdict()
        clock.now += 1.0


@pytest.mark.parametrize(
    ("before", "after"),
    [("kv-severe", "tokenize-heavy"), ("tokenize-heavy", "decode-c64"), ("cpu-starved", "kv-severe"), ("tp2-straggler", "idle")],
)
def test_no_verdict_is_made_of_two_scenarios(before: str, after: str) -> None:
    """After a change no second names a fault that the new scenario does not have, and it is right once the window is full of it."""
    clock, known = ManualClock(), scenarios()
    daemon = Daemon(build_pipeline(Settings(), {}), clock=clock)
    *_, last = played(daemon, clock, known[before], 15)
    assert Match.RIGHT == compare(last, known[before].label)
    matches = [compare(verdict, known[after].label) for verdict in played(daemon, clock, known[after], 15)]
    assert Match.WRONG_PAGE not in matches
    assert [Match.RIGHT] * 3 == matches[-3:]


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
