"""Writes Parquet files with INT96 of any year, as Spark does; pyarrow itself writes only the years 1677 to
2262."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.files import parquet

_DAY = 86_400 * 10**9
_JULIAN = 2_440_588
"""The Julian day of 1970-01-01."""


def placeholder(number: int) -> np.datetime64:
    """A time that stands for the time with this number, until `int96` replaces its bytes."""
    return np.datetime64(1_600_000_000_123_456_789 + number * 977, "ns")


def _bytes(nanoseconds: int, *, from_1970: bool = False) -> bytes:
    days, rest = divmod(nanoseconds, _DAY)
    if from_1970 and rest and days < 0:
        days, rest = days + 1, rest - _DAY
    return struct.pack("<qI", rest, days + _JULIAN)


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 of an ISO time of any year."""
    whole, _, fraction = text.partition(".")
    return int(np.datetime64(whole, "s").astype(int)) * 10**9 + int(fraction.ljust(9, "0"))


def int96(
    times: list[str], table: Callable[[list[Any]], pa.Table], *, from_1970: bool = False, **options: Any
) -> bytes:
    """Returns the file of a table that `table` makes of the times, which may be of any year and have nanoseconds.

    With `from_1970` it is as PyArrow 17 writes it: times before 1970 have negative nanoseconds.
    """
    places = [placeholder(number) for number in range(len(times))]
    scalars = [pa.scalar(int(place.astype(int)), pa.timestamp("ns")) for place in places]
    content = parquet(table(scalars), use_deprecated_int96_timestamps=True, compression="none", **options)
    for place, text in zip(places, times, strict=True):
        before = _bytes(int(place.astype(int)))
        assert before in content
        content = content.replace(before, _bytes(nanoseconds(text), from_1970=from_1970))
    return content
