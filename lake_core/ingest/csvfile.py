"""CSV with a header line: every value is text until its column shows what it is.

A file is read in blocks of bounded size, as text.  The first reading narrows the type of each column over
all of its values (`csvtypes`), so a column has one type a file; declared fields are what the pool says.  The
second gives the records in those types.  A small file is kept between the two, a large one is read twice.

An empty value is null, and so is what the setting `csv.null` names; a quoted one is text.  Empty lines are
passed by.  A line with too few or too many values, text behind a closing quote, what is not UTF-8 and what is
not of the declared type make a bad record.  A quote that is never closed leaves nothing to trust: the file is
refused under any policy (`csvlines`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.csv as pcsv

from lake_core.ingest.block import Block, Reading, Rejected
from lake_core.ingest.csvlines import is_regular, records_of, whole_records
from lake_core.ingest.csvtypes import Narrowing, read_as
from lake_core.ingest.sources import line_blocks, open_text

KEPT_BYTES = 64 << 20
"""Text that is kept between the two readings; a file with more is opened twice."""
_PIECE = 1 << 20


def read_csv(reading: Reading, *, null: str = "") -> Iterator[Block]:
    """The file's records, in blocks; raises InvalidInput."""
    columns: dict[str, Narrowing] = {}
    kept: list[_Text] = []
    size = 0
    for text in _text_blocks(reading, null):
        for name, column in zip(text.table.schema.names, text.table.columns, strict=True):
            if name not in reading.declared:
                columns.setdefault(name, Narrowing()).see(column)
        size += text.size
        if size <= KEPT_BYTES:
            kept.append(text)
        else:
            kept.clear()
    fields = {name: pa.field(name, narrowing.kind) for name, narrowing in columns.items()} | reading.declared
    for text in kept or _text_blocks(reading, null):
        yield _typed(text, fields, reading)


@dataclass
class _Text:
    """Some records of a file as text.

    `numbers` says which of the records in `body`, counted from 0, the rows of the table are; None: all.
    """

    table: pa.Table
    body: bytes
    first: int
    numbers: list[int] | None = None
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes held in memory."""
        return len(self.body) + int(self.table.nbytes)

    def reject(self, reasons: dict[int, str], reading: Reading) -> list[Rejected]:
        """The records of the body with these numbers as rejected ones; raises InvalidInput by policy."""
        lines = list(records_of(self.body, self.first))
        return [
            reading.reject(lines[i].number, reason, lines[i].raw(self.body))
            for i, reason in sorted(reasons.items())
        ]


def _text_blocks(reading: Reading, null: str) -> Iterator[_Text]:
    """The file's records as tables of strings."""
    names: list[str] = []
    with open_text(reading.file) as file:
        for first, block in whole_records(line_blocks(file, reading), reading):
            body = block
            if not names:
                names, first, body = _header(block, first, reading)
            if body.strip():
                yield _text(body, first, names, null, reading)


def _header(block: bytes, first: int, reading: Reading) -> tuple[list[str], int, bytes]:
    """The field names, and what follows with the number of its first line; no names where all is empty."""
    block = block.removeprefix(b"\xef\xbb\xbf")
    header = next((line for line in records_of(block, first) if line.raw(block).strip()), None)
    if header is None:
        return [], first, b""
    try:
        raw = header.raw(block).decode()
        names = next(csv.reader(io.StringIO(raw, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        reading.unreadable(header.number, f"malformed CSV header: {error}")
    for name in names:
        if not name:
            reading.unreadable(header.number, "the header must name every field; a name is empty")
        if names.count(name) > 1:
            reading.unreadable(header.number, f"the header names field {name!r} more than once")
    return names, header.next_number, block[header.behind :]


def _text(body: bytes, first: int, names: list[str], null: str, reading: Reading) -> _Text:
    """Whole records as a table of strings, without those that are malformed."""
    others: dict[int, str] = {}
    reasons: dict[int, str] = {}

    def skip(row: pcsv.InvalidRow) -> str:
        others[row.number - 1] = row.text
        if row.text.strip():  # spaces alone are an empty line
            reasons[row.number - 1] = (
                f"{row.actual_columns} values where the header names {row.expected_columns} fields"
            )
        return "skip"

    try:
        table = _parsed(body, names, null, skip)
    except pa.ArrowInvalid as error:
        reading.unreadable(first, f"malformed CSV in or after this line: {error}")
    columns, undecoded = _decoded(table)
    faults = (
        {} if is_regular(body) else {i: r.fault for i, r in enumerate(records_of(body, first)) if r.fault}
    )
    if not (others or undecoded or faults):
        return _Text(pa.table(columns, names), body, first)
    rows = [i for i in range(table.num_rows + len(others)) if i not in others]
    reasons |= {rows[row]: why for row, why in undecoded.items()} | faults
    text = _Text(pa.table(columns, names), body, first)
    text.rejected += text.reject(reasons, reading)
    text.table = text.table.filter(pa.array([i not in reasons for i in rows], pa.bool_()))
    text.numbers = [i for i in rows if i not in reasons]
    return text


def _parsed(body: bytes, names: list[str], null: str, skip: Callable[[pcsv.InvalidRow], str]) -> pa.Table:
    """The records by Arrow's reader, every value as bytes; `skip` hears of records of another width."""

    def read(piece: int) -> pa.Table:
        return pcsv.read_csv(
            pa.py_buffer(body),
            read_options=pcsv.ReadOptions(column_names=names, use_threads=False, block_size=piece),
            parse_options=pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=["", null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    try:
        return read(_PIECE)  # which stays in the processor's caches
    except pa.ArrowInvalid:
        return read(len(body) + 1)  # a record is longer than a piece


def _decoded(table: pa.Table) -> tuple[list[pa.ChunkedArray], dict[int, str]]:
    """The columns as strings, and the rows that are not UTF-8."""
    columns: list[pa.ChunkedArray] = []
    wrong: dict[int, str] = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
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


def _typed(text: _Text, fields: dict[str, pa.Field], reading: Reading) -> Block:
    """The records in their types; those with values that do not fit are bad."""
    wrong: dict[int, str] = {}
    table = text.table
    kept = [fields[name] for name in table.schema.names]
    columns = [read_as(column, target, wrong) for column, target in zip(table.columns, kept, strict=True)]
    typed = pa.table(columns, schema=pa.schema(kept))
    if not wrong:
        return Block(typed, tuple(text.rejected))
    numbers = text.numbers or range(table.num_rows)
    rejected = text.rejected + text.reject({numbers[row]: why for row, why in wrong.items()}, reading)
    typed = typed.filter(pa.array([row not in wrong for row in range(table.num_rows)]))
    return Block(typed, tuple(sorted(rejected, key=lambda r: r.line)))
