"""What the commands that read traces share."""

from __future__ import annotations

EXTRA = ("msgspec", "numpy")
"""Packages of the extra `trace`."""
