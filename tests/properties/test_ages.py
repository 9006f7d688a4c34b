"""No wrong time of the store makes a version older than it is (docs/retention.md, decision 160)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lake_core import naming
from lake_core.journal.ages import FUTURE, TOLERANCE, proven
from lake_core.store import ObjectInfo

NOW = 1_000_000.0
WRONG = st.one_of(st.just(0.0), st.floats(0, 3 * NOW))


@st.composite
def journals(draw: st.DrawFn) -> tuple[list[float], list[ObjectInfo], int, float]:
    """When entries were written, a listing with isolated wrong times, the fence, and a moment."""
    true = sorted(draw(st.lists(st.floats(1, NOW), min_size=1, max_size=9)))
    wrong = draw(st.sets(st.integers(0, len(true) - 1)))
    isolated = {at for at in wrong if at - 1 not in wrong}
    fence = draw(st.integers(0, len(true) - 1))
    infos = [
        ObjectInfo(naming.entry("j", at + 1), 1, draw(WRONG) if at in isolated else time)
        for at, time in enumerate(true)
        if at >= fence
    ]
    return true, infos, fence, draw(st.floats(0, NOW))


@given(journals())
def test_isolated_wrong_times_make_no_version_older_than_it_is(
    journal: tuple[list[float], list[ObjectInfo], int, float],
) -> None:
    true, infos, _, before = journal
    safe = proven(infos, lambda version: true[version - 1], before=before, now=NOW)
    assert safe == 0 or true[safe - 1] <= before + TOLERANCE


@given(st.lists(st.floats(1, NOW), min_size=1, max_size=9), st.floats(0, NOW))
def test_right_times_prove_every_version_that_is_old(times: list[float], before: float) -> None:
    true = sorted(times)
    infos = [ObjectInfo(naming.entry("j", at + 1), 1, time) for at, time in enumerate(true)]
    safe = proven(infos, lambda version: true[version - 1], before=before, now=NOW)
    assert safe == sum(time <= before for time in true)


@given(st.lists(st.tuples(st.floats(1, NOW), WRONG), min_size=1, max_size=40), st.floats(0, NOW))
def test_however_many_times_of_the_store_are_wrong_right_authors_make_no_version_older(
    times: list[tuple[float, float]], before: float
) -> None:
    true = sorted(time for time, _ in times)
    infos = [ObjectInfo(naming.entry("j", at), 1, wrong) for at, (_, wrong) in enumerate(times, 1)]
    infos.append(ObjectInfo(naming.checkpoint("j", len(times), "0" * 27), 1, 0.0))
    safe = proven(infos, lambda version: true[version - 1], before=before, now=NOW)
    assert safe == 0 or true[safe - 1] <= before + TOLERANCE


@given(st.lists(st.floats(1, NOW), min_size=1, max_size=40), st.floats(0, NOW), st.floats(0, 900))
def test_authors_whose_clocks_are_ahead_delay_twice_the_versions_that_they_seem_to_be_young_in(
    times: list[float], before: float, ahead: float
) -> None:
    true = sorted(times)
    infos = [ObjectInfo(naming.entry("j", at), 1, time) for at, time in enumerate(true, 1)]
    safe = proven(infos, lambda version: true[version - 1] + ahead, before=before, now=NOW)
    old, seem_old = sum(time <= before for time in true), sum(time + ahead <= before for time in true)
    assert old - 2 * (old - seem_old) <= safe <= old


@given(journals(), st.floats(0, NOW))
def test_one_wrong_mark_proves_nothing(
    journal: tuple[list[float], list[ObjectInfo], int, float], modified: float
) -> None:
    """A fence without its checkpoint is one witness; the entries up to it are purged."""
    true, _, fence, before = journal
    infos = [ObjectInfo(naming.fence("j", fence + 1), 1, modified)]
    assert proven(infos, lambda _: None, before=before, now=NOW) == 0
    infos.append(ObjectInfo(naming.checkpoint("j", fence + 1, "0" * 27), 1, true[fence]))
    safe = proven(infos, lambda _: None, before=before, now=NOW)
    assert safe == (fence + 1 if max(modified, true[fence]) <= before else 0)


def test_a_time_in_the_future_of_the_store_holds_nothing_back() -> None:
    times = {1: 10.0, 2: NOW + FUTURE + 1, 3: 20.0, 4: 30.0}
    infos = [ObjectInfo(naming.entry("j", version), 1, time) for version, time in times.items()]
    assert proven(infos, lambda _: 0.0, before=100.0, now=NOW) == 4
    infos[1] = ObjectInfo(naming.entry("j", 2), 1, NOW)
    assert proven(infos, lambda _: 0.0, before=100.0, now=NOW) == 1, "what is young counts"


def test_an_author_whose_clock_is_ahead_delays_the_newest_version_alone() -> None:
    infos = [ObjectInfo(naming.entry("j", version), 1, 10.0) for version in (1, 2)]
    assert proven(infos, lambda _: 2e9, before=100.0, now=NOW) == 1
    infos.append(ObjectInfo(naming.checkpoint("j", 2, "0" * 27), 1, 20.0))
    assert proven(infos, lambda _: 2e9, before=100.0, now=NOW) == 2
