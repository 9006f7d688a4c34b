"""Reads from the settings `intervals.*` whether replaces bring intervals of time or other ranges of keys; for
loads and the coverage."""

from __future__ import annotations

from log_lake.settings.settings import Settings

KEYS = "key"
"""The value of `intervals.every` that means: replaces bring ranges of keys, and there is no schedule."""


def keeps_keys(settings: Settings) -> bool:
    """Whether a setting says that replaces bring ranges of keys, and there is no schedule."""
    return settings.text("intervals.every") == KEYS


def tells_times(settings: Settings) -> bool:
    """Whether a setting says that the key begins with a time, even if it is a number or a text."""
    return any(settings.text(f"intervals.{name}") for name in ("source", "since", "late"))
