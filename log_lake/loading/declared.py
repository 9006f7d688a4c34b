"""Reads a value as the type that the pool declares for its field.

JSON has no times, dates, decimals or bytes.  These are read from strings (`texts.value`); decimals are read
from numbers too, exactly.  Integers are also read from strings of digits, because protobuf writes 64-bit
integers that way, and from numbers such as 1.0, which pandas writes.  NaN and the infinities are strings, as a
scan shows them.  Any other value must be of the declared class and in its range. CSV has only text, so there
every class is read from text (`csv_types`). No value is cut: if the type cannot hold it exactly, it does not
fit.  Only doubles take the nearest number.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Instant, Value, key_class
from lake_core.values.numbers import shown_decimal
from lake_core.values.types import is_json, show_type
from log_lake.columns.json_text import shown, typed
from log_lake.texts.classes import of_class
from log_lake.texts.fit import array_of, fitted
from log_lake.texts.typed_json import value_of
from log_lake.texts.value import WHOLE, NotReadable, read, show


class DoesNotFit(ValueError):
    """Raised for a value that does not fit the declared type; the message says why in a few words."""


class OtherClass(DoesNotFit):
    """Raised if no value of the column's type can be a value of the declared type."""


_READ_FROM_TEXT = ("decimal", "bytes", "date", "timestamp", "timestamp with zone", "time", "duration")


def convert(value: Any, field: pa.Field) -> Any:
    """Returns a JSON value, with exact numbers, as a value of the declared type.  Raises DoesNotFit."""
    if value is None or is_json(field):
        return value
    try:
        return fitted(_of_class(value, field), field)
    except NotReadable as error:
        raise DoesNotFit(f"{_shown(value)} is not a {show_type(field)}: it is {error}") from error


def read_declared(text: str, field: pa.Field) -> Value:
    """Returns text as a value of the declared type.  Raises NotReadable."""
    if pa.types.is_integer(field.type) and not WHOLE.fullmatch(text):  # 1.0 is the text of a double
        raise NotReadable("no integer")
    return fitted(read(text, key_class(field.type)), field)


def _whole(number: float | decimal.Decimal) -> int:
    """Returns a number without a fraction, such as 1.0 and 1e3, as an integer.  Raises NotReadable."""
    if not -(2**64) < number < 2**64 or number != int(number):
        raise NotReadable("no integer of 64 bits")
    return int(number)


def _of_class(value: Any, field: pa.Field) -> Value:
    kind = key_class(field.type)
    match kind, value:
        case "number", float() | decimal.Decimal() if pa.types.is_integer(field.type):
            return _whole(value)
        case "number", int() | float() | decimal.Decimal() if not isinstance(value, bool):
            return value
        case "number", str() if pa.types.is_integer(field.type):
            return read_declared(value, field)
        case "number", "NaN" | "Infinity" | "-Infinity" if pa.types.is_floating(field.type):
            return float(value)
        case "decimal", int() | float() if not isinstance(value, bool) and math.isfinite(value):
            return shown_decimal(value)
        case ("decimal", decimal.Decimal()) | ("boolean", bool()) | ("string", str()):
            return value
        case _, str() if kind in _READ_FROM_TEXT:
            return read(value, kind)
        case _, bytes() | Instant() | dt.date():  # typed JSON has them
            return of_class(value, kind)
    raise NotReadable(_json_kind(value))


def _json_kind(value: Any) -> str:
    match value:
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case dict():
            return "a record"
        case list():
            return "a list"
    return "a number"


def declared_columns(table: pa.Table, declared: Mapping[str, pa.Field], *, source: str) -> pa.Table:
    """Returns typed records with the declared fields converted to their types.

    `source` names the records in errors.  Raises InvalidInput.
    """
    try:
        return _columns(table, declared)
    except DoesNotFit as error:
        raise InvalidInput(f"{source}: {error}") from error


def _columns(table: pa.Table, declared: Mapping[str, pa.Field]) -> pa.Table:
    for name, target in declared.items():
        index = table.schema.get_field_index(name)
        if index < 0:
            continue
        field, column = table.schema.field(index), table.column(index)
        table = table.set_column(index, target, _converted(column, field, target))
    return table


def fitting_values(
    column: pa.ChunkedArray, field: pa.Field, target: pa.Field, *, first: bool
) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Returns the column in the declared type, with null where a value does not fit, and by row the reason why it
    does not.

    `first`: the caller needs only the first value that does not fit; later values may be null without a reason.
    Raises OtherClass.
    """
    try:
        return _converted(column, field, target), {}
    except OtherClass:
        raise
    except DoesNotFit:
        encoded = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(encoded.type):
        encoded = encoded.cast(encoded.type.value_type)
    try:
        encoded = encoded.dictionary_encode()  # a wrong value is often there many times
    except pa.ArrowNotImplementedError:  # of records, lists and maps
        return _fitting(pa.chunked_array([encoded]), field, target, first=first)
    values, faults = _fitting(pa.chunked_array([encoded.dictionary]), field, target, first=first)
    wrong = {
        row: faults[at]
        for row, at in enumerate(encoded.indices.to_pylist())
        if at is not None and at in faults
    }
    if first:
        wrong = {row: wrong[row] for row in sorted(wrong)[:1]}
    return pa.chunked_array([values.combine_chunks().take(encoded.indices)], target.type), wrong


def _fitting(
    values: pa.ChunkedArray, field: pa.Field, target: pa.Field, *, first: bool
) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Returns the values in the declared type, and why some do not fit, by their number. It finds these by halving
    the values again and again.

    `first`: as in `fitting_values`.
    """
    parts: list[pa.Array] = []
    faults: dict[int, str] = {}
    stack = [(0, len(values))]
    while stack:  # ends: each round takes a part, or halves one
        low, high = stack.pop()
        try:
            parts += _converted(values.slice(low, high - low), field, target).chunks
        except DoesNotFit as error:
            if high - low > 1:
                middle = (low + high) // 2
                stack += [(middle, high), (low, middle)]
                continue
            faults[low] = str(error)
            if first:
                parts.append(pa.nulls(len(values) - low, target.type))
                break
            parts.append(pa.nulls(1, target.type))
    return pa.chunked_array(parts, target.type), faults


def _converted(column: pa.ChunkedArray, field: pa.Field, target: pa.Field) -> pa.ChunkedArray:
    """Returns the column in the declared type.  Raises DoesNotFit if a value does not fit."""
    try:
        if is_json(target):
            return _as_json(column, field)
        return _from_json(column, field.name, target) if is_json(field) else _cast(column, field, target)
    except UnicodeDecodeError as error:
        raise DoesNotFit(f"field {field.name!r}: not UTF-8") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if "UTF8" in str(error):
            raise DoesNotFit(f"field {field.name!r}: not UTF-8") from error
        other = isinstance(error, pa.ArrowNotImplementedError)
        raise (OtherClass if other else DoesNotFit)(
            f"field {field.name!r}: {show_type(field)} is not a {show_type(target)}: {error}"
        ) from error


def _as_json(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Returns the column as typed JSON.  Raises ArrowInvalid or UnicodeDecodeError for a text that is not
    UTF-8."""
    if pa.types.is_dictionary(field.type) and not is_json(field):
        field = field.with_type(field.type.value_type)
        column = column.cast(field.type)
    texts = typed(column, field)
    texts.validate(full=True)
    return texts


def _from_json(column: pa.ChunkedArray, name: str, target: pa.Field) -> pa.ChunkedArray:
    """Returns values of typed JSON in the declared type; each distinct text is read once.  Raises
    DoesNotFit."""
    encoded = pa.concat_arrays(
        column.cast(pa.string()).chunks or [pa.array([], pa.string())]
    ).dictionary_encode()
    try:
        values = [convert(value_of(text), target) for text in encoded.dictionary.to_pylist()]
    except DoesNotFit as error:
        raise DoesNotFit(f"field {name!r}: {error}") from error
    return pa.chunked_array([array_of(values, target.type).take(encoded.indices)], target.type)


def _cast(column: pa.ChunkedArray, field: pa.Field, target: pa.Field) -> pa.ChunkedArray:
    """Returns the column in the declared type.  Both must have the same class, or be numbers or decimals.

    Arrow alone would also turn numbers into booleans.  Raises DoesNotFit.
    """
    if field.type == target.type or pa.types.is_null(field.type):
        return column.cast(target.type)
    here, there = _class(field), _class(target)
    if here == "string" and (there in _READ_FROM_TEXT or pa.types.is_integer(target.type)):
        return _from_texts(column, field.name, target)
    if here != there and {here, there} not in _ALIKE:
        raise OtherClass(f"field {field.name!r}: {show_type(field)} is not a {show_type(target)}")
    if {here, there} == {"number", "decimal"}:
        if pa.types.is_integer(field.type):  # Arrow alone wants room for every value of the integer's type
            with contextlib.suppress(pa.ArrowInvalid):
                return column.cast(pa.decimal128(38, 0)).cast(target.type)
        return _from_texts(shown(column, field), field.name, target)
    values = column.cast(target.type)
    if pa.types.is_floating(target.type):
        lost = pc.and_not(pc.is_inf(values), pc.is_inf(column)) if pa.types.is_floating(field.type) else None
    else:
        lost = pc.not_equal(values.cast(field.type), column)  # Arrow cuts the time of a date off
    if lost is not None and pc.any(lost).as_py():
        (text, *_) = shown(column.filter(lost), field).to_pylist()
        why = "has a time of day" if there == "date" and here != "date" else "is out of range"
        raise DoesNotFit(f"field {field.name!r}: {text} {why} for {show_type(target)}")
    return values


def _from_texts(column: pa.ChunkedArray, name: str, target: pa.Field) -> pa.ChunkedArray:
    """Returns texts in the declared type, read as in JSON; each distinct text is read once.  Raises
    DoesNotFit."""
    encoded = pa.concat_arrays(
        column.cast(pa.string()).chunks or [pa.array([], pa.string())]
    ).dictionary_encode()
    values: list[Value] = []
    for text in encoded.dictionary.to_pylist():
        try:
            values.append(read_declared(text, target))
        except NotReadable as error:
            raise DoesNotFit(
                f"field {name!r}: {_shown(text)} is not a {show_type(target)}: {error}"
            ) from error
    return pa.chunked_array([array_of(values, target.type).take(encoded.indices)], target.type)


_ALIKE = (
    {"number", "decimal"},
    {"timestamp", "timestamp with zone"},
    {"date", "timestamp"},
    {"date", "timestamp with zone"},
)


def _class(field: pa.Field) -> str:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        return key_class(kind)
    except InvalidInput:
        return str(kind)


def _shown(value: Any) -> str:
    if isinstance(value, bytes | Instant | dt.date):
        text = repr(show(value))
    else:
        text = repr(value) if not isinstance(value, decimal.Decimal) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
