"""Few records over many: when it is so, and that it gives what a merge gives."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.history import Reference
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_key
from log_lake.reading.merge.clusters import decided_by_age
from log_lake.reading.merge.insert_delta import insert_delta, split_bulk_and_delta

KEY = PoolKey.parse("k")
MOST = 1 << 20


def reference(
    low: int, high: int, *, seq: int, records: int = 10, oldest: int | None = None, ordinal: int = 0
) -> Reference:
    """One that holds keys from `low` to below `high`."""
    span = encode_key([low], KEY), encode_key([high], KEY)
    return Reference(
        f"{low}-{high}@{seq}.{ordinal}", *span, seq, ordinal, records, 1, "s", oldest=oldest, applied=0
    )


BASE = [reference(0, 50, seq=5, records=100, oldest=1), reference(50, 90, seq=5, records=60, oldest=1)]


def test_compacted_references_are_the_base_in_order_of_the_key_and_newer_ones_the_few() -> None:
    late = [reference(10, 60, seq=6), reference(0, 20, seq=7, records=5)]
    assert split_bulk_and_delta([late[1], BASE[1], late[0], BASE[0]], min_bulk_ratio=8) == (BASE, late)


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([], "nothing lies over the base"),
        ([reference(10, 60, seq=6, records=21)], "more than an eighth of it"),
        ([reference(10, 60, seq=3)], "older than some of the base"),
        ([reference(10, 60, seq=5)], "as old as some of the base"),
        ([reference(10, 60, seq=9, oldest=4)], "holds records that may be older"),
    ],
)
def test_without_a_bulk_and_a_small_delta_everything_is_merged(others: list[Reference], why: str) -> None:
    assert split_bulk_and_delta([*BASE, *others], min_bulk_ratio=8) is None, why


def table(*keys: int, since: int = 0) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "n": list(range(since, since + len(keys)))})


def rows(tables: Sequence[pa.Table]) -> list[tuple[int, int]]:
    return [(r["k"], r["n"]) for t in tables for r in t.to_pylist()]


def test_a_table_that_none_falls_into_is_passed_through_as_it_is() -> None:
    base = [table(1, 2, 3), table(10, 11, 12), table(20, 21)]
    found = list(insert_delta(base, [table(4, 5, 30)], key=KEY, newest=False, most_bytes=MOST))
    assert found[0] is base[0]
    assert found[1]["k"].to_pylist() == [4, 5, 10, 11, 12]
    assert found[2] is base[2]
    assert found[3]["k"].to_pylist() == [30]


def test_the_newer_come_behind_all_older_records_of_their_key_also_where_these_go_on_in_the_next_table() -> (
    None
):
    found = insert_delta(
        [table(1, 2), table(2, 2, 3, since=2)], [table(2, 3, since=9)], key=KEY, newest=False, most_bytes=MOST
    )
    assert rows(list(found)) == [(1, 0), (2, 1), (2, 2), (2, 3), (2, 9), (3, 4), (3, 10)]


def test_in_an_upsert_pool_the_newer_take_the_place_of_the_older() -> None:
    found = insert_delta(
        [table(1, 2), table(3, 5, since=2)],
        [table(0, 2, 4, 5, 6, since=9)],
        key=KEY,
        newest=True,
        most_bytes=MOST,
    )
    assert rows(list(found)) == [(0, 9), (1, 0), (2, 10), (3, 2), (4, 11), (5, 12), (6, 13)]


def test_of_many_newer_records_before_one_key_of_the_base_some_are_laid_at_a_time() -> None:
    few = [table(*range(n, n + 10), since=n) for n in range(1, 1000, 10)]
    found = list(insert_delta([table(0, 5000)], few, key=KEY, newest=False, most_bytes=1000))
    assert [k for t in found for k in t["k"].to_pylist()] == [0, *range(1, 1001), 5000]
    assert max(t.nbytes for t in found) < 1500


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=6), max_size=5),
    st.lists(st.integers(-1, 7), max_size=9),
    st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from([0, 40, 1 << 20]),
)
def test_both_in_one_are_the_sorted_list(
    base: list[list[int]], few: list[int], cuts: list[int], most: int
) -> None:
    keys = sorted(k for part in base for k in part)
    ends = sorted(min(len(keys), c * 3) for c in cuts)
    under = [table(*keys[a:b], since=a) for a, b in zip([0, *ends], [*ends, len(keys)], strict=True)]
    over = table(*sorted(few), since=100)
    pieces = [over.slice(i, 2) for i in range(0, over.num_rows, 2)]
    found = rows(list(insert_delta(under, pieces, key=KEY, newest=False, most_bytes=most)))
    assert found == sorted(rows(under) + rows([over]), key=lambda r: r[0])


@pytest.mark.parametrize(
    ("cluster", "decided"),
    [
        ([reference(0, 9, seq=1), reference(0, 9, seq=1, ordinal=1), reference(5, 20, seq=2)], True),
        ([reference(0, 9, seq=3, oldest=1), reference(5, 20, seq=4)], True),
        ([reference(0, 9, seq=3, oldest=1), reference(5, 20, seq=2)], False),
        ([reference(0, 9, seq=3, oldest=1), reference(5, 20, seq=5, oldest=3)], False),
        ([reference(0, 9, seq=5, oldest=3), reference(5, 20, seq=3)], False),
        (
            [reference(0, 9, seq=3, oldest=1), reference(9, 20, seq=3, oldest=1), reference(0, 20, seq=4)],
            True,
        ),
    ],
)
def test_references_decide_which_record_is_older_where_no_two_that_overlap_were_written_at_one_time(
    cluster: list[Reference], decided: bool
) -> None:
    assert decided_by_age(cluster) is decided
