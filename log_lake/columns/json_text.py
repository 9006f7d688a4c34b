"""Whole columns as JSON text: `shown` for people, `typed` for fields without a common type.

`shown` gives the JSON that `lake scan`, CSV and SQL print.  It writes times, dates and bytes as strings, and
also NaN and the infinities, which JSON lacks.  `typed` gives typed JSON, which reads back as exactly the same
value (`texts.typed_json`).  A field becomes typed JSON when its types do not unite (decision 51).

Arrow kernels do all the work, also for nested values.  Only strings that need escapes, bytes, durations and a
few decimals go through Python.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import TICKS, from_array
from lake_core.values.types import is_json
from log_lake.columns.nested import Items, alternatives, fields_of, is_list, mask_of
from log_lake.texts.typed_json import LENIENT, MAP, NO_JSON, QUOTED_TAG, RECORD, TAG, dumps, text_of, to_shown
from log_lake.texts.value import show

_ALONE = (
    (rf'^\{{"{TAG}(?:timestamp|date|time|duration|bytes|number)":"([^"\\]*)"\}}$', '"'),
    (rf'^\{{"{TAG}decimal":"([^"\\]*)"\}}$', ""),
)
"""Patterns of typed JSON that is one tagged value and nothing else, each with the quotes that people see around
it. The group of a pattern is the value's text."""

_NEEDS_ESCAPE = r'["\\\x00-\x1f\x7f]'
_NULL = "null"  # as a scalar it would load pandas, if that is installed


# --- columns to text


def shown(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Returns the JSON of every value, as people read it; null stays null."""
    return _of_chunks(column, field, typed_form=False)


def for_people(column: pa.ChunkedArray, field: pa.Field) -> list[str | None]:
    """Returns the values as JSON, plain strings without quotes; characters that cannot be printed stay
    escaped."""
    texts: list[str | None] = shown(column, field).to_pylist()
    bare = not (is_json(field) or pa.types.is_nested(field.type))
    return [t[1:-1] if t and bare and t.startswith('"') else t for t in texts]


def typed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Returns every value as JSON from which the same value is read back; null stays null."""
    return _of_chunks(column, field, typed_form=True)


def json_lines(table: pa.Table) -> pa.ChunkedArray:
    """Returns each record as a JSON object for people: fields in the order of the schema, without null
    fields."""
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
    """Returns the name of the class of values that JSON does not have, and their texts. Raises InvalidInput."""
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
    """Replaces texts of times that Arrow cannot write.  No object stores such times, but answers of SQL may have
    them.

    Years have more than four digits or a sign, the time at the end of a day is 24:00:00, and the outermost
    values are DuckDB's infinities.
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
    """Returns the texts without zeros at the end of a fraction, and without a fraction of zeros."""
    if not len(text) or not pc.any(pc.match_substring(text, ".")).as_py():
        return text
    return pc.replace_substring_regex(text, r"\.?0*$", "", max_replacements=1)


def _tagged(name: str, text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(f'{{"{TAG}{name}":"', text, '"}', "")


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _doubles(array: pa.Array, *, typed_form: bool) -> pa.Array:
    """Returns for each double the shortest text that reads back as it."""
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
    """Joins the members of each row to an object, without null members."""
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
    """Returns the JSON of records. `kind` is used, not the array's own type, which may lack the marks of the
    fields inside."""
    children = [
        _texts(values, child, typed_form=typed_form)
        for values, child in zip(fields_of(array), kind, strict=True)
    ]
    text = _objects([child.name for child in kind], children, len(array))
    if typed_form and any(child.name.startswith(TAG) for child in kind):
        alone = pa.array([len(json.loads(t)) == 1 for t in text.to_pylist()], pa.bool_())
        named = pc.match_substring_regex(text, f"^\\{{{QUOTED_TAG}")
        wrapped = pc.binary_join_element_wise(f'{{"{RECORD}":', text, "}", "")
        text = pc.if_else(pc.and_(alone, named), wrapped, text)
    return _where_valid(text, array)


def _alternatives(array: pa.Array, *, typed_form: bool) -> pa.Array:
    """Converts a union: each value as its own type requires."""
    parts = alternatives(array)
    texts = pa.concat_arrays([_texts(part.values, part.field, typed_form=typed_form) for part in parts])
    return texts.take(pa.array(np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")))


def _lists(array: pa.Array, item: pa.Field, *, typed_form: bool) -> pa.Array:
    items = Items(array)
    return _where_valid(_joined(items, _texts(items.values, item, typed_form=typed_form)), array)


def _joined(items: Items, texts: pa.Array) -> pa.Array:
    """Puts the texts of each row's items between brackets."""
    lists = pa.ListArray.from_arrays(items.offsets, texts.fill_null(_NULL))
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")


def _maps(array: pa.MapArray, kind: pa.MapType, *, typed_form: bool) -> pa.Array:
    entries = Items(array)
    keys, items = entries.entries
    values = _texts(items, kind.item_field, typed_form=typed_form).fill_null(_NULL)
    names = _texts(keys, kind.key_field, typed_form=typed_form)
    if typed_form:
        pairs = pc.binary_join_element_wise("[", names, ",", values, "]", "")
        text = pc.binary_join_element_wise(f'{{"{MAP}":', _joined(entries, pairs), "}", "")
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
    """Returns typed JSON for a column in which texts, at any depth, are plain JSON of another program."""
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


def _plain(text: pa.Array) -> pa.Array:
    special = pc.match_substring(text, QUOTED_TAG)
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
    special = pc.match_substring_regex(text, f"{QUOTED_TAG}|{NO_JSON}")
    if not pc.any(special).as_py():
        return text
    typed_texts = pa.array(
        [text_of(LENIENT.decode(t)) for t in text.filter(special).to_pylist()], pa.string()
    )
    return pc.replace_with_mask(text, special.fill_null(False), typed_texts)
