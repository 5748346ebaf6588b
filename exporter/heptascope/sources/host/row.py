"""The pieces of a host row: what one collector hands to the source, and how a reason is written into the row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heptascope.model import Missing, Reason, labels


@dataclass(slots=True)
class Collected:
    """Fields of the host row from one collector, and what it could not get."""

    fields: dict[str, Any] = field(default_factory=dict)
    missing: list[dict[str, Any]] = field(default_factory=list)

    def lacks(self, signal: str, reason: Reason, detail: str, **pairs: str) -> None:
        """Note that `signal` has no value, and why; `pairs` narrow it to one engine or resource."""
        self.missing.append({"signal": signal, "reason": reason.value, "detail": detail, "labels": pairs})


def parse_missing(entry: dict[str, Any]) -> Missing | None:
    """Turn an entry of a row's `missing` list back into a Missing; None if it is damaged."""
    try:
        return Missing(entry["signal"], Reason(entry["reason"]), str(entry["detail"]), labels(**entry["labels"]))
    except (KeyError, TypeError, ValueError):
        return None
