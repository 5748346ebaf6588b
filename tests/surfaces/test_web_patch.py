"""Merge patches between two states of the page."""

from __future__ import annotations

import random
from typing import Any

import pytest

from heptascope.surfaces.web.patch import merge_patch


def apply(target: Any, patch: Any) -> Any:
    """Apply a merge patch as RFC 7396 defines it."""
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = apply(out.get(name), value)
    return out


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1, "y": 3}}, {"a": {"y": 3}}),
        ({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}),
        ({"a": 1, "b": {"c": 1}}, {}, {"a": None, "b": None}),
        ({"a": 1}, {"a": {}}, {"a": {}}),
        ({}, {"a": {}}, {"a": {}}),
    ],
)
def test_only_what_changed(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    """Equal members are left out, objects are compared inside, lists sent whole, what is gone is null."""
    assert patch == merge_patch(old, new)


def test_a_patch_leads_to_the_new_state() -> None:
    """For any two objects, the old one with the patch is the new one."""
    rng = random.Random(4)  # noqa: S311  # test data, the same each time

    def value(depth: int) -> Any:
        if depth and rng.random() < 0.6:
            return {rng.choice("abcd"): value(depth - 1) for _ in range(rng.randrange(4))}
        return rng.choice([0, 1, 1.5, "x", True, [], [1]])

    for _ in range(500):
        old, new = ({"p": value(3), "q": value(3)} for _ in range(2))
        assert new == apply(old, merge_patch(old, new))
