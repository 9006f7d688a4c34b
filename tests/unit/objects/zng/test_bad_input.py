"""Damaged and hostile ZNG: one error that names the byte, and memory that what was read is worth."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator

import lz4.block
import pytest

from lake_core.errors import Corrupt
from log_lake.zng.reader import COMPRESSED, END, read
from log_lake.zng.rows import batch_of
from log_lake.zng.typedefs import ARRAY, ENUM, MAP, NAMED, RECORD, SET, UNION, TypeWriter
from log_lake.zng.types import INT64, MAX_DEPTH, STRING, Array, Named, Record, Set, Type, Union
from log_lake.zng.wire import container, primitive, signed, uvarint
from tests.support.zng_files import lines_of, rows_of, zng_of
from tests.support.zng_values import stream

HUGE = uvarint(10 << 30)
SMALL = 32 << 20
"""Bytes of memory: a group of rows with all that is made of it, and far below what the lies announce."""


@pytest.fixture
def small_memory() -> Iterator[None]:
    """The test takes little memory at its peak."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < SMALL


def typedefs(kind: Type) -> bytes:
    found = bytearray()
    TypeWriter().id_of(kind, found)
    return bytes(found)


def block(data: bytes, *, size: int | None = None, form: int = 0) -> bytes:
    packed = lz4.block.compress(data, store_size=False)
    return (
        bytes([COMPRESSED, form])
        + uvarint(len(data) if size is None else size)
        + uvarint(len(packed))
        + packed
    )


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x07" + HUGE, "byte 1: a length of 10,737,418,240 bytes; at most 10,485,760 are allowed"),
        (b"\x07\x05ab", "byte 0: a value of 5 bytes, where 2 are left"),
        (b"\x07", "byte 1: the bytes end within a value"),
        (b"\x17\x00", "byte 0: a value has type 23, which is not defined"),
        (b"\xf5\xff\xff\x03\x00", "byte 0: a value has type 65780,"),
        (bytes([RECORD]) + HUGE, "byte 1: 10,737,418,240 items are announced, 0 bytes are left"),
        (bytes([RECORD, 1]) + HUGE, "10,737,418,240 items|bytes are announced"),
        (bytes([RECORD, 1, 1]) + b"\xff\x07", "byte 2: a name is not UTF-8"),
        (bytes([RECORD, 2, 1]) + b"a\x07\x01a\x07", "byte 1: a record type has the field 'a' twice"),
        (bytes([ARRAY, 23]), "byte 1: type 23 is used before it is defined"),
        (bytes([SET, 99]), "type 99 is used before it is defined"),
        (bytes([MAP, 7, 23]), "type 23 is used before it is defined"),
        (bytes([UNION, 0]), "byte 1: a union of no types"),
        (bytes([UNION]) + HUGE, "items are announced"),
        (bytes([ENUM]) + HUGE, "items are announced"),
        (bytes([NAMED]) + HUGE, "bytes are announced"),
        (bytes([0xFE, 0]) + HUGE, "byte 2: a length of 10,737,418,240 bytes"),
        (bytes([COMPRESSED, 0]) + HUGE + b"\x01\x00", "a length of 10,737,418,240 bytes"),
        (
            bytes([COMPRESSED, 0]) + uvarint(10 << 20) + b"\x01\x00",
            "a block of 1 bytes cannot become 10,485,760",
        ),
        (block(b"\x07\x00", form=1), "byte 1: compression 1 is unknown"),
        (block(b"\x07\x00", size=9), "byte 1: a compressed block"),
        (bytes([COMPRESSED, 0, 9, 2, 0xFF, 0xFF]), "byte 1: a compressed block cannot be unpacked"),
        (block(b"\x07\x00\xff"), "byte 0: a compressed block: byte 2: something else than values"),
        (block(b"\x07\x05a"), "byte 0: a compressed block: byte 0: a value of 5 bytes, where 1 are left"),
        (block(block(b"\x07\x00" * 20)), "something else than values"),
        (b"\x80" * 11, "byte 0: a value has type 128|more than 64 bits"),
    ],
)
def test_a_stream_that_lies_is_refused_by_the_byte(data: bytes, message: str) -> None:
    with pytest.raises(Corrupt, match=r"^test: byte \d+: ") as caught:
        rows_of(data)
    assert any(part in str(caught.value) for part in message.split("|"))


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (Record(("a", "b"), (INT64, INT64)), b"\x02", "the value has fewer parts than its type"),
        (Record(("a",), (INT64,)), b"\x02\x02", "more values than its type has fields"),
        (Record(("a",), (STRING,)), b"\x14ab", "a value of 9 bytes, where 2 are left"),
        (Record(("a",), (STRING,)), b"\xff" * 7, "a length has more than 41 bits"),
        (Record(("a",), (Array(STRING),)), container(b"\x08a"), "the last value does not end"),
        (Record(("a",), (Array(STRING),)), container(b"\x04a\x80"), "|"),
        (Record(("a",), (Union((INT64,)),)), container(primitive(signed(1)) + b"\0"), "a union of 1 types"),
        (Record(("a",), (Union((INT64,)),)), container(primitive(signed(0))), "fewer parts"),
        (
            Record(("a",), (Union((INT64,)),)),
            container(primitive(signed(0)) + b"\0\0"),
            "more than one value",
        ),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused_by_the_byte(
    kind: Type, body: bytes, message: str
) -> None:
    rows = rows_of(stream([(kind, body)]))
    with pytest.raises(Corrupt, match=r"^test: byte \d+: ") as caught:
        batch_of(rows[0])
    assert any(part in str(caught.value) for part in message.split("|"))
    with pytest.raises(Corrupt, match=r"^test: byte \d+: "):
        rows[0].text(0)


@pytest.mark.usefixtures("small_memory")
def test_a_type_that_doubles_with_each_typedef_is_refused() -> None:
    data = bytes([RECORD, 1, 1]) + b"a\x07"
    for type_id in range(23, 60):
        data += bytes([RECORD, 2, 1]) + b"a" + uvarint(type_id) + b"\x01b" + uvarint(type_id)
    with pytest.raises(Corrupt, match="made of more than 100,000 types"):
        rows_of(data)


@pytest.mark.usefixtures("small_memory")
def test_large_types_that_are_used_once_more_in_each_typedef_are_refused() -> None:
    wide = Record(tuple(f"f{number}" for number in range(20_000)), (INT64,) * 20_000)
    data = typedefs(wide) + b"".join(bytes([ARRAY]) + uvarint(type_id) for type_id in range(23, 120))
    with pytest.raises(Corrupt, match="together made of more than 1,000,000"):
        rows_of(data)


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(Corrupt, match=f"nested deeper than {MAX_DEPTH}"):
        rows_of(b"".join(bytes([ARRAY]) + uvarint(7 if not at else 22 + at) for at in range(5_000)))


def test_the_deepest_type_is_read_and_written() -> None:
    kind, body = Record(("a",), (INT64,)), primitive(signed(1))
    for at in range(MAX_DEPTH - 3):
        wrapped = (Array, Set, lambda inner: Named("n", inner))[at % 3]
        inner = body if at % 3 == 2 else container(body)
        kind, body = wrapped(kind), inner  # type: ignore[assignment, arg-type]
    top = Record(("v",), (kind,))
    data = stream([(top, container(body))])
    assert top.depth == MAX_DEPTH
    assert zng_of(map(batch_of, rows_of(data))) == data
    assert len(lines_of(data)) == 1


def test_values_before_the_damage_are_given() -> None:
    groups = read(io.BytesIO(b"\x07\x01\x02\x07\x01\x04\x07\x63"), name="test")
    rows = next(groups)
    assert [rows.text(row) for row in range(len(rows))] == ["1", "2"]
    with pytest.raises(Corrupt):
        next(groups)


def test_a_stream_without_its_end_is_read() -> None:
    data = stream([(INT64, signed(1))])
    assert data[-1] == END
    assert lines_of(data[:-1]) == ["1"]


def test_many_types_with_a_value_each_are_read_in_several_groups() -> None:
    values: list[tuple[Type, bytes]] = [
        (Record(tuple(f"f{number}_{field}" for field in range(1_000)), (INT64,) * 1_000), b"\0" * 1_000)
        for number in range(101)
    ]
    data = stream(values)
    groups = list(read(io.BytesIO(data), name="test"))
    assert len(groups) > 1
    assert zng_of(groups) == data


def test_one_array_of_many_elements_is_read() -> None:
    body = container(primitive(signed(7)) * 200_000 + b"\0" * 10)
    kind = Record(("a",), (Array(INT64),))
    data = stream([(kind, body)] * 3)
    assert zng_of(map(batch_of, rows_of(data))) == data
