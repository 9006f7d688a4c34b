"""CSV with a header line: every value is text until its column shows what it is.

The columns are read as text, in blocks of bounded size.  A first pass over the file narrows each column's
type (boolean, integer, double, date, timestamp; else string) over all of its values, so a column has one
type a file; declared fields are what the pool says.  An empty value is null, and so is what the setting
`csv.null` names.  A line with too few or too many values is a bad record.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from lake_core.ingest.block import Block, Reading, Rejected
from lake_core.ingest.declared import DoesNotFit, parse_timestamp
from lake_core.ingest.sources import line_blocks, open_text
from lake_core.objects.types import is_json, show_type

_LADDER: tuple[pa.DataType, ...] = (
    pa.bool_(),
    pa.int64(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
)
"""Types a column may turn out to be, tried in this order; a string otherwise."""


def read_csv(reading: Reading, *, null: str = "") -> Iterator[Block]:
    """The file's records, in blocks; raises InvalidInput."""
    kinds: dict[str, list[pa.DataType]] = {}
    for table, _, _ in _text_blocks(reading, null, quiet=True):
        for name, column in zip(table.schema.names, table.columns, strict=True):
            if name not in reading.declared:
                kinds[name] = [k for k in kinds.get(name, list(_LADDER)) if _reads_as(column, k)]
                if column.null_count == len(column):
                    continue
    fields = {
        name: pa.field(name, possible[0] if possible else pa.string()) for name, possible in kinds.items()
    }
    fields.update(reading.declared)
    for table, lines, rejected in _text_blocks(reading, null, quiet=False):
        yield _typed(table, lines, rejected, fields, reading)


@dataclass
class _BadLines:
    """Collects the lines whose number of values is wrong."""

    reading: Reading
    quiet: bool
    offset: int = 0
    found: list[Rejected] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def __call__(self, row: pcsv.InvalidRow) -> str:
        self.numbers.append(row.number)
        if not self.quiet:
            line = self.offset + row.number
            reason = f"{row.actual_columns} values where the header names {row.expected_columns} fields"
            self.found.append(self.reading.reject(line, reason, row.text))
        return "skip"


def _text_blocks(
    reading: Reading, null: str, *, quiet: bool
) -> Iterator[tuple[pa.Table, list[int], list[Rejected]]]:
    """Tables of strings, with the line of each record and the lines that are none."""
    names: list[str] = []
    with open_text(reading.file) as file:
        for start, block in _whole_records(line_blocks(file, reading)):
            first, body = start, block
            if not names:
                names, used = _header(block, reading)
                first, body = first + used, b"".join(block.splitlines(keepends=True)[used:])
                if not body:
                    yield pa.table([pa.array([], pa.string())] * len(names), names), [], []
                    continue
            bad = _BadLines(reading, quiet, offset=first - 1)
            try:
                table = pcsv.read_csv(
                    pa.py_buffer(body),
                    read_options=pcsv.ReadOptions(
                        column_names=names, use_threads=False, block_size=len(body) + 1
                    ),
                    parse_options=pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=bad),
                    convert_options=pcsv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        null_values=["", null],
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                    ),
                )
            except pa.ArrowInvalid as error:
                reading.unreadable(first, f"malformed CSV at or after this line: {error}")
            skipped = set(bad.numbers)
            rows = range(1, table.num_rows + len(skipped) + 1)
            yield table, [first + row - 1 for row in rows if row not in skipped], bad.found


def _header(block: bytes, reading: Reading) -> tuple[list[str], int]:
    """The field names, and how many lines they take."""
    try:
        rows = csv.reader(io.StringIO(block.decode("utf-8-sig")), strict=True)
        names = next(rows, [])
    except (UnicodeDecodeError, csv.Error) as error:
        reading.unreadable(1, f"malformed CSV header: {error}")
    if len(set(names)) != len(names) or "" in names:
        reading.unreadable(1, "the header must name every field, each once")
    return names, rows.line_num


def _whole_records(blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Blocks that end outside of quotes: an odd number of quote characters means that a value goes on."""
    held, first = b"", 0
    for line, block in blocks:
        first = first if held else line
        held += block
        if held.count(b'"') % 2 == 0:
            yield first, held
            held = b""
    if held:
        yield first, held


def _reads_as(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        _parse(column, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _parse(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Text as the type, all of it; raises ArrowInvalid.  Words that would not come back are not taken."""
    if pa.types.is_boolean(kind):
        if not pc.all(pc.match_substring_regex(column, "^(true|false|True|False|TRUE|FALSE)$")).as_py():
            raise pa.ArrowInvalid("not a boolean")
    elif (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not pc.all(
        pc.match_substring_regex(column, r"^[+-]?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][+-]?[0-9]+)?$")
    ).as_py():
        raise pa.ArrowInvalid("not a number, or one with leading zeros")  # 007 is a name
    return column.cast(kind)


def _typed(
    table: pa.Table, lines: list[int], rejected: list[Rejected], fields: dict[str, pa.Field], reading: Reading
) -> Block:
    """The block in its types; records with values that do not fit are bad."""
    wrong: dict[int, str] = {}
    arrays: list[pa.ChunkedArray] = []
    kept: list[pa.Field] = []
    for name, column in zip(table.schema.names, table.columns, strict=True):
        target = fields[name]
        try:
            array = column if is_json(target) else _parse(column, target.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            array = _one_by_one(column, target, wrong)
        arrays.append(array)
        kept.append(target)
    typed = pa.table(arrays, schema=pa.schema(kept))
    if wrong:
        raw = table.take(pa.array(sorted(wrong))).to_pylist()
        for row, values in zip(sorted(wrong), raw, strict=True):
            text = ",".join("" if v is None else str(v) for v in values.values())
            rejected.append(reading.reject(lines[row], wrong[row], text))
        keep = pa.array([row not in wrong for row in range(table.num_rows)])
        typed = typed.filter(keep)
    return Block(typed, tuple(rejected))


def _one_by_one(column: pa.ChunkedArray, target: pa.Field, wrong: dict[int, str]) -> pa.ChunkedArray:
    values = []
    for row, text in enumerate(column.to_pylist()):
        value = None
        try:
            value = None if text is None else _value(text, target)
        except (DoesNotFit, ValueError, pa.ArrowInvalid):
            wrong.setdefault(row, f"field {target.name!r}: {text!r} is not a {show_type(target)}")
        values.append(value)
    return pa.chunked_array([pa.array(values, target.type)])


def _value(text: str, target: pa.Field) -> object:
    if pa.types.is_timestamp(target.type):
        return parse_timestamp(text, target.type)
    return _parse(pa.chunked_array([[text]]), target.type)[0].as_py()
