"""A reader asks the store for the segments that it needs, for neighbours at once, and for nothing else."""

from __future__ import annotations

import pyarrow as pa

from log_lake.stores import open_store
from log_lake.zng.types import INT64, STRING, Named, Record, Type
from log_lake.zng.wire import primitive, signed
from log_lake.zng.zst.maps import FieldMap, RecordMap, segments_of
from log_lake.zng.zst.reader import ZstFile
from log_lake.zng.zst.source import GAP_BYTES
from tests.support.zng_files import lines_of, opened, rows_of, zng_of, zst_of
from tests.support.zng_values import stream

INNER = Record(("x", "y"), (INT64, STRING))
KIND = Named("event", Record(("a", "wide", "b", "in"), (INT64, STRING, INT64, INNER)))
ROWS = 3_000


class Recorded:
    """A file that notes what is read of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.reads: list[tuple[int, int]] = []

    def size(self) -> int:
        return len(self._data)

    def read_at(self, nbytes: int, offset: int) -> bytes:
        self.reads.append((offset, nbytes))
        return self._data[offset : offset + nbytes]


def body(row: int) -> bytes:
    inner = primitive(signed(-row)) + primitive(f"y{row}".encode())
    values = primitive(signed(row)) + primitive(b"w" * 400) + primitive(signed(2 * row))
    return values + bytes([2 * len(inner) + 1]) + inner


def values(rows: int = ROWS, kind: Type = KIND) -> list[tuple[Type, bytes]]:
    return [(kind, body(row)) for row in range(rows)]


def file_of(rows: int = ROWS) -> tuple[Recorded, ZstFile]:
    recorded = Recorded(zst_of(rows_of(stream(values(rows)))))
    file = ZstFile.open(recorded, name="test")  # type: ignore[arg-type]
    recorded.reads.clear()
    return recorded, file


def fields_of(file: ZstFile) -> dict[str, FieldMap]:
    found = file.maps[0]
    assert isinstance(found, RecordMap)
    return dict(zip(("a", "wide", "b", "in"), found.fields, strict=True))


def test_a_projection_reads_only_the_segments_of_its_fields() -> None:
    recorded, file = file_of()
    list(file.batches(fields=["a"]))
    segments = [*segments_of(fields_of(file)["a"].column), *file.root]
    assert sorted(recorded.reads) == sorted((s.offset, s.length) for s in segments)


def test_neighbours_come_in_one_request() -> None:
    recorded, file = file_of()
    list(file.batches())
    assert len(recorded.reads) == 1
    assert len(list(segments_of(file.maps[0]))) > 4


def test_a_gap_between_two_segments_is_read_if_it_is_small() -> None:
    recorded, file = file_of(500)
    wide = sum(s.length for s in segments_of(fields_of(file)["wide"].column))
    assert wide < GAP_BYTES
    list(file.batches(fields=["a", "b"]))
    assert len(recorded.reads) == 1


def test_a_gap_between_two_segments_is_left_out_if_it_is_large() -> None:
    recorded, file = file_of()
    wide = sum(s.length for s in segments_of(fields_of(file)["wide"].column))
    assert wide > GAP_BYTES
    list(file.batches(fields=["a", "b"]))
    assert len(recorded.reads) == 2
    assert sum(length for _, length in recorded.reads) < wide


def test_a_range_of_positions_reads_no_segments_behind_it() -> None:
    data = zst_of(rows_of(stream(values())), segment_bytes=2_000, skew_bytes=50_000)
    recorded = Recorded(data)
    file = ZstFile.open(recorded, name="test")  # type: ignore[arg-type]
    recorded.reads.clear()
    assert zng_of(file.batches(start=5, stop=10)) == stream(values()[5:10])
    assert max(offset for offset, _ in recorded.reads) < len(data) // 2


def test_a_projection_keeps_the_order_of_the_file_and_a_row_for_each_row() -> None:
    _, file = file_of(2)
    assert lines_of(zng_of(file.batches(fields=["in.y", "a"]))) == ['{a:0,in:{y:"y0"}}', '{a:1,in:{y:"y1"}}']
    assert lines_of(zng_of(file.batches(fields=["nothing"]))) == ["{}", "{}"]


def test_a_projection_of_all_fields_keeps_the_name_of_the_type() -> None:
    _, file = file_of(1)
    assert lines_of(zng_of(file.batches(fields=["a", "wide", "b", "in"])))[0].endswith("(=event)")


def test_a_projection_of_a_record_that_is_always_null() -> None:
    file = opened(
        zst_of(rows_of(stream([(Record(("a", "in"), (INT64, INNER)), primitive(signed(1)) + b"\0")])))
    )
    assert lines_of(zng_of(file.batches(fields=["in.y"]))) == ["{in:null({y:string})}"]


def test_an_object_of_a_store_is_written_and_read() -> None:
    store = open_store("memory://zst-requests")
    with store.open_output("a.zst") as output:
        output.write(zst_of(rows_of(stream(values(3)))))
    with store.open_input("a.zst") as file:
        assert isinstance(file, pa.NativeFile)
        assert zng_of(ZstFile.open(file, name="a.zst").batches()) == stream(values(3))
