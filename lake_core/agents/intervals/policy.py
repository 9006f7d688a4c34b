"""Where the files of a pool's intervals are and which of them count: its settings as one value."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.catalog import Settings


@dataclass(frozen=True)
class IntervalsPolicy:
    """`source` is a path with the time of an interval in it; `include` and `exclude` are globs of file names."""

    source: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]


def policy_of(settings: Settings) -> IntervalsPolicy:
    """The policy that `intervals.source`, `include` and `exclude` spell."""
    return IntervalsPolicy(settings["intervals.source"], settings["include"], settings["exclude"])
