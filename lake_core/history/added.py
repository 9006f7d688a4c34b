"""Makes the reference, or the tombstone, that a branch gets from an action that adds one; called by `fold`."""

from __future__ import annotations

from lake_core.history.snapshot.reference import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.records import AddObject, AddTombstone, Transaction


def added_reference(action: AddObject, seq: int) -> Reference:
    """Returns the reference that a branch gets to an added object; `seq` is the sequence of its transaction."""
    oldest, newest = action.seqs or (None, seq)
    return Reference(
        object=action.object,
        low=action.low,
        high=action.high,
        seq=newest,
        oldest=oldest,
        ordinal=action.ordinal,
        records=action.records,
        size=action.size,
        schema=action.schema,
        sub_pool=action.sub_pool,
        columns=action.columns,
        applied=action.applied,
        data=action.data,
        content=action.content,
    )


def added_tombstone(action: AddTombstone, version: int, seq: int, by: Transaction) -> Tombstone:
    """Returns the tombstone that the transaction `by` adds in a version; `seq` is its sequence."""
    return Tombstone(
        id=action.tombstone,
        version=version,
        seq=seq,
        read_version=by.read_version,
        transaction_id=by.id,
        time=by.time,
        low=action.low,
        high=action.high,
        condition=action.condition,
        reason=action.reason,
        replaces=action.replaces,
        self_only=action.self_only,
        sub_pool=action.sub_pool,
        only=action.only,
    )
