"""ZNG and ZST: what is written one value at a time and what is written as columns is the same, and is read back."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from log_lake.zng.rows import batch_of
from log_lake.zng.slices import chain, made, signed_values, unsigned_values
from log_lake.zng.type_values import read_type_value, type_value
from log_lake.zng.types import Type
from log_lake.zng.wire import as_signed, as_unsigned, primitive, signed, unsigned
from log_lake.zng.zst.maps import segments_of
from tests.support.zng_files import lines_of, opened, rows_of, zng_of, zst_of
from tests.support.zng_values import stream, stream_values, types
from tests.support.zst_row_by_row import RowByRow

Values = list[tuple[Type, bytes]]

fewer = settings(max_examples=50)
"""Streams of several types take long to make."""


@given(stream_values())
def test_a_stream_is_read_and_written_again_byte_for_byte(values: Values) -> None:
    data = stream(values)
    rows = rows_of(data)
    assert zng_of(rows) == data
    assert zng_of(map(batch_of, rows)) == data


@fewer
@given(stream_values(), st.integers(1, 300))
def test_compressed_blocks_hold_the_same_values(values: Values, block_bytes: int) -> None:
    data = stream(values)
    assert zng_of(rows_of(zng_of(rows_of(data), block_bytes=block_bytes))) == data


@given(stream_values(), stream_values())
def test_streams_in_a_row_are_read_as_one(first: Values, second: Values) -> None:
    assert zng_of(rows_of(stream(first) + stream(second))) == stream(first + second)


@given(stream_values())
def test_every_value_has_a_text(values: Values) -> None:
    assert len(lines_of(stream(values))) == len(values)


@given(types)
def test_a_type_is_read_back_from_its_value(kind: Type) -> None:
    assert read_type_value(type_value(kind), "test") == kind


@fewer
@given(stream_values(records=True, inner_nulls=False), st.integers(1, 200), st.integers(1, 60))
def test_zst_is_what_a_writer_of_one_row_after_another_makes(
    values: Values, skew_bytes: int, segment_bytes: int
) -> None:
    reference = RowByRow(values, skew_bytes=skew_bytes, segment_bytes=segment_bytes)
    rows = rows_of(stream(values))
    for groups in (rows, [batch_of(r) for r in rows]):
        written = zst_of(groups, skew_bytes=skew_bytes, segment_bytes=segment_bytes)
        assert written[: len(reference.data)] == reference.data
        file = opened(written)
        assert file.trailer.sections[0] == len(reference.data)
        segments = [*file.root, *(s for found in file.maps for s in segments_of(found))]
        assert sorted(segments) == reference.segments
        assert zng_of(file.batches()) == stream(values)


@fewer
@given(stream_values(records=True, inner_nulls=False), st.integers(0, 12), st.integers(0, 12))
def test_a_range_of_positions_is_read(values: Values, start: int, stop: int) -> None:
    file = opened(zst_of(rows_of(stream(values))))
    assert zng_of(file.batches(start=start, stop=stop)) == stream(values[start:stop])


@given(st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=400), st.booleans())
def test_a_chain_of_values_is_taken_apart(bodies: list[bytes | None], null_runs: bool) -> None:
    if null_runs:
        bodies = bodies * 20 + [None] * 3_000 + bodies
    data = b"".join(map(primitive, bodies))
    found = chain(made(np.frombuffer(data, np.uint8)), 0, len(data))
    raw = found.buffer.data
    assert bodies == [
        None if length < 0 else raw[start : start + length].tobytes()
        for start, length in zip(found.start.tolist(), found.length.tolist(), strict=True)
    ]


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.lists(st.integers(0, 2**64 - 1), min_size=1)
)
def test_many_integers_are_written_as_one_is(numbers: list[int], naturals: list[int]) -> None:
    for slices, bodies in (
        (signed_values(np.array(numbers, np.int64)), [signed(n) for n in numbers]),
        (unsigned_values(np.array(naturals, np.uint64)), [unsigned(n) for n in naturals]),
    ):
        assert slices.buffer.data[: slices.buffer.size].tobytes() == b"".join(map(primitive, bodies))
    assert signed_values(np.array(numbers, np.int64)).signed().tolist() == numbers
    assert [as_signed(signed(n)) for n in numbers] == numbers
    assert [as_unsigned(unsigned(n)) for n in naturals] == naturals
