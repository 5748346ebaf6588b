"""Stops an engine's profiler when the process that started it is gone: `python -m heptascope.sources.trace.guard URL SECONDS`.

It runs in a session of its own, so that no signal to its parent reaches it, and reads what the parent says from its
standard input: `started` and `stopped`. If the input ends or SECONDS pass before `stopped` was said, it sends the
stop itself. Only the standard library is imported, to be ready at once.
"""

from __future__ import annotations

import select
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable

TRIES = 5
"""Times that the stop is sent while the engine does not answer."""
_PAUSE = 1.0  # seconds between tries
_START_MAY_LAST = 2.0  # seconds that a start may still be under way after its sender died
_TIMEOUT = 60.0  # seconds; an engine answers a stop only once the trace is written


def main(url: str, seconds: float, pause: Callable[[float], None] = time.sleep) -> int:
    """Wait for the parent's word, its end or the deadline; return 1 if the profiler had to be stopped."""
    print("ready", flush=True)
    said = _listen(time.monotonic() + seconds)
    if "stopped" in said:
        return 0
    if "started" not in said:
        pause(_START_MAY_LAST)
    for _ in range(TRIES):
        if stop(url):
            break
        pause(_PAUSE)
    return 1


def _listen(deadline: float) -> set[str]:
    """Collect the parent's words until it says `stopped`, its end of the pipe closes, or the deadline passes."""
    said: set[str] = set()
    while "stopped" not in said:
        ready, _, _ = select.select([sys.stdin], [], [], max(deadline - time.monotonic(), 0))
        line = sys.stdin.readline() if ready else ""
        if not line:
            break
        said.add(line.strip())
    return said


def stop(url: str) -> bool:
    """Send the stop; True if the engine answered anything."""
    request = urllib.request.Request(f"{url}/stop_profile", data=b"", method="POST")  # noqa: S310  # http or https, checked by the parent
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT):  # noqa: S310  # as above
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
