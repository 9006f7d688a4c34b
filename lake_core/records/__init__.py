"""Typed, frozen, tagged records of the journals, and their bytes.

    transactions   actions on a pool's data
    branching      actions on branches and tags
    vacuuming      actions on objects that may be deleted
    points         actions on split points
    pending        actions of transactions over several pools
    pools          actions on the list of pools
    conditions     the conditions in such actions
    codec          entries as MessagePack, and back

A record states its guarantees and checks them when it is made.  An unknown action is an error ("written by a
newer version"); an unknown optional field is ignored.
"""

from lake_core.records.branching import (
    CreateBranch,
    DeleteBranch,
    DeleteTag,
    EndBranch,
    Merge,
    PutInlined,
    PutReference,
    PutSummed,
    PutTombstone,
    SetMerged,
    SetTag,
)
from lake_core.records.column import Column
from lake_core.records.pending import Prepare, Settle
from lake_core.records.points import Join, Split
from lake_core.records.pools import (
    ConfigurePool,
    CreatePool,
    DeletePool,
    DropPool,
    ForgetPool,
    PoolAction,
    PoolsEntry,
    RenamePool,
    RestorePool,
)
from lake_core.records.renaming import AddField, RenameField
from lake_core.records.sums import Conserve
from lake_core.records.transactions import (
    Action,
    AddInlined,
    AddObject,
    AddTombstone,
    Close,
    Consume,
    Entry,
    MarkApplied,
    Release,
    RemoveReference,
    RemoveTombstone,
    Reopen,
    SetSchema,
    Source,
    Transaction,
)
from lake_core.records.vacuuming import BeginVacuum, ConfirmVacuum, Discard, EndVacuum, ScanOrphans

__all__ = [
    "Action",
    "AddField",
    "AddInlined",
    "AddObject",
    "AddTombstone",
    "BeginVacuum",
    "Close",
    "Column",
    "ConfigurePool",
    "ConfirmVacuum",
    "Conserve",
    "Consume",
    "CreateBranch",
    "CreatePool",
    "DeleteBranch",
    "DeletePool",
    "DeleteTag",
    "Discard",
    "DropPool",
    "EndBranch",
    "EndVacuum",
    "Entry",
    "ForgetPool",
    "Join",
    "MarkApplied",
    "Merge",
    "PoolAction",
    "PoolsEntry",
    "Prepare",
    "PutInlined",
    "PutReference",
    "PutSummed",
    "PutTombstone",
    "Release",
    "RemoveReference",
    "RemoveTombstone",
    "RenameField",
    "RenamePool",
    "Reopen",
    "RestorePool",
    "ScanOrphans",
    "SetMerged",
    "SetSchema",
    "SetTag",
    "Settle",
    "Source",
    "Split",
    "Transaction",
]
