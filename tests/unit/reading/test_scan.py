"""Scans: what a plan opens, and when.

That a scan is a sorted list of all records, stable by arrival, is tests/properties/test_scan.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import InvalidInput, ObjectMissing
from lake_core.history import PoolState
from lake_core.history.fold import fold_entry
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_value
from lake_core.records.pools import PoolConfig
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.merge import ClosedStream, merge
from log_lake.reading.limits import ScanLimits
from log_lake.reading.plan import overlap_depth, plan_scan
from log_lake.reading.revision import Revision
from log_lake.rewriting.compaction import compact
from tests.support.pools import a_pool
from tests.support.records import KNOWN, add, an_id, entry, transaction
from tests.support.stores import ScriptedStore

KEY = PoolKey.parse("k")


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


@pytest.fixture
def pool(store: ScriptedStore) -> Pool:
    """Three objects: keys 0 to 9, 10 to 19, and 5 to 14 with another field."""
    return a_pool(
        pa.table({"k": list(range(10))}),
        pa.table({"k": list(range(10, 20))}),
        pa.table({"extra": ["x"] * 10, "k": list(range(5, 15))}),
        store=store,
    )


def span(low: int, high: int) -> KeyRange:
    return KeyRange(encode_value(low), encode_value(high))


# ---------------------------------------------------------------- plans


@pytest.mark.parametrize(
    ("ranges", "depth"),
    [
        ([], 0),
        ([(0, 10)], 1),
        ([(0, 10), (10, 20)], 1),
        ([(0, 10), (9, 20)], 2),
        ([(0, 30), (1, 2), (3, 4), (3, 5)], 3),
    ],
)
def test_the_depth_is_the_most_objects_that_hold_one_key(ranges: list[tuple[int, int]], depth: int) -> None:
    loads = [add(n, low, high) for n, (low, high) in enumerate(ranges)]
    state = fold_entry(PoolState(), 1, entry(transaction(KNOWN, *loads)))
    assert overlap_depth(tuple(state.branches["main"].snapshot.overlapping())) == depth
    plan = plan_scan(Revision(PoolConfig(an_id(1), "p", KEY), 1, "main", state, now=0))
    assert plan.depth == depth
    assert plan.limits.batch_bytes(depth) * depth <= plan.limits.buffer_bytes
    assert plan.limits.batch_bytes(depth) <= plan.limits.max_batch_bytes


def test_a_plan_holds_the_references_of_the_range_and_bounds_the_records(pool: Pool) -> None:
    view = pool.at()
    assert len(view.plan().references) == 3
    narrow = view.plan(key_range=span(15, 16))
    assert [r.low for r in narrow.references] == [encode_value(10)]
    assert narrow.records == 10


def test_a_narrow_scan_has_the_columns_of_a_wide_one(pool: Pool) -> None:
    assert pool.at().plan(key_range=span(0, 1)).schema.names == ["k", "extra"]


def test_names_of_columns_are_looked_up_and_not_searched(store: ScriptedStore) -> None:
    """Of 5,000 columns a search for each among all takes five seconds."""
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    wide = Lake.create_on(store).create_pool("wide", key="k")
    wide.branch().append(pa.table({"k": [1], **{f"c{n}": [n] for n in range(500)}}))
    asked = [Name(name) for name in wide.at().schema.names]
    tables = list(wide.at().scan(columns=list(asked)))
    assert tables[0].schema.names == [str(name) for name in asked]
    assert compared <= 10 * len(asked)


def test_an_unknown_column_and_an_empty_range_are_refused(pool: Pool) -> None:
    with pytest.raises(InvalidInput, match="'nothing' does not exist; there are: k, extra"):
        pool.at().plan(columns=["k", "nothing"])
    with pytest.raises(InvalidInput, match="empty"):
        pool.at().plan(key_range=span(5, 5))


# ---------------------------------------------------------------- scans


def test_a_scan_gives_the_columns_asked_for_in_their_order(pool: Pool) -> None:
    table = pool.at().to_table(key_range=span(4, 6), columns=["extra", "k"])
    assert table.to_pydict() == {"extra": [None, None, "x"], "k": [4, 5, 5]}


def test_the_key_orders_a_scan_also_where_it_is_not_asked_for(pool: Pool) -> None:
    assert pool.at().to_table(key_range=span(4, 7), columns=["extra"])["extra"].to_pylist() == [
        None,
        None,
        "x",
        None,
        "x",
    ]
    assert sum(t.num_rows for t in pool.at().scan(columns=[])) == 30


def test_a_column_beside_the_key_is_cut_by_keys_that_are_not_given() -> None:
    pool = a_pool(pa.table({"k": list(range(10)), "v": list(range(100, 110))}))
    low, high = encode_value(2), encode_value(5)
    asked = {
        "of a whole object": (pool.at(), {}, range(100, 110)),
        "in a key range": (pool.at(), {"key_range": KeyRange(low, high)}, range(102, 105)),
        "in parts": (pool.at(), {"ranges": [KeyRange(low, high)]}, range(102, 105)),
        "by a bound": (pool.at(), {"where": "k >= 8"}, range(108, 110)),
        "by a condition": (pool.at(), {"where": "k = 9 or v = 108"}, range(108, 110)),
    }
    for what, (view, how, values) in asked.items():
        assert [v for t in view.scan(columns=["v"], **how) for v in t["v"].to_pylist()] == list(values), what
    pool.branch().delete(key_range=KeyRange(low, high))
    assert pool.at().to_table(columns=["v"]).num_rows == 7
    pool.branch().append(pa.table({"k": [3, 4], "v": [0, 1]}))
    left = [100, 101, 0, 1, 105, 106, 107, 108, 109]
    assert pool.at().to_table(columns=["v"]).column("v").to_pylist() == left
    compact(pool.branch(), pool.at().references)
    assert pool.at().to_table(columns=["v"]).column("v").to_pylist() == left


def test_a_limit_ends_a_scan(pool: Pool) -> None:
    tables = list(pool.at().scan(columns=["k"], limit=7))
    assert pa.concat_tables(tables)["k"].to_pylist() == [0, 1, 2, 3, 4, 5, 5]
    assert sum(t.num_rows for t in pool.at().scan(limit=0)) == 0


def test_a_limit_counts_records_without_columns_too() -> None:
    pool = a_pool(pa.table({"k": list(range(10))}), pa.table({"k": list(range(20, 30))}))
    for limit in (3, 10, 13, 20, 30):
        assert sum(t.num_rows for t in pool.at().scan(columns=[], limit=limit)) == min(limit, 20)


def test_an_empty_pool_scans_to_nothing(store: ScriptedStore) -> None:
    pool = Lake.create_on(store).create_pool("p", key="k")
    assert list(pool.at().scan()) == []
    assert pool.at().to_table().num_rows == 0


def test_a_view_does_not_change_when_more_is_committed(pool: Pool) -> None:
    before = pool.at()
    pool.branch().append(pa.table({"k": [0]}))
    assert before.to_table().num_rows == 30
    assert pool.at().to_table().num_rows == 31
    assert pool.at("1").to_table().num_rows == 10


def test_a_missing_object_is_an_error_and_never_a_shorter_answer(pool: Pool, store: ScriptedStore) -> None:
    view = pool.at()
    store.delete(view.object_name(view.references[1]))
    with pytest.raises(ObjectMissing):
        view.to_table()
    assert view.to_table(key_range=span(15, 20), columns=["k"])["k"].to_pylist() == [15, 16, 17, 18, 19]


def test_an_object_outside_the_range_is_not_opened(pool: Pool, store: ScriptedStore) -> None:
    view = pool.at()
    view.to_table(key_range=span(15, 20))
    assert [name for request, name in store.requests if request == "open_input"] == [
        view.object_name(view.references[2])
    ]


def test_one_key_of_the_pool_is_got(pool: Pool) -> None:
    assert pool.at().get(7)["extra"].to_pylist() == [None, "x"]
    assert pool.at().get("7")["extra"].to_pylist() == [None, "x"]
    assert pool.at().get(99).num_rows == 0


# ---------------------------------------------------------------- merging


def stream(log: list[str], name: str, arrival: int, *batches: list[int]) -> ClosedStream:
    """A stream that logs when it is opened and when it is spent."""

    def tables() -> Iterator[pa.Table]:
        log.append(f"open {name}")
        for keys in batches:
            yield pa.table({"k": keys, "from": [name] * len(keys)})
        log.append(f"end {name}")

    return ClosedStream(encode_value(batches[0][0]), arrival, 0, tables)


def test_streams_that_do_not_overlap_pass_one_after_another() -> None:
    log: list[str] = []
    merged = merge([stream(log, "b", 1, [5, 6]), stream(log, "a", 2, [1, 2], [3, 4])], key=KEY)
    assert next(merged)["k"].to_pylist() == [1, 2]
    assert next(merged)["k"].to_pylist() == [3, 4]
    assert "open b" not in log
    assert [t["k"].to_pylist() for t in merged] == [[5, 6]]
    assert log == ["open a", "end a", "open b", "end b"]


def test_equal_keys_come_in_the_order_of_arrival_across_batches() -> None:
    log: list[str] = []
    streams = [
        stream(log, "late", 9, [1, 5], [5, 5]),
        stream(log, "early", 1, [5], [5], [5, 6]),
        stream(log, "middle", 4, [0, 5, 5], [5, 7]),
    ]
    merged = pa.concat_tables(merge(streams, key=KEY)).to_pylist()
    assert [r["k"] for r in merged] == sorted(r["k"] for r in merged)
    assert [r["from"] for r in merged if r["k"] == 5] == ["early"] * 3 + ["middle"] * 3 + ["late"] * 3


def test_a_stream_without_records_is_passed_by() -> None:
    nothing = ClosedStream(b"", 0, 0, lambda: iter(()))
    assert [t["k"].to_pylist() for t in merge([nothing, stream([], "a", 1, [1])], key=KEY)] == [[1]]
    assert list(merge([], key=KEY)) == []


def test_names_of_data_objects_are_spelled_by_naming(pool: Pool) -> None:
    view = pool.at()
    reference = view.references[0]
    assert view.object_name(reference) == naming.data_object(pool.config.id, reference.object)
    assert an_id(0) != reference.object


def test_runs_of_small_objects_come_in_the_order_of_age_whatever_an_object_among_them_replaced() -> None:
    limits = ScanLimits(max_streams=2, max_group=2, min_bulk_ratio=1_000, max_tiny_bytes=0)

    def load(*keys: int, by: str) -> pa.Table:
        return pa.table({"k": list(keys), "by": [by] * len(keys)})

    pool = a_pool(load(0, by="a"), load(6, by="b"), load(6, by="c"), load(0, by="d"), limits=limits)
    view = pool.at()
    compact(pool.branch(), [r for r in view.references if r.low < view.bound(6)])
    pool.branch().append(load(0, 6, by="e"))
    assert [row["by"] for row in pool.at().get(6).to_pylist()] == ["b", "c", "e"]
    assert [row["by"] for row in pool.at().to_table().to_pylist()] == ["a", "d", "e", "b", "c", "e"]
