"""Limits of a journal: how long ids are remembered, sizes of checkpoints, differences of clocks."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.checkpoints.limits import CHECKPOINT_LIMITS, CheckpointLimits


@dataclass(frozen=True)
class JournalLimits:
    """The limits of one journal.  The default of `generation_versions` belongs to the format: all programs that
    write one journal must use the same."""

    generation_versions: int = 1024
    """Versions of one generation.  A state holds the ids of one to two generations (decision 10)."""

    checkpoints: CheckpointLimits = CHECKPOINT_LIMITS

    checkpoints_tried: int = 16
    """The most checkpoints that a reader or a purge opens to find one that it can read.  If more than a few are
    damaged, they are forged: 20,000 of them would hold up each reader of the list of pools (decision 288)."""

    clock_skew: float = 900.0
    """If the clocks of a machine and of the store differ by this many seconds, work that drops or forgets is
    refused.  S3 refuses every request of a machine whose clock is wrong by as much."""


JOURNAL_LIMITS = JournalLimits()
"""The default limits."""
