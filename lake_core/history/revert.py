"""Reverting a transaction: the actions that take back what it did, on the newest state; pure.

    add_object, put_reference     the reference goes.  If a compaction took it: in an append pool a tombstone for
                                  exactly its sequences, in other pools the compaction must be reverted first
    remove_reference              the reference comes back as it was, unless newer records that hid some of it
                                  have gone or were merged since: then that must be reverted first
    add_tombstone, put_tombstone  the tombstone goes, unless it was applied: then that must be reverted first
    remove_tombstone              the tombstone comes back as it was
    merge                         its references and tombstones go, and the branch counts as not merged again

What was marked, announced or loaded stays so: a source file or a token that was used once stays used.  Only the
source files of a merge are given back, so that it can be merged again.  A revert is a transaction like any other,
and is reverted by the same rules.

`Change` is one transaction with the states around it; the changes of a branch since then tell what depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from lake_core.errors import Conflict, InvalidInput
from lake_core.history.branch_state import BranchState, Fork
from lake_core.history.branching import put_reference, put_tombstone
from lake_core.history.create import putting, putting_tombstone
from lake_core.history.lift import Lift
from lake_core.history.snapshot.reference import Reference
from lake_core.history.state import PoolState
from lake_core.history.tombstone import Tombstone
from lake_core.records import (
    Action,
    AddObject,
    AddTombstone,
    Consume,
    CreateBranch,
    DeleteBranch,
    MarkApplied,
    Merge,
    PutReference,
    PutTombstone,
    Release,
    RemoveReference,
    RemoveTombstone,
    SetMerged,
    SetSchema,
    Transaction,
)
from lake_core.records.transactions import sequence

Identity = tuple[str, bytes]


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

    @property
    def removed(self) -> list[Reference]:
        """The references that the transaction removed, as they were."""
        named = [a for a in self.transaction.actions if isinstance(a, RemoveReference)]
        references = (self.before.snapshot.reference(a.object, a.low) for a in named)
        return [reference for reference in references if reference is not None]

    @property
    def outputs(self) -> list[AddObject | PutReference]:
        """What a compaction, or the revert of one, put in place of what it removed."""
        return [
            a
            for a in self.transaction.actions
            if (isinstance(a, AddObject) and a.seqs is not None) or isinstance(a, PutReference)
        ]

    @property
    def is_maintenance(self) -> bool:
        """Whether it changes nothing that is read: a compaction, applied deletes, a retired tombstone."""
        return all(
            isinstance(a, RemoveReference | MarkApplied | SetSchema)
            or (isinstance(a, AddObject) and a.seqs is not None)
            or (isinstance(a, RemoveTombstone) and not a.forced)
            for a in self.transaction.actions
        )


@dataclass(frozen=True)
class Inverse:
    """The actions that take a change back, and what they do: references that go and come back, tombstones alike."""

    actions: tuple[Action, ...]

    def count(self, kind: type[Action]) -> int:
        """How many actions of a kind."""
        return sum(isinstance(action, kind) for action in self.actions)


def inverse(
    change: Change, later: Sequence[Change], newest: PoolState, *, id: str, keeps_all: bool
) -> Inverse:
    """The actions that take the change back on the newest state.

    `later` are the changes of the branch since, oldest first; `id` names new tombstones.  `keeps_all`: the pool
    keeps all records of a key.  Raises InvalidInput (a change that has no inverse, or one that was merged),
    Conflict if a later change must be reverted first.
    """
    branch = change.transaction.branch
    branch_now = newest.branches[branch]
    _check_invertible(change, branch_now.fork)
    reverting = _Reverting(change, later, newest, branch_now, id, keeps_all=keeps_all)
    actions = tuple(reverting.actions())
    if not actions:
        raise InvalidInput(f"version {change.version} changed nothing that can still be taken back")
    return Inverse(actions)


def _check_invertible(change: Change, fork: Fork | None) -> None:
    for action in change.transaction.actions:
        if isinstance(action, CreateBranch):
            raise InvalidInput(
                f"version {change.version} created the branch {change.transaction.branch!r}: delete it "
                "(lake branch POOL -d NAME)"
            )
        if isinstance(action, DeleteBranch):
            raise InvalidInput(
                f"version {change.version} deleted the branch {change.transaction.branch!r}: restore it "
                f"(lake branch POOL {change.transaction.branch} --at {action.root})"
            )
    if fork is not None and change.version < fork.created:
        raise InvalidInput(
            f"version {change.version} is of a branch {change.transaction.branch!r} that was deleted since; this "
            f"one began in version {fork.created}"
        )
    if fork is not None and change.version <= fork.boundary and not change.is_maintenance:
        raise InvalidInput(
            f"version {change.version} of {change.transaction.branch!r} is merged into {fork.parent!r} (version "
            f"{fork.joined}): revert that merge first, or correct {fork.parent!r} by another transaction"
        )


def _touches(action: Action, *, name: str) -> bool:
    return isinstance(action, PutTombstone | RemoveTombstone) and action.tombstone == name


@dataclass(frozen=True)
class _Reverting:
    change: Change
    later: Sequence[Change]
    newest: PoolState
    branch: BranchState
    id: str
    keeps_all: bool

    def actions(self) -> Iterator[Action]:
        """The inverse of each action; references go before others come back."""
        merge = next((a for a in self.change.transaction.actions if isinstance(a, Merge)), None)
        lift = None if merge is None else Lift(merge.writes, self.change.seq)
        for action in self.change.transaction.actions:
            if isinstance(action, Merge):
                yield from self._unmerge(action)
            elif isinstance(action, SetMerged):
                yield from self._merge_again(action)
            elif isinstance(action, Release):
                yield Consume(action.sources)
            elif isinstance(action, Consume) and merge is not None:
                yield from self._release(action)
        hidden = 0
        for action in self.change.transaction.actions:
            if isinstance(action, AddObject | PutReference):
                for one in self._without(action, lift):
                    hidden += isinstance(one, AddTombstone)
                    if isinstance(one, AddTombstone):
                        one = msgspec.structs.replace(one, tombstone=f"{self.id}-{hidden}")
                    yield one
        for reference in self.change.removed:
            yield self._back(reference)
        for action in self.change.transaction.actions:
            if isinstance(action, AddTombstone | PutTombstone):
                yield from self._without_tombstone(action, lift)
            elif isinstance(action, RemoveTombstone):
                tombstone = self.change.before.tombstones.get(action.tombstone)
                if tombstone is not None:
                    self._check_untouched(partial(_touches, name=action.tombstone))
                    if action.tombstone in self.branch.settled:
                        yield RemoveTombstone(action.tombstone, forced=True)
                    # a replace that was only retired conflicts as before
                    since = 0 if action.forced else tombstone.since
                    yield putting_tombstone(tombstone, replaced_in=since)

    def _without(self, action: AddObject | PutReference, lift: Lift | None) -> Iterator[Action]:
        if self.branch.snapshot.holds(action.object, action.low):
            yield RemoveReference(action.object, action.low)
            return
        taker = self._taker((action.object, action.low))
        if isinstance(action, PutReference):
            reference = put_reference(action, lift, self.change.version)
            whole = lift is not None or reference.oldest is None
            span = reference.first_seq, reference.seq
        else:
            whole, span = action.seqs is None, (self.change.seq, self.change.seq)
        if not (whole and self.keeps_all and taker.outputs):
            raise Conflict(
                f"object {action.object} of version {self.change.version} was taken by version {taker.version}; "
                f"revert version {taker.version} first"
            )
        if any(t.only == span and t.sub_pool == action.sub_pool for t in self.branch.tombstones.values()):
            raise InvalidInput(f"version {self.change.version} was reverted already")
        yield AddTombstone(
            "?",
            action.low,
            action.high,
            reason=f"revert of version {self.change.version}",
            sub_pool=action.sub_pool,
            only=span,
        )

    def _taker(self, identity: Identity) -> Change:
        for change in reversed(self.later):
            if any((r.object, r.low) == identity for r in change.removed):
                return change
        raise InvalidInput(
            f"object {identity[0]} of version {self.change.version} is not on the branch any more, and its history "
            "does not say why"
        )

    def _check_untouched(self, touches: Callable[[Action], bool]) -> None:
        """Raises InvalidInput if a later change has brought back, or removed again, what this one removed."""
        for change in self.later:
            if any(touches(action) for action in change.transaction.actions):
                raise InvalidInput(
                    f"version {self.change.version} was taken back by version {change.version} already; what was "
                    "done since is taken back by reverting that"
                )

    def _back(self, reference: Reference) -> PutReference:
        """The reference as it was, unless a delete that hides records of it has been retired since."""
        self._check_untouched(
            lambda a: (
                isinstance(a, PutReference | RemoveReference)
                and (a.object, a.low) == (reference.object, reference.low)
            )
        )
        for change in reversed(self.later):
            for action in change.transaction.actions:
                if not isinstance(action, RemoveTombstone) or action.forced:
                    continue
                retired = change.before.tombstones.get(action.tombstone)
                back = action.tombstone in self.branch.tombstones
                if retired is not None and not back and retired.may_cover(reference, self.newest.schema):
                    raise Conflict(
                        f"version {change.version} retired a delete that hides records of what version "
                        f"{self.change.version} removed; revert version {change.version} first"
                    )
        self._check_still_hidden(reference)
        return putting(reference)

    def _check_still_hidden(self, reference: Reference) -> None:
        """Raises Conflict if what hid records of a reference that was only removed has gone or was merged since."""
        removals = (RemoveReference, AddTombstone)
        only_removed = all(isinstance(a, removals) for a in self.change.transaction.actions)
        if self.keeps_all or reference.sub_pool or not only_removed:
            return
        for change in reversed(self.later):
            for other in change.removed:
                is_back = self.branch.snapshot.holds(other.object, other.low)
                overlaps = other.key_range.overlaps(reference.key_range) and not other.sub_pool
                if not is_back and overlaps and other.seq >= reference.first_seq:
                    raise Conflict(
                        f"version {change.version} removed or merged newer records of the keys of object "
                        f"{reference.object}, which would show older ones; revert version {change.version} first"
                    )

    def _without_tombstone(self, action: AddTombstone | PutTombstone, lift: Lift | None) -> Iterator[Action]:
        name = action.tombstone
        is_exact = action.only is not None if isinstance(action, PutTombstone) else action.self_only
        if is_exact and (lift is not None or isinstance(action, AddTombstone)):
            applied = None  # it hides records of the same transaction, which go as a whole
        else:
            applied = self._applied(self._tombstone(action, lift))
        if applied is not None:
            raise Conflict(
                f"version {applied.version} removed what version {self.change.version} deleted; revert version "
                f"{applied.version} first"
            )
        if name in self.branch.tombstones or name in self.branch.settled:
            yield RemoveTombstone(name, forced=True)

    def _tombstone(self, action: AddTombstone | PutTombstone, lift: Lift | None) -> Tombstone:
        change = self.change
        if isinstance(action, PutTombstone):
            return put_tombstone(action, lift, change.version, change.transaction)
        return Tombstone(
            id=action.tombstone,
            version=change.version,
            seq=change.seq,
            read_version=change.transaction.read_version,
            transaction_id=change.transaction.id,
            time=change.transaction.time,
            low=action.low,
            high=action.high,
            condition=action.condition,
            sub_pool=action.sub_pool,
            only=action.only,
        )

    def _applied(self, tombstone: Tombstone) -> Change | None:
        """The newest change that may have removed records because of the tombstone, and was not reverted."""
        seen: set[Identity] = set()
        for change in reversed(self.later):
            gone = [r for r in change.removed if (r.object, r.low) not in seen]
            seen |= {(r.object, r.low) for r in gone}  # only the last removal counts
            outputs = change.outputs
            if outputs and not any(output.applied >= tombstone.version for output in outputs):
                continue  # it was planned before the tombstone, which reaches the outputs too
            for reference in gone:
                is_back = self.branch.snapshot.holds(reference.object, reference.low)
                if not is_back and tombstone.may_cover(reference, self.newest.schema):
                    return change
        return None

    def _unmerge(self, merge: Merge) -> Iterator[SetMerged]:
        """What the merged branch knew before; nothing if it was deleted since."""
        child = self.newest.branches.get(merge.branch)
        if child is None or child.fork is None or child.fork.created > self.change.version:
            return
        fork, version = child.fork, self.change.version
        if fork.joined != version:
            raise Conflict(
                f"version {fork.joined} merged {merge.branch!r} again; revert version {fork.joined} first"
            )
        brought = {(a.object, a.low) for a in self.change.transaction.actions if isinstance(a, PutReference)}
        before = Fork(fork.parent, fork.at, fork.created, merge.since, merge.joined)
        for reference in child.snapshot.newer_than(sequence(before.boundary + 1) - 1):
            is_brought = (reference.object, reference.low) in brought
            if not is_brought and not fork.is_unmerged(reference.first_seq):
                raise Conflict(
                    f"object {reference.object} of branch {merge.branch!r} was compacted after version {version} "
                    "merged it; revert that compaction first (lake undo)"
                )
        retired = tuple(
            PutTombstone(
                tombstone=a.tombstone,
                seq=a.seq,
                low=a.low,
                high=a.high,
                condition=a.condition,
                reason=a.reason,
                replaces=a.replaces,
                only=a.only,
                sub_pool=a.sub_pool,
                settled=True,
            )
            for a in self.change.transaction.actions
            if isinstance(a, PutTombstone) and a.tombstone not in child.tombstones
        )
        yield SetMerged(merge.branch, version, merge.since, merge.joined, merge.writes, retired)

    def _release(self, consume: Consume) -> Iterator[Release]:
        """Source files that a merge brought can be ingested again, or merged again."""
        branch, sources = self.change.transaction.branch, self.newest.sources
        pairs = [(source, sources.get((branch, source.uri))) for source in consume.sources]
        given = tuple(s for s, own in pairs if own is not None and own.source == s and own.until is None)
        if given:
            yield Release(given)

    def _merge_again(self, action: SetMerged) -> Iterator[SetMerged]:
        """What the merged branch knew before its merge was taken back; nothing if it was deleted since."""
        child, before = self.newest.branches.get(action.branch), self.change.state.branches.get(action.branch)
        if child is None or child.fork is None or before is None or before.fork is None:
            return
        if child.fork.created != before.fork.created:
            return
        fork, then = child.fork, before.fork
        if fork.joined != action.joined:
            raise Conflict(
                f"version {fork.joined} merged {action.branch!r} since; revert version {fork.joined} first"
            )
        tombstones = (*child.tombstones.values(), *child.settled.values())
        exact = (t.exactly for t in tombstones if then.is_unmerged(t.seq) and t.exactly is not None)
        mixed = [
            *(r.first_seq for r in child.snapshot.all() if then.is_unmerged(r.seq)),
            *(first for first, _ in exact),
        ]
        if not all(then.is_unmerged(first) for first in mixed):
            raise Conflict(
                f"branch {action.branch!r} was compacted, or loads of it were reverted, since version "
                f"{self.change.version} took the merge back; revert that first"
            )
        yield SetMerged(action.branch, action.joined, then.merged, then.joined)
