"""Damaged and hostile ZST: one error that names the byte, and memory that what was read is worth."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from lake_core.errors import Corrupt, InvalidInput
from log_lake.zng.reader import END
from log_lake.zng.typedefs import TypeWriter
from log_lake.zng.types import INT64, STRING, Array, Record, Type, Union
from log_lake.zng.wire import Cursor, container, primitive, signed, uvarint
from log_lake.zng.zst.layout import SEGMENT_BYTES, SKEW_BYTES, Segment, Trailer, trailer_bytes
from log_lake.zng.zst.maps import (
    SEGMENTS_TYPE,
    ColumnMap,
    FieldMap,
    ListMap,
    RecordMap,
    UnionMap,
    encoded_map,
    encoded_segments,
)
from tests.support.zng_files import opened, rows_of, zng_of, zst_of
from tests.support.zng_values import stream

SMALL = 48 << 20
"""Bytes of memory: far below what the lies announce."""

A = Record(("a",), (INT64,))
EMPTY = Record((), ())


@pytest.fixture
def small_memory() -> Iterator[None]:
    """The test takes little memory at its peak."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < SMALL


def file_of(data: bytes, root: tuple[Segment, ...], *columns: tuple[Type, ColumnMap]) -> bytes:
    """A file whose maps are as given."""
    context, section = TypeWriter(), bytearray()

    def value(kind: Type, body: bytes) -> None:
        type_id = context.id_of(kind, section)
        section.extend(uvarint(type_id) + uvarint(len(body)) + body)

    for kind, _ in columns:
        value(kind, bytes(len(kind.children)))
    value(Record(("root",), (SEGMENTS_TYPE,)), encoded_segments(root))
    for kind, found in columns:
        map_type, tagged = encoded_map(kind, found)
        value(map_type, Cursor(tagged, name="test").value() or b"")
    section.append(END)
    return (
        data + bytes(section) + trailer_bytes(Trailer(SKEW_BYTES, SEGMENT_BYTES, (len(data), len(section))))
    )


def one_field(column: ColumnMap | None, presence: tuple[Segment, ...] = ()) -> RecordMap:
    return RecordMap((FieldMap(column, presence),))


def ints(*numbers: int) -> bytes:
    return b"".join(primitive(signed(number)) for number in numbers)


def read_all(data: bytes) -> bytes:
    return zng_of(opened(data).batches())


def test_a_file_made_by_hand_is_read() -> None:
    data = ints(5) + ints(0)
    file = file_of(data, (Segment(2, 1),), (A, one_field((Segment(0, 2),))))
    assert read_all(file) == stream([(A, ints(5))])


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize(
    ("data", "root", "kind", "found", "message"),
    [
        (ints(0), (Segment(0, 10 << 30),), A, one_field(()), "is beyond the data or in another"),
        (ints(0), (Segment(-1, 1),), A, one_field(()), "is beyond the data or in another"),
        (ints(0), (Segment(0, 0),), A, one_field(()), "is beyond the data or in another"),
        (ints(0), (Segment(0, 1), Segment(0, 1)), A, one_field(()), "is beyond the data or in another"),
        (ints(0, 1), (Segment(0, 1),), A, one_field((Segment(0, 3),)), "is beyond the data or in another"),
        (ints(1), (Segment(0, 2),), A, one_field(()), "byte 1: super type 1, where there are 1"),
        (ints(-1), (Segment(0, 2),), A, one_field(()), "super type -1, where there are 1"),
        (b"\x04", (Segment(0, 1),), A, one_field(()), "byte 1: the last value does not end"),
        (b"\x16" + b"\1" * 10, (Segment(0, 11),), A, one_field(()), "byte 1: a number of 10 bytes"),
        (
            ints(0, 0, 7),
            (Segment(0, 2),),
            A,
            one_field((Segment(2, 2),)),
            "ends after at most 1 more|ends before",
        ),
        (ints(0, 7), (Segment(0, 1),), A, one_field((Segment(1, 2),), (Segment(1, 2),)), "in another"),
        (ints(0, 0), (Segment(0, 1),), A, one_field(None, (Segment(1, 1),)), None),
        (
            ints(0, -3, 7),
            (Segment(0, 1),),
            A,
            one_field((Segment(3, 2),), (Segment(1, 2),)),
            "byte 1: a run of presence is negative",
        ),
        (
            ints(0, 0, 7),
            (Segment(0, 1),),
            A,
            one_field((Segment(2, 2),), (Segment(1, 1),)),
            "byte 1: the presence of a field ends before its rows do",
        ),
        (
            ints(0, 1 << 31),
            (Segment(0, 1),),
            Record(("a",), (Array(EMPTY),)),
            one_field(ListMap(RecordMap(()), (Segment(1, 6),))),
            "more than 8,388,608",
        ),
        (
            ints(0, -1),
            (Segment(0, 1),),
            Record(("a",), (Array(INT64),)),
            one_field(ListMap((), (Segment(1, 2),))),
            "a negative number of elements",
        ),
        (
            ints(0, 1 << 22),
            (Segment(0, 1),),
            Record(("a",), (Array(INT64),)),
            one_field(ListMap((), (Segment(1, 4),))),
            "a column ends after at most 0 more values, where 4,194,304 are needed",
        ),
        (
            ints(0, 2),
            (Segment(0, 1),),
            Record(("a",), (Union((INT64, STRING)),)),
            one_field(UnionMap(((), ()), (Segment(1, 2),))),
            "a union of 2 types says that its value has type 2",
        ),
    ],
)
def test_maps_that_lie_are_refused_by_the_byte(
    data: bytes, root: tuple[Segment, ...], kind: Record, found: RecordMap, message: str | None
) -> None:
    file = file_of(data, root, (kind, found))
    if message is None:
        read_all(file)
        return
    with pytest.raises(Corrupt, match=r"^test: byte [\d,]+: ") as caught:
        read_all(file)
    assert any(part in str(caught.value) for part in message.split("|"))


@pytest.mark.usefixtures("small_memory")
def test_rows_of_very_many_null_fields_are_read_in_small_batches() -> None:
    wide = Record(tuple(f"f{number}" for number in range(5_000)), (INT64,) * 5_000)
    rows = 3_000
    file = file_of(ints(*([0] * rows)), (Segment(0, rows),), (wide, RecordMap((FieldMap(None, ()),) * 5_000)))
    assert sum(map(len, opened(file).batches(fields=["f7"]))) == rows
    batches = opened(file).batches()
    assert len(next(batches)) < rows


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "byte 0: no ZST trailer in the last 0 bytes"),
        (b"PAR1" * 2_000, "byte 8,000: no ZST trailer in the last 4,096 bytes"),
        (trailer_bytes(Trailer(SKEW_BYTES, SEGMENT_BYTES, (10 << 30, 0))), "do not fit before it"),
        (trailer_bytes(Trailer(SKEW_BYTES, SEGMENT_BYTES, (0, -1))), "sections [0, -1]; there are two"),
        (trailer_bytes(Trailer(2**30, SEGMENT_BYTES, (0, 0))), "thresholds of 1,073,741,824"),
        (trailer_bytes(Trailer(SKEW_BYTES, SEGMENT_BYTES, (0, 0))), "has no root"),
        (trailer_bytes(Trailer(1, 1, (0, 0))).replace(b"\x04\x02", b"\x04\x04", 1), "ZST version 2"),
        (trailer_bytes(Trailer(1, 1, (0, 0))).replace(b"\x08zst", b"\x08zsu"), "no ZST trailer"),
    ],
)
def test_a_trailer_that_lies_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(Corrupt, match=r"^test: byte [\d,]+: ") as caught:
        opened(data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"garbage after it",
        lambda data: data + bytes([END]),
    ],
)
def test_a_trailer_is_found_although_its_surroundings_differ(change: object) -> None:
    values = stream([(A, ints(5))])
    assert read_all(change(zst_of(rows_of(values)))) == values  # type: ignore[operator]


def test_another_trailer_behind_with_a_wrong_magic_is_passed_over() -> None:
    values = stream([(A, ints(5))])
    wrong = trailer_bytes(Trailer(1, 1, (0, 0))).replace(b"\x08zst", b"\x08zsu")
    assert read_all(zst_of(rows_of(values)) + wrong) == values


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (INT64, signed(1), "ZST holds records; make it a field of one"),
        (Array(INT64), b"", "ZST holds records; make it a field of one"),
        (A, b"", "a top-level null of type"),
        (Record(("a",), (Array(A),)), container(b"\0"), "inside of an array or a union"),
        (Record(("a",), (Array(Union((INT64,))),)), container(b"\0"), "inside of an array or a union"),
        (
            Record(("a",), (Union((A,)),)),
            container(primitive(signed(0)) + b"\0"),
            "inside of an array or a union",
        ),
    ],
)
def test_values_that_the_format_has_no_form_for_are_refused(kind: Type, body: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        zst_of(rows_of(stream([(kind, body)])))


@pytest.mark.parametrize(
    ("name", "value"), [("skew_bytes", 0), ("segment_bytes", 21 << 20), ("skew_bytes", 1 << 30)]
)
def test_thresholds_that_readers_refuse_are_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=f"{name} is "):
        zst_of([], **{name: value})


def test_a_file_that_becomes_shorter_while_it_is_read_is_refused() -> None:
    class Cut:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def size(self) -> int:
            return len(self.data)

        def read_at(self, nbytes: int, offset: int) -> bytes:
            return self.data[offset : offset + nbytes]

    from log_lake.zng.zst.reader import ZstFile

    source = Cut(zst_of(rows_of(stream([(A, ints(row)) for row in range(100)]))))
    file = ZstFile.open(source, name="test")  # type: ignore[arg-type]
    source.data = source.data[:20]
    with pytest.raises(Corrupt, match="byte 20: the file ends within a segment"):
        list(file.batches())
