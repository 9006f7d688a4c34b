"""Reads lines of JSON that all have one shape: the same names in the same order, no records, lists or escapes, and
no comma in a text.

Most files that programs write are like that.  Such a line is a line of CSV whose values carry their names.
Arrow's CSV reader splits it at its commas, in a fifth of the time of Arrow's JSON reader.  Then everything that
makes it JSON is checked, a column at a time: names, quotes, numbers, words.  If a piece may have another shape,
the reader of any JSON (`json`) reads it and the rest of the file, because each attempt costs time.

The values equal those of Arrow's JSON reader, except that texts that look like times stay texts.
"""

from __future__ import annotations

import decimal
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from log_lake.columns.json_text import shown
from log_lake.loading.formats.csv_types import sure_numbers, written_shortest
from log_lake.texts.exact import exact_number
from log_lake.texts.value import NotReadable

_MAX_FIELDS = 256
"""With more fields, each has so few values in a block that the check costs more than it saves."""

_PIECE = 4 << 20
_SCANNED = 256 << 10
"""Bytes that are examined at once, few enough to stay in the processor's caches."""

_NAME = re.compile(rb'(\{)? *"([^"\\]+)" *: *')
_END = re.compile(rb" *\} *\Z")
_TO_THE_END = 1 << 30  # Arrow 26 fails where a slice of bytes has no end
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_FEW = 16
"""If at most this many numbers might lose digits, each of them is examined by itself."""

_QUOTE, _LINE_END, _SPACE = b'"\n '
_DOUBLE = pa.field("", pa.float64())


class _OfAnotherShape(ValueError):
    """Raised if the lines must be read by the reader of any JSON."""


@dataclass
class FlatLines:
    """Reads the blocks of one file as long as all lines have one shape."""

    over: bool = False

    def read(self, lines: bytes) -> pa.Table | None:
        """Returns the records, one per line.  Returns None if the lines may have different shapes, and then for
        all later blocks."""
        if self.over:
            return None
        try:
            return _read(lines)
        except (_OfAnotherShape, pa.ArrowInvalid):
            self.over = True
            return None


@dataclass(frozen=True)
class _Shape:
    """The text before the value of each field, and the text after the last value."""

    names: list[str]
    before: list[bytes]
    behind: bytes


def _shape(line: bytes) -> _Shape:
    """Returns the shape of the first line."""
    end = _END.search(line)
    pieces = line.split(b",", _MAX_FIELDS)
    matches = [_NAME.match(piece) for piece in pieces]
    if end is None or len(matches) > _MAX_FIELDS:
        raise _OfAnotherShape
    names, before = [], []
    for number, match in enumerate(matches):
        if match is None or (match[1] is not None) != (number == 0):
            raise _OfAnotherShape
        try:
            names.append(match[2].decode())
        except UnicodeDecodeError as error:
            raise _OfAnotherShape from error
        before.append(match[0])
    if len(set(names)) < len(names):
        raise _OfAnotherShape
    return _Shape(names, before, end[0])


def _read(lines: bytes) -> pa.Table:
    shape = _shape(lines.partition(b"\n")[0])
    records, quotes = _scanned(lines)
    table = _split(lines, len(shape.names))
    if table.num_rows != records:  # empty lines
        raise _OfAnotherShape
    columns = []
    expected = 2 * records * len(shape.names)
    for number, column in enumerate(table.columns):
        last = number + 1 == len(shape.names)
        values = _values(column, shape.before[number], shape.behind if last else b"")
        if pa.types.is_string(values.type):
            expected += 2 * (records - values.null_count)
        columns.append(values)
    # each name has two quotes and each text at least two, so no text has one inside
    if quotes != expected:
        raise _OfAnotherShape
    return pa.table(columns, shape.names)


def _scanned(lines: bytes) -> tuple[int, int]:
    """Returns the number of lines and of quotes.  Raises _OfAnotherShape if something is escaped, or a line end is
    inside a line."""
    if b"\\" in lines:
        raise _OfAnotherShape
    data = np.frombuffer(lines, np.uint8)
    ends = quotes = 0
    for begin in range(0, len(data), _SCANNED):
        piece = data[begin : begin + _SCANNED]
        line_ends = int(np.count_nonzero(piece == _LINE_END))
        if np.count_nonzero(piece < _SPACE) != line_ends:
            raise _OfAnotherShape
        ends += line_ends
        quotes += int(np.count_nonzero(piece == _QUOTE))
    return ends + (not lines.endswith(b"\n")), quotes


def _split(lines: bytes, fields: int) -> pa.Table:
    """Splits the lines at their commas.  Raises ArrowInvalid if a line has another number of commas."""
    names = [str(number) for number in range(fields)]
    return pcsv.read_csv(
        pa.py_buffer(lines),
        read_options=pcsv.ReadOptions(column_names=names, use_threads=False, block_size=_PIECE),
        parse_options=pcsv.ParseOptions(quote_char=False, escape_char=False),
        convert_options=pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()), strings_can_be_null=False
        ),
    )


def _values(column: pa.ChunkedArray, before: bytes, behind: bytes) -> pa.ChunkedArray:
    """Returns the values of a field.  `before` is its name as each text has it; `behind` is the text after the
    last field's value."""
    if _all(pc.starts_with(column, before + b'"')):
        return _texts(column, before, behind)
    if not _all(pc.starts_with(column, before)) or not _all(pc.ends_with(column, behind)):
        raise _OfAnotherShape
    if pc.min(pc.binary_length(column)).as_py() <= len(before) + len(behind):
        raise _OfAnotherShape
    values = pc.binary_slice(column, len(before), -len(behind) if behind else _TO_THE_END)
    nulls = pc.equal(values, b"null")
    if not pc.any(nulls).as_py():
        return _plain_values(values)
    present = values.filter(pc.invert(nulls))
    if not len(present):
        return pa.chunked_array([pa.nulls(len(values))])
    if _all(pc.starts_with(present, b'"')):
        texts = _texts(pc.if_else(nulls, before + b'""' + behind, column), before, behind)
        return pc.if_else(nulls, pa.scalar(None, pa.string()), texts)
    return _plain_values(pc.if_else(nulls, pa.scalar(None, pa.binary()), values))


def _texts(column: pa.ChunkedArray, before: bytes, behind: bytes) -> pa.ChunkedArray:
    """Returns texts without their quotes; each must begin with a quote."""
    if not _all(pc.ends_with(column, b'"' + behind)):
        raise _OfAnotherShape
    if pc.min(pc.binary_length(column)).as_py() < len(before) + 2 + len(behind):  # one quote is not two
        raise _OfAnotherShape
    return pc.binary_slice(column, len(before) + 1, -1 - len(behind)).cast(pa.string())


def _all(holds: pa.ChunkedArray) -> bool:
    return pc.all(holds).as_py() is not False


def _plain_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns integers, doubles that give back every digit, booleans, or null."""
    texts = column.cast(pa.string())
    few = texts.slice(0, _FEW)  # Arrow makes a message of every value that does not fit
    for read in (_integers, _doubles):
        try:
            read(few)
            return read(texts)
        except pa.ArrowInvalid:
            continue
    if not _all(pc.is_in(texts, pa.array(["true", "false", None]))):
        raise _OfAnotherShape
    return texts.cast(pa.bool_())


def _integers(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    values = texts.cast(pa.int64())
    if not written_shortest(texts):
        raise _OfAnotherShape
    return values


def _doubles(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    values = texts.cast(pa.float64())
    sure = pa.chunked_array([sure_numbers(chunk, zeros=True) for chunk in texts.chunks], pa.bool_())
    rest = texts.filter(pc.invert(sure))
    if len(rest) and (
        not _all(pc.match_substring_regex(rest, _NUMBER)) or lose_digits(rest, most=_FEW + len(texts) // _FEW)
    ):
        raise _OfAnotherShape
    return values


def lose_digits(numbers: pa.ChunkedArray, *, most: int) -> bool:
    """Whether doubles would lose digits of these numbers.  Also true if more than `most` of them are written in
    another way than their doubles.

    Each number that is not written so would have to be checked by itself.
    """
    own = shown(numbers.cast(pa.float64()), _DOUBLE)
    others = numbers.filter(pc.not_equal(own, numbers))
    try:
        return len(others) > most or any(
            isinstance(exact_number(number), decimal.Decimal) for number in others.to_pylist()
        )
    except NotReadable:
        return True
