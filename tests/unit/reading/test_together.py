"""Tiny objects that are read together: how many, when, and with which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import Corrupt
from lake_core.history import Reference
from lake_core.keys.encoding import encode_value
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.containers import parquet, parquet_tiny
from log_lake.reading.limits import ScanLimits
from log_lake.reading.merge.passes import groups
from log_lake.reading.merge.together import small_clusters_joined
from log_lake.stores.memory import MemoryStore
from tests.support.arrow_memory import measured_memory
from tests.support.pools import a_pool, compact_all
from tests.support.stores import ScriptedStore


def reference(
    number: int, *, size: int = 2_000, data: bytes = b"", low: int = 0, high: int = 10
) -> Reference:
    return Reference(
        f"o{number:04}",
        encode_value(low),
        encode_value(high),
        seq=number,
        ordinal=0,
        records=10,
        size=size,
        schema="s",
        data=data,
    )


def sizes(references: list[Reference], limits: ScanLimits) -> list[tuple[int, bool]]:
    return [(len(group.references), group.at_once) for group in groups(references, limits)]


def test_tiny_neighbours_by_age_are_one_stream_and_a_large_object_between_them_ends_it() -> None:
    large = reference(5, size=1 << 20)
    loads = [reference(n) for n in range(5)] + [large] + [reference(n) for n in range(6, 10)]
    assert sizes(loads, ScanLimits()) == [(5, True), (1, False), (4, True)]


def test_objects_that_need_a_request_are_fewer_together_than_inlined_ones() -> None:
    limits = ScanLimits(max_gathered=4)
    assert sizes([reference(n) for n in range(10)], limits) == [(4, True), (4, True), (1, False), (1, False)]
    assert sizes([reference(n, data=b"x") for n in range(10)], limits) == [(10, True)]
    few_bytes = ScanLimits(max_gathered_bytes=6_000)
    assert sizes([reference(n, data=b"x") for n in range(7)], few_bytes) == [(3, True), (3, True), (1, False)]


def test_the_first_clusters_stay_alone_and_later_ones_are_read_together() -> None:
    clusters = [(reference(n, low=n, high=n + 1),) for n in range(20)]
    joined = list(small_clusters_joined(clusters, ScanLimits(max_gathered=8)))
    assert [len(cluster) for cluster in joined] == [1, 2, 4, 8, 5]
    large = (reference(9, size=1 << 20, low=2, high=3),)
    joined = list(small_clusters_joined([*clusters[:2], large, *clusters[3:5]], ScanLimits()))
    assert [len(cluster) for cluster in joined] == [1, 1, 1, 2]


def test_a_reader_that_wants_one_record_opens_one_of_many_small_objects() -> None:
    store = ScriptedStore()
    pool = a_pool(*(pa.table({"k": [n]}) for n in range(20)), store=store)
    view = pool.at()
    store.requests.clear()
    assert [t["k"].to_pylist() for t in view.scan(limit=1)] == [[0]]
    assert store.asked("open_input") == 1
    assert view.to_table()["k"].to_pylist() == list(range(20))


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_many_inlined_loads_have_the_answers_of_one_compacted_object(kind: str) -> None:
    lake = Lake.create_on(MemoryStore())
    aggregates = {"n": "sum"} if kind == "aggregate" else {}
    pool = lake.create_pool("p", key="k", kind=kind, aggregates=aggregates, settings={"load.inline": "64KiB"})
    for number in range(40):
        pool.branch().append(pa.table({"k": [number % 7, number % 5 + 1], "n": [number, -number]}))
        if number == 20:
            pool.branch().delete(where="k = 3")
    before = pool.at().to_table()
    assert all(r.data for r in pool.at().references)
    compact_all(pool)
    assert pool.at().to_table().equals(before)


def test_a_text_that_a_dictionary_repeats_is_not_decoded_as_a_whole() -> None:
    """Its file is tiny, and its records are not."""
    long = "x" * 100_000
    pool = a_pool(pa.table({"k": list(range(200)), "s": [long] * 200}))
    (only,) = pool.at().references
    assert only.size < parquet_tiny.MOST_BYTES
    tables = list(pool.at().scan())
    assert sum(t.num_rows for t in tables) == 200
    assert len(tables) > 1


def test_a_field_of_json_keeps_its_mark_when_its_file_is_decoded_as_a_whole() -> None:
    pool = a_pool(pa.table({"k": [1], "x": ["text"]}), pa.table({"k": [2], "x": [[1, 2]]}))
    compact_all(pool)
    assert [keys["k"].to_pylist() for keys in pool.at().scan(where="x = 'text'")] == [[1]]


def pool_of_long_texts(loads: int, limits: ScanLimits) -> Pool:
    lake = Lake.create_on(MemoryStore(), limits=limits)
    pool = lake.create_pool("p", key="k", settings={"load.inline": "64KiB"})
    for _ in range(loads):
        pool.branch().append(pa.table({"k": range(500), "s": ["x" * 1_000] * 500}))
    return pool


def test_loads_of_a_few_stored_bytes_and_many_decoded_ones_are_merged_in_bounded_memory() -> None:
    limits = ScanLimits(buffer_bytes=1 << 20, max_batch_bytes=1 << 20)
    view = pool_of_long_texts(40, limits).at()
    assert sum(r.size for r in view.references) < limits.max_gathered_bytes
    with measured_memory() as pool:
        keys = [k for table in view.scan() for k in table["k"].to_pylist()]
        most = pool.max_memory()
    assert keys == sorted(list(range(500)) * 40)
    assert most < 12 * limits.buffer_bytes, most


def test_a_stream_that_waits_holds_no_more_of_a_tiny_object_than_its_share() -> None:
    limits = ScanLimits(buffer_bytes=1 << 20, max_batch_bytes=1 << 20)
    limits = replace(limits, max_tiny_records=0)  # each is a stream
    view = pool_of_long_texts(40, limits).at()
    with measured_memory() as pool:
        assert sum(table.num_rows for table in view.scan()) == 40 * 500
        most = pool.max_memory()
    assert most < 12 * limits.buffer_bytes, most


def test_no_tiny_object_is_decoded_as_a_whole_if_the_limits_know_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = list[int]()
    monkeypatch.setattr(parquet, "read_whole", lambda file, *rest: read.append(file.size()))
    view = a_pool(pa.table({"k": [1]}), limits=ScanLimits(max_tiny_bytes=0)).at()
    assert view.to_table().num_rows == 1
    assert not read
    assert replace(view, limits=ScanLimits()).to_table().num_rows == 1


def test_damage_in_one_column_of_a_tiny_object_leaves_its_others_readable(tmp_path: Path) -> None:
    pool = Lake.create(str(tmp_path / "lake")).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2], "s": ["one", "two"]}))
    (path,) = (tmp_path / "lake").rglob("*.parquet")
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size // 4] ^= 0xFF
    path.write_bytes(data)
    view = Lake.open(str(tmp_path / "lake")).pool("p").at()
    assert view.to_table(columns=["k"])["k"].to_pylist() == [1, 2]
    with pytest.raises(Corrupt):
        view.to_table()
