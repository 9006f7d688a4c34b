"""Decides how a draft that merges a branch into its parent fits the newest state; pure.

A merge replays the branch's unmerged loads, deletes and replaces on top of its parent, in their order, as one
transaction; compaction and upkeep are not replayed.  So a merged delete also hides records that the parent
loaded before the merge.  A merged record is newer than all of the parent's, and no earlier delete of the parent
hides it.  Nothing is rewritten: the parent gets the branch's references and tombstones, with lifted
(renumbered) sequences.

A merge conflicts only if both sides replaced overlapping ranges since the boundary, or both ingested the same
source file.  It brings what was written up to version `upto`, which the merger has seen.  If compaction or
deletes have mixed that with later writes, it must be planned again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lake_core.errors import Conflict, InvalidInput, PlanAgain
from lake_core.history.branch_state import MAX_WRITES, BranchState, Fork
from lake_core.history.branching import split_writes
from lake_core.history.covered import given_up_by_merge, is_interval
from lake_core.history.create import branch_of, putting, putting_tombstone
from lake_core.history.draft import Draft
from lake_core.history.lift import pack
from lake_core.history.snapshot.reference import Reference
from lake_core.history.state import PoolState
from lake_core.history.tombstone import Tombstone
from lake_core.phrases import counted
from lake_core.records import Action, Consume, Merge, Source
from lake_core.records.transactions import sequence, version_of


def merging(state: PoolState, draft: Draft, action: Merge) -> tuple[Action, ...]:
    """Returns the actions that merge the branch of `action` into the branch of the draft.

    Raises NotFound; InvalidInput if the draft's branch is not the parent, or if there are too many writes;
    Conflict and PlanAgain as the module says.
    """
    child, fork = mergeable(state, action.branch, into=draft.branch)
    if draft.read_version < fork.created:
        raise PlanAgain(f"branch {action.branch!r} was deleted and created again; plan again")
    brought, _ = split_writes(fork, action.upto)
    if action.upto <= fork.merged or not brought:
        raise PlanAgain(f"branch {action.branch!r} was merged meanwhile; plan again")
    references = _references(child, fork, action)
    tombstones = _tombstones(child, fork, action)
    parent = branch_of(state, draft.branch)
    _check_replaces(draft.branch, parent, action.branch, tombstones, fork)
    sources = _sources(state, draft.branch, action, fork, references, tombstones)
    sources += given_up_by_merge(state, tombstones, sources, into=draft.branch, id=draft.id)
    newest = max((t.version for t in tombstones), default=0)
    return (
        msgspec.structs.replace(action, since=fork.merged, joined=fork.joined, writes=pack(brought)),
        *([Consume(tuple(sources))] if sources else []),
        *(putting_tombstone(t) for t in tombstones),
        *(
            putting(msgspec.structs.replace(r, applied=r.applied if r.applied >= newest else 0))
            for r in references
        ),
    )


def mergeable(state: PoolState, name: str, *, into: str) -> tuple[BranchState, Fork]:
    """Returns the branch `name` and its relation to its parent.  Raises NotFound, and InvalidInput if it cannot be
    merged into the branch `into`."""
    child = branch_of(state, name)
    branch_of(state, into)
    if child.fork is None or child.fork.parent != into:
        parent = f"merge it into {child.fork.parent!r}" if child.fork else "no other branch has it as a child"
        raise InvalidInput(
            f"branch {name!r} was not created from {into!r}: a branch is merged into the one that it was created "
            f"from; {parent}"
        )
    if child.fork.writes is None:
        raise InvalidInput(
            f"branch {name!r} has had more than {counted(MAX_WRITES, 'write')} since it was created or merged, and "
            "cannot be merged any more; load its records into the parent"
        )
    return child, child.fork


def _references(child: BranchState, fork: Fork, action: Merge) -> list[Reference]:
    """Returns the references to bring, from old to new.  Raises PlanAgain if one has later records too."""
    brought = []
    for reference in child.snapshot.newer_than(sequence(fork.boundary + 1) - 1):
        if version_of(reference.first_seq) > action.upto:
            continue
        if version_of(reference.seq) > action.upto:
            raise PlanAgain(f"branch {action.branch!r} was compacted since version {action.upto}; plan again")
        brought.append(reference)
    return brought


def _tombstones(child: BranchState, fork: Fork, action: Merge) -> list[Tombstone]:
    """Returns the tombstones to bring, from old to new.  Raises PlanAgain if the branch has tombstones from
    after version `upto`: the records that they hide may already be gone from the references."""
    brought, _ = split_writes(fork, action.upto)
    of_child = (*child.tombstones.values(), *child.settled.values())
    tombstones = [one for t in of_child if (one := _clipped(t, brought)) is not None]
    unmerged = sorted((t for t in tombstones if fork.is_unmerged(t.seq)), key=lambda t: (t.seq, t.id))
    if any(version_of(t.seq) > action.upto for t in unmerged):
        raise PlanAgain(f"branch {action.branch!r} has deletes since version {action.upto}; plan again")
    for t in unmerged:
        if t.exactly is not None and not fork.is_unmerged(t.exactly[0]):
            raise Conflict(
                f"version {version_of(t.seq)} of branch {action.branch!r} takes back a load that is merged "
                f"already; revert version {version_of(t.seq)}, then merge again"
            )
    return unmerged


def _clipped(tombstone: Tombstone, brought: Sequence[int]) -> Tombstone | None:
    """Returns the tombstone in the form that a merge of these writes brings; None if it hides none of them.

    A tombstone that hides everything up to a sequence hides, on the parent, the records that the merge brings
    up to it, and none of the parent's own.
    """
    if tombstone.upto is None:
        return tombstone
    hidden = [sequence for sequence in brought if sequence <= tombstone.upto]
    return msgspec.structs.replace(tombstone, only=(hidden[0], hidden[-1])) if hidden else None


def _check_replaces(
    into: str, parent: BranchState, name: str, tombstones: list[Tombstone], fork: Fork
) -> None:
    """Raises Conflict if both branches replaced overlapping ranges since the boundary."""
    theirs = [
        t
        for t in (*parent.tombstones.values(), *parent.settled.values())
        if t.replaces and t.since > fork.parent_boundary
    ]
    for ours in (t for t in tombstones if t.replaces):
        for other in sorted(theirs, key=lambda t: t.seq):
            if ours.sub_pool == other.sub_pool and ours.key_range.overlaps(other.key_range):
                raise Conflict(
                    f"version {version_of(ours.seq)} of branch {name!r} and version {other.since} of {into!r} "
                    "replaced overlapping ranges of keys; revert one of them, then merge again"
                )


def _sources(
    state: PoolState,
    into: str,
    action: Merge,
    fork: Fork,
    references: Sequence[Reference],
    tombstones: Sequence[Tombstone],
) -> list[Source]:
    """Returns the source files and covered intervals to bring.  Raises Conflict if the parent has ingested a
    file too.  It is no conflict if the load on this side brings no records, because it was reverted."""
    brought = []
    for (branch, uri), theirs in state.sources.items():
        if branch != action.branch or not fork.boundary < theirs.version <= action.upto:
            continue
        if is_interval(theirs.source):
            if theirs.source.size and state.ingested(into, uri) != theirs.source:
                brought.append(theirs.source)
        elif state.ingested(into, uri) != theirs.source:
            brought.append(theirs.source)
        elif _brings_records(theirs.version, references, tombstones):
            raise Conflict(
                f"source file {uri} was ingested both by branch {action.branch!r} (version {theirs.version}) and "
                f"by {into!r}, so its records would come twice; revert version {theirs.version}, then merge again"
            )
    return sorted(brought, key=lambda source: source.uri)


def _brings_records(version: int, references: Sequence[Reference], tombstones: Sequence[Tombstone]) -> bool:
    """Whether references may hold records of the version that no revert hides."""
    may_hold = any(version_of(r.first_seq) <= version <= version_of(r.seq) for r in references)
    reverted = (t.only for t in tombstones if t.only is not None and t.condition is None)
    return may_hold and not any(version_of(first) <= version <= version_of(last) for first, last in reverted)
