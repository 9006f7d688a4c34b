"""Limits of a journal: how long ids are remembered, sizes of checkpoints, differences of clocks."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.checkpoints.limits import CHECKPOINT_LIMITS, CheckpointLimits


@dataclass(frozen=True)
class JournalLimits:
    """The default generation is part of the format: all programs that write one journal use the same."""

    generation_versions: int = 1024
    """Versions of one generation: a state holds the ids of one to two of them (decision 10)."""

    checkpoints: CheckpointLimits = CHECKPOINT_LIMITS

    checkpoints_tried: int = 16
    """Checkpoints that a reader or a purge opens, at most, to find one that it can read.  More than a few damaged
    ones are forged: 20,000 of them would hold each reader of the list of pools (decision 288)."""

    clock_skew: float = 900.0
    """Seconds between the clocks of a machine and of the store at which work that drops or forgets is refused.
    S3 refuses every request of a machine whose clock is wrong by as much."""


JOURNAL_LIMITS = JournalLimits()
"""The defaults."""
