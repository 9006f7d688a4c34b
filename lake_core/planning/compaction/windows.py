"""The window of the key's time that a reference belongs to: that of its newest key.

The time of a key is a date, a timestamp, or a number that counts seconds since 1970, or milli-, micro- or
nanoseconds, told by its magnitude.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math

from lake_core.commits import Reference
from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.encoding import Instant, Value, class_of, decode_key

_EPOCH = dt.date(1970, 1, 1)
_DAY = 86_400.0
_TIMES = ("timestamp", "timestamp with zone")
_PER_SECOND = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""Numbers from the first on count so many to the second (1e11 seconds is the year 5138)."""


def window_of(reference: Reference, *, key: PoolKey, length: float) -> int | None:
    """Window n is [n * length, (n + 1) * length) in seconds since 1970; None where the key has no time.

    Raises InvalidInput where the leading key field cannot be a time.
    """
    if not key.fields:
        raise InvalidInput("compaction by time_window: the pool has no key, hence no time; use size_ratio")
    leading = key.fields[0]
    newest = reference.low if leading.descending else reference.high
    values = decode_key(newest, PoolKey((leading,)))
    if not values or values[0] is None:  # an open bound, or only nulls
        return None
    seconds = _seconds(values[0])
    if seconds is None:
        raise InvalidInput(
            f"compaction by time_window: the leading key field {leading.name!r} is a {class_of(values[0])}, not a date, "
            f"timestamp or number; use another strategy (compact.strategy)"
        )
    return math.floor(seconds / length) if math.isfinite(seconds) else None


def closes(window: int, *, length: float) -> float:
    """When a window is taken to hold all its data: its end and once its length, in seconds since 1970."""
    return (window + 2) * length


def _seconds(value: Value) -> float | None:
    if isinstance(value, Instant):
        return value[1] + value[2] / 1e9 if class_of(value) in _TIMES else None
    if isinstance(value, dt.date):
        return (value - _EPOCH).days * _DAY
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return None
    number = float(value)
    return next((number / rate for limit, rate in _PER_SECOND if abs(number) >= limit), number)
