"""The text of a CSV file: blocks of whole records as tables of strings, without malformed records.

`bodies` gives the bytes of the blocks, `text_blocks` the tables.  A file may be read several times: each reading
gives the same blocks.  Called by `csv` and `csv_kept`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import pyarrow as pa
import pyarrow.csv as pcsv

from lake_core.errors import InvalidInput
from lake_core.phrases import counted
from log_lake.loading.block import Reading, Rejected
from log_lake.loading.formats.csv_dialect import dialect_of, header_of, values_of
from log_lake.loading.formats.csv_first_lines import separator_line, w3c_log
from log_lake.loading.formats.csv_lines import CsvLine, Dialect, is_regular, records_of, whole_records
from log_lake.loading.opening import FIRST, line_blocks, open_text

_PIECE = 1 << 20
_MARKED = 4 << 10
_SPACES = " \t\r\n"


@dataclass(frozen=True)
class Body:
    """Some whole records of the file, as its original bytes.  `first` is the number of their first line.

    `read`: what the progress of the load already counts for these records: half of their bytes, because the
    file may be read twice.
    """

    data: bytes
    first: int
    names: list[str]
    dialect: Dialect
    read: float

    @property
    def mark(self) -> int:
        """A number made from the length, names, beginning and end of the text.  By it a later reading finds out
        whether the text is still the same."""
        ends = self.data[:_MARKED] + self.data[-_MARKED:]
        return hash((len(self.data), self.first, tuple(self.names), ends))


@dataclass
class CsvText:
    """The records of a body, as a table of strings.

    `body` returns the body's bytes.  `numbers`: for each row of the table, the number of its record in the
    body, from 0; None means all records, in order.  `values`: columns that were already read in a type; every
    text can be restored from them.
    """

    table: pa.Table
    first: int
    dialect: Dialect
    read: float
    body: Callable[[], bytes]
    numbers: list[int] | None = None
    mark: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    values: dict[str, pa.ChunkedArray] = field(default_factory=dict)

    def reject(self, reasons: dict[int, str], reading: Reading) -> list[Rejected]:
        """Returns the records of the body with these numbers as rejected ones.  Raises InvalidInput if the policy
        is `fail`."""
        return [
            reading.reject(self._lines[i].number, reason, self._lines[i].raw(self._body))
            for i, reason in sorted(reasons.items())
        ]

    def locate(self, row: int) -> tuple[int, bytes]:
        """Returns the line and the text of a row of the table."""
        line = self._lines[row if self.numbers is None else self.numbers[row]]
        return line.number, line.raw(self._body)

    @cached_property
    def _body(self) -> bytes:
        return self.body()

    @cached_property
    def _lines(self) -> list[CsvLine]:
        """The lines of the records.  Computed once, because each record of a block may be a bad one."""
        return list(records_of(self._body, self.first, self.dialect))


def bodies(reading: Reading) -> Generator[Body]:
    """Yields the file's records in bodies of their original bytes.

    The file may be read twice, so each reading adds half of its bytes to the progress.
    """
    names: list[str] = []
    counted = 0.0

    def count(file: str, read: float) -> None:
        nonlocal counted
        counted += read
        reading.progress(file, read)

    with open_text(replace(reading, progress=count), encoding=reading.csv.encoding, count=0.5) as file:
        blocks = line_blocks(file, reading)
        first_block = next(blocks, None)
        if first_block is None:
            return
        number, begin = first_block
        if why := w3c_log(begin[:FIRST], reading.csv):
            reading.unreadable(number, why)
        separator, told = separator_line(begin)
        dialect = dialect_of(begin[len(told) :][:FIRST], reading, told=separator)
        first_block = number + bool(told), begin[len(told) :]
        for first, block in whole_records(chain([first_block], blocks), reading, dialect):
            body = block
            if not names:
                header = header_of(block, first, dialect, reading)
                if header is None:
                    continue
                names, first, body = header.names, header.first, block[header.begin :]
            if body.strip(b"\r\n"):  # a value may be blank
                read, counted = counted, 0.0
                yield Body(body, first, names, dialect, read)


def same_bodies(reading: Reading, marks: Sequence[int]) -> Generator[Body]:
    """Yields the bodies of a file that was read before; `marks` has the mark of each.

    Raises InvalidInput if the file has changed.
    """
    expected = iter(marks)
    changed = InvalidInput(f"{reading.file}: the file changed while it was read; load it again")
    with closing(bodies(reading)) as again:
        for body in again:
            if next(expected, None) != body.mark:
                raise changed
            yield body
    if next(expected, None) is not None:
        raise changed


def text_blocks(reading: Reading) -> Iterator[CsvText]:
    """Yields the file's records as tables of strings."""
    for body in bodies(reading):
        yield _text(body, reading, {})


def typed_blocks(reading: Reading, marks: Sequence[int], types: dict[str, pa.DataType]) -> Iterator[CsvText]:
    """Yields the records of a file that was read before, with columns in these types.  `marks` has the mark of
    each body.  Raises what `same_bodies` raises."""
    for body in same_bodies(reading, marks):
        yield _text(body, reading, types)


def _text(body: Body, reading: Reading, types: dict[str, pa.DataType]) -> CsvText:
    """Returns whole records, without malformed ones, as a table of strings, or of `types` if all values have these
    types."""
    data, names, dialect = body.data, body.names, body.dialect
    others: dict[int, str] = {}
    reasons: dict[int, str] = {}

    def skip(row: pcsv.InvalidRow) -> str:
        others[row.number - 1] = row.text
        if row.text.strip(_SPACES):  # spaces alone are an empty line
            reasons[row.number - 1] = (
                f"{counted(row.actual_columns, 'value')} where the header names "
                f"{counted(row.expected_columns, 'field')}"
            )
        return "skip"

    try:
        legible = _legible(body)
        table = parsed(legible, dict.fromkeys(names, pa.binary()) | types, reading.csv.null, dialect, skip)
    except pa.ArrowInvalid as error:
        if types:  # a text is not UTF-8
            return _text(body, reading, {})
        reading.unreadable(body.first, f"malformed CSV in or after this line: {error}")
    columns, undecoded = _decoded(table)
    faults = (
        {}
        if is_regular(data, dialect)
        else {i: r.fault for i, r in enumerate(records_of(data, body.first, dialect)) if r.fault}
    )
    text = CsvText(pa.table(columns, names), body.first, dialect, body.read, lambda: data, mark=body.mark)
    if not (others or undecoded or faults):
        return text
    rows = [i for i in range(table.num_rows + len(others)) if i not in others]
    reasons |= {rows[row]: why for row, why in undecoded.items()} | faults
    text.rejected += text.reject(reasons, reading)
    text.table = text.table.filter(pa.array([i not in reasons for i in rows], pa.bool_()))
    text.numbers = [i for i in rows if i not in reasons]
    return text


def _legible(body: Body) -> bytes:
    """Returns the body's bytes.  In records with a wrong number of values, `?` replaces each byte that is not
    UTF-8.

    Arrow decodes such a record before it reports it, and would fail.  Other records are decoded by `_decoded`.
    """
    data = body.data
    if _is_utf8(data):
        return data
    pieces, at = [], 0
    for line in records_of(data, body.first, body.dialect):
        raw = line.raw(data)
        if _is_utf8(raw):
            continue
        text = raw.decode("ascii", errors="replace").replace("\ufffd", "?")
        try:
            width = len(values_of(text, body.dialect))
        except csv.Error:
            width = 0
        if width != len(body.names):
            pieces += [data[at : line.begin], text.encode()]
            at = line.end
    return b"".join([*pieces, data[at:]])


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        pa.array([data], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def parsed(
    body: bytes,
    types: dict[str, pa.DataType],
    null: tuple[str, ...],
    dialect: Dialect,
    skip: Callable[[pcsv.InvalidRow], str],
) -> pa.Table:
    """Returns the records as a table in these types, read by Arrow's CSV reader.  The reader calls `skip` for each
    record with too few or too many values."""
    if not body.endswith((b"\n", b"\r")):
        body += b"\n"  # at the end of the text, Arrow takes an empty value behind a quoted one for quoted

    def read(piece: int) -> pa.Table:
        return pcsv.read_csv(
            pa.py_buffer(body),
            read_options=pcsv.ReadOptions(column_names=list(types), use_threads=False, block_size=piece),
            parse_options=pcsv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote or False,
                escape_char=dialect.escape or False,
                newlines_in_values=True,
                invalid_row_handler=skip,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=types,
                null_values=["", *null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    try:
        return read(_PIECE)  # a piece stays in the processor's caches
    except pa.ArrowInvalid:
        return read(len(body) + 1)  # a record is longer than a piece


def _decoded(table: pa.Table) -> tuple[list[pa.ChunkedArray], dict[int, str]]:
    """Converts columns of bytes to strings.  Returns them, and the reasons for rows that are not UTF-8."""
    columns: list[pa.ChunkedArray] = []
    wrong: dict[int, str] = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if not pa.types.is_binary(column.type):
            columns.append(column)
            continue
        try:
            columns.append(column.cast(pa.string()))
        except pa.ArrowInvalid:
            values = []
            for row, value in enumerate(column.to_pylist()):
                try:
                    values.append(None if value is None else value.decode())
                except UnicodeDecodeError as error:
                    wrong.setdefault(row, f"field {name!r}: not UTF-8: byte {value[error.start]:#04x}")
                    values.append(None)
            columns.append(pa.chunked_array([pa.array(values, pa.string())]))
    return columns, wrong
