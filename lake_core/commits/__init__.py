"""The history of one pool: transactions that land on branches, and the states they fold into.

`snapshot` is what a branch holds, columnar; `state` folds entries into the state of all branches; `landing`
decides, purely, what becomes of a piece of work that meets a newer tip than it began on; `attempt` proposes it,
with what others asked for (`requests`), until it is in; `commit` is the door to all of it.
"""

from lake_core.commits.commit import History
from lake_core.commits.landing import Draft, Landed
from lake_core.commits.reference import Reference
from lake_core.commits.snapshot import Snapshot
from lake_core.commits.state import PoolState

__all__ = ["Draft", "History", "Landed", "PoolState", "Reference", "Snapshot"]
