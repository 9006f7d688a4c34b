"""Removing a bad transaction or a damaged object from a pool, so that the rest can be read again.

An object that cannot be read, or a delete that cannot be evaluated, stops every scan and compaction that needs
it.  `plan_repair` finds the references and tombstones to remove in the state alone, without reading any data
object.  `repair` removes them in one transaction.  Records are lost by that, and deleted ones may come back;
the plan says how many.  The objects stay on the store, and older revisions still refer to them.

Called by `lake repair`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lake_core import naming
from lake_core.errors import NotFound
from lake_core.history import Draft, Reference
from lake_core.records import Action, AddObject, AddTombstone, RemoveReference, RemoveTombstone, Transaction
from log_lake.lake.branch import Branch
from log_lake.repair.check_objects import check_objects
from log_lake.repair.finding import DAMAGE


@dataclass(frozen=True)
class RepairPlan:
    """The plan of a repair: the references and tombstones to remove.

    `merged`: objects of the named transactions that a compaction has merged into others; their records stay.
    """

    read_version: int
    references: tuple[Reference, ...]
    tombstones: tuple[str, ...]
    merged: tuple[str, ...]

    @property
    def records(self) -> int:
        """How many records the pool loses."""
        return sum(r.records for r in self.references)


@dataclass(frozen=True)
class RepairResult:
    """The result of a repair; `version` and `transaction_id` are None if there was nothing to remove."""

    version: int | None
    transaction_id: str | None
    objects: int
    records: int
    tombstones: int


def plan_repair(branch: Branch, *, objects: Sequence[str], transactions: Sequence[str]) -> RepairPlan:
    """Returns the references and tombstones of these objects (by id) and transactions (by version or id).

    Raises NotFound if the pool never had one of them, or if its history does not reach back to it.
    """
    loaded = branch.history.load_open()
    state = loaded.state.branches[branch.name]
    presence = dict.fromkeys(transactions, False)
    added, tombstones = list(objects), []
    for version, transaction in branch.history.read_transactions(branch=branch.name) if transactions else ():
        named = [t for t in (str(version), transaction.id) if t in presence]
        if named:
            presence[named[0]] = True
            added += _added(transaction)
            tombstones += [a.tombstone for a in transaction.actions if isinstance(a, AddTombstone)]
        if all(presence.values()):
            break
    if missing := [name for name, is_there in presence.items() if not is_there]:
        raise NotFound(
            f"transaction {missing[0]}: not in the history of branch {branch.name!r}; see lake log"
        )
    named_objects = dict.fromkeys(added)
    subs = ("", *state.snapshot.sub_pools())
    references = [
        r
        for sub_pool in subs
        for r in state.snapshot.overlapping(sub_pool=sub_pool)
        if r.object in named_objects
    ]
    referenced = {r.object for r in references}
    if unknown := [name for name in objects if name not in referenced]:
        raise NotFound(f"object {unknown[0]}: branch {branch.name!r} does not refer to it; see POOL:objects")
    return RepairPlan(
        loaded.version,
        tuple(references),
        tuple(name for name in tombstones if name in state.tombstones),
        tuple(name for name in named_objects if name not in referenced),
    )


def whole_objects(branch: Branch, plan: RepairPlan, *, among: Sequence[str]) -> list[str]:
    """Reads those objects of the plan that `among` names.  Returns those that need not be removed: no damage
    was seen in them, and they agree with their references.  An object that the store does not give is among
    them, because it may be sound.

    Raises Unavailable if the store refuses many of them.
    """
    references = [r for r in plan.references if r.object in set(among)]
    findings = check_objects(branch.store, branch.config, references, data=True)
    faulty = {one.where for one in findings if one.severity == DAMAGE}
    ids = dict.fromkeys(r.object for r in references)
    return [id for id in ids if naming.data_object(branch.config.id, id) not in faulty]


def _added(transaction: Transaction) -> list[str]:
    return [action.object for action in transaction.actions if isinstance(action, AddObject)]


def repair(branch: Branch, plan: RepairPlan, *, reason: str = "") -> RepairResult:
    """Carries out the plan in one transaction.  Raises Conflict if some of its references or tombstones were
    removed meanwhile."""
    if not plan.references and not plan.tombstones:
        return RepairResult(None, None, 0, 0, 0)
    actions: tuple[Action, ...] = (
        *(RemoveReference(r.object, r.low) for r in plan.references),
        *(RemoveTombstone(name, forced=True) for name in plan.tombstones),
    )
    draft = Draft(
        branch.context.ids.new(),
        branch.name,
        plan.read_version,
        branch.context.author,
        actions,
        message=reason or "repair",
    )
    committed = branch.history.commit(draft)
    objects = len({r.object for r in plan.references})
    return RepairResult(
        committed.version, committed.transaction_id, objects, plan.records, len(plan.tombstones)
    )
