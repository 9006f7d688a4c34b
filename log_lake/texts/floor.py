"""Finds the greatest value of a column's type at or below a given value.

A comparison runs one kernel in the column's own type, without casts that could round.  If the type holds the
value, the kernel compares with it.  If it does not (2.5 among integers, 2^53 + 1 among doubles, nanoseconds
among milliseconds), no record equals the value.  Then `x < v` and `x <= v` are both `x <= floor(v)`, and `x > v`
and `x >= v` are both `x > floor(v)`.  Called by `where.evaluate` and by `fit`.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa

from lake_core.keys.encoding import TICKS, Value

_FLOATS: dict[int, Any] = {16: np.float16, 32: np.float32, 64: np.float64}
"""NumPy's types of floats, by the number of bits. Arrow's `to_pandas_dtype` would give them too, but only if
pandas is installed."""


def floor(value: Value, kind: pa.DataType) -> tuple[pa.Scalar, bool] | None:
    """Returns the greatest value of the type that is at or below a given value of its class (not null), and
    whether the two are equal.

    None if all values of the type are greater.
    """
    if pa.types.is_integer(kind):
        return _integer(value, kind)
    if pa.types.is_floating(kind):
        return _float(value, kind)
    if pa.types.is_decimal(kind):
        return _decimal(value, kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        _, seconds, nanos = value
        ticks, rest = divmod(seconds * 10**9 + nanos, 10**9 // TICKS[kind.unit])
        largest = 2 ** (kind.bit_width - 1) - 1
        return _bounded(ticks, rest == 0, kind, -largest - 1, largest)
    return pa.scalar(value, kind), True


def _bounded(
    whole: int, exact: bool, kind: pa.DataType, least: int, greatest: int
) -> tuple[pa.Scalar, bool] | None:
    if whole < least:
        return None
    return pa.scalar(min(whole, greatest), kind), exact and whole <= greatest


def _integer(value: int | float, kind: pa.DataType) -> tuple[pa.Scalar, bool] | None:
    signed = pa.types.is_signed_integer(kind)
    greatest = 2 ** (kind.bit_width - signed) - 1
    least = -greatest - 1 if signed else 0
    if math.isnan(value) or value == math.inf:  # which come after all integers
        return pa.scalar(greatest, kind), False
    if value == -math.inf:
        return None
    whole = math.floor(value)
    return _bounded(whole, whole == value, kind, least, greatest)


def _float(value: int | float, kind: pa.DataType) -> tuple[pa.Scalar, bool]:
    if math.isnan(value):
        return pa.scalar(value, kind), True
    numpy = _FLOATS[kind.bit_width]
    with np.errstate(over="ignore"):  # beyond the type's range: infinite
        nearest = numpy(value)
    if float(nearest) > value:
        nearest = np.nextafter(nearest, numpy(-math.inf))
    return pa.scalar(nearest, kind), float(nearest) == value


def _decimal(value: decimal.Decimal, kind: pa.DataType) -> tuple[pa.Scalar, bool] | None:
    with decimal.localcontext(prec=160, rounding=decimal.ROUND_FLOOR):
        greatest = decimal.Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        below = value.quantize(decimal.Decimal(1).scaleb(-kind.scale))
        if below < -greatest:
            return None
        nearest = min(below, greatest)
        return pa.scalar(nearest, kind), nearest == value
