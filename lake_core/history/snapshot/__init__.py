"""The references of a branch at a version, in columns.

`reference` is one of them; `fixed` are unchanging ones, in a checkpoint or in memory; `snapshot` is all of them.
"""

from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Snapshot

__all__ = ["Reference", "Snapshot"]
