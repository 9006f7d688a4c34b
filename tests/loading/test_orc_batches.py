"""ORC is decoded a few records at a time, and the records are those of the file wherever a far time stands."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from log_lake.loading.block import Reading
from log_lake.loading.formats.orc import read_orc
from log_lake.loading.formats.orc_batches import DECODED_ROWS, JOINED_BYTES, batches
from tests.support.command import Command

ROWS, FAR = 5 * DECODED_ROWS + 7, dt.datetime(9999, 12, 31, 23, 59, 59)


def as_orc(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table, sink, **options)
    return sink.getvalue()


def test_a_stripe_that_holds_a_gigabyte_is_decoded_a_little_at_a_time() -> None:
    """Its dictionary has one text, which a hundred thousand records name."""
    text, rows, each = "x" * 10_000, 100_000, 2_000
    table = pa.table({"k": range(each), "v": [text] * each})
    sink = io.BytesIO()
    with orc.ORCWriter(sink, compression="zstd", dictionary_key_size_threshold=1.0) as writer:
        for _ in range(rows // each):
            writer.write(table)
    data = sink.getvalue()
    file = orc.ORCFile(io.BytesIO(data))
    assert len(data) < 1 << 20
    assert file.nstripes == 1
    before = pa.default_memory_pool().bytes_allocated()
    found = 0
    for batch in batches(io.BytesIO(data), file):
        found += batch.num_rows
        assert batch.nbytes < 2 * JOINED_BYTES
        assert pa.default_memory_pool().bytes_allocated() - before < 6 * JOINED_BYTES
    assert found == rows


@pytest.mark.parametrize("at", [[0], [ROWS - 1], [DECODED_ROWS - 1, DECODED_ROWS], [300, 900]])
@pytest.mark.parametrize("stripe_size", [1 << 14, 64 << 20])
@pytest.mark.parametrize("names", [("k", "t", "s"), ("t",), ("t.x", "t", "t{x")])
def test_a_far_time_anywhere_leaves_all_records_in_their_places(
    lake: Command, at: list[int], stripe_size: int, names: tuple[str, ...]
) -> None:
    times = [None if k % 7 == 3 else dt.datetime(2020, 1, 1) + dt.timedelta(seconds=k) for k in range(ROWS)]
    for place in at:
        times[place] = FAR
    columns = [range(ROWS), pa.array(times, pa.timestamp("us")), [str(k) * 20 for k in range(ROWS)]]
    chosen = columns if len(names) > 1 else columns[1:2]
    table = pa.table(list(map(pa.array, chosen)), names=list(names))
    file = lake.file("a.orc", as_orc(table, stripe_size=stripe_size))
    read = [row for block in read_orc(Reading(file)) for row in block.table.to_pylist()]
    assert read == table.to_pylist()


@pytest.mark.parametrize("time", [FAR, None])
def test_a_name_with_a_dot_is_no_path(lake: Command, time: dt.datetime | None) -> None:
    columns = {"k": [1], "a.b": ["x"], "a": [{"b": 5}], "": [7], "t": pa.array([time], pa.timestamp("us"))}
    table = pa.table(columns)
    (block,) = read_orc(Reading(lake.file("a.orc", as_orc(table))))
    assert block.table.to_pylist() == table.to_pylist()
