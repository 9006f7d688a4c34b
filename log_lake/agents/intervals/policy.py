"""Where the files of a pool's intervals are and which of them count: its settings as one value."""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.settings import Settings


@dataclass(frozen=True)
class IntervalsPolicy:
    """`source` is a path with the time of an interval in it; `include` and `exclude` are globs of file names.

    `may_be_missing`: an interval without a file is empty; otherwise it is not loaded.
    """

    source: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    may_be_missing: bool = False


def policy_of(settings: Settings) -> IntervalsPolicy:
    """The policy that `intervals.*`, `include` and `exclude` spell."""
    return IntervalsPolicy(
        settings["intervals.source"],
        settings["include"],
        settings["exclude"],
        may_be_missing=settings["intervals.missing"] == "empty",
    )
