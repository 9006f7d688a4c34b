"""What bounds a journal: how long ids are remembered, and the sizes of its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.checkpoints.limits import CHECKPOINT_LIMITS, CheckpointLimits


@dataclass(frozen=True)
class JournalLimits:
    """The defaults are part of the format: all programs that write one journal use the same generation."""

    generation_versions: int = 1024
    """Versions of one generation: a state holds the ids of one to two of them (decision 10)."""

    checkpoints: CheckpointLimits = CHECKPOINT_LIMITS


JOURNAL_LIMITS = JournalLimits()
"""The defaults."""
