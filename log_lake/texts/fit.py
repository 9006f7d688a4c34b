"""Values of a class as values of an Arrow type: whether the type holds one exactly, and a column of such values.

`fitted` refuses a value that a declared type would have to cut: nanoseconds among microseconds, a third digit
among two.  Doubles take the nearest number, because every user of doubles expects that.  Called by `loading`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from lake_core.keys.encoding import TICKS, Instant, Value
from lake_core.values.types import show_type
from log_lake.texts.floor import floor
from log_lake.texts.value import NotReadable

_FINEST = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def fitted(value: Value, field: pa.Field) -> Value:
    """Returns the value of the field's class in the form of its type.  Raises NotReadable if the type cannot hold
    it exactly."""
    kind = field.type
    if value is None or isinstance(value, str | bytes | bool):
        return value
    if pa.types.is_floating(kind):
        nearest = float(value)
        if pa.types.is_float32(kind) and math.isfinite(nearest) and abs(nearest) > _LARGEST_FLOAT:
            raise NotReadable("beyond the largest float")
        return nearest
    floored = floor(value, kind)
    if floored is None or not floored[1]:
        raise NotReadable(_why(value, field))
    return value


_LARGEST_FLOAT = 3.4028235677973366e38
"""The greatest number that a 32-bit float can hold, after rounding; greater ones would become infinite."""


def _why(value: Value, field: pa.Field) -> str:
    kind = field.type
    if isinstance(value, Instant):
        if value[2] * TICKS[kind.unit] % 10**9:
            finer = "; declare timestamp_ns" if pa.types.is_timestamp(kind) and kind.unit != "ns" else ""
            return f"finer than {_FINEST[kind.unit]}, which is all that {show_type(field)} holds{finer}"
        return f"out of range for {show_type(field)}"
    if pa.types.is_decimal(kind):
        return f"more digits than {show_type(field)} holds"
    return f"out of range for {show_type(field)}"


def array_of(values: Sequence[Value], kind: pa.DataType) -> pa.Array:
    """Makes a column of the type from values that are null or came from `fitted`."""
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        ticks = TICKS[kind.unit]
        counted = [None if v is None else v[1] * ticks + v[2] * ticks // 10**9 for v in values]
        return pa.array(counted, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.array(values, kind)
