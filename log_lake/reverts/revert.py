"""Reverting a transaction: the actions that take back what it did, on the newest state; pure.

    add_object, put_reference     the reference is removed.  If a compaction has merged it: in an append pool a
                                  tombstone hides exactly its sequences; in other pools, and if the transaction
                                  reverted maintenance, the compaction must be reverted first
    remove_reference              the reference comes back as it was.  If newer records hid some of it, and were
                                  removed since, the change that removed them must be reverted first
    add_tombstone, put_tombstone  the tombstone is removed.  If a rewriting has applied it, this must be reverted
                                  first
    remove_tombstone              the tombstone comes back as it was
    put_tombstone of a retired    the tombstone is retired again
    consume of an interval        covered as before, unless it was replaced again since
    merge                         its references and tombstones are removed, and the branch counts as not merged
                                  again

Other effects stay: a reference was marked as searched, a schema is new, a source file or a token was used.
Only the source files of a merge can be ingested again, so that the branch can be merged again.  A revert is a
transaction like any other, and is reverted by the same rules.

The revert of an undo must change nothing that is read, like the maintenance that it brings back.  So the
deletes that were applied must still be there.  In pools that combine records, a record cannot return if a
compaction has since combined an older record with a newer one (`reverts.combined`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from lake_core.errors import Conflict, InvalidInput
from lake_core.history.branch_state import BranchState, Fork
from lake_core.history.branching import put_reference, put_tombstone
from lake_core.history.covered import covered_as_before, is_interval
from lake_core.history.create import putting, putting_tombstone
from lake_core.history.lift import Lift
from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Identity
from lake_core.history.state import PoolState
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange
from lake_core.records import (
    Action,
    AddObject,
    AddTombstone,
    Consume,
    CreateBranch,
    DeleteBranch,
    Merge,
    PutReference,
    PutTombstone,
    Release,
    RemoveReference,
    RemoveTombstone,
    SetMerged,
)
from lake_core.records.transactions import version_of
from lake_core.schemas import Rule
from log_lake.reverts.change import Change, check_untouched, last_removals
from log_lake.reverts.combined import combined_past
from log_lake.reverts.unmerge import Unmerging


@dataclass(frozen=True)
class Inverse:
    """The actions that revert a change, and their effects: the references and tombstones that are removed and
    restored."""

    actions: tuple[Action, ...]

    def count(self, kind: type[Action]) -> int:
        """Returns the number of actions of a kind, in words."""
        return sum(isinstance(action, kind) for action in self.actions)


def inverse(change: Change, later: Sequence[Change], newest: PoolState, *, id: str, rule: Rule) -> Inverse:
    """Returns the actions that revert the change on the newest state.

    `later` are the later changes of the branch, oldest first; `id` names new tombstones; `rule` is the pool's.
    Raises InvalidInput (a change that has no inverse, or one that was merged), and Conflict if a later change
    must be reverted first.
    """
    branch = change.transaction.branch
    branch_now = newest.branches[branch]
    _check_invertible(change, branch_now.fork)
    reverting = _Reverting(change, later, newest, branch_now, id, rule)
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


def _is_forced(change: Change, name: str) -> bool:
    """Whether the change removed the tombstone because its delete was reverted, and not because it was
    retired."""
    actions = change.transaction.actions
    return any(isinstance(a, RemoveTombstone) and a.tombstone == name and a.forced for a in actions)


def _touches(action: Action, *, name: str) -> bool:
    return isinstance(action, PutTombstone | RemoveTombstone) and action.tombstone == name


@dataclass(frozen=True)
class _Reverting:
    change: Change
    later: Sequence[Change]
    newest: PoolState
    branch: BranchState
    id: str
    rule: Rule

    def actions(self) -> Iterator[Action]:
        """Yields the inverse of each action; references are removed before others are restored."""
        merge = next((a for a in self.change.transaction.actions if isinstance(a, Merge)), None)
        lift = None if merge is None else Lift(merge.writes, self.change.seq)
        unmerging = Unmerging(self.change, self.later, self.newest)
        merges = any(isinstance(a, Merge | SetMerged | PutReference) for a in self.change.transaction.actions)
        for action in self.change.transaction.actions:
            if isinstance(action, Merge):
                yield from unmerging.unmerge(action)
            elif isinstance(action, SetMerged):
                yield from unmerging.merge_again(action)
            elif isinstance(action, Release):
                yield Consume(action.sources)
            elif isinstance(action, Consume):
                yield from self._release(action) if merges else ()
                yield from covered_as_before(
                    action,
                    before=self.change.state,
                    newest=self.newest,
                    branch=self.change.transaction.branch,
                    id=self.id,
                )
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
                    check_untouched(self.change, self.later, partial(_touches, name=action.tombstone))
                    if action.forced and not tombstone.sub_pool:
                        # what it hides is older than itself
                        first, last = tombstone.exactly or (tombstone.seq, tombstone.seq - 1)
                        self._check_combined(tombstone.key_range, first, last)
                    if action.tombstone in self.branch.settled:
                        yield RemoveTombstone(action.tombstone, forced=True)
                    # a replace that was only retired conflicts as before
                    since = 0 if action.forced else tombstone.since
                    yield putting_tombstone(tombstone, replaced_in=since)

    def _without(self, action: AddObject | PutReference, lift: Lift | None) -> Iterator[Action]:
        is_maintenance = bool(self.change.removed)  # it swapped references
        if isinstance(action, PutReference):
            reference = put_reference(action, lift, self.change.version)
            whole = lift is not None or reference.oldest is None
            span = reference.first_seq, reference.seq
            if lift is None:
                is_maintenance |= self._check_still_deleted(reference)
        else:
            whole, span = action.seqs is None, (self.change.seq, self.change.seq)
        if self.branch.snapshot.holds(action.object, action.low):
            yield RemoveReference(action.object, action.low)
            return
        taker = self._taker((action.object, action.low))
        # instead of maintenance, a tombstone would hide the records that it kept
        if not (whole and self.rule.keeps_all and taker.outputs) or is_maintenance:
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

    def _check_still_deleted(self, reference: Reference) -> bool:
        """Whether the reference may have come back because applied deletes were undone.

        Raises Conflict if such a delete was reverted since: what it hid would be gone with the reference.
        """
        puts = (a for a in self.change.transaction.actions if isinstance(a, PutTombstone) and not a.settled)
        tombstones = [
            *self.change.before.tombstones.values(),
            *(put_tombstone(a, None, self.change.version, self.change.transaction) for a in puts),
        ]
        applied = max((r.applied for r in self.change.removed), default=self.change.version)
        hiding = [
            t
            for t in tombstones
            if version_of(t.seq) <= applied and t.may_cover(reference, self.newest.schema)
        ]
        for tombstone in hiding:
            taker = self._remover(tombstone.id)
            if taker is not None and _is_forced(taker, tombstone.id):
                raise Conflict(
                    f"version {taker.version} took back a delete that hides records of what version "
                    f"{self.change.version} brought back; revert version {taker.version} first"
                )
        return bool(hiding)

    def _remover(self, name: str) -> Change | None:
        """Returns the newest change that removed a tombstone; None if the branch has it, or none did."""
        if name in self.branch.tombstones:
            return None
        for change in reversed(self.later):
            if any(
                isinstance(a, RemoveTombstone) and a.tombstone == name for a in change.transaction.actions
            ):
                return change
        return None

    def _taker(self, identity: Identity) -> Change:
        for change in reversed(self.later):
            if any((r.object, r.low) == identity for r in change.removed):
                return change
        raise InvalidInput(
            f"object {identity[0]} of version {self.change.version} is not on the branch any more, and its history "
            "does not say why"
        )

    def _back(self, reference: Reference) -> PutReference:
        """Returns the reference in its old form.

        Raises InvalidInput if a later change already restored it, or removed it again.  Raises Conflict if a
        delete that hides records of it was retired since, or if its records cannot return to their place.
        """
        check_untouched(
            self.change,
            self.later,
            lambda a: (
                isinstance(a, PutReference | RemoveReference)
                and (a.object, a.low) == (reference.object, reference.low)
            ),
        )
        for change in reversed(self.later):
            for action in change.transaction.actions:
                if not isinstance(action, RemoveTombstone) or self._remover(action.tombstone) is not change:
                    continue
                retired = None if action.forced else change.before.tombstones.get(action.tombstone)
                if retired is not None and retired.may_cover(reference, self.newest.schema):
                    raise Conflict(
                        f"version {change.version} retired a delete that hides records of what version "
                        f"{self.change.version} removed; revert version {change.version} first"
                    )
        if not reference.sub_pool:
            self._check_combined(reference.key_range, reference.first_seq, reference.seq)
        self._check_still_hidden(reference)
        return putting(reference)

    def _check_combined(self, key_range: KeyRange, first: int, last: int) -> None:
        """Raises Conflict if records of these sequences cannot return to their place any more."""
        past = combined_past(
            self.change, self.later, self.newest, self.rule, key_range=key_range, first=first, last=last
        )
        if past is not None:
            what = (
                "combined records that are older and newer than"
                if self.rule.kind == "aggregate"
                else "may have dropped delete markers that hide"
            )
            raise Conflict(
                f"version {past.version} {what} what version {self.change.version} removed; revert version "
                f"{past.version} first"
            )

    def _check_still_hidden(self, reference: Reference) -> None:
        """Raises Conflict if newer records that hid some of the reference's records were removed after the
        reference was removed.

        References that a compaction merged do not count here: `_check_combined` checks these.
        """
        removals = (RemoveReference, AddTombstone)
        only_removed = all(isinstance(a, removals) for a in self.change.transaction.actions)
        if self.rule.keeps_all or reference.sub_pool or not only_removed:
            return
        for change, gone in last_removals(self.later, self.branch.snapshot):
            for other in () if change.outputs else gone:
                overlaps = other.key_range.overlaps(reference.key_range) and not other.sub_pool
                if overlaps and other.seq >= reference.first_seq:
                    raise Conflict(
                        f"version {change.version} removed newer records of the keys of object "
                        f"{reference.object}, which would show older ones; revert version {change.version} first"
                    )

    def _without_tombstone(self, action: AddTombstone | PutTombstone, lift: Lift | None) -> Iterator[Action]:
        name = action.tombstone
        if isinstance(action, PutTombstone) and action.replaced_in:  # it took a retirement back
            if name in self.branch.tombstones:
                yield RemoveTombstone(name)
            return
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
        """Returns the newest change that may have removed records because of the tombstone, and was not
        reverted."""
        for change, gone in last_removals(self.later, self.branch.snapshot):
            outputs = change.outputs
            # not `version`: the tombstone may have been applied before it went and came back
            if outputs and not any(output.applied >= version_of(tombstone.seq) for output in outputs):
                continue  # it was planned before the tombstone, which reaches the outputs too
            if any(tombstone.may_cover(reference, self.newest.schema) for reference in gone):
                return change
        return None

    def _release(self, consume: Consume) -> Iterator[Release]:
        """Yields source files of a merge, which can then be ingested, or merged, again."""
        branch, sources = self.change.transaction.branch, self.newest.sources
        pairs = [(source, sources.get((branch, source.uri))) for source in consume.sources]
        files = ((s, own) for s, own in pairs if own is not None and not is_interval(s))
        given = tuple(s for s, own in files if own.source == s and own.until is None)
        if given:
            yield Release(given)
