"""What the settings `intervals.*` say of the ranges that replaces bring; loads ask it, and the coverage."""

from __future__ import annotations

from log_lake.settings.settings import Settings

KEYS = "key"
"""As `intervals.every`, in place of a length: replaces bring ranges of keys, and there is no schedule."""


def keeps_keys(settings: Settings) -> bool:
    """Whether a setting says that replaces bring ranges of keys, and there is no schedule."""
    return settings.text("intervals.every") == KEYS


def tells_times(settings: Settings) -> bool:
    """Whether a setting says that the key begins with a time, also if that is a number or a text."""
    return any(settings.text(f"intervals.{name}") for name in ("source", "since", "late"))
