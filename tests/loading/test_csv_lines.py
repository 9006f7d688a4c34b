"""Where the records of CSV text are: the same places where Arrow's reader sees them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_lake.loading.formats.csv_lines import Dialect, is_regular, records_of

PLAIN = Dialect()
TEXTS = st.text(alphabet='",\n\r ab', max_size=40).map(str.encode)


def raws(data: bytes) -> list[bytes]:
    return [line.raw(data) for line in records_of(data, 1, PLAIN)]


def seen_by_arrow(data: bytes) -> list[bytes]:
    """The raw text of every record: each has another width than asked for, so the reader tells of it."""
    rows: list[bytes] = []

    def tell(row: pcsv.InvalidRow) -> str:
        rows.append(row.text.encode())
        return "skip"

    pcsv.read_csv(
        pa.py_buffer(data),
        read_options=pcsv.ReadOptions(
            column_names=[str(i) for i in range(50)], use_threads=False, block_size=len(data) + 1
        ),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=tell),
    )
    return rows


@given(TEXTS)
def test_records_are_those_that_arrow_sees(data: bytes) -> None:
    if data and not any(line.open for line in records_of(data, 1, PLAIN)):
        assert raws(data) == seen_by_arrow(data)


@given(TEXTS)
def test_regular_text_has_no_faults(data: bytes) -> None:
    if is_regular(data, PLAIN):
        assert not any(line.fault for line in records_of(data, 1, PLAIN))


@given(TEXTS)
def test_records_and_line_ends_are_all_there_is(data: bytes) -> None:
    left, place = b"", 0
    for line in records_of(data, 1, PLAIN):
        left += data[place : line.begin]
        place = line.end
    assert not (left + data[place:]).strip(b"\r\n")


@given(st.lists(st.lists(st.text(alphabet='",\nab\r', max_size=6), min_size=2, max_size=3), max_size=8))
def test_whatever_is_written_as_csv_is_regular(rows: list[list[str]]) -> None:
    written = [",".join('"' + value.replace('"', '""') + '"' for value in row).encode() for row in rows]
    data = b"\n".join(written)
    assert is_regular(data, PLAIN)
    assert raws(data) == written


@pytest.mark.parametrize(
    ("data", "numbers"),
    [
        (b"a\nb\nc", [7, 8, 9]),
        (b"\n\na\n\nb", [9, 11]),
        (b'"x\ny"\nb\r\n"z\r\n"\r\nc', [7, 9, 10, 12]),
        (b"a\rb\r\rc", [7, 8, 10]),
        (b'5" pipe\nb', [7, 8]),
    ],
)
def test_a_record_has_the_number_of_the_line_where_it_begins(data: bytes, numbers: list[int]) -> None:
    assert [line.number for line in records_of(data, 7, PLAIN)] == numbers
