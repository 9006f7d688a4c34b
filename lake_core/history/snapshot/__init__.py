"""What a branch holds at a version: references to data objects, columnar.

`reference` is one of them; `fixed` are those that rest in a checkpoint or in memory; `snapshot` is all of them.
"""

from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Snapshot

__all__ = ["Reference", "Snapshot"]
