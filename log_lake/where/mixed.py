"""Comparisons with fields of typed JSON: every value compares as it did before its field became JSON.

The meaning of a condition never changes, but the type of a field may.  A compaction unites a field that is a
number in one object and a string in another to typed JSON (`texts.typed_json`), and a tombstone may be older
than that compaction.  So each value is read back with its class, and `classwise` gives the answer of a
comparison for that class.

The texts are grouped by class.  Arrow kernels compare integers, doubles, plain strings, booleans and times;
Python reads each distinct text of the other classes once.  Called by `evaluate`, which passes in its comparison
of columns.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import class_of, encode_value
from lake_core.records.conditions import OPS, Compare, In, IsNull, Path
from log_lake.columns.json_text import typed
from log_lake.texts.typed_json import TAG, value_of

_INTEGER = r"^-?[0-9]{1,18}$"
_DOUBLE = r"^-?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?$"
_STRING = r'^"[^\\]*"$'
_TEXT = pa.field("", pa.float64())
_US_UTC, _NS_UTC = pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")

OfColumn = Callable[[Compare | In, pa.Array], pa.Array]
"""True, false or null for each value of a column of a plain type."""


def in_json(
    leaf: Compare | In | IsNull, column: pa.Array | pa.ChunkedArray, inside: Path, of_column: OfColumn
) -> pa.Array:
    """Returns for each JSON text whether the comparison holds: true, false or null.  `inside` is the path to the
    compared value within the JSON text; if it is empty, the whole value is compared."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if isinstance(leaf, IsNull) or inside:
        truths = [_one_by_one(leaf, chunk, inside) for chunk in chunks]
    else:
        truths = [_by_class(leaf, chunk, of_column) for chunk in chunks]
    return pa.concat_arrays(truths) if truths else pa.array([], pa.bool_())


def _by_class(leaf: Compare | In, texts: pa.Array, of_column: OfColumn) -> pa.Array:
    truth = pa.nulls(len(texts), pa.bool_())
    rest = texts.is_valid()
    for pattern, values_of in _PLAIN:
        candidates = pc.and_(rest, pc.fill_null(pc.match_substring_regex(texts, pattern), False))
        if not pc.any(candidates).as_py():
            continue
        values = values_of(texts.filter(candidates))
        if values is None:
            continue
        truth = pc.replace_with_mask(truth, candidates, of_column(leaf, values))
        rest = pc.and_not(rest, candidates)
    if pc.any(rest).as_py():
        truth = pc.replace_with_mask(truth, rest, _one_by_one(leaf, texts.filter(rest), ()))
    return truth


def _doubles(texts: pa.Array) -> pa.Array | None:
    """Returns the texts as doubles, or None if a text differs from the way its double is written: it may be a
    decimal."""
    values = texts.cast(pa.float64())
    again = typed(pa.chunked_array([values]), _TEXT).combine_chunks()
    return values if pc.all(pc.equal(again, texts)).as_py() else None


def _tagged(name: str, *kinds: pa.DataType) -> Callable[[pa.Array], pa.Array | None]:
    """Makes a function that converts the texts of a tag to the first of the types that holds them all; it returns
    None if no type does."""
    start = len(f'{{"{TAG}{name}":"')

    def values_of(texts: pa.Array) -> pa.Array | None:
        inner = pc.utf8_slice_codeunits(texts, start, -2)
        for kind in kinds:
            with contextlib.suppress(pa.ArrowInvalid):
                return inner.cast(kind)
        return None

    return values_of


_PLAIN: tuple[tuple[str, Callable[[pa.Array], pa.Array | None]], ...] = (
    (_INTEGER, lambda texts: texts.cast(pa.int64())),
    (_DOUBLE, _doubles),
    (_STRING, lambda texts: pc.utf8_slice_codeunits(texts, 1, -1)),
    ("^(true|false)$", lambda texts: texts.cast(pa.bool_())),
    (rf'^\{{"{TAG}timestamp":"[^"]*Z"\}}$', _tagged("timestamp", _US_UTC, _NS_UTC)),
    (rf'^\{{"{TAG}timestamp":"[^"]*[0-9]"\}}$', _tagged("timestamp", pa.timestamp("us"), pa.timestamp("ns"))),
    (rf'^\{{"{TAG}date":"[^"]*"\}}$', _tagged("date", pa.date32())),
)


def _one_by_one(leaf: Compare | In | IsNull, texts: pa.Array, inside: Path) -> pa.Array:
    encoded = texts.dictionary_encode(null_encoding="encode")
    values = [_value(text, inside) for text in encoded.dictionary.to_pylist()]
    truths = [v is None if isinstance(leaf, IsNull) else _truth(leaf, v) for v in values]
    return pa.array(truths, pa.bool_()).take(encoded.indices)


def _value(text: str | None, inside: Path) -> Any:
    value = None if text is None else value_of(text)
    for name in inside:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _truth(leaf: Compare | In, value: Any) -> bool | None:
    """Returns the answer for one value.  It is None for null, records, lists and maps, and for a class that does
    not compare."""
    if value is None or isinstance(value, dict | list):
        return None
    leaf_among = among(leaf, class_of(value))
    if leaf_among is None or isinstance(leaf_among, bool):
        return leaf_among
    try:
        data = encode_value(value)
    except InvalidInput:  # more digits than any value of a condition has
        return None
    if isinstance(leaf_among, Compare):
        return OPS[leaf_among.op](data, leaf_among.value)
    at = bisect_left(leaf_among.values, data)
    if at < len(leaf_among.values) and leaf_among.values[at] == data:
        return True
    return None if leaf_among.values[0] == NULL_VALUE else False
