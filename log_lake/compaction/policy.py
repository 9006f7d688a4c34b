"""A pool's policy of compaction, as one value; `agents.compact.policy` reads it from the settings."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.errors import InvalidInput


@dataclass(frozen=True)
class CompactionPolicy:
    """How a pool is compacted: `strategy` chooses what to merge; the other fields limit it.

    target_size: bytes of an output. max_inputs, max_bytes: the limits of one job; two references are always
    allowed, otherwise objects larger than a job could never be merged. depth: merge if more references than
    this overlap at a key. ratio: runs are of similar size, and are merged before the depth requires it, if
    together they have at least this many times the size of the largest. window: the length of a time window in
    seconds, for the strategy `time_window`.

    Raises InvalidInput for an impossible limit; `strategies.find_strategy` does so for an unknown strategy.
    """

    strategy: str
    target_size: int
    max_inputs: int
    max_bytes: int
    depth: int
    ratio: float
    window: float

    def __post_init__(self) -> None:
        for name, least in (("target_size", 1), ("max_inputs", 2), ("max_bytes", 1), ("depth", 1)):
            if getattr(self, name) < least:
                raise InvalidInput(f"compact.{name} must be at least {least} (got {getattr(self, name)})")
        if not self.ratio > 1:
            raise InvalidInput(f"compact.ratio must be greater than 1 (got {self.ratio:g})")
        if not self.window > 0:
            raise InvalidInput(f"compact.window must be greater than 0 s (got {self.window:g} s)")

    def fits(self, inputs: int, size: int) -> bool:
        """Whether one job may have this many references with this many bytes."""
        return inputs <= 2 or (inputs <= self.max_inputs and size <= self.max_bytes)
