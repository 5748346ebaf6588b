"""Serve a bundled recording of vLLM on an H200, as if it ran now."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Any

import click

from heptascope import logs
from heptascope.commands._options import config_options, configuration
from heptascope.config import DEFAULT_PORT, Settings
from heptascope.daemon import Daemon
from heptascope.demo.scenarios import ALL, DEFAULT, Scenario, chosen, scenarios
from heptascope.errors import UserError
from heptascope.labels import compare
from heptascope.service import serve
from heptascope.sources.playback import replay_sources
from heptascope.sources.recording import Recording
from heptascope.surfaces.web.stage import SETTLING
from heptascope.wiring import build_pipeline

SCENARIO_SECONDS = 60.0
SETTLE_SECONDS = 2.0
"""After the rules' window is full: a source may be a second late, and the pipeline steps once a second."""
LISTEN = f"127.0.0.1:{DEFAULT_PORT}"


class Demo:
    """A daemon whose sources are a recording, or one recording after the other."""

    def __init__(
        self,
        settings: Settings,
        played: Sequence[Scenario],
        speed: float,
        say: Callable[[str], None],
        known: Iterable[Scenario] | None = None,
    ) -> None:
        """Play `played` in turn, `speed` times as fast; `known` can be picked (the bundled ones by default).

        Raises UserError for a speed out of bounds.
        """
        self._settings = settings
        self.daemon = Daemon(build_pipeline(settings, {}))
        self._settled_at = 0.0
        self._played, self._speed, self._say = played, speed, say
        self._known = {scenario.name: scenario for scenario in (known if known is not None else scenarios().values())}
        self._now = played[0]
        self.stage = self
        self._stop = threading.Event()
        self._next = cycle(played)
        self.turn()

    def start(self) -> None:
        """Start to step, and to change scenarios if there are several."""
        self.daemon.start()
        if len(self._played) > 1:
            threading.Thread(target=self._change, name="demo", daemon=True).start()

    def stop(self) -> None:
        """End everything."""
        self._stop.set()
        self.daemon.stop()

    def turn(self) -> None:
        """Play the next scenario."""
        self._play(next(self._next))

    def play(self, name: str) -> None:
        """Play the scenario `name` and stay with it. Raises KeyError if there is none."""
        scenario = self._known[name]
        self._stop.set()
        self._play(scenario)

    def playing(self) -> str:
        """Return the name of the scenario that plays."""
        return self._now.name

    def labels(self) -> dict[str, dict[str, Any]]:
        """Return the labels of all scenarios."""
        return {name: dict(scenario.label) for name, scenario in self._known.items()}

    def match(self, verdict: Any) -> str:
        """Return how a verdict compares with the label of what plays: "" without a label, `SETTLING` until the window is full of it."""
        if not self._now.label:
            return ""
        return SETTLING if self.daemon.now() < self._settled_at else compare(verdict, self._now.label).value

    def _play(self, scenario: Scenario) -> None:
        recording = Recording.open(scenario.path)
        try:
            sources = replay_sources(recording, self._speed)
        except ValueError as exc:
            raise UserError(str(exc), where="--speed") from exc
        self._now = scenario
        self._settled_at = self.daemon.now() + self._settings.rules.window + SETTLE_SECONDS
        self.daemon.header = lambda: recording.header
        self.daemon.start_anew(build_pipeline(self._settings, {}), sources)
        self._say(about(scenario))

    def _change(self) -> None:
        while not self._stop.wait(SCENARIO_SECONDS):
            self.turn()


def about(scenario: Scenario) -> str:
    """Return one line on a scenario."""
    faults = f" ({', '.join(scenario.faults)})" if scenario.faults else ""
    return f"{scenario.name}: {scenario.state}{faults}: {scenario.why}" if scenario.label else f"{scenario.name}: no label"


def _names() -> str:
    return "\b\nScenarios:\n" + "\n".join(f"  {about(scenario)}" for scenario in scenarios().values())


@click.command(epilog=_names())
@click.option(
    "--scenario", metavar="NAME", default=DEFAULT, show_default=True, help=f"Which recording to play; `{ALL}` plays each for a minute."
)
@click.option("--speed", type=float, default=1.0, show_default=True, help="How many times as fast as it happened.")
@click.option("--listen", metavar="HOST:PORT", default=LISTEN, show_default=True, help="Address to serve on.")
@config_options("config", "log-level", "log-format")
def command(scenario: str, speed: float, listen: str, **options: Any) -> None:
    """Serve a bundled recording of vLLM on an H200 under labelled load, looped, through the same code as live."""
    played = chosen(scenario)
    settings = configuration(listen=listen, **options).settings
    logs.set_up(settings.log)
    serve(Demo(settings, played, speed, click.echo), settings, announce)


def announce(url: str) -> None:
    """Say where to look."""
    click.echo(f"\n  {url}/          what the server waits on, with the evidence (give it ten seconds)")
    click.echo(f"  {url}/metrics   what Prometheus scrapes\n\nCtrl-C ends it.")
