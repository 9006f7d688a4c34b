"""A change: one transaction of a branch with the state before it, as a revert looks at it; pure.

The changes of a branch since a version tell what rests on it (`reverts.revert`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lake_core.errors import InvalidInput
from lake_core.history.branch_state import BranchState
from lake_core.history.repeated import REVERTS
from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Identity, Snapshot
from lake_core.history.state import PoolState
from lake_core.records import (
    Action,
    AddObject,
    AddTombstone,
    MarkApplied,
    Merge,
    PutReference,
    PutTombstone,
    RemoveReference,
    RemoveTombstone,
    SetSchema,
    Transaction,
)


@dataclass(frozen=True)
class Change:
    """A transaction of a branch: its version, its sequence, and the branch before it."""

    version: int
    seq: int
    transaction: Transaction
    state: PoolState

    @property
    def before(self) -> BranchState:
        """The branch before the transaction; empty if this created it."""
        return self.state.branches.get(self.transaction.branch) or BranchState()

    @cached_property
    def removed(self) -> list[Reference]:
        """The references that the transaction removed, as they were."""
        named = [a for a in self.transaction.actions if isinstance(a, RemoveReference)]
        references = (self.before.snapshot.reference(a.object, a.low) for a in named)
        return [reference for reference in references if reference is not None]

    @cached_property
    def outputs(self) -> list[AddObject | PutReference]:
        """The references that a compaction, or the revert of one, put instead of those that it removed."""
        return [
            a
            for a in self.transaction.actions
            if (isinstance(a, AddObject) and a.seqs is not None) or isinstance(a, PutReference)
        ]

    @property
    def is_maintenance(self) -> bool:
        """Whether the transaction is maintenance."""
        return is_maintenance(self.transaction)


def is_maintenance(transaction: Transaction) -> bool:
    """Whether it only exchanges references: a compaction, applied deletes, a retired tombstone, an expiry.

    The revert of a load may do nothing but remove its references; its metadata tells it from an expiry.
    """
    return REVERTS not in transaction.metadata and all(
        isinstance(a, RemoveReference | MarkApplied | SetSchema)
        or (isinstance(a, AddObject) and a.seqs is not None)
        or (isinstance(a, RemoveTombstone) and not a.forced)
        for a in transaction.actions
    )


def changes_records(transaction: Transaction) -> bool:
    """Whether a transaction brings, hides or shows records: a load, delete, replace, merge, reverted delete.

    One that only removes references is not told from a compaction: an expiry of whole references, a reverted load.
    """
    return any(
        isinstance(a, AddTombstone | PutTombstone | Merge)
        or (isinstance(a, AddObject) and a.seqs is None and not a.sub_pool)
        or (isinstance(a, RemoveTombstone) and a.forced)
        for a in transaction.actions
    )


def last_removals(later: Sequence[Change], newest: Snapshot) -> Iterator[tuple[Change, list[Reference]]]:
    """Each change, newest first, with the references that it was the last to remove and that are not back.

    One that came back and went again counts for the change that took it last only.
    """
    seen: set[Identity] = set()
    for change in reversed(later):
        gone = [r for r in change.removed if (r.object, r.low) not in seen]
        seen |= {(r.object, r.low) for r in gone}
        yield change, [r for r in gone if not newest.holds(r.object, r.low)]


def check_untouched(change: Change, later: Sequence[Change], touches: Callable[[Action], bool]) -> None:
    """Raises InvalidInput if a later change has brought back, or removed again, what the change removed."""
    for one in later:
        if any(touches(action) for action in one.transaction.actions):
            raise InvalidInput(
                f"version {change.version} was taken back by version {one.version} already; what was "
                "done since is taken back by reverting that"
            )
