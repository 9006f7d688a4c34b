"""Objects with fields of their own: what a merge handles grows with what is stored, not with its square."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.keys import KeyRange, PoolKey
from log_lake.lake.pool import Pool
from log_lake.objects.merge import ClosedStream, merge
from log_lake.reading.limits import ScanLimits
from log_lake.reading.merge.streams import ReferenceReading, read_reference
from log_lake.stores.memory import MemoryStore
from tests.support.pools import a_pool, compact_all

KEY = PoolKey.parse("k")
ROWS = 60


def with_own_fields(number: int, of: int) -> pa.Table:
    """Records whose keys lie between those of all others, with one field that all have and ten of their own."""
    fields = {f"f{number}_{n}": [number * n] * ROWS for n in range(10)}
    return pa.table({"k": [of * row + number for row in range(ROWS)], "all": [number] * ROWS, **fields})


def united(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default").sort_by("k")


def reading(pool: Pool, limits: ScanLimits) -> ReferenceReading:
    revision = pool.at()
    schemas = {id: revision.state.schema(id) for id in revision.snapshot.schemas()}
    store, streams = pool.branch().store, len(revision.references)
    return ReferenceReading(
        store, pool.config.id, KEY, KeyRange(), revision.schema, limits, streams, schemas=schemas
    )


@pytest.mark.parametrize("streams", [2, 256])
def test_the_answer_is_that_of_a_concatenation_and_a_sort(streams: int) -> None:
    tables = [with_own_fields(number, 12) for number in range(12)]
    limits = ScanLimits(buffer_bytes=1 << 18, max_batch_bytes=1 << 15, max_streams=streams)
    pool = a_pool(*tables, store=MemoryStore("memory://own"), limits=limits)
    found = list(pool.at().scan())
    assert pa.concat_tables(found).equals(united(tables))
    assert max(table.nbytes for table in found) < 4 * limits.max_batch_bytes
    assert pool.at().to_table(columns=["f7_3", "k"]).equals(united(tables).select(["f7_3", "k"]))
    compact_all(pool)
    assert pool.at().to_table().equals(united(tables))


def test_a_stream_decodes_and_holds_the_fields_of_its_object() -> None:
    tables = [with_own_fields(number, 40) for number in range(40)]
    pool = a_pool(*tables, store=MemoryStore("memory://own"))
    whole = reading(pool, ScanLimits(buffer_bytes=1 << 18, min_batch_bytes=1 << 10))
    for reference in pool.at().references:
        (found,) = read_reference(reference, whole.narrowed([reference]), has_sequence=False)
        assert found.num_columns == 12
        assert found.num_rows == ROWS  # a batch of all fields has two
    assert whole.narrowed(pool.at().references) is whole


def test_a_field_that_a_window_has_in_no_part_is_null() -> None:
    schema = pa.schema({"k": pa.int64(), "a": pa.string(), "b": pa.float64(), "c": pa.list_(pa.int8())})
    one, two = pa.table({"k": [1, 3], "a": ["x", None]}), pa.table({"k": [2, 9], "b": [0.5, 1.5]})

    def stream(table: pa.Table, seq: int) -> ClosedStream:
        return ClosedStream(b"", seq, 0, lambda: iter([table]))

    found = list(merge([stream(one, 1), stream(two, 2)], key=KEY, schema=schema, most_bytes=1))
    assert [table.schema for table in found] == [schema] * 4
    assert pa.concat_tables(found).to_pylist() == [
        {"k": 1, "a": "x", "b": None, "c": None},
        {"k": 2, "a": None, "b": 0.5, "c": None},
        {"k": 3, "a": None, "b": None, "c": None},
        {"k": 9, "a": None, "b": 1.5, "c": None},
    ]
