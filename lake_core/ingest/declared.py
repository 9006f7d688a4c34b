"""Declared types: may this value be what the pool says the field is?

JSON has no times, dates, decimals or bytes: those are read from strings (bytes from base64).  Otherwise a
value must be of the declared kind and in its range; a string is not a number, though it may look like one.
CSV has only text, so there every kind is read from it.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lake_core.objects.jsontext import json_text
from lake_core.objects.types import is_json, show_type


class DoesNotFit(ValueError):
    """The value is not of the declared type; the message says so in a few words."""


def convert(value: Any, field: pa.Field) -> Any:
    """A JSON value as the declared type's Python value; raises DoesNotFit."""
    kind = field.type
    if value is None or is_json(field):
        return value
    if pa.types.is_string(kind) and isinstance(value, str):
        return value
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return value
    if pa.types.is_integer(kind) and isinstance(value, int) and not isinstance(value, bool):
        try:
            pa.scalar(value, kind)
        except (pa.ArrowInvalid, OverflowError) as error:
            raise DoesNotFit(f"{value} is out of range for {show_type(field)}") from error
        return value
    if pa.types.is_floating(kind) and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if pa.types.is_decimal(kind) and isinstance(value, str | int | float) and not isinstance(value, bool):
        return _decimal(value, field)
    if isinstance(value, str):
        return _from_text(value, field)
    raise DoesNotFit(f"{_shown(value)} is not a {show_type(field)}")


def declared_columns(table: pa.Table, declared: Mapping[str, pa.Field]) -> pa.Table:
    """Typed records with the declared fields in their types; raises DoesNotFit."""
    for name, target in declared.items():
        index = table.schema.get_field_index(name)
        if index < 0:
            continue
        field, column = table.schema.field(index), table.column(index)
        try:
            column = json_text(column, field) if is_json(target) else column.cast(target.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DoesNotFit(
                f"field {name!r}: {show_type(field)} is not a {show_type(target)}: {error}"
            ) from error
        table = table.set_column(index, target, column)
    return table


def _from_text(text: str, field: pa.Field) -> Any:
    kind = field.type
    try:
        if pa.types.is_timestamp(kind):
            return parse_timestamp(text, kind)
        if pa.types.is_date(kind):
            return dt.date.fromisoformat(text)
        if pa.types.is_binary(kind):
            return base64.b64decode(text, validate=True)
    except (ValueError, pa.ArrowInvalid) as error:
        raise DoesNotFit(f"{_shown(text)} is not a {show_type(field)}") from error
    raise DoesNotFit(f"{_shown(text)} is not a {show_type(field)}")


def parse_timestamp(text: str, kind: pa.TimestampType) -> Any:
    """ISO 8601 text as an Arrow scalar of the type; without a zone it is UTC.  Raises ValueError."""
    moment = dt.datetime.fromisoformat(text)
    if kind.tz is None:
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    elif moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment


def _decimal(value: str | int | float, field: pa.Field) -> decimal.Decimal:
    try:
        number = decimal.Decimal(str(value))
        pa.scalar(number, field.type)
    except (decimal.InvalidOperation, pa.ArrowInvalid) as error:
        raise DoesNotFit(f"{_shown(value)} is not a {show_type(field)}") from error
    return number


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
