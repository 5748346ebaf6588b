"""Strategic merge patches, as far as pod templates need them: maps are merged, lists of named things by name, other lists replaced."""

from __future__ import annotations

from typing import Any


def merged(base: Any, patch: Any) -> Any:
    """Return `base` with `patch` in it; named items that are new come first."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return base | {key: merged(base.get(key), value) for key, value in patch.items()}
    if isinstance(base, list) and isinstance(patch, list) and all("name" in item for item in (*base, *patch) if isinstance(item, dict)):
        old = {item["name"]: item for item in base}
        changed = {item["name"]: merged(old.get(item["name"]), item) for item in patch}
        return [item for name, item in changed.items() if name not in old] + [changed.get(name, item) for name, item in old.items()]
    return patch
