"""The sizes of a checkpoint: of its row groups on the store, and of what a reader keeps of them in memory.

The journal passes them to the writer and the reader.  A checkpoint with row groups of other sizes, up to
`layout.MAX_GROUP_ROWS` rows, can be read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckpointLimits:
    """The limits for the row groups of a checkpoint; the defaults are for a million references."""

    group_rows: int = 8192
    """The most rows of a row group: a look-up reads one group (decisions 11 and 12)."""

    kept_groups: int = 4
    """The number of decoded row groups that an open checkpoint keeps in memory. Look-ups come in key order, so the
    next one often needs the same group."""


CHECKPOINT_LIMITS = CheckpointLimits()
"""The default limits."""
