"""Leaves out the objects, and the row groups, whose indexes say that no record fulfils the condition of a scan.

It follows the choice by key range and statistics (`plan`), and obeys the same rule: in append pools such an object
is not read; in others only where no other reference shares its keys.  An index that is missing, damaged or not
readable says nothing: its object is read (decision 479).  An index of the kind `values` also names the row groups
that may hold such a record; in append pools only these are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.history import Reference
from lake_core.keys.encoding import key_class
from lake_core.records.conditions import And, Compare, Condition, In, Or
from lake_core.store import Store
from log_lake.indexes.hashes import indexed_field, number_of
from log_lake.indexes.lookup import Answered, IndexAnswer, IndexQuestion, ask, in_threads
from log_lake.indexes.rule import LOOKED_UP, IndexRule
from log_lake.reading.clustered import equalities
from log_lake.reading.plan import ScanPlan, overlap_depth
from log_lake.reading.revision import Revision

NONE: frozenset[int] = frozenset()
"""No row group: no record of the object fulfils the condition."""

MOST_VALUES = 256
"""The most values of an `in` for which an index is asked: with more, some value always seems to be there."""


@dataclass(frozen=True)
class _Asked:
    """True unless the index of the rule says that no record has one of the numbers."""

    rule: IndexRule
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class _Both:
    """True if all members are (`all_of`), or if one is."""

    members: tuple[_Truth, ...]
    all_of: bool


_Truth = bool | _Asked | _Both
"""What decides whether some record of an object may fulfil a condition."""


@dataclass(frozen=True)
class IndexUse:
    """`absent` objects hold no record that fulfils the condition; `answers` counts what indexes said.

    `groups`: by object, the only row groups that may hold such a record.
    """

    absent: frozenset[str] = frozenset()
    groups: Mapping[str, frozenset[int]] = field(default_factory=dict)
    answers: Mapping[IndexAnswer, int] | None = None


def with_indexes(plan: ScanPlan, revision: Revision, store: Store) -> ScanPlan:
    """Returns the plan without the objects and row groups that the pool's indexes exclude."""
    if plan.where is None:
        return plan
    use = asked(plan.where, plan.references, revision, store)
    if not use.answers:
        return plan
    kept, groups = plan.references, dict[str, frozenset[int]]()
    if plan.rule.keeps_all:
        kept = tuple(r for r in plan.references if r.object not in use.absent)
        groups = {r.object: use.groups[r.object] for r in kept if r.object in use.groups}
    left = replace(plan.left_out, by_index=len(plan.references) - len(kept), answers=use.answers)
    return replace(
        plan,
        references=kept,
        depth=overlap_depth(kept),
        absent=use.absent,
        groups=groups,
        left_out=left,
    )


def asked(
    condition: Condition,
    references: Sequence[Reference],
    revision: Revision,
    store: Store,
) -> IndexUse:
    """Asks the indexes of these references, by the pool's rules."""
    own = revision.index_rules if not revision.sub_pool else ()
    rules = [rule for rule in own if rule.kind in LOOKED_UP]
    if not rules or not references:
        return IndexUse()
    truths: dict[str, _Truth] = {}
    objects: dict[str, _Truth] = {}
    for reference in references:
        if reference.data:  # it lies in the journal, which was read already
            continue
        if reference.schema not in truths:
            truths[reference.schema] = _truth(condition, revision.state.schema(reference.schema), rules)
        truth = truths[reference.schema]
        if not isinstance(truth, bool):
            objects[reference.object] = truth
    pool_id = revision.config.id
    looks = [_Look(object_id, lambda question: ask(store, pool_id, question)) for object_id in objects]
    groups_of = in_threads(
        store, lambda at: looks[at].groups(objects[looks[at].object_id]), range(len(looks))
    )
    by_object = {look.object_id: one for look, one in zip(looks, groups_of, strict=True)}
    absent = frozenset(object_id for object_id, groups in by_object.items() if groups == NONE)
    some = {object_id: groups for object_id, groups in by_object.items() if groups}
    answers = Counter(one.answer for look in looks for one in look.answers.values())
    return IndexUse(absent, some, answers)


class _Look:
    """The questions about one object: each index is asked only if the answer still matters."""

    def __init__(self, object_id: str, asks: Callable[[IndexQuestion], Answered]) -> None:
        self.object_id, self._asks = object_id, asks
        self.answers: dict[_Asked, Answered] = {}

    def groups(self, truth: _Truth) -> frozenset[int] | None:
        """The row groups that may hold a record that fulfils the condition; None: any may."""
        if isinstance(truth, bool):
            return None if truth else NONE
        if isinstance(truth, _Both):
            return self._all(truth.members) if truth.all_of else self._any(truth.members)
        if truth not in self.answers:
            self.answers[truth] = self._asks(IndexQuestion(self.object_id, truth.rule, truth.numbers))
        one = self.answers[truth]
        return NONE if one.answer is IndexAnswer.NO else one.groups

    def _all(self, members: Sequence[_Truth]) -> frozenset[int] | None:
        left: frozenset[int] | None = None
        for member in members:
            groups = self.groups(member)
            left = groups if left is None else left if groups is None else left & groups
            if left == NONE:
                break
        return left

    def _any(self, members: Sequence[_Truth]) -> frozenset[int] | None:
        united = NONE
        for member in members:
            if (groups := self.groups(member)) is None:
                return None
            united |= groups
        return united


def _truth(condition: Condition, schema: pa.Schema, rules: Sequence[IndexRule]) -> _Truth:
    """What decides for objects of this schema; True if no index can."""
    match condition:
        case And(of):
            members = [_truth(member, schema, rules) for member in (*of, *equalities(of))]
            if not all(members):
                return False
            return _joined([m for m in members if m is not True], all_of=True)
        case Or(of):
            members = [_truth(member, schema, rules) for member in of]
            return True if True in members else _joined([m for m in members if m is not False], all_of=False)
        case Compare(op="=") | In():
            return _leaf(condition, schema, rules)
        case _:
            return True


def _joined(members: list[_Truth], *, all_of: bool) -> _Truth:
    return members[0] if len(members) == 1 else _Both(tuple(members), all_of) if members else all_of


def _leaf(leaf: Compare | In, schema: pa.Schema, rules: Sequence[IndexRule]) -> _Truth:
    asked: list[_Truth] = []
    for rule in rules:
        indexed = indexed_field(schema, rule.field)
        if indexed is None or indexed[0] != leaf.field:
            continue
        reduced = among(leaf, key_class(indexed[1].type))
        if isinstance(reduced, bool) or reduced is None:
            return bool(reduced)
        values = (reduced.value,) if isinstance(reduced, Compare) else reduced.values
        numbers = tuple(number_of(value) for value in values if value != NULL_VALUE)
        if not 0 < len(numbers) <= MOST_VALUES:
            return True
        asked.append(_Asked(rule, numbers))
    return _joined(asked, all_of=True)
