"""Drives an engine over its OpenAI API and keeps what the client itself saw: counts that are exact, times that are its own."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

_DATA = b"data: "
_TIMEOUT_SECONDS = 120.0
WORDS = 1024


@dataclass
class Seen:
    """What one request, or all of a load, came to; times in seconds."""

    finished: int = 0
    cut: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    first_token: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        """Add what another request saw."""
        self.finished += other.finished
        self.cut += other.cut
        self.prompt_tokens += other.prompt_tokens
        self.generated_tokens += other.generated_tokens
        self.first_token += other.first_token
        self.gaps += other.gaps
        self.whole += other.whole


@dataclass(frozen=True)
class Load:
    """A closed loop of `clients`, each sending `requests` prompts of `prompt` tokens for `output` tokens.

    The first `shared` tokens are the same in all prompts. A request is cut by its client after `cut_after` events (0: never).
    """

    clients: int
    requests: int
    prompt: int
    output: int
    shared: int = 0
    cut_after: int = 0
    seed: int = 0

    def drive(self, url: str, model: str) -> Seen:
        """Run the load to its end. Raises what a client raised."""
        total, lock = Seen(), threading.Lock()

        def client(number: int) -> None:
            chance = random.Random(f"{self.seed}-{number}")  # noqa: S311  # repeatable prompts
            for _ in range(self.requests):
                seen = _request(url, model, self._prompt(chance), self)
                with lock:
                    total.add(seen)

        with ThreadPoolExecutor(self.clients) as pool:
            for done in [pool.submit(client, number) for number in range(self.clients)]:
                done.result()
        return total

    def _prompt(self, chance: random.Random) -> list[int]:
        common = random.Random(f"shared-{self.seed}")  # noqa: S311  # the same for every request
        shared = [common.randrange(2, WORDS) for _ in range(self.shared)]
        return shared + [chance.randrange(2, WORDS) for _ in range(self.prompt - self.shared)]


def _request(url: str, model: str, prompt: Sequence[int], load: Load) -> Seen:
    """Send one request on a connection of its own: servers drop idle ones, and a starved client is idle for long."""
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": load.output,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=_TIMEOUT_SECONDS)
    try:
        began = time.monotonic()
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == http.HTTPStatus.OK, answer.read()
        return _stream(answer, began, load.cut_after)
    finally:
        connection.close()


def _stream(answer: http.client.HTTPResponse, began: float, cut_after: int) -> Seen:
    seen, events, last = Seen(), 0, began
    for line in iter(answer.readline, b""):
        if not line.startswith(_DATA) or line.startswith(_DATA + b"[DONE]"):
            continue
        now = time.monotonic()
        event = json.loads(line.removeprefix(_DATA))
        if event.get("usage"):
            seen.prompt_tokens = event["usage"]["prompt_tokens"]
            seen.generated_tokens = event["usage"]["completion_tokens"]
        if not event["choices"]:
            continue
        (seen.gaps if events else seen.first_token).append(now - last)
        last, events = now, events + 1
        if cut_after and events >= cut_after:
            seen.cut = 1
            return seen
    seen.finished = 1
    seen.whole.append(last - began)
    return seen
