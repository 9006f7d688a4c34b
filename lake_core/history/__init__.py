"""The history of one pool: transactions that are committed to branches, and the states they fold into.

snapshot       the references of a branch, in columns
fold           folds entries into the state of all branches
rebase         decides, purely, how a draft (a transaction not committed yet) fits the newest state
group_commit   proposes the draft, with the requests of other writers, until its outcome is known
history        the entry point
"""

from lake_core.history.draft import Draft
from lake_core.history.history import History
from lake_core.history.limits import HISTORY_LIMITS, HistoryLimits
from lake_core.history.rebase import Committed
from lake_core.history.snapshot import Reference, Snapshot
from lake_core.history.state import PoolState

__all__ = [
    "HISTORY_LIMITS",
    "Committed",
    "Draft",
    "History",
    "HistoryLimits",
    "PoolState",
    "Reference",
    "Snapshot",
]
