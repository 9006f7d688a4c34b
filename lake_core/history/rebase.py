"""Rebasing: deciding, purely, what becomes of a draft on a newer state than its read version.

A writer prepares a `Draft` on its read version; its objects are on the store already.  `rebase` looks at the
newest state and returns the transaction to write, or the one that the draft's token committed before:

- If the pool was dropped, every draft is refused: NotFound.  Two drafts are accepted: the one that opens the
  pool again, and a drop that knows of the last drop. Drafts that began before the pool was opened again are
  refused forever: Conflict.
- If the branch was deleted: NotFound. Drafts that began before it was restored are refused forever, too:
  Conflict.
- If the token was used, the first outcome counts and nothing is written.
- Loads and deletes are rebased unchanged.  If a replace began after a load but was committed before it (it
  overtook the load), the load also carries a self-only tombstone, which hides its own records in the replaced
  range.  If the tombstone of such a replace may be retired already: Conflict; the load must begin again.
- If another replace took the range of a replace meanwhile: Conflict.
- If the draft does not commute with the pending part of a transaction over pools: Undecided; its writer waits.
- If a source file was ingested meanwhile: Conflict; the batch must be planned again.
- If a load of a stream did not begin at the state's next offset: Conflict; it must read again (`offsets`).
- If another compaction took an input of a compaction meanwhile: Conflict; its work is dropped, without harm.
- If a tombstone may still cover records, or is retired already, it is not retired: Conflict.
- If a load brings new fields, and the pool would then have more than `limits.MAX_COLUMNS`: InvalidInput.
- If a load brings a new field under a name that another field was given meanwhile: Conflict (`renaming`).
- If a load promises to change no field (the setting `schema`), and would change one by now: Conflict.
- If a compaction would mix the sides of a branch: PlanAgain.
- If a delete was reverted since a compaction began: PlanAgain, because the compaction may have left out records
  that are visible again.
- If a revert has put back a record whose age lies between records that a compaction of an aggregate pool
  combines: PlanAgain.
- If an expiry, or a compaction that drops delete markers, would show older versions of records: PlanAgain.
- Split points that are there by now are not added, and those that are gone not removed.  If nothing is left to
  do, the outcome is None: no entry is written.
- A delete gives up the intervals that it removes whole (`covered`).
- Schemas that the state knows by now are not announced again.

Other modules decide about special drafts: `create` (creates or deletes a branch), `merge`, `transactions`
(prepares or settles a transaction over pools), `tags`, and `vacuuming` (deletes objects, or needs removed
ones). `fields` decides which fields a pool may have together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lake_core.errors import Conflict, NotConserved, NotFound, PlanAgain, Undecided
from lake_core.history.between import Ages
from lake_core.history.branch_state import BranchState
from lake_core.history.conserved import imbalance
from lake_core.history.covered import giving_up, is_interval
from lake_core.history.create import check_deleted, creating
from lake_core.history.draft import Draft
from lake_core.history.fields import check_fields, check_kept, check_room, check_room_of_merge, check_width
from lake_core.history.merge import merging
from lake_core.history.offsets import check_offsets, is_offsets
from lake_core.history.points import pointing
from lake_core.history.renaming import check_overlooked, check_renames
from lake_core.history.revealing import must_stay
from lake_core.history.snapshot.reference import Reference, span_of
from lake_core.history.state import PoolState, Remembered
from lake_core.history.tags import tagging
from lake_core.history.tombstone import Tombstone
from lake_core.history.transactions.commuting import undecided
from lake_core.history.transactions.preparing import (
    check_branch_of_transaction,
    check_ended,
    is_settled,
    preparing,
)
from lake_core.history.vacuuming import check_objects, check_vacuum
from lake_core.keys import KeyRange, PoolKey
from lake_core.phrases import human_time
from lake_core.records import (
    Action,
    AddObject,
    AddTombstone,
    Close,
    Conserve,
    Consume,
    CreateBranch,
    DeleteBranch,
    EndBranch,
    MarkApplied,
    Merge,
    Prepare,
    PutReference,
    RemoveReference,
    RemoveTombstone,
    Reopen,
    SetMerged,
    SetSchema,
    Settle,
    Transaction,
)
from lake_core.records.transactions import version_of
from lake_core.schemas import APPEND, Rule
from lake_core.schemas.schema import schema_id


@dataclass(frozen=True)
class Committed:
    """The outcome of a commit: the transaction is in the entry `version`.

    `repeated`: the first commit of the token, if it was an earlier one.  `overtaken`: the reasons of its
    self-only tombstones, one for each replace that overtook it; empty if the outcome was learned from an entry
    alone.  `unchanged`: nothing was left to do in the version, so no entry was written.
    """

    version: int
    transaction_id: str
    repeated: Remembered | None = None
    overtaken: tuple[str, ...] = ()
    unchanged: bool = False


def rebase(
    state: PoolState, draft: Draft, *, key: PoolKey, rule: Rule = APPEND, time: int
) -> Transaction | Remembered | None:
    """Returns the transaction that puts the draft onto the branch's tip, or the one that its token committed
    before.

    Returns None if the draft only adds split points that the pool has, and removes those that it lacks.

    `time` is in microseconds since 1970.  Raises NotFound (the pool was dropped, no such branch), Conflict (a
    source file, an input or a range was taken meanwhile), InvalidInput (a key field that cannot be ordered with
    the pool's other objects), and what the module lists.
    """
    first = draft.actions[0] if draft.actions else None
    _check_drops(state, draft, first)
    if is_settled(state, draft):
        return None
    if over := undecided(state, draft, rule):
        raise Undecided(over)
    if isinstance(first, Prepare):
        actions = preparing(state, draft, first, partial(_merging, rule=rule))
        if isinstance(actions, Remembered):
            return actions
        return _transaction(draft, actions, parent=0, time=time) if actions else None
    check_branch_of_transaction(state, draft)
    if not draft.branch:
        check_vacuum(state, draft)
        check_renames(state, draft, key, rule)
        actions = pointing(state.points, tagging(state, draft))
        return _transaction(draft, actions, parent=0, time=time) if actions else None
    if isinstance(first, CreateBranch):
        check_objects(state, draft)
        return _transaction(draft, creating(state, draft, first), parent=0, time=time)
    branch = state.branches.get(draft.branch)
    if branch is None:
        raise NotFound(
            f"branch {draft.branch!r} does not exist; there are: {', '.join(sorted(state.branches))}"
        )
    if branch.fork is not None and draft.read_version < branch.fork.created:
        raise NotFound(
            f"branch {draft.branch!r} was deleted, and another one of this name created, since this began; start "
            "again"
        )
    if draft.token and (remembered := state.tokens.get(draft.token)) is not None:
        return remembered
    if draft.is_exact:
        _check_unchanged(state, branch, draft)
    check_objects(state, draft)
    if isinstance(first, DeleteBranch):
        check_deleted(state, draft, first)
    if isinstance(first, EndBranch):
        check_ended(state, draft, first)
    if isinstance(first, Merge):
        settles = (a for a in draft.actions if isinstance(a, Settle))
        actions = (*_merging(state, draft, first, rule=rule), *settles)
        return _transaction(draft, actions, parent=branch.tip, time=time)
    if branch.fork is not None and draft.read_version < branch.fork.restored:
        raise Conflict(
            f"branch {draft.branch!r} was deleted and restored (version {branch.fork.restored}) since this began; "
            "start again"
        )
    for action in draft.actions:
        if isinstance(action, Consume):
            for source in filter(is_offsets, action.sources):
                check_offsets(state, draft.branch, source)
            files = (s for s in action.sources if not (is_interval(s) or is_offsets(s)))
            taken = [s.uri for s in files if state.ingested(draft.branch, s.uri) == s]
            if taken:
                others = f" and {len(taken) - 1} other source files" if len(taken) > 1 else ""
                raise Conflict(
                    f"{taken[0]}{others}: ingested meanwhile by another load; plan the batch again"
                )
        if isinstance(action, RemoveReference | MarkApplied):
            check_held(branch, action.object, action.low)
        if isinstance(action, PutReference) and branch.snapshot.holds(action.object, action.low):
            raise PlanAgain(f"object {action.object} is held again; plan again")
        if isinstance(action, RemoveTombstone):
            _check_retired(state, branch, action.tombstone, forced=action.forced)
    check_sides(branch, draft)
    _check_revealed(branch, draft)
    if draft.oldest_only:
        _check_oldest(branch, draft, rule)
    _check_conserved(branch, draft)
    if rule.kind == "aggregate":
        _check_between(state, branch, draft)
    overtaken = _overtaken(branch, draft)
    check_overlooked(state, draft)
    check_fields(state, draft, key, rule)
    check_kept(state, draft)
    check_width(state, draft)
    check_room(state, draft, rule)
    given_up = giving_up(state, draft.actions, branch=draft.branch, id=draft.id)
    actions = (*_new_schemas(state, draft), *draft.actions, *given_up, *overtaken)
    return _transaction(draft, actions, parent=branch.tip, time=time)


def _merging(state: PoolState, draft: Draft, action: Merge, *, rule: Rule) -> tuple[Action, ...]:
    """Returns the actions of a merge.  Raises what `merging` and `check_room_of_merge` raise."""
    actions = merging(state, draft, action)
    check_room_of_merge(state, draft, actions, rule)
    return actions


def _check_unchanged(state: PoolState, branch: BranchState, draft: Draft) -> None:
    """Raises PlanAgain if the branch has changed since the read version, or if a branch whose merge the draft
    reverts has."""
    unmerged = (state.branches.get(a.branch) for a in draft.actions if isinstance(a, SetMerged))
    tips = [branch.tip, *(child.tip for child in unmerged if child is not None)]
    if max(tips) > draft.read_version:
        raise PlanAgain(f"branch {draft.branch!r} has changed since version {draft.read_version}; plan again")


def _transaction(draft: Draft, actions: tuple[Action, ...], *, parent: int, time: int) -> Transaction:
    return Transaction(
        id=draft.id,
        branch=draft.branch,
        parent=parent,
        read_version=draft.read_version,
        time=time,
        author=draft.author,
        actions=actions,
        message=draft.message,
        token=draft.token,
        metadata=dict(draft.metadata),
    )


def check_sides(branch: BranchState, draft: Draft) -> None:
    """Raises PlanAgain if a compaction mixes records that a merge will bring to the parent with others.  The
    plan did not mix them, but a merge has moved the boundary since."""
    outputs = [a for a in draft.actions if isinstance(a, AddObject) and a.seqs is not None]
    if branch.fork is None or not outputs:
        return
    inputs = (branch.snapshot.reference(a.object, a.low) for a in _removed(draft))
    if len({branch.is_unmerged(r) for r in inputs if r is not None}) > 1:
        raise PlanAgain(
            f"branch {draft.branch!r} was merged meanwhile, and this compaction would mix what is merged with what "
            "is not; plan again"
        )


def _check_revealed(branch: BranchState, draft: Draft) -> None:
    """Raises PlanAgain if a draft removes references, and a delete was reverted since it began.  The new
    objects may lack the records of that delete, which are visible again."""
    if draft.read_version < branch.revealed and _removed(draft):
        raise PlanAgain(
            f"version {branch.revealed} took a delete back since version {draft.read_version}, on which this "
            "began: it may have left out records that are shown again; plan again"
        )


def _check_conserved(branch: BranchState, draft: Draft) -> None:
    """Raises NotConserved if the sums of a rewriting do not add up: no reader would accept its entry."""
    if not any(isinstance(action, Conserve) for action in draft.actions):
        return
    removed = [branch.snapshot.reference(a.object, a.low) for a in _removed(draft)]
    if fault := imbalance([r for r in removed if r is not None], draft.actions):
        raise NotConserved(
            f"branch {draft.branch!r}: the inputs of a rewriting {fault}; nothing was committed, and the inputs "
            "stay"
        )


def _check_oldest(branch: BranchState, draft: Draft, rule: Rule) -> None:
    """Raises PlanAgain if a record that stays is older than one that is removed, and would become visible again."""
    names = {(action.object, action.low) for action in _removed(draft)}
    removed = (branch.snapshot.reference(*name) for name in names)
    leaving = [r for r in removed if r is not None and not r.sub_pool]
    if rule.keeps_all or not leaving:
        return
    span = KeyRange(min(r.low for r in leaving), max(r.high for r in leaving))
    staying = [r for r in branch.snapshot.overlapping(span) if (r.object, r.low) not in names]
    if blocked := must_stay(leaving, staying, kind=rule.kind):
        raise PlanAgain(
            f"object {blocked[0].object} hides older records that were committed or put back since this was "
            "planned; plan again"
        )


def _check_between(state: PoolState, branch: BranchState, draft: Draft) -> None:
    """Raises PlanAgain if a revert has restored a reference that lies in age between records that a compaction
    combines."""
    before = [t for t in branch.tombstones.values() if t.version <= draft.read_version]
    names = {(action.object, action.low) for action in _removed(draft)}
    removed = (branch.snapshot.reference(*name) for name in names)
    inputs = [
        r  # no records are left of one that a delete covers
        for r in removed
        if r is not None and not r.sub_pool and not any(t.covers_all(r, state.schema) for t in before)
    ]
    if len(inputs) < 2 or not any(isinstance(a, AddObject) and a.seqs is not None for a in draft.actions):
        return
    span = span_of(inputs)
    near = Ages(branch.snapshot.overlapping(span)).between(inputs, most=len(names))
    between = [f"object {r.object}" for r in near if (r.object, r.low) not in names]
    between += [
        f"delete {t.id}"
        for t in branch.tombstones.values()
        if t.version > draft.read_version >= version_of(t.seq) and t.key_range.overlaps(span)
    ]
    if between:
        raise PlanAgain(
            f"{between[0]} was put back by a revert since this compaction was planned, and lies in age between "
            "the records that it combines; plan again"
        )


def _removed(draft: Draft) -> list[RemoveReference]:
    return [a for a in draft.actions if isinstance(a, RemoveReference)]


def _overtaken(branch: BranchState, draft: Draft) -> list[AddTombstone]:
    """Returns self-only tombstones for the replaces that overtook the draft, so that it counts as committed before
    them.

    A replace overtook the draft if it was first committed above the draft's read version, began later than the
    draft (`Tombstone.started`), and its range overlaps a new object.

    Raises Conflict if a replace that may have overtaken the draft is gone, or if the draft is a replace itself
    and overlaps one that was committed meanwhile.
    """
    replaces = [a.range for a in draft.actions if isinstance(a, AddTombstone) and a.replaces]
    added = [KeyRange(a.low, a.high) for a in draft.new_objects]
    if (replaces or added) and draft.read_version < branch.replaced:
        raise Conflict(
            f"this load began on version {draft.read_version}, before the replace of version {branch.replaced}, "
            "whose tombstone is retired or reverted; start the load again"
        )
    since = [t for t in branch.tombstones.values() if t.replaces and t.since > draft.read_version]
    taken = [t for t in since if any(t.key_range.overlaps(key_range) for key_range in replaces)]
    if taken:
        raise Conflict(
            f"a replace of an overlapping range was committed meanwhile, as version {taken[0].since}; start again"
        )
    # a replace that two reverts brought back is as old as it was
    before = [t for t in since if version_of(t.seq) > draft.read_version]
    later = [t for t in before if t.started > (draft.read_version, draft.id)]
    covering = [t for t in later if any(t.key_range.overlaps(key_range) for key_range in added)]
    return [
        AddTombstone(
            f"{draft.id}-overtaken-{number}",
            t.low,
            t.high,
            t.condition,
            reason=f"overtaken by the replace of version {t.since}",
            self_only=True,
        )
        for number, t in enumerate(sorted(covering, key=lambda t: t.seq), 1)
    ]


def _check_drops(state: PoolState, draft: Draft, first: Action | None) -> None:
    """Raises NotFound if the pool is dropped, Conflict if it was dropped and restored since the draft began."""
    if isinstance(first, Reopen):
        if state.closed is None or state.closed.version != first.closed:
            raise Conflict(
                f"the pool was dropped again, or restored, since version {first.closed}; look at lake ls, then "
                "restore it again if it is not there"
            )
        return
    if not (
        isinstance(first, Close) and state.closed is not None and draft.read_version >= state.closed.version
    ):
        check_open(state)
    if draft.read_version < state.reopened:
        error = PlanAgain if isinstance(first, Close) else Conflict
        raise error(
            f"the pool was dropped and restored (version {state.reopened}) since this began; start again"
        )


def check_open(state: PoolState, *, pool: str = "") -> None:
    """Raises NotFound if the pool was dropped; `pool` is its name, if the caller knows it."""
    if state.closed is not None:
        raise NotFound(
            f"the pool{f' {pool!r}' if pool else ''} was dropped by {state.closed.author} at "
            f"{human_time(state.closed.time / 1e6)} (version {state.closed.version}). lake restore takes it back. "
            "If a new pool has its name, open that one; if lake ls still lists this one, the drop was interrupted: "
            "run lake drop or lake restore again"
        )


def check_held(branch: BranchState, object_id: str, low: bytes) -> None:
    """Raises Conflict if the branch does not refer to the object's range any more."""
    if not branch.snapshot.holds(object_id, low):
        raise Conflict(f"object {object_id} was taken by another compaction meanwhile; plan again")


def _check_retired(state: PoolState, branch: BranchState, name: str, *, forced: bool) -> None:
    """Raises Conflict if the tombstone is retired already, or may still cover records."""
    tombstone = branch.tombstones.get(name) or (branch.settled.get(name) if forced else None)
    if tombstone is None:
        raise Conflict(f"tombstone {name} is retired already, by another writer; there is nothing left to do")
    if not forced and still_covered(state, branch, tombstone):
        raise Conflict(f"tombstone {name} may still cover records; apply it first (lake tombstones POOL)")


def still_covered(state: PoolState, branch: BranchState, tombstone: Tombstone) -> list[Reference]:
    """Returns the references that may still hold records which the tombstone covers."""
    references = branch.snapshot.overlapping(tombstone.key_range, sub_pool=tombstone.sub_pool)
    return [r for r in references if tombstone.may_cover(r, state.schema)]


def _new_schemas(state: PoolState, draft: Draft) -> list[Action]:
    """Announces the draft's schemas that the state does not know yet, each once."""
    schemas = sorted({schema_id(schema): schema for schema in draft.schemas}.items())
    return [SetSchema(id, s.serialize().to_pybytes()) for id, s in schemas if id not in state.schemas]
