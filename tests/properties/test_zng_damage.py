"""Any bytes: readers of ZNG and ZST give values or one error of the lake that names a byte, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Corrupt, InvalidInput
from log_lake.zng.rows import batch_of
from log_lake.zng.to_arrow import record_batches
from log_lake.zng.types import Type
from tests.support.zng_files import lines_of, opened, rows_of, zng_of, zst_of
from tests.support.zng_values import stream, stream_values

Values = list[tuple[Type, bytes]]


def read_zng(data: bytes) -> None:
    for rows in rows_of(data):
        batch_of(rows)
    lines_of(data)


def read_zst(data: bytes) -> None:
    file = opened(data)
    list(file.lines())
    for batch in file.batches():
        zng_of([batch])
        with contextlib.suppress(InvalidInput):  # what Arrow has no form for
            record_batches(batch)


def survives(reading: Callable[[bytes], None], data: bytes) -> None:
    message = "test: byte "
    try:
        reading(data)
    except Corrupt as error:
        message = str(error)
    assert message.startswith("test: byte ")
    assert "\n" not in message


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with a few changed, left out or added, or without their end."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(found) - 1, 0)))
        match draw(st.sampled_from(["flip", "set", "insert", "cut", "end"])):
            case "flip" if found:
                found[at] ^= 1 << draw(st.integers(0, 7))
            case "set" if found:
                found[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFD, 0xFF]))
            case "insert":
                found[at:at] = draw(st.binary(min_size=1, max_size=4))
            case "cut":
                del found[at : at + draw(st.integers(1, 4))]
            case "end":
                del found[at:]
    return bytes(found)


@given(st.data(), stream_values(), st.booleans())
@settings(max_examples=100)
def test_a_damaged_stream_is_read_or_refused_in_one_line(
    data: st.DataObject, values: Values, packed: bool
) -> None:
    sound = stream(values)
    if packed:
        sound = zng_of(rows_of(sound), block_bytes=100)
    for _ in range(5):
        survives(read_zng, data.draw(damaged(sound)))


@given(st.data(), stream_values(records=True, inner_nulls=False), st.integers(1, 100))
@settings(max_examples=60)
def test_a_damaged_file_of_columns(data: st.DataObject, values: Values, segment_bytes: int) -> None:
    sound = zst_of(rows_of(stream(values)), segment_bytes=segment_bytes, skew_bytes=200)
    for _ in range(5):
        survives(read_zst, data.draw(damaged(sound)))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused_in_one_line(data: bytes) -> None:
    survives(read_zng, data)
    survives(read_zst, data)


@given(stream_values(records=True))
@settings(max_examples=20)
def test_a_file_that_ends_anywhere(values: Values) -> None:
    data = stream(values)
    try:
        columns = zst_of(rows_of(data))
    except InvalidInput:  # nulls that ZST has no form for
        columns = b""
    for end in range(len(data)):
        survives(read_zng, data[:end])
    for end in range(0, len(columns), 7):
        survives(read_zst, columns[:end])
