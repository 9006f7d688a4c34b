"""Turns key ranges into predicates over the key's columns, and finds out which references need one; pure.

A bound is bytes.  `log_lake.reading.merge.bounds` gives it as values of the first key fields, if the fields' types
hold them exactly.  Null comes before everything, and a descending field reverses its comparison.  Keys of floats,
of times of day and of durations have no predicate.

Most references cover their whole object.  They need no predicate, so Spark need not read the key's columns for it.
If the key has one field, the statistics in the state show whether a reference covers its object; otherwise the
object's footer does (`read.key_ranges`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import decode_value, encode_value
from lake_core.records.conditions import Path
from lake_core.values.numbers import Op
from log_lake.reading.merge.bounds import Comparison, comparison
from spark_apps.native.columns import NotNative, check_readable
from spark_apps.native.predicates import (
    TRUE,
    Any,
    Compared,
    Constant,
    Empty,
    Inverted,
    Predicate,
    all_of,
    any_of,
)


def within(key_range: KeyRange, whole: KeyRange, key: PoolKey, schema: pa.Schema) -> Predicate:
    """Returns the predicate for the records of an object that lie in the key range; all keys of the object lie in
    `whole`. Raises NotNative."""
    parts: list[Predicate] = []
    if key_range.low > whole.low:
        parts.append(_at_or_above(_said(key_range.low, key, schema), key))
    if key_range.high is not None and (whole.high is None or key_range.high < whole.high):
        parts.append(_below(_said(key_range.high, key, schema), key))
    return all_of(parts) if parts else TRUE


def _said(bound: bytes, key: PoolKey, schema: pa.Schema) -> Comparison:
    for name in key.names:
        if name not in schema.names:
            raise NotNative(f"key column {name!r} is missing")
        check_readable(schema.field(name))
    said_bound = comparison(bound, key, schema)
    if said_bound is None or not said_bound.values:
        raise NotNative("Spark does not order the key as the lake does")
    return said_bound


def _at_or_above(bound: Comparison, key: PoolKey) -> Predicate:
    """Returns the keys that come after the bound's values, or equal them.  If the bound is beyond these values
    (`bound.beyond`), equal keys are left out."""
    ways: list[Predicate] = []
    for equal, path, descending, value, last in _fields(bound, key):
        inclusive = last and not bound.beyond
        if value.is_valid:
            op = _SIDE[not descending, inclusive]
            ways.append(all_of([*equal, Compared(path, op, value)]))
        else:  # null comes first
            ways.append(all_of([*equal, *([] if inclusive else [Inverted(Empty(path))])]))
    return any_of(ways)


def _below(bound: Comparison, key: PoolKey) -> Predicate:
    """Returns the keys that come before the bound's values.  If the bound is beyond these values (`bound.beyond`),
    keys that equal them are included."""
    ways: list[Predicate] = []
    for equal, path, descending, value, last in _fields(bound, key):
        inclusive = last and bound.beyond
        if value.is_valid:
            smaller = Compared(path, _SIDE[descending, inclusive], value)
            ways.append(all_of([*equal, Any((smaller, Empty(path)))]))
        else:
            ways.append(all_of([*equal, Empty(path) if inclusive else Constant(False)]))
    return any_of(ways)


_SIDE: dict[tuple[bool, bool], Op] = {
    (True, True): ">=",
    (True, False): ">",
    (False, True): "<=",
    (False, False): "<",
}
"""Each comparison operator by two facts: whether greater values fulfil it (otherwise smaller ones), and whether
equal values do too."""


def _fields(bound: Comparison, key: PoolKey) -> Iterator[tuple[list[Predicate], Path, bool, pa.Scalar, bool]]:
    """Yields for each value of the bound: predicates that say that the key's fields before it equal their values;
    the path of its field; whether that is descending; the value; and whether it is the last."""
    equal: list[Predicate] = []
    for number, (field, value) in enumerate(zip(key.fields, bound.values, strict=False), 1):
        path = (field.name,)
        yield list(equal), path, field.descending, value, number == len(bound.values)
        equal.append(Compared(path, "=", value) if value.is_valid else Empty(path))


def is_whole(reference: Reference, key: PoolKey, schema: pa.Schema) -> bool:
    """Whether the statistics in the state show that the reference holds every record of its object."""
    if not key.fields:
        return True  # all records have one key
    if len(key.fields) > 1:
        return False
    (field,) = key.fields
    column = next((c for c in reference.columns if c.name == field.name), None)
    index = schema.get_field_index(field.name)
    if column is None or column.nulls or column.low is None or column.high is None or index < 0:
        return False
    if pa.types.is_floating(schema.field(index).type):  # whose bounds leave NaN out
        return False
    try:
        ends = sorted(
            encode_value(decode_value(bound), descending=field.descending)
            for bound in (column.low, column.high)
        )
    except InvalidInput:  # a long text that was cut
        return False
    return reference.low <= ends[0] and ends[1] < reference.high
