"""Arrow values as JSON, a whole column or record batch at a time.

`json_text` gives the JSON of each value of a column (null stays null): what a field becomes when types do
not unite.  `json_lines` gives one JSON object a record for `lake scan`, leaving out null fields, since a
record without a field and one with a null there are the same to a columnar object.  Numbers, booleans, times
and plain strings are done by Arrow kernels; strings that need escapes and nested values go through Python.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.objects.types import is_json

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)

_NEEDS_ESCAPE = r'["\\\x00-\x1f\x7f]'


def json_text(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The JSON of every value, as strings."""
    kind = field.type
    if is_json(field):
        return column
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column), pa.string())])
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        return _float_text(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.chunked_array([_string_text(c) for c in column.cast(pa.string()).chunks], pa.string())
    if pa.types.is_timestamp(kind):
        return _quoted(_timestamp_text(column))
    if pa.types.is_date(kind):
        return _quoted(column.cast(pa.string()))
    return pa.chunked_array(
        [
            pa.array([None if v is None else dumps(plain(v, field)) for v in chunk.to_pylist()], pa.string())
            for chunk in column.chunks
        ],
        pa.string(),
    )


def json_lines(table: pa.Table) -> pa.ChunkedArray:
    """One JSON object a record, fields in the order of the schema, null fields left out."""
    if not table.num_columns:
        return pa.chunked_array([pa.array(["{}"] * table.num_rows, pa.string())])
    members = [
        pc.binary_join_element_wise(dumps(field.name) + ":", json_text(column, field), "")
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    if all(member.null_count for member in members):  # Arrow drops a row of which it skips every part
        parts = [pc.fill_null(pc.binary_join_element_wise(",", member, ""), "") for member in members]
        body = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), 1)
    else:
        body = pc.binary_join_element_wise(*members, ",", null_handling="skip")
    return pc.binary_join_element_wise("{", body, "}", "")


def _float_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Shortest text that reads back as the same double; JSON has no NaN and no infinities: null."""
    finite = pc.is_finite(column)
    values = pc.if_else(finite, column, None) if not pc.all(finite).as_py() else column
    text = values.cast(pa.float64()).cast(pa.string())
    whole = pc.match_substring_regex(text, r"^-?[0-9]+$")
    return pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)


def _string_text(column: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(column, _NEEDS_ESCAPE)
    quoted = _quoted(column)
    if not pc.any(special).as_py():
        return quoted
    escaped = pa.array([dumps(value) for value in column.filter(special).to_pylist()], pa.string())
    return pc.replace_with_mask(quoted, special.fill_null(False), escaped)


def _quoted(column: Column) -> Column:
    return pc.binary_join_element_wise('"', column, '"', "")


def _timestamp_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """ISO 8601 with T, a fraction where it is not zero, and Z where the time has a zone."""
    naive = column.cast(pa.timestamp(column.type.unit))  # zoned times are stored in UTC
    text = pc.replace_substring(naive.cast(pa.string()), " ", "T", max_replacements=1)
    text = pc.replace_substring_regex(text, r"\.0+$", "", max_replacements=1)
    return pc.binary_join_element_wise(text, "Z", "") if column.type.tz else text


def dumps(value: Any) -> str:
    """Compact JSON, non-ASCII as it is."""
    return msgspec.json.encode(value).decode()


def plain(value: Any, field: pa.Field) -> Any:
    """A Python value of Arrow's as plain JSON values, guided by the field."""
    kind = field.type
    if value is None:
        return None
    if is_json(field):
        return msgspec.Raw(value.encode())
    if pa.types.is_struct(kind):
        return {f.name: plain(value[f.name], f) for f in kind if value.get(f.name) is not None}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [plain(item, kind.value_field) for item in value]
    if pa.types.is_map(kind):
        return {str(plain(k, kind.key_field)): plain(v, kind.item_field) for k, v in value}
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat()
        return text + "Z" if value.tzinfo else text
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return msgspec.Raw(format(value, "f").encode())
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def from_json_text(text: str | None) -> Any:
    """The value behind JSON text."""
    return None if text is None else json.loads(text)
