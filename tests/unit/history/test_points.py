"""Split points: layout of the pool that no branch owns, added and removed by transactions that meet any others."""

from __future__ import annotations

import pytest
from rpds import HashTrieSet

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput
from lake_core.history import History
from lake_core.history.points import check_number, pointed, pointing
from lake_core.journal import purge, write_state
from lake_core.journal.marks import Mark
from lake_core.keys import PoolKey
from lake_core.records import Action, Close, DeleteTag, Join, Reopen, SetTag, Split
from lake_core.records.points import MAX_POINTS
from log_lake.stores.memory import MemoryStore
from tests.support.crafted import craft, row
from tests.support.histories import history
from tests.support.records import add, an_id, draft

A, B, C = b"a", b"b", b"c"


def points_of(ours: History) -> tuple[bytes, ...]:
    return ours.load().state.points


@pytest.mark.parametrize("points", [(), (b"",), (B, A), (A, A)], ids=repr)
@pytest.mark.parametrize("action", [Split, Join])
def test_an_action_has_points_in_order(action: type[Split], points: tuple[bytes, ...]) -> None:
    with pytest.raises(Corrupt, match="needs points that are ascending, distinct and not empty"):
        action(points)


@pytest.mark.parametrize(
    ("before", "actions", "after"),
    [
        ((), [Split((A, C))], (A, C)),
        ((A, C), [Split((B,))], (A, B, C)),
        ((A, B, C), [Join((A, C))], (B,)),
        ((A,), [Split((B,)), Join((A,)), Split((C,)), Join((B,))], (C,)),
        ((A,), [Join((A,)), Split((A,))], (A,)),
    ],
)
def test_points_are_added_and_removed(
    before: tuple[bytes, ...], actions: list[Action], after: tuple[bytes, ...]
) -> None:
    assert sorted(pointed(HashTrieSet(before), actions)) == list(after)
    assert pointing(before, actions) == tuple(actions)


def test_a_point_that_does_not_fit_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="62: added, but the pool has it already"):
        pointed(HashTrieSet((A, B)), [Split((B, C))])
    with pytest.raises(Corrupt, match="63: removed, but the pool does not have it"):
        pointed(HashTrieSet((A, B)), [Join((B, C))])


def test_points_that_are_there_or_gone_by_now_are_left_out() -> None:
    tag = DeleteTag("t")
    assert pointing((A,), [Split((A, B)), tag, Join((A, C))]) == (Split((B,)), tag, Join((A,)))
    assert pointing((A,), [Split((A,)), Join((B,))]) == ()


def test_a_pool_has_a_bounded_number_of_points() -> None:
    many = tuple(n.to_bytes(3) for n in range(1, MAX_POINTS + 1))
    assert pointing((), [Split(many)]) == (Split(many),)
    with pytest.raises(InvalidInput, match="100,001 split points: a pool has at most 100,000; add fewer"):
        pointing(many, [Split((b"x",))])
    there = pointed(HashTrieSet(), [Split(many)])
    with pytest.raises(Corrupt, match="100,001 split points: a pool has at most 100,000"):
        pointed(there, [Split((b"x",))])


def test_an_action_costs_the_same_however_many_points_there_are() -> None:
    """Forty thousand actions of a point each took a reader minutes; an entry may hold a million."""
    many = [n.to_bytes(3) for n in range(1, 40_001)]
    there = pointed(HashTrieSet(), [Split((point,)) for point in many])
    assert len(there) == len(many)
    assert not pointed(there, [Join((point,)) for point in many])


def test_a_checkpoint_has_no_more_points_than_a_pool() -> None:
    check_number(MAX_POINTS)
    with pytest.raises(Corrupt, match="100,001 split points: a pool has at most 100,000"):
        check_number(MAX_POINTS + 1)


def test_writers_that_split_at_once_all_have_their_points() -> None:
    store = MemoryStore()
    one, other = history(store), history(store)
    one.load(), other.load()
    one.commit(draft(1, Split((A, B)), branch="", schemas=()))
    other.commit(draft(2, Split((B, C)), branch="", schemas=()))
    assert points_of(history(store)) == (A, B, C)
    one.commit(draft(3, Join((A,)), branch="", schemas=()))
    done = other.commit(draft(4, Join((A, C)), branch="", schemas=()))
    assert (done.version, done.unchanged, points_of(other)) == (4, False, (B,))
    assert next(t.actions for _, t in other.read_transactions()) == (Join((C,)),)


def test_when_nothing_is_left_to_do_no_entry_is_written() -> None:
    store = MemoryStore()
    ours = history(store)
    ours.commit(draft(1, Split((A,)), branch="", schemas=()))
    names = [info.name for info in store.list("")]
    done = ours.commit(draft(2, Split((A,)), Join((B,)), branch="", schemas=()))
    assert (done.version, done.unchanged) == (1, True)
    assert [info.name for info in store.list("")] == names
    assert ours.load().version == 1


def test_points_stay_through_other_transactions_checkpoints_and_purges() -> None:
    store = MemoryStore()
    ours = history(store)
    ours.commit(draft(1, Split((A, C)), branch="", schemas=()))
    ours.commit(draft(2, add(2)))
    ours.commit(draft(3, SetTag("t", 2, "main"), branch="", schemas=()))
    ours.commit(draft(4, Close()))
    ours.commit(draft(5, Reopen(4), read_version=4))
    assert points_of(ours) == (A, C)
    write_state(ours.journal, ours.load(), id=an_id(77), now=0.0)
    purge(ours.journal, until=5)
    again = history(store)
    assert points_of(again) == (A, C)
    again.commit(draft(6, Split((B,)), branch="", schemas=(), read_version=5))
    assert points_of(again) == (A, B, C)


@pytest.mark.parametrize("point", [A, b""])
def test_a_checkpoint_with_an_impossible_point_is_corrupt(point: bytes) -> None:
    store = MemoryStore()
    ours = history(store)
    ours.commit(draft(1, Split((A, C)), branch="", schemas=()))
    name = craft(ours.journal, lambda rows: [*rows, row("point", point)], id=an_id(77))
    with pytest.raises(Corrupt, match="the split points are not ascending and distinct"):
        ours.journal.restore(Mark(1, name))


def test_a_lake_of_version_2_has_no_split_points() -> None:
    store = MemoryStore()
    old = History(store, pool_id="p", key=PoolKey.parse("k"), clock=lambda: 0.0, format_version=2)
    with pytest.raises(
        InvalidInput, match="this lake has format version 2, which has no split points: run lake upgrade"
    ):
        old.commit(draft(1, Split((A,)), branch="", schemas=()))
    old.commit(draft(2, SetTag("t", 1, "main"), branch="", schemas=()))
    assert (store.get(naming.entry("p/journal", 1)) or b"")[3] == 2


def test_a_pool_that_is_full_takes_a_transaction_that_adds_a_point_and_removes_another() -> None:
    many = tuple(number.to_bytes(3) for number in range(MAX_POINTS))
    actions = [Split((b"x",)), Join((many[0],))]
    assert list(pointing(many, actions)) == actions
    assert len(pointed(HashTrieSet(many), actions)) == MAX_POINTS
