"""Finds bounds of single fields in a filter of DuckDB, and returns them as a condition of the lake.

DuckDB passes its filter as an expression of Arrow.  Python sees the text of that expression, but not its
structure. So the numbers and texts in it are used only as candidates for bounds, and Arrow proves each bound.
It simplifies the filter with the guarantee that the field is below the candidate, or is null.  If the filter
then becomes false, no such record passes.  So if a text is read wrongly, a bound is missed, but never a record.
The scan reads the key range and the objects within the bounds, as `lake scan --where` does, and `dataset` still
applies the whole filter (decision 287).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import encode_value, from_scalar
from lake_core.records.conditions import And, Compare, Condition
from lake_core.values.numbers import Op
from lake_core.values.types import is_json

MOST_CANDIDATES = 10_000
"""The most values of a filter that are tried as bounds; a filter with more of them gets no bounds."""

_LITERAL = re.compile(
    r'"((?:[^"\\]|\\.)*)"'
    r"|(?<![\w.])([-+]?\d[\d.:eE+-]*(?:T| (?=\d\d:))?[\d.:]*Z?)"
)
"""A pattern of the values in the text of an Arrow expression: quoted texts, numbers, dates, times and
timestamps."""

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}

_COMPARED: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_timestamp,
)
"""Types whose order is the same in Arrow, in SQL and in conditions.  Doubles are not: NaN has another place."""


def condition_of(
    filter: pc.Expression, fields: Mapping[str, pa.Field], schema: pa.Schema, stored: pa.Schema
) -> Condition | None:
    """Returns a condition that is true for every record that passes the filter; None if none is known.

    `fields`: the fields of the filter, by their names in it; `schema`: their types as the filter sees them.
    `stored`: the fields of the pool.
    """
    texts = [_unescaped(quoted) or plain for quoted, plain in _LITERAL.findall(str(filter))]
    if not texts or len(texts) > MOST_CANDIDATES:
        return None
    bounds: list[Condition] = []
    for name, field in fields.items():
        if is_compared(field) and field.name in stored.names and stored.field(field.name).equals(field):
            candidates = _as_values(texts, field.type)
            path = (field.name,)
            for op, value in _bounds(candidates, pc.field(name), partial(_may_pass, filter, schema)):
                bounds.append(Compare(path, op, encode_value(from_scalar(value))))
    return And(tuple(bounds)) if len(bounds) > 1 else next(iter(bounds), None)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), text, flags=re.DOTALL)


def is_compared(field: pa.Field) -> bool:
    """Whether the order of the field's values is the same in Arrow, in SQL and in conditions."""
    return not is_json(field) and any(is_kind(field.type) for is_kind in _COMPARED)


def _as_values(texts: Sequence[str], kind: pa.DataType) -> list[Any]:
    """Returns the texts that can be values of the type, as scalars of it, sorted, without duplicates."""
    values = {}
    for text in texts:
        try:
            scalar = pa.scalar(text).cast(kind)
            values[encode_value(from_scalar(scalar))] = scalar
        except (pa.ArrowException, InvalidInput, ValueError, OverflowError):
            continue
    return [values[key] for key in sorted(values)]


def _bounds(
    candidates: Sequence[Any], field: pc.Expression, may_pass: Callable[[pc.Expression], bool]
) -> Iterator[tuple[Op, Any]]:
    """Yields the closest bounds among the candidates, which must be sorted; yields none if a record with null may
    pass."""
    if not candidates or may_pass(field.is_null()):
        return
    low = _last(candidates, lambda value: not may_pass(field < value))
    if low is not None:
        yield (">=" if may_pass(field == low) else ">"), low
    high = _last(candidates[::-1], lambda value: not may_pass(field > value))
    if high is not None:
        yield ("<=" if may_pass(field == high) else "<"), high


def _last(candidates: Sequence[Any], holds: Callable[[Any], bool]) -> Any:
    """Returns the last of the first candidates for which `holds` is true; None if it is false for the first one.
    It must not become true again after it was false."""
    begin, end = 0, len(candidates)
    while begin < end:  # halves: log2 of the candidates
        middle = (begin + end) // 2
        if holds(candidates[middle]):
            begin = middle + 1
        else:
            end = middle
    return candidates[begin - 1] if begin else None


def _may_pass(filter: pc.Expression, schema: pa.Schema, guarantee: pc.Expression) -> bool:
    """Whether, as far as Arrow's simplification shows, a record for which the guarantee is true may pass the
    filter."""
    fragment = _FORMAT.make_fragment("/none", filesystem=_FILES, partition_expression=guarantee)
    dataset = ds.FileSystemDataset([fragment], schema=schema, format=_FORMAT, filesystem=_FILES)
    try:
        return any(True for _ in dataset.get_fragments(filter=filter))
    except pa.ArrowException:  # a bound is not needed: the whole filter runs afterwards
        return True


_FORMAT, _FILES = ds.ParquetFileFormat(), fs.LocalFileSystem()
"""Arguments that Arrow requires although no file is opened."""
