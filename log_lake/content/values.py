"""Computes a number of 64 bits for each value of a column, at any depth; 0 for null.

A nested record, a list and a map have the same hash as typed JSON with the same content.  The fields of a
record and the entries of a map count in any order, the items of a list in their own order.  A null field counts
as a missing one.  JSON is parsed one text at a time, each distinct text of an array once.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import Corrupt
from lake_core.keys.encoding import DURATION, NAIVE, TIME, ZONED, Instant
from lake_core.values.types import is_json
from log_lake.columns.arrays import Ints
from log_lake.columns.nested import Items, fields_of, is_list
from log_lake.content.scalars import (
    ValueHashes,
    constant,
    mixed,
    of_byte_values,
    of_class,
    of_days,
    of_decimals,
    of_doubles,
    of_integers,
    of_micros,
    of_texts,
    plain_hashes,
)
from log_lake.texts.typed_json import MapEntries, value_of

_CLOCKS = {NAIVE: "timestamp", ZONED: "timestamp with zone", TIME: "time", DURATION: "duration"}
_EPOCH = dt.date(1970, 1, 1).toordinal()
_BITS = 2**64


def value_hashes(array: pa.Array, field: pa.Field) -> ValueHashes:
    """Returns the hash of each value; `field` says which parts are JSON.  Raises Corrupt for a text that is not
    JSON."""
    kind = field.type
    if pa.types.is_dictionary(array.type):
        inner = value_hashes(array.dictionary, field.with_type(array.type.value_type))
        places = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        hashes = inner[places] if len(inner) else np.zeros(len(array), np.uint64)
    elif pa.types.is_run_end_encoded(array.type):
        return value_hashes(pc.run_end_decode(array), field.with_type(array.type.value_type))
    elif is_json(field):
        hashes = _of_json(array, field.name)
    elif pa.types.is_struct(kind):
        members = zip(kind, fields_of(array), strict=True)
        hashes = _of_record((inner.name, value_hashes(values, inner)) for inner, values in members)
        hashes = of_class(np.zeros(len(array), np.uint64) if hashes is None else hashes, "record")
    elif pa.types.is_map(kind):
        items = Items(array)
        keys, values = items.entries
        offsets = np.asarray(items.offsets, np.int64)
        hashes = _of_map(value_hashes(keys, kind.key_field), value_hashes(values, kind.item_field), offsets)
    elif is_list(kind):
        items = Items(array)
        hashes = _of_list(value_hashes(items.values, kind.value_field), np.asarray(items.offsets, np.int64))
    else:
        hashes = plain_hashes(array)
    if array.null_count:
        hashes[pc.is_null(array).to_numpy(zero_copy_only=False)] = 0
    return hashes


def _of_record(members: Iterable[tuple[str, ValueHashes]]) -> ValueHashes | None:
    """Returns the sum of the hashes of named members, each times the constant of its name; None without
    members."""
    total: ValueHashes | None = None
    for name, hashes in members:
        hashes *= constant(f"field {name}")
        total = hashes if total is None else np.add(total, hashes, out=total)
    return total


def record_hashes(batch: pa.RecordBatch, schema: pa.Schema) -> ValueHashes:
    """Returns the hash of each record; the fields of the schema say which parts are JSON."""
    columns = zip(schema, batch.columns, strict=True)
    total = _of_record((field.name, value_hashes(column, field)) for field, column in columns)
    return np.zeros(batch.num_rows, np.uint64) if total is None else total


def _sums(hashes: ValueHashes, offsets: Ints) -> ValueHashes:
    """Returns for each row the sum of the hashes of its items; `offsets` bound the items of each row."""
    upto = np.zeros(len(hashes) + 1, np.uint64)
    np.cumsum(hashes, out=upto[1:])
    return upto[offsets[1:]] - upto[offsets[:-1]] + np.diff(offsets).astype(np.uint64)


def _of_list(items: ValueHashes, offsets: Ints) -> ValueHashes:
    places = np.arange(1, len(items) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    items += places.astype(np.uint64) * constant("place")
    return of_class(_sums(mixed(items), offsets), "list")


def _of_map(keys: ValueHashes, values: ValueHashes, offsets: Ints) -> ValueHashes:
    entries = keys * constant("key") + values * constant("value")
    return of_class(_sums(mixed(entries), offsets), "map")


# --- values of Python, as typed JSON has them


def _of_json(array: pa.Array, name: str) -> ValueHashes:
    encoded = array.cast(pa.string()).dictionary_encode()
    try:
        values = [value_of(text) for text in encoded.dictionary.to_pylist()]
    except (ValueError, TypeError, RecursionError) as error:
        raise Corrupt(f"field {name!r} holds a text that is not JSON: {error}") from error
    own = _of_values(values)
    places = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return own[places] if len(own) else np.zeros(len(array), np.uint64)


def _of_values(values: Sequence[Any]) -> ValueHashes:
    """Returns the hashes of values of any classes; those of one class are hashed together."""
    places: dict[type, list[int]] = {}
    for at, value in enumerate(values):
        places.setdefault(type(value), []).append(at)
    hashes = np.zeros(len(values), np.uint64)
    for kind, rows in places.items():
        if kind is not type(None):
            hashes[rows] = _OF_TYPE[kind]([values[row] for row in rows])
    return hashes


def _of_booleans(values: Sequence[bool]) -> ValueHashes:
    return of_class(np.array(values, np.uint64), "boolean")


def _of_whole(values: Sequence[int]) -> ValueHashes:
    if all(-(2**63) <= value < 2**63 for value in values):
        return of_integers(np.array(values, np.int64))
    return of_decimals([decimal.Decimal(value) for value in values])


def _of_floats(values: Sequence[float]) -> ValueHashes:
    return of_doubles(np.array(values, np.float64))


def _of_dates(values: Sequence[dt.date]) -> ValueHashes:
    return of_days(np.array([value.toordinal() - _EPOCH for value in values], np.int64))


def _of_instants(values: Sequence[Instant]) -> ValueHashes:
    hashes = np.zeros(len(values), np.uint64)
    for tag, kind in _CLOCKS.items():
        rows = [row for row, value in enumerate(values) if value[0] == tag]
        if rows:
            micros = [(values[row][1] * 10**6 + values[row][2] // 1_000) % _BITS for row in rows]
            rest = np.array([values[row][2] % 1_000 for row in rows], np.int64)
            hashes[rows] = of_micros(np.array(micros, np.uint64).view(np.int64), rest, kind)
    return hashes


def _of_records(values: Sequence[dict[str, Any]]) -> ValueHashes:
    members: dict[str, tuple[list[int], list[Any]]] = {}
    for row, value in enumerate(values):
        for name, member in value.items():
            rows, own = members.setdefault(name, ([], []))
            rows.append(row)
            own.append(member)
    total = np.zeros(len(values), np.uint64)
    for name, (rows, own) in members.items():
        total[rows] += _of_values(own) * constant(f"field {name}")
    return of_class(total, "record")


def _of_lists(values: Sequence[list[Any]]) -> ValueHashes:
    return _of_list(_of_values([item for value in values for item in value]), _offsets(values))


def _of_maps(values: Sequence[MapEntries]) -> ValueHashes:
    keys = _of_values([key for value in values for key, _ in value])
    return _of_map(keys, _of_values([item for value in values for _, item in value]), _offsets(values))


def _offsets(values: Sequence[Sequence[Any]]) -> Ints:
    return np.cumsum([0, *map(len, values)], dtype=np.int64)


_OF_TYPE: dict[type, Callable[[Any], ValueHashes]] = {
    bool: _of_booleans,
    int: _of_whole,
    float: _of_floats,
    decimal.Decimal: of_decimals,
    str: of_texts,
    bytes: of_byte_values,
    dt.date: _of_dates,
    Instant: _of_instants,
    dict: _of_records,
    list: _of_lists,
    MapEntries: _of_maps,
}
