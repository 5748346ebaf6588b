"""A daemon that plays one recording after the other, as one engine whose counters go on: `python playing.py FOLDER...`.

SIGUSR1 goes on to the next recording. The address is in the log, as with `heptascope serve`.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from heptascope import logs
from heptascope.config import LogSettings, Settings
from heptascope.daemon import Daemon
from heptascope.model import Reading
from heptascope.service import serve
from heptascope.sources.playback import Continued, ReplaySource, replay_sources
from heptascope.sources.recording import Recording
from heptascope.wiring import build_pipeline


class Playlist:
    """The recordings, and which of them plays now."""

    def __init__(self, folders: list[Path]) -> None:
        """Start with the first."""
        recordings = [Recording.open(folder) for folder in folders]
        self._all = [{source.name: source for source in replay_sources(recording)} for recording in recordings]
        self._at = 0
        self._continued = Continued()
        self._counts: set[str] = set()
        self._lock = threading.Lock()

    def sources(self) -> list[JoinedSource]:
        """Return one source for each that every recording has."""
        return [JoinedSource(source, self) for source in self._all[0].values()]

    def next(self) -> None:
        """Go on; counters count on from where they stand."""
        with self._lock:
            self._at = (self._at + 1) % len(self._all)
            self._counts = set()

    def read(self, name: str, now: float) -> Reading:
        """Return what a source reads now."""
        with self._lock:
            reading = self._continued.apply(self._playing()[name].read(now), name in self._counts)
            self._counts.add(name)
            return reading

    def _playing(self) -> Mapping[str, ReplaySource]:
        return self._all[self._at]


class JoinedSource:
    """One source of whatever plays."""

    timeout = 10.0

    def __init__(self, like: ReplaySource, playlist: Playlist) -> None:
        """Read the source of the same name as `like`."""
        self.name, self.kind, self.interval = like.name, like.kind, like.interval
        self._playlist = playlist

    def read(self, now: float) -> Reading:
        """Return what the source reads at `now`."""
        return self._playlist.read(self.name, now)

    def close(self) -> None:
        """Do nothing."""


class Show:
    """What `serve` wants."""

    def __init__(self, playlist: Playlist, settings: Settings) -> None:
        """Play `playlist`."""
        self.daemon = Daemon(build_pipeline(settings, {}))
        self.daemon.add(playlist.sources())

    def start(self) -> None:
        """Start to step."""
        self.daemon.start()

    def stop(self) -> None:
        """End."""
        self.daemon.stop()


def main() -> None:
    """Play until the end is asked for."""
    folders, listen = [Path(text) for text in sys.argv[1:-2]], sys.argv[-1]
    settings = Settings.model_validate({"listen": listen})
    logs.set_up(LogSettings.model_validate({}))
    playlist = Playlist(folders)
    signal.signal(signal.SIGUSR1, lambda *_: playlist.next())
    serve(Show(playlist, settings), settings)


if __name__ == "__main__":
    main()
