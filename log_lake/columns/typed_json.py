"""Whole columns as JSON text: `shown` for people, `typed` for fields without a common type.

`shown` gives the JSON of each value for people and programs: `lake scan`, CSV, SQL.  Times, dates and bytes are
strings there, and so are NaN and the infinities, which JSON does not have.

`typed` gives JSON that reads back as exactly the same value.  A field becomes typed JSON when its types do not
unite (decision 51).  JSON's own kinds stay as they are.  Every other value is a record of one member, whose name
says the
class:

    {"lake:timestamp":"2026-01-31T12:00:00.5Z"}    with a zone; without one there is no Z
    {"lake:date":"2026-01-31"}  {"lake:time":"12:00:00"}  {"lake:duration":"1.5s"}  {"lake:bytes":"AP8="}
    {"lake:number":"NaN"}                          doubles that JSON does not have
    {"lake:decimal":"1.10"}                        a decimal; a plain number is an integer or a double
    {"lake:map":[[KEY,VALUE],...]}
    {"lake:record":{...}}                          a record whose one member has a name like these

Null members of records are left out: to a columnar object, a record without a field and one with a null there are
the same.  `value_of` reads typed JSON, `to_shown` and `to_typed` turn one form into the other.  Plain JSON without
such members is the same in both forms, so text of other programs needs no change.

Arrow kernels do everything, nested values too; only strings that need escapes, bytes, durations and a few decimals
go through Python.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import decimal
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import TICKS, Instant, Value, class_of, from_array
from lake_core.values.text import NotReadable, exact_number, read, read_double, show
from lake_core.values.types import is_json
from log_lake.columns.nested import Items, alternatives, fields_of, is_list, mask_of

TAG = "lake:"
"""A member's name that says a class begins with this."""

_QUOTED_TAG = f'"{TAG}'
_MAP, _RECORD = f"{TAG}map", f"{TAG}record"
_CLASSES = {
    f"{TAG}{name}": name for name in ("timestamp", "date", "time", "duration", "bytes", "decimal", "number")
}
_ALONE = (
    (rf'^\{{"{TAG}(?:timestamp|date|time|duration|bytes|number)":"([^"\\]*)"\}}$', '"'),
    (rf'^\{{"{TAG}decimal":"([^"\\]*)"\}}$', ""),
)
"""Patterns of texts that are one tagged value (the group is the value's text), and its quotes for people."""

_NEEDS_ESCAPE = r'["\\\x00-\x1f\x7f]'
_NULL = "null"  # as a scalar it would load pandas, if that is installed


class Map(list[tuple[Any, Any]]):
    """The entries of a map, as `value_of` gives them."""

    __slots__ = ()


# --- columns to text


def shown(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """The JSON of every value for people; null stays null."""
    return _of_chunks(column, field, typed_form=False)


def typed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Every value as JSON that reads back as the same value; null stays null."""
    return _of_chunks(column, field, typed_form=True)


def json_lines(table: pa.Table) -> pa.ChunkedArray:
    """One JSON object a record for people, fields in the order of the schema, null fields left out."""
    texts = []
    for batch in table.to_batches():
        columns = [_texts(c, f, typed_form=False) for f, c in zip(batch.schema, batch.columns, strict=True)]
        texts.append(_objects(batch.schema.names, columns, batch.num_rows))
    if not table.num_columns:
        texts = [pa.array(["{}"] * table.num_rows, pa.string())]
    return pa.chunked_array(texts, pa.string())


def _of_chunks(column: pa.ChunkedArray, field: pa.Field, *, typed_form: bool) -> pa.ChunkedArray:
    return pa.chunked_array([_texts(c, field, typed_form=typed_form) for c in column.chunks], pa.string())


def _texts(array: pa.Array, field: pa.Field, *, typed_form: bool) -> pa.Array:
    kind = field.type
    if is_json(field):
        text = array.cast(pa.string())
        return text if typed_form else _plain(text)
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.string())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return array.cast(pa.string())
    if pa.types.is_floating(kind):
        return _doubles(array, typed_form=typed_form)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _strings(array.cast(pa.string()))
    if pa.types.is_struct(kind):
        return _records(array, kind, typed_form=typed_form)
    if pa.types.is_map(kind):
        return _maps(array, kind, typed_form=typed_form)
    if is_list(kind):
        return _lists(array, kind.value_field, typed_form=typed_form)
    if pa.types.is_union(kind):
        return _alternatives(array, typed_form=typed_form)
    if pa.types.is_decimal(kind):
        text = _decimals(array)
        return _tagged("decimal", text) if typed_form else text
    name, text = _scalars(array)
    return _tagged(name, text) if typed_form else _quoted(text)


def _scalars(array: pa.Array) -> tuple[str, pa.Array]:
    """For values that JSON does not have: the name of their class, and their texts.  Raises InvalidInput."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        naive = array.cast(pa.timestamp(kind.unit))  # zoned times are stored in UTC
        text = _without_zeros(pc.replace_substring(naive.cast(pa.string()), " ", "T", max_replacements=1))
        text = pc.binary_join_element_wise(text, "Z", "") if kind.tz else text
        return "timestamp", _beyond(text, array, zone="Z" if kind.tz else "")
    if pa.types.is_date(kind):
        days = array.cast(pa.date32())
        return "date", _beyond(days.cast(pa.string()), days)
    if pa.types.is_time(kind):
        return "time", _beyond(_without_zeros(array.cast(pa.string())), array)
    if pa.types.is_duration(kind):
        return "duration", pa.array([None if v is None else show(v) for v in from_array(array)], pa.string())
    if not (
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    ):
        raise InvalidInput(f"a value of type {kind} has no text")
    values = array.cast(pa.binary()).to_pylist()
    return "bytes", pa.array(
        [None if v is None else base64.b64encode(v).decode() for v in values], pa.string()
    )


def _beyond(text: pa.Array, array: pa.Array, *, zone: str = "") -> pa.Array:
    """The texts, those included that Arrow cannot write.  No object holds such times; answers of SQL may.

    Years have more than four digits or a sign, the day that ends a day is 24:00:00, and the outermost values are
    DuckDB's infinities.
    """
    outside = pc.match_substring(text, "out of range:")
    if not pc.any(outside).as_py():
        return text
    kind = array.type
    ticks = array.filter(outside).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    unit: Any = "D" if pa.types.is_date(kind) else kind.unit
    largest = 2 ** (kind.bit_width - 1) - 1
    texts = []
    for tick in ticks:
        if abs(tick) == largest and not pa.types.is_time(kind):
            texts.append("infinity" if tick > 0 else "-infinity")
        elif pa.types.is_time(kind):
            texts.append(f"{tick // (3600 * TICKS[unit])}:00:00")
        else:
            whole, point, fraction = str(np.datetime64(tick, unit)).partition(".")
            fraction = fraction.rstrip("0")
            texts.append(whole + (point + fraction if fraction else "") + zone)
    return pc.replace_with_mask(text, outside.fill_null(False), pa.array(texts, pa.string()))


def _without_zeros(text: pa.Array) -> pa.Array:
    """The texts without zeros at the end of a fraction, and without a fraction of zeros."""
    if not len(text) or not pc.any(pc.match_substring(text, ".")).as_py():
        return text
    return pc.replace_substring_regex(text, r"\.?0*$", "", max_replacements=1)


def _tagged(name: str, text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(f'{{"{TAG}{name}":"', text, '"}', "")


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _doubles(array: pa.Array, *, typed_form: bool) -> pa.Array:
    """The shortest text that reads back as the same double."""
    text = array.cast(pa.float64()).cast(pa.string())
    whole = pc.match_substring_regex(text, r"^-?[0-9]+$")
    if pc.any(whole).as_py():
        text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    finite = pc.is_finite(array)
    if pc.all(finite).as_py() is not False:
        return text
    names = pa.array([None if v is None else show(v) for v in array.to_pylist()], pa.string())
    return pc.if_else(finite, text, _tagged("number", names) if typed_form else _quoted(names))


def _decimals(array: pa.Array) -> pa.Array:
    text = array.cast(pa.string())
    scientific = pc.match_substring(text, "E")
    if not pc.any(scientific).as_py():
        return text
    plain = [format(v, "f") for v in array.filter(scientific).to_pylist()]
    return pc.replace_with_mask(text, scientific.fill_null(False), pa.array(plain, pa.string()))


def _strings(array: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(array, _NEEDS_ESCAPE)
    quoted = _quoted(array)
    if not pc.any(special).as_py():
        return quoted
    escaped = pa.array([dumps(value) for value in array.filter(special).to_pylist()], pa.string())
    return pc.replace_with_mask(quoted, special.fill_null(False), escaped)


def _objects(names: Sequence[str], texts: Sequence[pa.Array], rows: int) -> pa.Array:
    """The members of each row as an object; null members are left out."""
    members = [
        pc.binary_join_element_wise(dumps(name) + ":", text, "")
        for name, text in zip(names, texts, strict=True)
    ]
    if not members:
        return pa.array(["{}"] * rows, pa.string())
    if all(member.null_count for member in members):  # Arrow drops a row if it skips every part of it
        parts = [pc.fill_null(pc.binary_join_element_wise(",", member, ""), "") for member in members]
        body = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), 1)
    else:
        body = pc.binary_join_element_wise(*members, ",", null_handling="skip")
    return pc.binary_join_element_wise("{", body, "}", "")


def _records(array: pa.StructArray, kind: pa.StructType, *, typed_form: bool) -> pa.Array:
    """`kind` rather than the array's own type: the marks of fields inside may be there alone."""
    children = [
        _texts(values, child, typed_form=typed_form)
        for values, child in zip(fields_of(array), kind, strict=True)
    ]
    text = _objects([child.name for child in kind], children, len(array))
    if typed_form and any(child.name.startswith(TAG) for child in kind):
        alone = pa.array([len(json.loads(t)) == 1 for t in text.to_pylist()], pa.bool_())
        named = pc.match_substring_regex(text, f"^\\{{{_QUOTED_TAG}")
        wrapped = pc.binary_join_element_wise(f'{{"{_RECORD}":', text, "}", "")
        text = pc.if_else(pc.and_(alone, named), wrapped, text)
    return _where_valid(text, array)


def _alternatives(array: pa.Array, *, typed_form: bool) -> pa.Array:
    """A union: each value as its own type says."""
    parts = alternatives(array)
    texts = pa.concat_arrays([_texts(part.values, part.field, typed_form=typed_form) for part in parts])
    return texts.take(pa.array(np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")))


def _lists(array: pa.Array, item: pa.Field, *, typed_form: bool) -> pa.Array:
    items = Items(array)
    return _where_valid(_joined(items, _texts(items.values, item, typed_form=typed_form)), array)


def _joined(items: Items, texts: pa.Array) -> pa.Array:
    """The texts of each row's items between brackets."""
    lists = pa.ListArray.from_arrays(items.offsets, texts.fill_null(_NULL))
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")


def _maps(array: pa.MapArray, kind: pa.MapType, *, typed_form: bool) -> pa.Array:
    entries = Items(array)
    keys, items = entries.entries
    values = _texts(items, kind.item_field, typed_form=typed_form).fill_null(_NULL)
    names = _texts(keys, kind.key_field, typed_form=typed_form)
    if typed_form:
        pairs = pc.binary_join_element_wise("[", names, ",", values, "]", "")
        text = pc.binary_join_element_wise(f'{{"{_MAP}":', _joined(entries, pairs), "}", "")
    else:
        if not pc.all(pc.starts_with(names, '"')).as_py():
            bare = pc.replace_substring(pc.replace_substring(names, "\\", "\\\\"), '"', '\\"')
            names = pc.if_else(pc.starts_with(names, '"'), names, _quoted(bare))
        body = _joined(entries, pc.binary_join_element_wise(names, values, ":"))
        text = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(body, 1, -1), "}", "")
    return _where_valid(text, array)


def _where_valid(text: pa.Array, array: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), text, None) if array.null_count else text


# --- JSON inside of columns


def typed_inside(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column of the field's type whose JSON, at any depth, is another program's, as typed JSON."""
    if not _holds_json(field):
        return column
    chunks = [_guarded_inside(chunk, field) for chunk in column.chunks]
    return pa.chunked_array(chunks, chunks[0].type if chunks else column.type)


def _holds_json(field: pa.Field) -> bool:
    return is_json(field) or any(_holds_json(field.type.field(i)) for i in range(field.type.num_fields))


def _guarded_inside(array: pa.Array, field: pa.Field) -> pa.Array:
    kind = field.type
    if is_json(field):
        return _guarded(array.cast(pa.string()))
    if not _holds_json(field):
        return array
    if pa.types.is_struct(kind):
        members = [_guarded_inside(a, f) for a, f in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask_of(array))
    items = Items(array)
    if pa.types.is_map(kind):
        keys, values = items.entries
        return items.as_maps(keys, _guarded_inside(values, kind.item_field), kind)
    return items.as_lists(_guarded_inside(items.values, kind.value_field), kind)


# --- one text to a value, and back


def dumps(value: Any) -> str:
    """Compact JSON of plain values, non-ASCII as it is."""
    return msgspec.json.encode(value).decode()


def value_of(text: str) -> Any:
    """The value of typed JSON: a `Value`, a `Map`, a dict or a list.  Raises ValueError if it is not JSON."""
    value = PLAIN.decode(text)
    return _untagged(value) if _QUOTED_TAG in text else value


def is_typed(text: str) -> bool:
    """Whether the text of another program is typed JSON on one line."""
    try:
        value_of(text)
    except (ValueError, TypeError, RecursionError):  # a tag may hold something else; too deep
        return False
    return "\n" not in text and "\r" not in text


def text_of(value: Any) -> str:
    """Typed JSON of what `value_of` gives."""
    return dumps(_taggable(value))


def to_shown(text: str) -> str:
    """Typed JSON as people read it."""
    return dumps(_showable(value_of(text))) if _QUOTED_TAG in text else text


def to_typed(text: str) -> str:
    """Plain JSON, on one line, as typed JSON; numbers stay as written.  Raises ValueError if it is not JSON."""
    one_line = msgspec.json.format(text, indent=-1)
    if _QUOTED_TAG not in one_line:
        PLAIN.decode(one_line)
        return one_line
    return text_of(PLAIN.decode(one_line))


def _plain(text: pa.Array) -> pa.Array:
    special = pc.match_substring(text, _QUOTED_TAG)
    if not pc.any(special).as_py():
        return text
    for pattern, quote in _ALONE:
        scalar = pc.and_(special, pc.match_substring_regex(text, pattern))
        if pc.any(scalar).as_py():
            inner = pc.replace_substring_regex(text.filter(scalar), pattern, f"{quote}\\1{quote}")
            text = pc.replace_with_mask(text, scalar.fill_null(False), inner)
            special = pc.and_not(special, scalar)
    if not pc.any(special).as_py():
        return text
    plain = pa.array([to_shown(t) for t in text.filter(special).to_pylist()], pa.string())
    return pc.replace_with_mask(text, special.fill_null(False), plain)


def _guarded(text: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(text, f"{_QUOTED_TAG}|{_NO_JSON}")
    if not pc.any(special).as_py():
        return text
    typed_texts = pa.array(
        [text_of(_LENIENT.decode(t)) for t in text.filter(special).to_pylist()], pa.string()
    )
    return pc.replace_with_mask(text, special.fill_null(False), typed_texts)


def _untagged(value: Any) -> Any:
    """Plain JSON values with records of one tagged member as the values that they stand for."""
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name == _RECORD and isinstance(inner, dict):
            return {member: _untagged(item) for member, item in inner.items()}
        if name == _MAP and isinstance(inner, list):
            return Map((_untagged(key), _untagged(item)) for key, item in inner)
        if (class_name := _CLASSES.get(name)) is not None and isinstance(inner, str):
            zoned = class_name == "timestamp" and inner.endswith("Z")
            with contextlib.suppress(NotReadable):
                return read(inner, "timestamp with zone" if zoned else class_name)
    return {member: _untagged(item) for member, item in value.items()}


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object; raises ValueError if two have one name, since neither can be left out."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"field {next(name for name in names if names.count(name) > 1)!r} is there more than once"
        )
    return record


def _any_number(text: str) -> Any:
    try:
        return exact_number(text)
    except NotReadable:
        return float(text)


_NO_JSON = r"(?:^|[\[:,{\s])-?(?:NaN|Infinity)"
"""What DuckDB writes into JSON for doubles that JSON does not have."""

_LENIENT = json.JSONDecoder(parse_float=_any_number, parse_int=_any_number, parse_constant=read_double)
"""Reads the JSON of SQL's answers; if two members have one name, it takes the last."""


PLAIN = json.JSONDecoder(
    parse_float=exact_number, parse_int=exact_number, parse_constant=_no_constant, object_pairs_hook=_distinct
)
"""Reads plain JSON, its numbers exactly (`text.exact_number`); doubled names and NaN raise ValueError."""


def _taggable(value: Any) -> Any:
    """The value in plain JSON values; one that JSON does not have becomes a record of one member."""
    if isinstance(value, Map):
        return {_MAP: [[_taggable(k), _taggable(v)] for k, v in value]}
    if isinstance(value, dict):
        record = {name: _taggable(member) for name, member in value.items()}
        return {_RECORD: record} if len(record) == 1 and next(iter(record)).startswith(TAG) else record
    if isinstance(value, list):
        return [_taggable(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return _plain_decimal(value)
    if isinstance(value, Instant | bytes | dt.date) or (isinstance(value, float) and value - value != 0):
        return {f"{TAG}{class_of(value).partition(' ')[0]}": show(value)}
    return value


def _plain_decimal(value: decimal.Decimal) -> Any:
    """The decimal as a plain number if that reads back as a decimal, otherwise tagged."""
    text = format(value, "f")
    if isinstance(exact_number(text), decimal.Decimal):
        return msgspec.Raw(text.encode())
    return {f"{TAG}decimal": text}


def _showable(value: Any) -> Any:
    if isinstance(value, Map):
        return {k if isinstance(k, str) else dumps_shown(k): _showable(v) for k, v in value}
    if isinstance(value, dict):
        return {name: _showable(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_showable(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return msgspec.Raw(format(value, "f").encode())
    if isinstance(value, Instant | bytes | dt.date) or (isinstance(value, float) and value - value != 0):
        return show(value)
    return value


def dumps_shown(value: Any) -> str:
    """A value that `value_of` gave, as JSON for people."""
    return dumps(_showable(value))


__all__ = [
    "PLAIN",
    "Map",
    "Value",
    "dumps",
    "dumps_shown",
    "json_lines",
    "shown",
    "text_of",
    "to_shown",
    "to_typed",
    "typed",
    "typed_inside",
    "value_of",
]
