"""A Parquet file whose column chunks cannot be is damaged: it ends no process.

pyarrow itself ends the process (`std::terminate`) if it is asked for such a column chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.ranges import EVERYTHING
from log_lake.lake import Lake
from log_lake.objects.column_chunks import check_column_chunks
from log_lake.objects.facts import read_facts
from log_lake.objects.read import DataObject
from log_lake.stores.guard import GuardedStore
from log_lake.stores.memory import MemoryStore
from tests.support import thrift
from tests.support.changed_objects import Parts
from tests.support.thrift import BINARY, I64, LIST, STRUCT

RECORDS = pa.table({"k": [1, 2, 3], "v": ["x", None, "z"], "w": [[1], [], None]})

GROUPS, CHUNKS, CHUNK, SIZES, KEY = (4, LIST), (1, LIST), (3, STRUCT), (16, STRUCT), (8, STRUCT)
ROWS, PATH = (3, I64), (3, LIST)


def chunk_of(footer: Any, column: int) -> Any:
    return footer[GROUPS][0][CHUNKS][column][CHUNK]


def sizes_of_another_column(footer: Any) -> None:
    chunk_of(footer, 0)[SIZES] = chunk_of(footer, 1)[SIZES]


def levels_that_the_column_lacks(footer: Any) -> None:
    histogram = chunk_of(footer, 0).setdefault(SIZES, {})[3, LIST] = thrift.Values([1, 2, 3, 4])
    histogram.kind = I64


def an_encrypted_column(footer: Any) -> None:
    footer[GROUPS][0][CHUNKS][0][KEY] = {(1, STRUCT): {}}


def a_column_too_few(footer: Any) -> None:
    footer[GROUPS][0][CHUNKS].pop()


def a_column_behind_the_end(footer: Any) -> None:
    chunk_of(footer, 0).update({(9, I64): 10**9, (11, I64): 10**9})


def negative_sizes(footer: Any) -> None:
    chunk_of(footer, 0)[7, I64] = -5


def opened(store: MemoryStore, name: str) -> DataObject:
    """The object without what its reference says, so that its footer alone is judged."""
    pool_id, _, _ = name.partition("/")
    return DataObject(GuardedStore(store), pool_id=pool_id, object_id=naming.data_id(name) or "")


CHANGES = (
    sizes_of_another_column,
    levels_that_the_column_lacks,
    an_encrypted_column,
    a_column_too_few,
    a_column_behind_the_end,
    negative_sizes,
)


def named(change: Callable[[Any], None]) -> str:
    return change.__name__


@pytest.mark.parametrize("change", CHANGES, ids=named)
def test_an_object_is_corrupt_of_its_pool_alone(change: Callable[[Any], None]) -> None:
    store = MemoryStore("memory://chunks")
    lake = Lake.create_on(store)
    for name in ("a", "b"):
        lake.create_pool(name, key="k").branch().append(RECORDS)
    id = lake.pool("a").at().references[0].object
    name = naming.data_object(lake.pool("a").config.id, id)
    parts = Parts.of(store.get(name) or b"")
    change(parts.footer)
    store.put(name, parts.sealed())
    with pytest.raises(Corrupt, match=id) as raised, opened(store, name) as data:
        list(data.batches(EVERYTHING, key=PoolKey.parse("k"), columns=None))
    assert "on record" not in str(raised.value)  # it is the footer that is wrong, and not only its length
    for read in (lake.pool("a").at().to_table, lambda: lake.pool("a").branch().delete(where="v = 'x'")):
        with pytest.raises(Corrupt, match=id):
            read()
    assert lake.pool("b").at().to_table().equals(RECORDS)


@pytest.mark.parametrize("change", CHANGES, ids=named)
def test_a_file_that_is_loaded_is_refused(change: Callable[[Any], None], tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(RECORDS, file)
    data = file.read_bytes()
    footer, at = thrift.footer_of(data)
    change(footer)
    file.write_bytes(thrift.with_footer(data[:at], footer))
    pool = Lake.create_on(MemoryStore("memory://loads")).create_pool("p", key="k")
    with pytest.raises(InvalidInput, match=r"x\.parquet.*not a readable Parquet file"):
        pool.branch().load([str(file)])


def test_a_row_group_of_more_records_than_the_object_takes_no_memory_for_them() -> None:
    store = MemoryStore("memory://rows")
    pool = Lake.create_on(store).create_pool("p", key="k")
    pool.branch().append(RECORDS)
    name = naming.data_object(pool.config.id, pool.at().references[0].object)
    parts = Parts.of(store.get(name) or b"")
    parts.footer[GROUPS][0][ROWS] = 2**32 + 3
    store.put(name, parts.sealed())
    with (
        pytest.raises(Corrupt, match="its row groups have 4294967299 records, not 3"),
        opened(store, name) as data,
    ):
        read_facts(data)


def test_a_column_chunk_with_the_path_of_no_column_is_read_by_its_place(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(RECORDS, file)
    data = file.read_bytes()
    footer, at = thrift.footer_of(data)
    chunk_of(footer, 1)[PATH] = thrift.Values([b"other"])
    chunk_of(footer, 1)[PATH].kind = BINARY
    file.write_bytes(thrift.with_footer(data[:at], footer))
    pool = Lake.create_on(MemoryStore("memory://paths")).create_pool("p", key="k")
    pool.branch().load([str(file)])
    assert pool.at().to_table().equals(RECORDS)


def test_a_sound_footer_is_checked_without_a_read_of_data() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(RECORDS, sink, row_group_size=1)
    footer = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata
    assert footer.num_row_groups == 3
    check_column_chunks(footer, size=sink.getvalue().size)
    with pytest.raises(OSError, match="Invalid column metadata"):
        check_column_chunks(footer, size=10)


def test_a_file_without_records_has_no_column_chunks() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(RECORDS.slice(0, 0), sink)
    check_column_chunks(pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata, size=sink.getvalue().size)
