"""A fleet that never was, of recordings that were made: which pod plays what, and when; and all of it as samples with target labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from heptascope.surfaces.prometheus import number_text
from support.dashboard_rounds import CLOCK, Series, counts, round_of

SCRAPE_SECONDS = 15
START, END = 1_795_968_300, 1_795_972_200
"""Unix time: the evening when most of the recordings were made; one block of Prometheus's storage holds it."""

HOUR = END - 3600
_MINUTE = 60
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Pod:
    """One pod: its deployment, and what it plays, as recordings and the minutes for which each goes on. The last one goes on to the end."""

    namespace: str
    workload: str
    number: int
    plays: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """The pod's name."""
        return f"{self.workload}-{self.number}"


FLEET = (
    Pod("chat", "assistant", 0, (("decode-c64", 33), ("kv-severe", 17), ("decode-c64", 0))),
    Pod("chat", "assistant", 1, (("decode-c256", 25), ("mixed-over-sat", 20), ("decode-c256", 0))),
    Pod("chat", "assistant", 2, (("prefix-hot", 40), ("prefix-off", 12), ("prefix-hot", 0))),
    Pod("chat", "copilot", 0, (("ngram-high", 0),)),
    Pod("chat", "copilot", 1, (("ngram-high", 35), ("draft-bad-c64", 0))),
    Pod("batch", "extract", 0, (("prefill-8k", 22), ("eager-b8", 22), ("seqs8-c64", 0))),
    Pod("batch", "extract", 1, (("idle", 20), ("tokenize-heavy", 20), ("cpu-starved", 20), ("aborts", 0))),
    Pod("batch", "research", 0, (("tp2-c64", 30), ("tp2-straggler", 20), ("tp2-c64", 0))),
    Pod("batch", "research", 1, (("pp2-c64", 0),)),
    Pod("lab", "spare", 0, (("idle", 0),)),
)
"""Every layer has a fault of its own for a while, some pods are well all the time, and one is idle."""

ACTIVE = {
    "hardware": ("research-0", START + 49 * 60),
    "operator": ("extract-0", START + 43 * 60),
    "memory": ("assistant-0", START + 49 * 60),
    "scheduling": ("extract-1", START + 59 * 60),
    "parallel": ("research-1", END),
    "speculative": ("copilot-1", END),
    "application": ("extract-1", END),
}
"""For each layer a pod that has a fault of it, and when."""


def write(file: IO[str], fleet: Sequence[Pod] = FLEET, start: int = START, end: int = END) -> None:
    """Write what Prometheus would have scraped, as OpenMetrics text with times."""
    for index, pod in enumerate(fleet):
        target = _Target(pod, index)
        for t in range(start, end + 1, SCRAPE_SECONDS):
            file.writelines(target.scrape(t - start, t))
    file.write("# EOF\n")


@dataclass
class _Target:
    """A pod as Prometheus sees it. Counters go on where it turns to another recording."""

    pod: Pod
    index: int
    _playing: int = -1
    _shown: dict[Series, float] = field(default_factory=dict)
    _offsets: dict[Series, float] = field(default_factory=dict)
    _heads: dict[Series, str] = field(default_factory=dict)

    def scrape(self, elapsed: int, t: int) -> Iterator[str]:
        """Yield the lines of a scrape."""
        number, name, since = _playing(self.pod, elapsed)
        page = round_of(name).at(since)
        if number != self._playing:
            self._offsets = {series: self._shown.get(series, value) - value for series, value in page.items() if counts(series)}
            self._playing = number
        now = {series: self._continued(series, value) for series, value in page.items()}
        self._shown.update(now)
        for series, value in now.items():
            yield f"{self._head(series)} {number_text(float(t) if series == CLOCK else value)} {t}\n"
        for name, value in (("up", 1), ("scrape_samples_scraped", len(page))):
            yield f"{self._head((name, ()))} {value} {t}\n"

    def _continued(self, series: Series, value: float) -> float:
        """Return a value as it goes on from what was shown; a counter that stands must not fall by what rounding takes from it."""
        if series not in self._offsets:
            return value
        before, now = self._shown.get(series, 0.0), value + self._offsets[series]
        return before if 0.0 < before - now < _ROUNDING * before else now

    def _head(self, series: Series) -> str:
        if series not in self._heads:
            own = {key: self._own(key, value) for key, value in series[1]}
            self._heads[series] = head(series[0], {**target(self.pod, self.index), **own})
        return self._heads[series]

    def _own(self, key: str, value: str) -> str:
        """Give each pod GPUs of its own: the recordings were made on the same few."""
        return f"{value[:-2]}{self.index:02x}" if key == "uuid" else value


def target(pod: Pod, index: int) -> dict[str, str]:
    """Return the labels that a PodMonitor and the cluster's Prometheus put on the `index`-th pod."""
    return {
        "cluster": "test",
        "namespace": pod.namespace,
        "pod": pod.name,
        "container": "heptascope",
        "endpoint": "metrics",
        "workload": pod.workload,
        "job": "heptascope",
        "instance": f"10.0.{index}.7:17007",
    }


def _playing(pod: Pod, elapsed: int) -> tuple[int, str, int]:
    """Return which recording plays: its place, its name, and for how many seconds it has been playing."""
    began = 0
    for number, (name, minutes) in enumerate(pod.plays):
        if not minutes or elapsed < began + minutes * _MINUTE:
            return number, name, elapsed - began
        began += minutes * _MINUTE
    raise ValueError(f"{pod.name}: the last recording must go on to the end")


def head(name: str, pairs: Mapping[str, str]) -> str:
    """Return a series as OpenMetrics writes it."""
    text = ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs.items())
    return f"{name}{{{text}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
