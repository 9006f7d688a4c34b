"""What the text of a CSV column is: the narrowest type that gives every value back as it was.

A column is boolean, a 64-bit integer (signed, else unsigned), a double, a date, a timestamp (without zone,
else with one), or else a string.  A number counts only where its text is that number's own: `007`, `+5` and
`0x10` are names, an integer that a double would round (beyond 2^53) keeps its column a string, and so does
`1e400`.  A column without any value has the null type.  Types are found block by block and joined
(`Narrowing`).

A declared field is another matter: there the text is read as the pool says (`read_as`, `value_as`), whatever
else it could be.  Called by `csvfile`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.ingest.declared import DoesNotFit, convert
from lake_core.objects.schema import EXACT_IN_DOUBLE
from lake_core.objects.types import is_json, show_type

_BOOLEANS = ("true", "false", "True", "False", "TRUE", "FALSE")
_SAMPLE = 64
_INT, _UINT, _DOUBLE = pa.int64(), pa.uint64(), pa.float64()
_DATE, _TIME, _INSTANT = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")


class Narrowing:
    """What a column may be, after some of its values; `kind` is the answer so far."""

    def __init__(self) -> None:
        self.kind: pa.DataType = pa.null()
        self._largest = 0  # of the integers seen, whatever the sign
        self._negative = False

    def see(self, column: pa.ChunkedArray) -> None:
        """Take more values into account."""
        if pa.types.is_string(self.kind) or column.null_count == len(column):
            return
        kind, values = narrowest(column)
        if pa.types.is_integer(kind):
            bounds = pc.min_max(values).as_py()
            self._largest = max(self._largest, abs(bounds["min"]), abs(bounds["max"]))
            self._negative = self._negative or bounds["min"] < 0
        self.kind = self._joined(kind)

    def _joined(self, kind: pa.DataType) -> pa.DataType:
        both = {self.kind, kind} - {pa.null()}
        if len(both) == 1:
            return both.pop()
        if both == {_INT, _UINT} and not self._negative:
            return _UINT
        if both in ({_INT, _DOUBLE}, {_UINT, _DOUBLE}) and self._largest <= EXACT_IN_DOUBLE:
            return _DOUBLE
        if both == {_DATE, _TIME}:
            return _TIME
        return pa.string()


def narrowest(column: pa.ChunkedArray) -> tuple[pa.DataType, pa.ChunkedArray]:
    """The first type of the ladder that all values are of, and the values; there is at least one value.

    A few values show what a column is not, so that most types are not tried on all of it.
    """
    sample = column.slice(0, 16 * _SAMPLE).drop_null()
    if not len(sample):
        sample = column.drop_null()
    sample = sample.slice(0, _SAMPLE)
    for kind, parse in _LADDER:
        try:
            parse(sample, kind)
            return kind, parse(column, kind)
        except (pa.ArrowInvalid, _OtherwiseWritten):
            continue
    return pa.string(), column


class _OtherwiseWritten(ValueError):
    """The value could be taken for one of the type, but its text is not how that value is written."""


def _boolean(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    _require(pc.is_in(column, value_set=pa.array(_BOOLEANS), skip_nulls=False), column)
    return column.cast(kind)


def _integer(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    values = column.cast(kind)
    _require(pc.equal(values.cast(pa.string()), column), column)
    return values


def _double(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    values = column.cast(kind)
    _require(pc.is_finite(values), column)  # 1e400, nan
    _refuse(column, r"^\+|^-?0[0-9]|\.$|\.[eE]")
    _refuse(column.filter(pc.equal(values, 0)), r"^[^eE]*[1-9]")  # 1e-400
    _refuse(column.filter(pc.greater(pc.abs(values), float(EXACT_IN_DOUBLE))), r"^-?[0-9]+$")
    # 2^53 + 1 is rounded to 2^53 before it can be seen to be larger
    _refuse(column.filter(pc.equal(pc.abs(values), float(EXACT_IN_DOUBLE))), f"{EXACT_IN_DOUBLE + 1}$")
    return values


def _time(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column.cast(kind)


def _require(holds: pa.ChunkedArray, column: pa.ChunkedArray) -> None:
    """`holds` for every value that is not null."""
    if not pc.all(pc.or_kleene(holds, pc.is_null(column))).as_py():
        raise _OtherwiseWritten


def _refuse(column: pa.ChunkedArray, pattern: str) -> None:
    if len(column) and pc.any(pc.match_substring_regex(column, pattern)).as_py():
        raise _OtherwiseWritten


_Parse = Callable[[pa.ChunkedArray, pa.DataType], pa.ChunkedArray]
_LADDER: tuple[tuple[pa.DataType, _Parse], ...] = (
    (pa.bool_(), _boolean),
    (_INT, _integer),
    (_UINT, _integer),
    (_DOUBLE, _double),
    (_DATE, _time),
    (_TIME, _time),
    (_INSTANT, _time),
)


def read_as(column: pa.ChunkedArray, field: pa.Field, wrong: dict[int, str]) -> pa.ChunkedArray:
    """The text as the field's type; a value that is not of it becomes null, its row says why in `wrong`."""
    if not (is_json(field) or pa.types.is_binary(field.type)):
        try:
            values = column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
        else:
            if not _reads_more_than_decimal(column, values):
                return values
    values = []
    for row, text in enumerate(column.to_pylist()):
        value = None
        try:
            value = None if text is None else value_as(text, field)
        except (ValueError, pa.ArrowException) as error:
            shown = text if len(text) <= 60 else text[:57] + "..."
            why = f": {error}" if is_json(field) else ""
            wrong.setdefault(row, f"field {field.name!r}: {shown!r} is not a {show_type(field)}{why}")
        values.append(value)
    return pa.chunked_array([pa.array(values, field.type)])


def _reads_more_than_decimal(column: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    """Whether Arrow may have taken a number for what it is not: 0x10, or 1e400 for infinity."""
    if pa.types.is_integer(values.type):
        return bool(pc.any(pc.match_substring_regex(column, "[xX]")).as_py())
    return pa.types.is_floating(values.type) and pc.any(pc.is_inf(values)).as_py() is True


def value_as(text: str, field: pa.Field) -> Any:
    """One text as the field's type; raises ValueError or ArrowInvalid."""
    kind = field.type
    if is_json(field):
        return _json(text)
    if pa.types.is_integer(kind):
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise DoesNotFit(text)
        return convert(int(text), field)
    if pa.types.is_floating(kind):
        value = float(text)
        if value in (float("inf"), float("-inf")) and any(c.isdigit() for c in text):
            raise DoesNotFit(text)
        return value
    if pa.types.is_boolean(kind):
        return pa.scalar(text).cast(kind).as_py()
    return convert(text, field)


def _json(text: str) -> str | None:
    """JSON text on one line, its numbers as they are written; null is none."""
    value = json.loads(text, parse_constant=_no_constant)
    return None if value is None else msgspec.json.format(text, indent=-1)


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
