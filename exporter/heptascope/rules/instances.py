"""What rules are judged for: engine ranks and GPUs, and which of them concern each other."""

from __future__ import annotations

from typing import NamedTuple

from heptascope.model import Labels
from heptascope.signals.mapping import known_engines, known_gpus
from heptascope.signals.window import Window


class Instance(NamedTuple):
    """What a rule is judged for: an engine rank or a GPU; `related` are the GPUs that serve it, or the engines it serves.

    Without `pairs` it stands for all of its kind while none is known: its rules cannot be judged, and say so.
    """

    kind: str
    pairs: Labels
    related: tuple[Labels, ...]


def instances(window: Window) -> list[Instance]:
    """Return every engine rank and GPU that is known now, each with its counterpart; one without labels for a kind of which none is."""
    gpus = [_pairs(("gpu", gpu[0]), ("uuid", gpu[1])) for gpu in known_gpus(window)]
    engines = [_pairs(("engine", e[0]), ("rank", e[1])) for e in known_engines(window)]
    served = [s.pairs for s in window.series("heptascope_engine_gpu_info") if s.live]
    serves = [
        (_pairs(*(p for p in row if p[0] in ("engine", "rank"))), _pairs(*(p for p in row if p[0] in ("gpu", "uuid")))) for row in served
    ]
    found = [Instance("engine", pairs, tuple(gpu for engine, gpu in serves if engine == pairs and gpu in gpus)) for pairs in engines]
    found += [Instance("gpu", pairs, tuple(e for e, gpu in serves if gpu == pairs and e in engines)) for pairs in gpus]
    return found + [Instance(kind, (), ()) for kind, known in (("engine", engines), ("gpu", gpus)) if not known]


def _pairs(*pairs: tuple[str, str]) -> Labels:
    return tuple(pair for pair in pairs if pair[1])


def concerns(row: Labels, instance: Instance) -> bool:
    """Whether a series with these labels can say something about the instance."""
    mine = dict(instance.pairs)
    row_labels = dict(row)
    own = ("engine", "rank") if instance.kind == "engine" else ("gpu", "uuid")
    other = ("gpu", "uuid") if instance.kind == "engine" else ("engine", "rank")
    if any(name in row_labels and name in mine and row_labels[name] != mine[name] for name in own):
        return False
    foreign = {name: row_labels[name] for name in other if name in row_labels}
    if not foreign:
        return True
    return any(all(dict(r).get(k, v) == v for k, v in foreign.items()) for r in instance.related)
