"""Discards of one transaction are folded at once: the list of the removed is as if each were folded alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lake_core.history.removal import OFF, Removal, Removed, fold_vacuums
from lake_core.records import BeginVacuum, Discard, ScanOrphans
from lake_core.records.transactions import sequence
from tests.support.records import an_id

IDS = [an_id(number) for number in range(6)]

discards = st.builds(
    lambda sized, never_read, scanned: Discard(
        tuple(sized), tuple(sized.values()), never_read=never_read, scanned=scanned
    ),
    st.dictionaries(st.sampled_from(IDS), st.integers(0, 9), max_size=4),
    st.booleans(),
    st.sampled_from(["", *IDS]),
)


def folded(removed: Removed, *actions: Discard | BeginVacuum | ScanOrphans) -> Removed:
    return fold_vacuums(removed, actions, seq=sequence(7, 2), id=an_id(50), time=5)


@given(st.lists(discards, max_size=5))
def test_discards_that_follow_each_other_are_as_if_folded_one_by_one(actions: list[Discard]) -> None:
    alone = Removed()
    for action in actions:
        alone = folded(alone, action)
    together = folded(Removed(), *actions)
    assert (dict(together.items()), together.scanned) == (dict(alone.items()), alone.scanned)


def test_the_last_of_two_discards_of_an_object_counts() -> None:
    first, last = Discard((IDS[0],), (3,), never_read=True), Discard((IDS[0],), (4,))
    assert dict(folded(Removed(), first, last).items()) == {IDS[0]: Removal(7, 5, 4)}
    assert dict(folded(Removed(), last, first).items()) == {IDS[0]: Removal(0, 5, 3)}


def test_what_stands_between_two_discards_is_folded_between_them() -> None:
    before, after = Discard((IDS[0], IDS[1])), Discard((IDS[0],))
    removed = folded(Removed(), before, BeginVacuum((IDS[0],)), after)
    assert dict(removed.items()) == {IDS[0]: Removal(7, 5), IDS[1]: Removal(7, 5)}
    assert removed.vacuumed() == {IDS[0]}
    removed = folded(Removed(), before, BeginVacuum((IDS[0],)))
    assert removed.objects.get(IDS[0]) == OFF


def test_objects_of_a_vacuum_leave_the_list_and_spared_ones_come_back() -> None:
    scan = ScanOrphans(IDS[3], IDS[4])
    removed = folded(Removed(), scan, Discard(tuple(IDS[:3])), BeginVacuum((IDS[0], IDS[2])))
    assert dict(removed.items()) == {IDS[1]: Removal(7, 5)}
    assert (removed.floor, removed.horizon) == (IDS[3], 7)
