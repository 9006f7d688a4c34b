"""Merging by DataFusion: what its plan is, and what is left to the merge in windows.

That both give the same records is tests/properties/test_scan.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, ObjectMissing
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER, encode_key
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import ORDER
from log_lake.lake.pool import Pool
from log_lake.objects.containers.limits import ObjectLimits
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.reading.merge.datafusion import DataFusionMerge, can_merge, inputs_of
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore
from log_lake.stores.memory import MemoryStore
from tests.support.pools import a_pool


def on_disk(folder: Path, tables: list[pa.Table], key: str = "k", limits: ScanLimits = LIMITS) -> Pool:
    """DataFusion reads files only."""
    return a_pool(*tables, store=LocalStore(folder), key=key, limits=limits)


def merge_of(pool: Pool, span: KeyRange = EVERYTHING, *, has_sequence: bool = True) -> DataFusionMerge | None:
    view = pool.at()
    inputs = inputs_of(
        view.references, view.store, pool_id=view.config.id, key_range=span, schema=view.schema
    )
    if inputs is None or not can_merge(inputs, key=view.key, schema=view.schema):
        return None
    return DataFusionMerge(inputs, key=view.key, schema=view.schema, has_sequence=has_sequence)


def records(merge: DataFusionMerge | None) -> list[dict[str, Any]]:
    """Without the columns that a merge with `has_sequence` ends with."""
    assert merge is not None
    found = [row for table in merge.tables() for row in table.to_pylist()]
    return [{name: value for name, value in row.items() if name not in ORDER.names} for row in found]


TABLES = [
    pa.table({"k": [3, 1], "s": ["c", "a"], "i": pa.array([1, 2], pa.int8())}),
    pa.table({"k": [2, 1], "s": ["b", None], "i": pa.array([3, 4], pa.int32()), 'odd "name': [1, 2]}),
    pa.table({"k": [9, 1, 2], "s": ["z", "a", "a"], "more.dots": [0.5, 1.5, None]}),
]


@pytest.mark.parametrize("key", ["k", "k:desc", "k,s", "k:desc,s:desc", "s,k"])
def test_the_plan_is_a_sorted_merge_and_no_sort(tmp_path: Path, key: str) -> None:
    pool = on_disk(tmp_path, TABLES, key)
    compact(pool.branch(), pool.at().references[:2])
    bound = encode_key([1] if key.startswith("k") else ["a"], pool.config.key)
    for span in (EVERYTHING, KeyRange(bound, bound + AFTER), KeyRange(bound + AFTER, None)):
        for has_sequence in (True, False):
            merge = merge_of(pool, span, has_sequence=has_sequence)
            assert merge is not None
            assert "SortPreservingMergeExec" in merge.plan
            assert "SortExec" not in merge.plan
            assert not merge.sorts


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("key", ["id.orig_h", "id.orig_h:desc,k", "k,id.orig_h"])
def test_a_key_whose_columns_have_other_names_is_merged_by_it(tmp_path: Path, kind: str, key: str) -> None:
    limits = ScanLimits(min_datafusion_rows=0)
    tables = [
        pa.table({"id.orig_h": [3, 1], "k": [1, 2], "v": ["a", "b"]}),
        pa.table({"id.orig_h": [2, 1], "k": [1, 2], "v": ["c", "d"]}),
    ]
    pool = a_pool(*tables, store=LocalStore(tmp_path), key=key, kind=kind, limits=limits)
    windows = a_pool(*tables, store=MemoryStore(), key=key, kind=kind)
    merge = merge_of(pool)
    assert merge is not None
    assert not merge.sorts
    expected = windows.at().to_table().to_pylist()
    assert pool.at().to_table().to_pylist() == expected
    low = pool.at().bound(2) if key.startswith("id.orig_h") and "desc" not in key else b""
    with_range = [t.to_pylist() for t in pool.at().scan(key_range=KeyRange(low, None))]
    assert [row for rows in with_range for row in rows] == [
        row for table in windows.at().scan(key_range=KeyRange(low, None)) for row in table.to_pylist()
    ]
    compact(pool.branch(), pool.at().references)
    assert pool.at().to_table().to_pylist() == expected


def test_records_come_by_key_then_by_age_with_fields_united(tmp_path: Path) -> None:
    found = records(merge_of(on_disk(tmp_path, TABLES)))
    assert [(r["k"], r["s"]) for r in found] == [
        (1, "a"),
        (1, None),
        (1, "a"),
        (2, "b"),
        (2, "a"),
        (3, "c"),
        (9, "z"),
    ]
    assert [r["i"] for r in found] == [2, 4, None, 3, None, 1, None]
    assert [r['odd "name'] for r in found] == [None, 2, None, 1, None, None, None]


@pytest.mark.parametrize("has_sequence", [True, False])
@pytest.mark.parametrize("compacted", [slice(0), slice(0, 2), slice(0, 3, 2)], ids=["none", "1, 2", "1, 3"])
def test_records_of_one_key_come_by_age_whether_references_or_records_tell_it(
    tmp_path: Path, compacted: slice, has_sequence: bool
) -> None:
    pool = on_disk(tmp_path, [pa.table({"k": [1, 2], "_rank": [n, n]}) for n in range(3)])
    by_age = sorted(pool.at().references, key=lambda r: r.seq)
    if chosen := by_age[compacted]:
        compact(pool.branch(), chosen)
    merge = merge_of(pool, has_sequence=has_sequence)
    assert merge is not None
    assert [table.schema.names[2:] for table in merge.tables()] == [ORDER.names if has_sequence else []]
    assert [(r["k"], r["_rank"]) for r in records(merge)] == [(k, n) for k in (1, 2) for n in range(3)]


@pytest.mark.parametrize(
    ("low", "high", "keys"),
    [
        ([1], [3], [1, 1, 1, 2, 2]),
        ([2], None, [2, 2, 3, 9]),
        (None, [1], []),
        ([1, "a"], [2], [1, 1]),
        ([1, None], [1, "a"], [1]),
        (None, [2, "b"], [1, 1, 1, 2]),
    ],
)
def test_a_range_is_cut_where_its_keys_are(
    tmp_path: Path, low: list[Any] | None, high: list[Any] | None, keys: list[int]
) -> None:
    pool = on_disk(tmp_path, TABLES, "k,s")
    key = pool.config.key
    span = KeyRange(
        b"" if low is None else encode_key(low, key), None if high is None else encode_key(high, key)
    )
    assert [r["k"] for r in records(merge_of(pool, span))] == keys


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        (
            [pa.table({"k": [1.5]}), pa.table({"k": [0.5, 2.5]})],
            "a floating key orders -0.0 and NaN otherwise",
        ),
        ([pa.table({"k": [1]}), pa.table({"k": pa.array([1], pa.int8())})], "keys of two types"),
        ([pa.table({"k": [1], "v": [1]}), pa.table({"k": [1], "v": ["x"]})], "values become JSON"),
    ],
)
def test_what_datafusion_cannot_merge_exactly_is_left_to_windows(
    tmp_path: Path, tables: list[pa.Table], why: str
) -> None:
    assert merge_of(on_disk(tmp_path, tables)) is None, why


def test_objects_that_are_no_files_are_left_to_windows() -> None:
    pool = a_pool(pa.table({"k": [1]}))
    assert merge_of(pool) is None


def test_a_missing_file_is_said_by_name(tmp_path: Path) -> None:
    pool = on_disk(tmp_path, TABLES)
    name = pool.at().object_name(pool.at().references[0])
    (tmp_path / name).unlink()
    with pytest.raises(ObjectMissing, match=name):
        merge_of(pool)


def test_damage_is_corrupt_when_it_is_read(tmp_path: Path) -> None:
    tables = [pa.table({"k": list(range(1000))}), pa.table({"k": list(range(1000))})]
    pool = on_disk(tmp_path, tables, limits=ScanLimits(objects=ObjectLimits(row_group=100)))
    path = tmp_path / pool.at().object_name(pool.at().references[0])
    merge = merge_of(pool)
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 500 + content[504:])
    with pytest.raises(Corrupt, match=path.name):
        records(merge)


def test_a_link_that_is_put_in_place_of_the_folder_before_datafusion_opens_it_is_not_followed(
    tmp_path: Path,
) -> None:
    """Who may write one pool's folder, and knows the names of another's objects, would get their records."""
    pool, other = (on_disk(tmp_path / name, [pa.table({"k": [number]})]) for number, name in enumerate("ab"))
    own, theirs = (tmp_path / one.store.uri / one.config.id / "data" for one in (pool, other))
    (object_of_other,) = theirs.iterdir()
    (object_of_pool,) = own.iterdir()
    object_of_other.rename(theirs / object_of_pool.name)
    merge = merge_of(pool)
    own.rename(own.with_name("before"))
    own.symlink_to(theirs)
    assert records(merge) == [{"k": 0}]
