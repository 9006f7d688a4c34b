"""The history of one pool: transactions that are committed to branches, and the states they fold into.

`snapshot` is what a branch holds, columnar; `state` folds entries into the state of all branches; `rebase` decides,
purely, what becomes of a draft on a newer state than it began on; `group_commit` proposes it, with what others
asked for, until it is in; `history` is the door to all of it.
"""

from lake_core.history.history import History
from lake_core.history.rebase import Committed, Draft
from lake_core.history.snapshot import Reference, Snapshot
from lake_core.history.state import PoolState

__all__ = ["Committed", "Draft", "History", "PoolState", "Reference", "Snapshot"]
