"""Reads CSV: every value is text until the whole column shows its type.

A file is read in blocks of bounded size, as text (`csv_text`).  The first reading narrows the type of each
column over all of its values (`csv_types`), so a column has one type in a file; a declared field has the pool's
type.  Then the records are given in those types.  Meanwhile the texts are kept, in memory or on disk
(`csv_kept`); if that is impossible, the file is read again.

The options `csv.*` say how the file is written (`csv_options`); `csv_dialect` detects the delimiter.
An empty value is null, and so are the words of `csv.null`; a quoted value is text.  Empty lines and comments are
skipped.

Four faults make a bad record: too few or too many values, text after a closing quote, bytes that are not UTF-8,
and a value that does not have the declared type.  If a quote is never closed, the file is refused under any
policy, because no later record can be trusted (`csv_lines`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from log_lake.loading.block import Block, Reading, silent
from log_lake.loading.csv_options import CsvOptions
from log_lake.loading.formats.csv_kept import Kept
from log_lake.loading.formats.csv_text import CsvText, text_blocks, typed_blocks
from log_lake.loading.formats.csv_types import Narrowing, becomes, read_as
from log_lake.loading.formats.csv_words import Respell, respelled, spelling_of, spellings

_NUMBER = r"^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$"


def read_csv(reading: Reading) -> Iterator[Block]:
    """Yields the file's records, in blocks.  Raises InvalidInput."""
    columns: dict[str, _Column] = {}
    with Kept(reading) as kept:
        for text in text_blocks(reading):
            for name, column in zip(text.table.schema.names, text.table.columns, strict=True):
                if name not in reading.declared:
                    if name not in columns:
                        columns[name] = _Column(reading.csv, numbers=reading.function(name) == "sum")
                    values = columns[name].see(column)
                    if values is not None:
                        text.values[name] = values
            kept.add(text, {name: column.kind for name, column in columns.items()})
        read = {name: column.settled(name) for name, column in columns.items()} | {
            name: _declared(field, reading) for name, field in reading.declared.items()
        }
        again = replace(reading, tell=silent)
        for text in kept.texts() or typed_blocks(again, kept.marks, _sure_types(read, reading)):
            yield _typed(text, read, reading)


class _Column:
    """The types that a column without a declared type may still have, after some of its values were seen."""

    def __init__(self, options: CsvOptions, *, numbers: bool = False) -> None:
        """`numbers`: a value that is not a number makes a bad record, and does not change the column's type."""
        self._numbers = numbers
        self._plain = Narrowing()
        self._decimal_comma = options.decimal == ","
        self._spelled = {
            name: (respell, kind, Narrowing()) for name, (respell, kind) in spellings(options).items()
        }
        self._any = False

    @property
    def kind(self) -> pa.DataType:
        """The type of the values that `see` gave, taken together."""
        return self._plain.kind

    def see(self, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """Narrows the column's type by more of its values.  Returns these values in their own type, or None if
        that type is not known yet."""
        if self._numbers:
            column = column.filter(pc.match_substring_regex(column, _NUMBER))
        values = self._plain.see(column)
        if column.null_count == len(column):
            return None
        self._any = True
        for name, (respell, kind, narrowing) in list(self._spelled.items()):
            respelled_values = respelled(column, respell)
            if respelled_values is None:
                del self._spelled[name]
            elif kind is None:
                narrowing.see(respelled_values)
        return None if self._numbers or self._spelled or self._decimal_comma else values

    def settled(self, name: str) -> _Read:
        """Returns the field of the column, and how its text must be rewritten before it is read."""
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
    """A field, and how to rewrite a column's text before it is read as the field's type; None: the text is read as
    it is."""

    field: pa.Field
    respell: Respell | None = None
    declared: bool = False


_READ_BY_ARROW = frozenset({pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), pa.string()})


def _sure_types(read: dict[str, _Read], reading: Reading) -> dict[str, pa.DataType]:
    """Returns the types of columns whose values were all seen, if Arrow's CSV reader alone can read their text in
    these types."""
    return {
        name: one.field.type
        for name, one in read.items()
        if one.field.type in _READ_BY_ARROW
        and one.respell is None
        and not one.declared
        and reading.function(name) != "sum"  # some of its values may be no numbers
    }


def _declared(field: pa.Field, reading: Reading) -> _Read:
    respell, _ = spellings(reading.csv).get(spelling_of(field.type), (None, None))
    points = field.name in reading.taken and reading.csv.decimal != ","
    if respell is None and points and pa.types.is_integer(field.type):
        respell = _whole  # as JSON's 2.0 is taken
    return _Read(field, respell, declared=True)


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(column, r"^([+-]?[0-9]+)\.0+$", r"\1")


def _typed(text: CsvText, read: dict[str, _Read], reading: Reading) -> Block:
    """Returns the records in their types.  A record with a value that does not fit is bad."""
    wrong: dict[int, str] = {}
    table = text.table
    kept = [read[name] for name in table.schema.names]
    columns = []
    for column, one in zip(table.columns, kept, strict=True):
        name, faults = one.field.name, dict[int, str]()
        columns.append(_values(text.values.get(name), column, one, faults))
        if reading.contract is not None:
            faults = reading.contract.bad(name, faults, reading.lost)
        wrong = {**faults, **wrong}
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


def _values(
    values: pa.ChunkedArray | None, column: pa.ChunkedArray, read: _Read, wrong: dict[int, str]
) -> pa.ChunkedArray:
    """Returns the text as values of the field.  `wrong` gets the reason for each row whose text is not of the
    declared type.

    `values` are the values that the first reading found, or None.  They are used if a cast can turn them into
    the field's type.
    """
    if values is not None and becomes(values.type, read.field.type):
        return values.cast(read.field.type)
    if not pa.types.is_string(column.type):  # the second reading knew its type
        return column
    if read.respell is None:
        return read_as(column, read.field, wrong, inferred=not read.declared)
    respelled = read.respell(column)
    if respelled.null_count > column.null_count:
        for row in pc.indices_nonzero(pc.and_(pc.is_null(respelled), pc.is_valid(column))).to_pylist():
            shown = column[row].as_py()[:60]
            wrong.setdefault(row, f"field {read.field.name!r}: {shown!r} is not spelled as the options say")
    if not read.declared and not pa.types.is_string(read.field.type):
        return respelled.cast(read.field.type)
    return read_as(respelled, read.field, wrong)
