"""CSV: every value is text until its column shows what it is.

A file is read in blocks of bounded size, as text.  The first reading narrows the type of each column over all of
its values (`csv_types`), so a column has one type a file; a declared field has the pool's type.  The second
reading gives the records in those types.  A small file is kept between the two, a large one is read twice.

The options `csv.*` say how the file is written (`catalog.csv_options`); `csv_dialect` detects the delimiter.  An
empty value is null, and so are the words of `csv.null`; a quoted value is text.  Empty lines and comments are
skipped.

Four faults make a bad record: too few or too many values, text behind a closing quote, bytes that are not UTF-8,
and a value that is not of the declared type.  If a quote is never closed, the file is refused under any policy,
because no later record can be trusted (`csv_lines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from lake_core.catalog.csv_options import CsvOptions
from lake_core.loading.block import Block, Reading, Rejected, silent
from lake_core.loading.formats.csv_dialect import dialect_of, header_of
from lake_core.loading.formats.csv_lines import Dialect, Line, is_regular, records_of, whole_records
from lake_core.loading.formats.csv_types import Narrowing, read_as
from lake_core.loading.formats.csv_words import Respell, respelled, spelling_of, spellings
from lake_core.loading.opening import FIRST, line_blocks, open_text

_PIECE = 1 << 20
_NUMBER = r"^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$"


def read_csv(reading: Reading) -> Iterator[Block]:
    """The file's records, in blocks; raises InvalidInput."""
    columns: dict[str, _Column] = {}
    kept: list[_Text] = []
    size = 0
    for text in _text_blocks(reading, reading.tell):
        for name, column in zip(text.table.schema.names, text.table.columns, strict=True):
            if name not in reading.declared:
                if name not in columns:
                    columns[name] = _Column(reading.csv, numbers=reading.function(name) == "sum")
                columns[name].see(column)
        size += text.size
        if size <= reading.limits.kept_csv:
            kept.append(text)
        else:
            kept.clear()
    read = {name: column.settled(name) for name, column in columns.items()} | {
        name: _declared(field, reading.csv) for name, field in reading.declared.items()
    }
    if kept:
        reading.progress(reading.file, sum(text.read for text in kept))
    for text in kept or _text_blocks(reading, silent, types=_sure_types(read, reading)):
        yield _typed(text, read, reading)


class _Column:
    """The possible types of a column without a declared type, after some of its values."""

    def __init__(self, options: CsvOptions, *, numbers: bool = False) -> None:
        """`numbers`: a value that is not a number makes a bad record, and does not change the column's type."""
        self._numbers = numbers
        self._plain = Narrowing()
        self._decimal_comma = options.decimal == ","
        self._spelled = {
            name: (respell, kind, Narrowing()) for name, (respell, kind) in spellings(options).items()
        }
        self._any = False

    def see(self, column: pa.ChunkedArray) -> None:
        """Take more values into account."""
        if self._numbers:
            column = column.filter(pc.match_substring_regex(column, _NUMBER))
        self._plain.see(column)
        if column.null_count == len(column):
            return
        self._any = True
        for name, (respell, kind, narrowing) in list(self._spelled.items()):
            values = respelled(column, respell)
            if values is None:
                del self._spelled[name]
            elif kind is None:
                narrowing.see(values)

    def settled(self, name: str) -> _Read:
        """The field, and how its text is spelled."""
        if self._any:
            for respell, kind, narrowing in self._spelled.values():
                return _Read(pa.field(name, kind or narrowing.kind), respell, declared=self._numbers)
        kind = self._plain.kind
        # with decimal commas, 1.234 is not the number that it looks like
        if self._decimal_comma and pa.types.is_floating(kind):
            kind = pa.string()
        # of a column of numbers without any number, every value is bad
        return _Read(pa.field(name, pa.string() if self._numbers and not self._any else kind))


@dataclass(frozen=True)
class _Read:
    """A field, and how to respell its text before it is read; None: not at all."""

    field: pa.Field
    respell: Respell | None = None
    declared: bool = False


_READ_BY_ARROW = frozenset({pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), pa.string()})


def _sure_types(read: dict[str, _Read], reading: Reading) -> dict[str, pa.DataType]:
    """Types of the columns whose values were all seen, and which Arrow's CSV reader reads without a change."""
    return {
        name: one.field.type
        for name, one in read.items()
        if one.field.type in _READ_BY_ARROW
        and one.respell is None
        and not one.declared
        and reading.function(name) != "sum"  # some of its values may be no numbers
    }


def _declared(field: pa.Field, options: CsvOptions) -> _Read:
    respell, _ = spellings(options).get(spelling_of(field.type), (None, None))
    return _Read(field, respell, declared=True)


@dataclass
class _Text:
    """Some records of a file as text; `read` bytes of the file were read for them.

    `numbers`: for each row of the table, the number of its record in `body`, from 0; None: all, in order.
    """

    table: pa.Table
    body: bytes
    first: int
    dialect: Dialect
    read: float
    numbers: list[int] | None = None
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes held in memory."""
        return len(self.body) + int(self.table.nbytes)

    def reject(self, reasons: dict[int, str], reading: Reading) -> list[Rejected]:
        """The records of the body with these numbers, as rejected ones; raises InvalidInput if the policy is to
        fail."""
        return [
            reading.reject(self._lines[i].number, reason, self._lines[i].raw(self.body))
            for i, reason in sorted(reasons.items())
        ]

    def locate(self, row: int) -> tuple[int, bytes]:
        """The line and the text of a row of the table."""
        line = self._lines[row if self.numbers is None else self.numbers[row]]
        return line.number, line.raw(self.body)

    @cached_property
    def _lines(self) -> list[Line]:
        """Looked for once: each record of a block may be a bad one."""
        return list(records_of(self.body, self.first, self.dialect))


def _text_blocks(
    reading: Reading, tell: Callable[[str], None], *, types: dict[str, pa.DataType] | None = None
) -> Iterator[_Text]:
    """The file's records as tables of strings, or of `types`.

    The file is read twice, so each reading counts half of its bytes for the progress.
    """
    names: list[str] = []
    counted = replace(reading, tell=tell)
    with open_text(counted, encoding=reading.csv.encoding, count=0.5) as file:
        blocks = line_blocks(file, counted)
        first_block = next(blocks, None)
        if first_block is None:
            return
        dialect = dialect_of(first_block[1][:FIRST], counted)
        for first, block in whole_records(chain([first_block], blocks), reading, dialect):
            body = block
            if not names:
                header = header_of(block, first, dialect, reading)
                if header is None:
                    continue
                names, first, body = header.names, header.first, block[header.begin :]
            if body and not body.isspace():
                yield _text(body, first, names, dialect, len(block) / 2, reading, types or {})


def _text(
    body: bytes,
    first: int,
    names: list[str],
    dialect: Dialect,
    read: float,
    reading: Reading,
    types: dict[str, pa.DataType],
) -> _Text:
    """Whole records, without malformed ones, as a table of strings, or of `types` if all values are of them."""
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
        table = _parsed(body, dict.fromkeys(names, pa.binary()) | types, reading.csv.null, dialect, skip)
    except pa.ArrowInvalid as error:
        if types:  # the file is another than before
            return _text(body, first, names, dialect, read, reading, {})
        reading.unreadable(first, f"malformed CSV in or after this line: {error}")
    columns, undecoded = _decoded(table)
    faults = (
        {}
        if is_regular(body, dialect)
        else {i: r.fault for i, r in enumerate(records_of(body, first, dialect)) if r.fault}
    )
    if not (others or undecoded or faults):
        return _Text(pa.table(columns, names), body, first, dialect, read)
    rows = [i for i in range(table.num_rows + len(others)) if i not in others]
    reasons |= {rows[row]: why for row, why in undecoded.items()} | faults
    text = _Text(pa.table(columns, names), body, first, dialect, read)
    text.rejected += text.reject(reasons, reading)
    text.table = text.table.filter(pa.array([i not in reasons for i in rows], pa.bool_()))
    text.numbers = [i for i in rows if i not in reasons]
    return text


def _parsed(
    body: bytes,
    types: dict[str, pa.DataType],
    null: tuple[str, ...],
    dialect: Dialect,
    skip: Callable[[pcsv.InvalidRow], str],
) -> pa.Table:
    """The records by Arrow's reader in these types; it calls `skip` for each record of another width."""

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
    """The columns of bytes as strings, and the rows that are not UTF-8."""
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


def _typed(text: _Text, read: dict[str, _Read], reading: Reading) -> Block:
    """The records in their types; those with values that do not fit are bad."""
    wrong: dict[int, str] = {}
    table = text.table
    kept = [read[name] for name in table.schema.names]
    columns = [_values(column, one, wrong) for column, one in zip(table.columns, kept, strict=True)]
    typed = pa.table(columns, schema=pa.schema([one.field for one in kept]))
    if not wrong:
        return Block(typed, tuple(text.rejected), text.locate)
    numbers = text.numbers or range(table.num_rows)
    rejected = text.rejected + text.reject({numbers[row]: why for row, why in wrong.items()}, reading)
    left = [row for row in range(table.num_rows) if row not in wrong]
    return Block(
        typed.take(pa.array(left, pa.int64())),
        tuple(sorted(rejected, key=lambda r: r.line)),
        lambda row: text.locate(left[row]),
    )


def _values(column: pa.ChunkedArray, read: _Read, wrong: dict[int, str]) -> pa.ChunkedArray:
    """The text as values of the field; `wrong` gets the reason for each row whose text is not of the declared
    type."""
    if not pa.types.is_string(column.type):  # the second reading knew its type
        return column
    if read.respell is None:
        return read_as(column, read.field, wrong, inferred=not read.declared)
    values = read.respell(column)
    if values.null_count > column.null_count:
        for row in pc.indices_nonzero(pc.and_(pc.is_null(values), pc.is_valid(column))).to_pylist():
            shown = column[row].as_py()[:60]
            wrong.setdefault(row, f"field {read.field.name!r}: {shown!r} is not spelled as the options say")
    if not read.declared and not pa.types.is_string(read.field.type):
        return values.cast(read.field.type)
    return read_as(values, read.field, wrong)
