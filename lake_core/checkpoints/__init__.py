"""A checkpoint: the folded state of a journal at one entry, as one Parquet file.

`layout` says what a row is and which rows a row group holds, `write` streams rows into a file, `read` finds rows
without reading the rest.  What the rows mean is said by those who fold: `history.checkpoint` (a pool's history)
and `catalog.checkpoint` (the list of pools).  A checkpoint is always optional and never changed.
"""

from lake_core.checkpoints.layout import ROW, CheckpointFooter, Part
from lake_core.checkpoints.read import CheckpointFile
from lake_core.checkpoints.write import write_checkpoint

__all__ = ["ROW", "CheckpointFile", "CheckpointFooter", "Part", "write_checkpoint"]
