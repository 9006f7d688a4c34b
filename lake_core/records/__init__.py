"""Typed, frozen, tagged records of the journals, and their bytes.

`transactions` are the actions on a pool's data, `branching` those on its branches and tags, `pools` the actions on
the list of pools, `conditions` the conditions that such actions hold; `codec` turns entries into MessagePack and
back.  A record states its guarantees and checks them when it is made.  An unknown action is an error ("written by a
newer version"); an unknown optional field is ignored.
"""

from lake_core.records.branching import (
    CreateBranch,
    DeleteBranch,
    DeleteTag,
    Merge,
    PutReference,
    PutTombstone,
    SetMerged,
    SetTag,
)
from lake_core.records.column import Column
from lake_core.records.pools import ConfigurePool, CreatePool, DropPool, PoolAction, PoolsEntry, RenamePool
from lake_core.records.transactions import (
    Action,
    AddObject,
    AddTombstone,
    Close,
    Consume,
    Entry,
    MarkApplied,
    Release,
    RemoveReference,
    RemoveTombstone,
    SetSchema,
    Source,
    Transaction,
)

__all__ = [
    "Action",
    "AddObject",
    "AddTombstone",
    "Close",
    "Column",
    "ConfigurePool",
    "Consume",
    "CreateBranch",
    "CreatePool",
    "DeleteBranch",
    "DeleteTag",
    "DropPool",
    "Entry",
    "MarkApplied",
    "Merge",
    "PoolAction",
    "PoolsEntry",
    "PutReference",
    "PutTombstone",
    "Release",
    "RemoveReference",
    "RemoveTombstone",
    "RenamePool",
    "SetMerged",
    "SetSchema",
    "SetTag",
    "Source",
    "Transaction",
    "Unmerge",
]
