"""What a view reads, cut for parallel tasks: evenly, for few footers."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from log_lake.lake.view import View
from log_lake.reading.split import split
from tests.support.pools import a_pool
from tests.support.stores import ScriptedStore

RANDOM = Random(7)


def lake_of(*loads: list[int]) -> tuple[ScriptedStore, View]:
    """A pool into which these keys were loaded, an object a load."""
    store = ScriptedStore()
    pool = a_pool(*(pa.table({"k": keys}) for keys in loads), store=store)
    store.requests.clear()
    return store, pool.at()


def weights(view: View, pieces: int, span: KeyRange = EVERYTHING, **limits: int) -> list[int]:
    """Records in each of the ranges."""
    found = split(
        view.references, view.store, pool_id=view.config.id, key_range=span, pieces=pieces, **limits
    )
    return [view.to_table(key_range=piece).num_rows for piece in found]


def footers(store: ScriptedStore, view: View, pieces: int, **limits: int) -> int:
    split(view.references, view.store, pool_id=view.config.id, key_range=EVERYTHING, pieces=pieces, **limits)
    return store.asked("open_input")


def test_one_large_object_is_cut_evenly() -> None:
    _, view = lake_of([int(RANDOM.paretovariate(1) * 10**6) for _ in range(10_000)])
    found = weights(view, 8)
    assert (len(found), sum(found)) == (8, 10_000)
    assert max(found) <= 1.1 * 1250


@pytest.mark.parametrize("count", [8, 100])
def test_objects_that_overlap_are_cut_evenly(count: int) -> None:
    _, view = lake_of(*(RANDOM.sample(range(10**6), 20_000 // count) for _ in range(count)))
    found = weights(view, 6)
    assert (len(found), sum(found)) == (6, 20_000)
    assert max(found) <= 1.5 * 20_000 / 6


def test_a_large_object_among_small_ones_is_cut_inside() -> None:
    _, view = lake_of(list(range(10)), RANDOM.sample(range(100, 10**6), 5_000), [10**6 + 1])
    found = weights(view, 4)
    assert len(found) == 4
    assert max(found) <= 1.5 * 5011 / 4  # small objects weigh more a record


def test_a_part_of_the_range_is_cut_evenly_too() -> None:
    _, view = lake_of(list(range(10_000)))
    span = view.key_range(low=7_000, high=9_400)
    found = weights(view, 3, span)
    assert (len(found), sum(found)) == (3, 2_400)
    assert max(found) <= 1.5 * 800


def test_no_footer_is_read_where_the_bounds_say_where_to_cut() -> None:
    store, view = lake_of(*([n, n + 1] for n in range(0, 40, 2)))
    assert footers(store, view, 4) == 0
    assert weights(view, 4) == [10, 10, 10, 10]


def test_no_footer_is_read_for_one_task() -> None:
    store, view = lake_of(list(range(100)))
    assert footers(store, view, 1) == 0


def test_of_very_many_objects_that_overlap_few_footers_are_read() -> None:
    store, view = lake_of(*(RANDOM.sample(range(10**6), 100) for _ in range(50)))
    assert footers(store, view, 4, max_footers=10) == 10
    assert max(weights(view, 4, max_footers=10)) <= 1.5 * 5_000 / 4
