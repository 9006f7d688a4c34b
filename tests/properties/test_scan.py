"""A scan of any objects is the sorted list of their records, those of equal keys in order of arrival."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_key
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.objects.containers.limits import ObjectLimits
from log_lake.reading.limits import ScanLimits
from log_lake.reading.scan import scan
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore

NUMBERS = st.one_of(st.none(), st.integers(-4, 4))
WORDS = st.one_of(st.none(), st.sampled_from(["", "a", "a\0", "ab", "b"]))
KEYS = ["a", "a:desc", "a,b", "a,b:desc", "b:desc,a"]


@dataclass(frozen=True)
class Case:
    """Loads of records (a, b), each perhaps in another shape, and what is asked of them."""

    key: str
    loads: list[list[tuple[int | None, str | None]]]
    kinds: list[pa.DataType]
    low: tuple[Any, ...] | None
    high: tuple[Any, ...] | None
    columns: list[str]
    row_group: int
    batch_rows: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    key = draw(st.sampled_from(KEYS))
    # a null in the leading field would send the record to the sub-pool
    row = st.tuples(NUMBERS, WORDS).filter(lambda r: (r[0] if key.startswith("a") else r[1]) is not None)
    loads = draw(st.lists(st.lists(row, min_size=1, max_size=25), min_size=1, max_size=6))
    kinds = st.sampled_from([pa.int64(), pa.int8(), pa.float64()])
    names = PoolKey.parse(key).names
    bound = st.tuples(*(NUMBERS if name == "a" else WORDS for name in names))
    return Case(
        key,
        loads,
        draw(st.lists(kinds, min_size=len(loads), max_size=len(loads))),
        draw(st.one_of(st.none(), bound)),
        draw(st.one_of(st.none(), bound)),
        draw(
            st.permutations(["a", "b", "load", "row"]).flatmap(lambda c: st.sampled_from([c, c[:2], c[:1]]))
        ),
        draw(st.integers(1, 9)),
        draw(st.integers(1, 9)),
    )


@settings(max_examples=120)
@given(cases())
def test_a_scan_is_a_sorted_list(case: Case) -> None:
    check(case, MemoryStore(), ScanLimits())


@settings(max_examples=120)
@given(cases())
def test_a_scan_by_datafusion_is_the_same_sorted_list(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(case, LocalStore(folder), ScanLimits(min_datafusion_rows=0))


@settings(max_examples=120)
@given(cases(), st.integers(1, 5))
def test_a_scan_of_few_records_over_many_is_the_same_sorted_list(case: Case, compacted: int) -> None:
    check(case, MemoryStore(), ScanLimits(min_bulk_ratio=0), compacted=compacted)


def check(case: Case, store: Store, limits: ScanLimits, *, compacted: int = 0) -> None:
    key = PoolKey.parse(case.key)
    limits = replace(limits, objects=ObjectLimits(row_group=case.row_group))
    pool = Lake.create_on(store, limits=limits).create_pool("p", key=key)
    rows: list[dict[str, Any]] = []
    for number, (load, kind) in enumerate(zip(case.loads, case.kinds, strict=True)):
        records = [{"a": a, "b": b, "load": number, "row": i} for i, (a, b) in enumerate(load)]
        schema = pa.schema([("a", kind), ("b", pa.string()), ("load", pa.int64()), ("row", pa.int64())])
        pool.branch().append(pa.Table.from_pylist(records, schema=schema))
        rows += records
        if number + 1 == compacted:
            compact(pool.branch(), pool.at().references, outputs=2)

    def encoded(record: dict[str, Any]) -> bytes:
        return encode_key([record[name] for name in key.names], key)

    low = b"" if case.low is None else encode_key(case.low, key)
    high = None if case.high is None else encode_key(case.high, key)
    span = KeyRange(low, high)
    if span.empty:
        return
    expected = [r for r in sorted(rows, key=encoded) if span.contains(encoded(r))]  # sorted is stable
    view = pool.at()
    for columns in (["load", "row"], case.columns):
        plan = replace(
            view.plan(key_range=span, columns=columns), limits=replace(limits, max_batch_rows=case.batch_rows)
        )
        tables = list(scan(plan, view.store, pool_id=view.config.id))
        found = [row for table in tables for row in table.to_pylist()]
        assert found == [{name: r[name] for name in columns} for r in expected]
        assert all(table.num_rows for table in tables)
