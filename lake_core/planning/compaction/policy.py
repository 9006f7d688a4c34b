"""What a pool wants of its compaction: one policy, read from its settings."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.catalog import Settings
from lake_core.errors import InvalidInput

STRATEGIES = ("size_ratio", "depth", "time_window", "full")


@dataclass(frozen=True)
class CompactionPolicy:
    """`strategy` chooses what is merged; the rest bounds it.

    target_size: bytes of an output.  most_inputs, most_bytes: what one job may take; two references are always
    allowed, else what is larger than a job could never be merged.  depth: the most references that may stay on
    one key.  ratio: references are alike, and worth merging before the depth asks for it, when together they
    hold at least so many times what the largest of them holds.  window: seconds of the key's time.
    Raises InvalidInput.
    """

    strategy: str
    target_size: int
    most_inputs: int
    most_bytes: int
    depth: int
    ratio: float
    window: float

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise InvalidInput(f"compaction strategy {self.strategy!r}: use {' or '.join(STRATEGIES)}")
        if self.most_inputs < 2 or self.depth < 1 or not self.ratio > 1 or not self.window > 0:
            raise InvalidInput(
                "compaction: most_inputs is at least 2, depth 1, ratio above 1, window above 0"
            )
        if self.target_size < 1 or self.most_bytes < 1:
            raise InvalidInput("compaction: target_size and most_bytes are at least a byte")


def policy_of(settings: Settings) -> CompactionPolicy:
    """The policy that a pool's settings `compact.*` spell."""
    return CompactionPolicy(
        strategy=settings["compact.strategy"],
        target_size=settings["compact.target_size"],
        most_inputs=settings["compact.most_inputs"],
        most_bytes=settings["compact.most_bytes"],
        depth=settings["compact.depth"],
        ratio=settings["compact.ratio"],
        window=settings["compact.window"],
    )
