"""Expresses bounds of key ranges for DataFusion, in a form from which it can tell which row groups to skip.

A bound is bytes (`keys.encoding`), but DataFusion compares columns.  `comparison` returns a bound as values of
the first key fields, if the fields' own types hold them exactly; `at_or_above` and `below` are the two sides of
a bound.  Null comes before everything, and a descending field turns its comparison around.  Called by
`datafusion`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.encoding import AFTER, Instant, Value, decode_key, encode_key

_ABOVE = b"\0"
_HOLDERS: dict[type, Callable[[pa.DataType], bool]] = {
    bool: pa.types.is_boolean,
    int: pa.types.is_integer,
    str: pa.types.is_string,
    bytes: pa.types.is_binary,
    dt.date: pa.types.is_date32,
    decimal.Decimal: pa.types.is_decimal,
}
"""For each class of a value the check of the types that may hold it exactly."""


def column(name: str) -> Any:
    """Returns an expression of DataFusion for the column with exactly this name, whatever characters are in the
    name."""
    from datafusion import col

    return col('"' + name.replace('"', '""') + '"')


def literal(scalar: pa.Scalar) -> Any:
    """Returns the value as an expression of DataFusion.  A null needs a cast, because DataFusion has no null
    literals of lists and maps."""
    from datafusion import lit

    return lit(scalar) if scalar.is_valid else lit(pa.scalar(None, pa.null())).cast(scalar.type)


@dataclass(frozen=True)
class Comparison:
    """A bound as values of the first key fields; `beyond`: the bound is above all keys that begin with these
    values."""

    values: tuple[pa.Scalar, ...]
    beyond: bool


def comparison(bound: bytes, key: PoolKey, schema: pa.Schema) -> Comparison | None:
    """Returns the bound as values in the fields' own types; None if the types do not hold it exactly."""
    try:
        values = decode_key(bound, key)
        prefix = encode_key(list(values), key)
        if not bound.startswith(prefix):
            return None
        rest = bound[len(prefix) :]
        whole = len(values) == len(key.fields)
        if rest not in (b"", AFTER) and not (whole and rest == _ABOVE):
            return None
        scalars = tuple(
            exact_scalar(value, schema.field(field.name).type)
            for value, field in zip(values, key.fields, strict=False)
        )
    except (pa.ArrowException, InvalidInput, OverflowError, TypeError, ValueError):
        return None
    return Comparison(scalars, rest != b"")


def exact_scalar(value: Value, kind: pa.DataType) -> pa.Scalar:
    """Returns a value of a bound in the field's type.

    Raises ValueError, OverflowError, TypeError or an error of Arrow if the type does not hold it exactly, and
    ValueError for doubles.
    """
    if value is None:
        return pa.scalar(None, kind)
    if isinstance(value, Instant):
        if not pa.types.is_timestamp(kind):
            raise ValueError(kind)
        _, seconds, nanos = value
        units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        whole, part = divmod(nanos * units, 10**9)
        if part:
            raise ValueError(value)
        return pa.scalar(seconds * units + whole, pa.int64()).cast(kind)
    holds = _HOLDERS.get(type(value))
    if holds is None or not holds(kind):  # such as 2.5 on integers
        raise ValueError(value)
    return pa.scalar(value, kind)


def at_or_above(bound: Comparison, key: PoolKey) -> Any:
    """Returns the expression for records whose key is at or above the bound, in key order."""
    after = _differs(bound, key, later=True)
    return after if bound.beyond else after | _equals(bound, key)


def below(bound: Comparison, key: PoolKey) -> Any:
    """Returns the expression for records below the bound, in a form by which DataFusion can skip row groups."""
    before = _differs(bound, key, later=False)
    return before | _equals(bound, key) if bound.beyond else before


def _equals(bound: Comparison, key: PoolKey) -> Any:
    return _all(_is(f.name, value) for f, value in zip(key.fields, bound.values, strict=False))


def _is(name: str, value: pa.Scalar) -> Any:
    return column(name) == literal(value) if value.is_valid else column(name).is_null()


def _differs(bound: Comparison, key: PoolKey, *, later: bool) -> Any:
    """Returns the expression for records whose first key fields come after the bound's values, or before; null
    comes before everything."""
    ways = []
    for number, (field, value) in enumerate(zip(key.fields, bound.values, strict=False)):
        at = column(field.name)
        if not value.is_valid:
            way = at.is_not_null() if later else literal(pa.scalar(False))
        elif later:
            way = at < literal(value) if field.descending else at > literal(value)
        else:
            smaller = at > literal(value) if field.descending else at < literal(value)
            way = smaller | at.is_null()
        before = Comparison(bound.values[:number], beyond=False)
        ways.append(_equals(before, key) & way if number else way)
    return functools.reduce(operator.or_, ways)


def _all(parts: Iterable[Any]) -> Any:
    return functools.reduce(operator.and_, parts)
