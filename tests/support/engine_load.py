"""Drives an engine over its OpenAI API and keeps what the client itself saw: counts that are exact, times that are its own."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx

_DATA = "data: "
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
            # a connection each: servers drop idle ones, and a starved client is idle for long
            with httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)) as http:
                for _ in range(self.requests):
                    seen = _request(http, url, model, self._prompt(chance), self)
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


def _request(http: httpx.Client, url: str, model: str, prompt: Sequence[int], load: Load) -> Seen:
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": load.output,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    seen, events = Seen(), 0
    began = last = time.monotonic()
    with http.stream("POST", f"{url}/v1/completions", json=body) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if not line.startswith(_DATA) or line == _DATA + "[DONE]":
                continue
            event = json.loads(line.removeprefix(_DATA))
            now = time.monotonic()
            if event.get("usage"):
                seen.prompt_tokens = event["usage"]["prompt_tokens"]
                seen.generated_tokens = event["usage"]["completion_tokens"]
            if not event["choices"]:
                continue
            (seen.gaps if events else seen.first_token).append(now - (last if events else began))
            last, events = now, events + 1
            if load.cut_after and events >= load.cut_after:
                seen.cut = 1
                return seen
    seen.finished = 1
    seen.whole.append(last - began)
    return seen


def in_background(work: Callable[[], Seen]) -> Callable[[], Seen]:
    """Start `work` in a thread; the returned function waits for its result."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return future.result
