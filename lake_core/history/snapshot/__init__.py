"""The references of a branch at a version, in columns.

`reference` is a single reference; `fixed` are references that never change, in a checkpoint or in memory;
`snapshot` is all references of a branch.
"""

from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Snapshot

__all__ = ["Reference", "Snapshot"]
