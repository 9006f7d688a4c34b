"""Tombstones in the state: added, retired, remembered; references that know what was applied to them."""

from __future__ import annotations

import msgspec
import pytest

from lake_core.errors import Conflict, Corrupt
from lake_core.history.branch_state import BranchState
from lake_core.history.fold import fold_entry
from lake_core.history.rebase import rebase
from lake_core.history.state import PoolState
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_value
from lake_core.records import (
    Action,
    AddTombstone,
    Column,
    MarkApplied,
    RemoveReference,
    RemoveTombstone,
    Transaction,
)
from lake_core.records.conditions import Compare
from lake_core.records.transactions import sequence
from tests.support.records import KNOWN, add, an_id, draft, entry, transaction

LOW, HIGH = encode_value(3), encode_value(6)
ONE = Column("k", 0, encode_value(0), encode_value(9))


def folded(*steps: tuple[Action, ...]) -> PoolState:
    """A state to which each step is a transaction of its own."""
    state = PoolState()
    for n, actions in enumerate(steps, start=1):
        state = fold_entry(
            state, n, entry(transaction(*actions, parent=n - 1, read_version=n - 1, id=an_id(n)))
        )
    return state


def main(state: PoolState) -> BranchState:
    return state.branches["main"]


def test_a_delete_stands_with_its_transaction() -> None:
    state = folded((KNOWN, add(1)), (AddTombstone("t", LOW, HIGH, reason="why"),))
    found = main(state).tombstones["t"]
    assert (found.version, found.seq, found.read_version, found.transaction_id) == (
        2,
        sequence(2),
        1,
        an_id(2),
    )
    assert (found.key_range.low, found.key_range.high, found.reason) == (LOW, HIGH, "why")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (AddTombstone("t"), "added, but the branch has it already"),
        (RemoveTombstone("u"), "removed, but the branch does not have it"),
        (MarkApplied(an_id(9), b"", 1), "does not have it"),
    ],
    ids=["twice", "unknown", "no reference"],
)
def test_what_does_not_fit_is_corrupt(action: Action, said: str) -> None:
    with pytest.raises(Corrupt, match=said):
        folded((KNOWN, add(1)), (AddTombstone("t"),), (action,))


@pytest.mark.parametrize(
    ("tombstone", "covers"),
    [
        (AddTombstone("t"), True),
        (AddTombstone("t", LOW, HIGH), True),
        (AddTombstone("t", encode_value(10)), False),
        (AddTombstone("t", condition=Compare(("k",), "<", encode_value(0))), False),
        (AddTombstone("t", condition=Compare(("k",), "<", encode_value(1))), True),
        (AddTombstone("t", self_only=True), False),
    ],
    ids=["all", "a part", "beside it", "statistics deny it", "statistics allow it", "of its own"],
)
def test_a_tombstone_is_retired_only_when_it_can_cover_nothing(tombstone: AddTombstone, covers: bool) -> None:
    state = folded((KNOWN, add(1, columns=(ONE,))), (tombstone,))
    retire = draft(77, RemoveTombstone("t"), read_version=2, schemas=())
    if covers:
        with pytest.raises(Conflict, match="may still cover"):
            rebase(state, retire, key=PoolKey.parse("k"), time=1)
    else:
        assert isinstance(rebase(state, retire, key=PoolKey.parse("k"), time=1), Transaction)


@pytest.mark.parametrize(
    "then",
    [
        (RemoveReference(an_id(1), encode_value(0)),),
        (MarkApplied(an_id(1), encode_value(0), 2),),
        (
            RemoveReference(an_id(1), encode_value(0)),
            add(3, seqs=(sequence(1), sequence(1)), applied=2),
        ),
    ],
    ids=["removed", "searched", "rewritten"],
)
def test_what_was_applied_to_a_reference_is_not_covered(then: tuple[Action, ...]) -> None:
    state = folded((KNOWN, add(1)), (AddTombstone("t"),), then)
    retire = draft(77, RemoveTombstone("t"), read_version=3, schemas=())
    assert isinstance(rebase(state, retire, key=PoolKey.parse("k"), time=1), Transaction)


def test_a_later_delete_covers_again_what_an_earlier_was_applied_to() -> None:
    state = folded(
        (KNOWN, add(1)),
        (AddTombstone("t"),),
        (MarkApplied(an_id(1), encode_value(0), 2),),
        (AddTombstone("u"),),
    )
    with pytest.raises(Conflict, match="tombstone u may still cover"):
        rebase(state, draft(77, RemoveTombstone("u"), schemas=()), key=PoolKey.parse("k"), time=1)


def test_a_delete_that_is_retired_twice_loses_the_race() -> None:
    state = folded((KNOWN, add(1)), (AddTombstone("t", self_only=True),), (RemoveTombstone("t"),))
    with pytest.raises(Conflict, match="is retired already"):
        rebase(state, draft(77, RemoveTombstone("t"), schemas=()), key=PoolKey.parse("k"), time=1)


@pytest.mark.parametrize("replaces", [True, False])
def test_only_of_a_replace_it_is_remembered_that_it_is_forgotten(replaces: bool) -> None:
    state = folded((KNOWN, add(1, 8, 9)), (AddTombstone("t", LOW, HIGH, replaces=replaces),))
    assert main(state).replaced == 0
    state = fold_entry(
        state, 3, entry(transaction(RemoveTombstone("t"), parent=2, read_version=2, id=an_id(3)))
    )
    assert main(state).replaced == (2 if replaces else 0)


def test_sub_pools_are_not_covered() -> None:
    state = folded((KNOWN, add(1, sub_pool="$nokey")), (AddTombstone("t"),))
    retire = draft(77, RemoveTombstone("t"), read_version=2, schemas=())
    assert isinstance(rebase(state, retire, key=PoolKey.parse("k"), time=1), Transaction)


@pytest.mark.parametrize(("number", "carries"), [(4, 1), (6, 0)], ids=["began before it", "began after it"])
def test_of_work_that_began_on_one_state_the_ids_say_what_a_replace_overtook(
    number: int, carries: int
) -> None:
    """The replace of transaction 5 is committed first.  What began after it is newer, and keeps its records."""
    replacing = transaction(KNOWN, AddTombstone("t", LOW, HIGH, replaces=True), id=an_id(5))
    state = fold_entry(PoolState(), 1, entry(replacing))
    rebased = rebase(state, draft(number, add(number)), key=PoolKey.parse("k"), time=1)
    assert isinstance(rebased, Transaction)
    assert sum(isinstance(a, AddTombstone) and a.self_only for a in rebased.actions) == carries


def test_a_replace_covers_what_is_older_and_not_what_it_brings_also_where_a_compaction_mixed_them() -> None:
    state = folded((KNOWN, add(1, 3, 5)), (AddTombstone("t", LOW, HIGH, replaces=True), add(2, 3, 5)))
    tombstone = main(state).tombstones["t"]
    old, new = sorted(main(state).snapshot.overlapping(), key=lambda r: r.seq)
    mixed = msgspec.structs.replace(new, object=an_id(3), oldest=old.seq)
    assert [tombstone.reaches(r) for r in (old, new, mixed)] == [True, False, True]
    assert [tombstone.covers_all(r, state.schema) for r in (old, new, mixed)] == [True, False, False]


def test_a_mark_that_comes_late_takes_nothing_back() -> None:
    low = encode_value(0)
    marks = [(MarkApplied(an_id(1), low, upto),) for upto in (7, 3)]
    (reference,) = main(folded((KNOWN, add(1)), *marks)).snapshot.overlapping()
    assert reference.applied == 7
