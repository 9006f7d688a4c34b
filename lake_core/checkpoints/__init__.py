"""A checkpoint: the folded state of a journal at one entry, as one Parquet file.

`layout` defines rows and row groups, `write` streams rows into a file, `read` finds rows without reading the rest.
The packages that fold define the meaning of the rows: `history.checkpoint` (a pool's history) and
`catalog.checkpoint` (the list of pools).  A checkpoint is always optional and never changed.
"""

from lake_core.checkpoints.layout import ROW, CheckpointFooter, SectionPart
from lake_core.checkpoints.limits import CHECKPOINT_LIMITS, CheckpointLimits
from lake_core.checkpoints.read import CheckpointFile
from lake_core.checkpoints.write import write_checkpoint

__all__ = [
    "CHECKPOINT_LIMITS",
    "ROW",
    "CheckpointFile",
    "CheckpointFooter",
    "CheckpointLimits",
    "SectionPart",
    "write_checkpoint",
]
