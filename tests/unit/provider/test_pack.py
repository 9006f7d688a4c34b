"""Work packed into few tasks: never too many, all of it, evenly, and the same each time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_lake.groups.pack import LONGEST_TITLE, MAX_TASKS, pack
from log_lake.agents.ingest.run import IngestWork
from log_lake.agents.work import Work
from log_lake.loading.source_files import SourceFile


def work(number: int, weight: int = 1, *, pool: str = "") -> IngestWork:
    name = pool or f"p{number}"
    files = (SourceFile("f", 1, "", 0.0),) * weight
    title = f"{name}: {weight} files"
    return IngestWork(lake="x", pool=name, title=title, token=str(number), files=files)


def weight_of(one: Work) -> int:
    return one.weight


WORKS = st.lists(st.integers(1, 50), max_size=200).map(
    lambda weights: [work(number, weight) for number, weight in enumerate(weights)]
)


@given(WORKS, st.integers(1, 70))
def test_there_are_never_more_packs_than_allowed_and_nothing_is_lost(
    works: list[IngestWork], most: int
) -> None:
    packs = pack(works, most=most)
    assert len(packs) == min(most, len(works))
    flat = [one for part in packs for one in part.all_work]
    assert sorted(int(one.token) for one in flat) == list(range(len(works)))
    assert [one.task for part in packs for one in part.all_work] == [
        number for number, part in enumerate(packs) for _ in part.all_work
    ]
    assert pack(works, most=most) == packs


@given(WORKS, st.integers(1, 70))
def test_no_pack_is_much_heavier_than_it_must_be(works: list[IngestWork], most: int) -> None:
    heaviest = max((sum(map(weight_of, part.all_work)) for part in pack(works, most=most)), default=0)
    least = max(sum(map(weight_of, works)) / most, max(map(weight_of, works), default=0))
    assert heaviest <= least * 4 / 3 + max(map(weight_of, works), default=0) / 3


@given(WORKS)
def test_a_pack_keeps_the_order_in_which_work_was_found(works: list[IngestWork]) -> None:
    for part in pack(works, most=3):
        numbers = [int(one.token) for one in part.all_work]
        assert numbers == sorted(numbers)


def test_a_thousand_pools_are_sixty_four_tasks() -> None:
    packs = pack([work(number) for number in range(1000)])
    assert len(packs) == MAX_TASKS == 64
    assert {len(part.all_work) for part in packs} == {15, 16}


def test_a_task_is_named_by_its_work_or_by_its_pools() -> None:
    alone, together = pack([work(0, 9), work(1), work(2), work(3), work(4), work(5)], most=2)
    assert alone.title == "p0: 9 files"
    assert together.title == "5 pools: p1, p2, p3 and 2 more"
    (same,) = pack([work(0, pool="a"), work(1, pool="a")], most=1)
    assert same.title == "1 pool: a"


def test_no_work_is_no_pack() -> None:
    assert pack([]) == []
    with pytest.raises(ValueError, match="at least 1"):
        pack([], most=0)


def test_a_title_fits_into_the_column_of_airflows_database() -> None:
    (alone,) = pack([work(0, pool="p" * 255)], most=1)
    packs = pack([work(number, pool=f"{number}" * 200) for number in range(6)], most=2)
    for title in (alone.title, *(part.title for part in packs)):
        assert len(title) == LONGEST_TITLE
        assert title.endswith("…")
