"""Finds values that an Arrow type can hold but the lake cannot, by row.

| value | limit |
|---|---|
| date, timestamp | years 1 to 9999: the years that text, Python and Spark can express |
| time of day | from 0:00 to before 24:00 |
| decimal | no more digits than its type says |
| map | its keys are distinct; 0.0 and -0.0 are one key, and so are all NaN, as in keys of a pool |
| typed JSON of another program | JSON on one line |

Arrow and Parquet allow such values, but a reader of the lake would fail on them, or change them.  Arrow kernels
find them, at any depth.  Called by `loading.checks`, for each file and for tables that a program passes.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys.encoding import FIRST_DAY, FIRST_SECOND, LAST_DAY, LAST_SECOND, TICKS
from lake_core.values.types import is_json
from log_lake.columns.arrays import Ints
from log_lake.columns.json_text import typed
from log_lake.columns.nested import Items, alternatives, fields_of, is_list, mask_of
from log_lake.texts.typed_json import is_typed
from log_lake.texts.value import DATE_FAULT, TIME_FAULT, TIMESTAMP_FAULT

ALWAYS_STORABLE = frozenset(
    kind.id
    for kind in (
        *(pa.null(), pa.bool_(), pa.float16(), pa.float32(), pa.float64()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    )
)
"""Ids of the Arrow types whose values can all be stored, whatever their length."""


def unstorable(column: pa.ChunkedArray, field: pa.Field | None = None) -> dict[int, str]:
    """Returns, by row, why the row cannot be stored.  Most columns have no such row.

    If the `field` of the column is given, typed JSON is checked too, at any depth: another program may have
    written it.
    """
    reads_json = field is not None
    field = pa.field("", column.type) if field is None else field
    if not _may_fail(field, reads_json):
        return {}
    reasons: dict[int, str] = {}
    first = 0
    for chunk in column.chunks:
        for rows, why in _faults(chunk, field, np.arange(first, first + len(chunk)), reads_json):
            for row in rows.tolist():
                reasons.setdefault(row, why)
        first += len(chunk)
    return reasons


def _may_fail(field: pa.Field, reads_json: bool) -> bool:
    kind = field.type
    if is_json(field):
        return reads_json
    if isinstance(kind, pa.BaseExtensionType):
        return _may_fail(pa.field("", kind.storage_type), reads_json)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _may_fail(pa.field("", kind.value_type), reads_json)
    if pa.types.is_decimal(kind):
        return True
    if pa.types.is_temporal(kind):
        return not pa.types.is_duration(kind)
    return pa.types.is_map(kind) or any(_may_fail(kind.field(i), reads_json) for i in range(kind.num_fields))


def _faults(array: pa.Array, field: pa.Field, rows: Ints, reads_json: bool) -> Iterator[tuple[Ints, str]]:
    """Yields rows with a value that cannot be stored, and why; `rows` has the row of each value."""
    kind = field.type
    if is_json(field):
        if reads_json:
            wrong = [text is not None and not is_typed(text) for text in array.to_pylist()]
            yield rows[np.array(wrong, np.bool_)], "text that is not JSON on one line"
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _faults(array.storage, pa.field("", kind.storage_type), rows, reads_json)
    elif pa.types.is_dictionary(kind):
        yield from _faults(array.dictionary_decode(), pa.field("", kind.value_type), rows, reads_json)
    elif pa.types.is_run_end_encoded(kind):
        yield from _faults(pc.run_end_decode(array), pa.field("", kind.value_type), rows, reads_json)
    elif pa.types.is_struct(kind):
        for member, inner in zip(fields_of(array), kind, strict=True):
            yield from _faults(member, inner, rows, reads_json)
    elif pa.types.is_union(kind):
        for part in alternatives(array):
            yield from _faults(part.values, part.field, rows[part.rows], reads_json)
    elif pa.types.is_map(kind):
        entries = Items(array)
        parents = rows[entries.rows]
        keys, items = entries.entries
        yield parents[_doubled(keys, kind.key_field, entries.rows)], "a map has the same key twice"
        yield from _faults(keys, kind.key_field, parents, reads_json)
        yield from _faults(items, kind.item_field, parents, reads_json)
    elif is_list(kind):
        if _may_fail(kind.value_field, reads_json):
            items = Items(array)
            yield from _faults(items.values, kind.value_field, rows[items.rows], reads_json)
    elif pa.types.is_decimal(kind):
        least, most = (
            pa.scalar(decimal.Decimal((sign, (9,) * kind.precision, -kind.scale)), kind) for sign in (1, 0)
        )
        outside = pc.or_(pc.less(array, least), pc.greater(array, most))
        yield (
            rows[np.asarray(pc.fill_null(outside, False))],
            f"a value has more digits than decimal({kind.precision},{kind.scale})",
        )
    elif bounds := _bounds(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        ticks = array.view(width)
        outside = pc.or_(pc.less(ticks, bounds[0]), pc.greater(ticks, bounds[1]))
        yield rows[np.asarray(pc.fill_null(outside, False))], bounds[2]


def _bounds(kind: pa.DataType) -> tuple[int, int, str] | None:
    """Returns the least and the greatest count of the type's unit (both inclusive), and the words for a value
    beyond them."""
    if pa.types.is_date32(kind):
        return (FIRST_DAY, LAST_DAY, DATE_FAULT)
    if pa.types.is_date64(kind):
        return FIRST_SECOND * 1000, LAST_SECOND * 1000, DATE_FAULT
    if pa.types.is_timestamp(kind):
        ticks = TICKS[kind.unit]
        low, high = max(FIRST_SECOND * ticks, -(2**63)), min(LAST_SECOND * ticks + ticks - 1, 2**63 - 1)
        return low, high, TIMESTAMP_FAULT
    if pa.types.is_time(kind):
        return 0, 86_400 * TICKS[kind.unit] - 1, TIME_FAULT
    return None


def _doubled(keys: pa.Array, field: pa.Field, maps: Ints) -> Ints:
    """Returns the positions of keys that repeat an earlier key of their map; `maps` has, for each key, the number
    of its map."""
    if len(keys) < 2:
        return maps[:0]
    plain = _without_signed_zeros(keys)
    texts = typed(pa.chunked_array([plain]), field).combine_chunks().dictionary_encode()
    codes = np.asarray(texts.indices.fill_null(-1), np.int64)
    order = np.lexsort((codes, maps))
    same = (np.diff(maps[order]) == 0) & (np.diff(codes[order]) == 0)
    return order[1:][same]


def _without_signed_zeros(array: pa.Array) -> pa.Array:
    """Returns the values with 0.0 for -0.0, inside of records, lists and maps as well."""
    kind = array.type
    if pa.types.is_float16(kind):  # Arrow does not add these
        return _without_signed_zeros(array.cast(pa.float32())).cast(kind)
    if pa.types.is_floating(kind):
        return pc.add(array, pa.scalar(0.0, kind))  # -0.0 + 0.0 is 0.0
    if pa.types.is_struct(kind):
        members = [_without_signed_zeros(member) for member in fields_of(array)]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask_of(array))
    if pa.types.is_map(kind):
        entries = Items(array)
        keys, items = entries.entries
        return entries.as_maps(_without_signed_zeros(keys), _without_signed_zeros(items), kind)
    if pa.types.is_list(kind):
        items = Items(array)
        return items.as_lists(_without_signed_zeros(items.values), kind)
    return array
