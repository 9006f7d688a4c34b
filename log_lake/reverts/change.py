"""A change: one transaction of a branch together with the state before it; pure.

The changes of a branch since a version show what depends on it (`reverts.revert`).
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
    Conserve,
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
        """The branch before the transaction; empty if the transaction created the branch."""
        return self.state.branches.get(self.transaction.branch) or BranchState()

    @cached_property
    def removed(self) -> list[Reference]:
        """The references that the transaction removed, in their old form."""
        named = [a for a in self.transaction.actions if isinstance(a, RemoveReference)]
        references = (self.before.snapshot.reference(a.object, a.low) for a in named)
        return [reference for reference in references if reference is not None]

    @cached_property
    def outputs(self) -> list[AddObject | PutReference]:
        """The references that a compaction, or the revert of one, added in place of those that it removed."""
        return [
            a
            for a in self.transaction.actions
            if (isinstance(a, AddObject) and a.seqs is not None) or isinstance(a, PutReference)
        ]

    @property
    def is_maintenance(self) -> bool:
        """Whether the transaction only exchanges references, such as a compaction or an expiry."""
        return is_maintenance(self.transaction)


def is_maintenance(transaction: Transaction) -> bool:
    """Whether a transaction only exchanges references: a compaction, applied deletes, a retired tombstone, an
    expiry.

    The revert of a load may also only remove references; its metadata distinguishes it from an expiry.
    """
    return REVERTS not in transaction.metadata and all(
        isinstance(a, RemoveReference | MarkApplied | SetSchema | Conserve)
        or (isinstance(a, AddObject) and a.seqs is not None)
        or (isinstance(a, RemoveTombstone) and not a.forced)
        for a in transaction.actions
    )


def changes_records(transaction: Transaction) -> bool:
    """Whether a transaction adds, hides or restores records: a load, delete, replace, merge, reverted delete.

    A transaction that only removes references does not count, as a compaction does not: it expired whole
    references, or reverted a load.
    """
    return any(
        isinstance(a, AddTombstone | PutTombstone | Merge)
        or (isinstance(a, AddObject) and a.seqs is None and not a.sub_pool)
        or (isinstance(a, RemoveTombstone) and a.forced)
        for a in transaction.actions
    )


def last_removals(later: Sequence[Change], newest: Snapshot) -> Iterator[tuple[Change, list[Reference]]]:
    """Yields each change, newest first, with the references that it removed for good.

    If a reference came back and was removed again, it counts only for the last change that removed it.
    """
    seen: set[Identity] = set()
    for change in reversed(later):
        gone = [r for r in change.removed if (r.object, r.low) not in seen]
        seen |= {(r.object, r.low) for r in gone}
        yield change, [r for r in gone if not newest.holds(r.object, r.low)]


def check_untouched(change: Change, later: Sequence[Change], touches: Callable[[Action], bool]) -> None:
    """Raises InvalidInput if a later change has an action for which `touches` is true: it restored, or removed
    again, what the change removed."""
    for one in later:
        if any(touches(action) for action in one.transaction.actions):
            raise InvalidInput(
                f"version {change.version} was taken back by version {one.version} already; what was "
                "done since is taken back by reverting that"
            )
