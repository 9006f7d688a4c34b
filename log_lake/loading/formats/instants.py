"""Converts times of files that count seconds and nanoseconds to the Arrow type that holds them exactly.

Parquet's INT96 and ORC's timestamps reach further than Arrow's nanoseconds, which end in the years 1677 and
2262.  Most programs write whole microseconds, which reach further than the lake's years 1 to 9999.  So the type
is microseconds, and nanoseconds only if a value has them (decision 140).  If a column has both nanoseconds and
years outside of 1677 to 2262, it becomes typed JSON.  A time outside of the years 1 to 9999 makes a bad record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.keys.encoding import FIRST_SECOND, LAST_SECOND, NAIVE, TICKS, ZONED, Instant
from lake_core.values.types import json_field
from log_lake.columns.arrays import Ints
from log_lake.columns.nested import RowNumbers
from log_lake.loading.contract import Faults
from log_lake.texts.typed_json import text_of

_NEAR = 9_223_372_035
"""Seconds before and after 1970 that a 64-bit count of nanoseconds holds, with any fraction of a second."""


@dataclass(frozen=True)
class Instants:
    """The times of a column: seconds since 1970, and the nanoseconds (0 to 999,999,999) to add; `valid` is False
    for nulls."""

    seconds: Ints
    nanos: Ints
    valid: npt.NDArray[np.bool_]

    @staticmethod
    def of(array: pa.Array) -> Instants:
        """Returns the times of an array of timestamps."""
        ticks = TICKS[array.type.unit]
        values = _integers(array)
        return Instants(values // ticks, values % ticks * (10**9 // ticks), _valid(array))

    @staticmethod
    def of_pairs(array: pa.StructArray, seconds: str, nanos: str) -> Instants:
        """Returns the times of records with two fields, whose names are `seconds` and `nanos`."""
        return Instants(_integers(array.field(seconds)), _integers(array.field(nanos)), _valid(array))

    def stored(
        self, field: pa.Field, rows: RowNumbers, path: str, faults: Faults
    ) -> tuple[pa.Array, pa.Field]:
        """Returns the times in a type that holds them exactly, and their field, which has the zone of `field`.

        Adds times outside of the years 1 to 9999 to `faults`, by row of the table; the array has null for them.
        `path` names the field.
        """
        outside = self.valid & ((self.seconds < FIRST_SECOND) | (self.seconds > LAST_SECOND))
        for at in np.flatnonzero(outside).tolist():
            time = np.datetime64(int(self.seconds[at]), "s")
            faults.setdefault(
                int(rows[at]), f"field {path!r}: a timestamp outside of the years 1 to 9999 ({time})"
            )
        valid = self.valid & ~outside
        seconds, nanos = np.where(valid, self.seconds, 0), np.where(valid, self.nanos, 0)
        zone = field.type.tz
        if not (nanos % 1000).any():
            return _timestamps(seconds * 10**6 + nanos // 1000, valid, field, "us")
        if (np.abs(seconds) <= _NEAR).all():
            return _timestamps(seconds * 10**9 + nanos, valid, field, "ns")
        tag = ZONED if zone else NAIVE
        texts = [
            text_of(Instant((tag, second, nano))) if there else None
            for second, nano, there in zip(seconds.tolist(), nanos.tolist(), valid.tolist(), strict=True)
        ]
        return pa.array(texts, pa.string()), json_field(field.name)


def _integers(array: pa.Array) -> Ints:
    """Returns the integers of an array, 0 for nulls."""
    return np.asarray(array.cast(pa.int64()).fill_null(0))


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid())


def _timestamps(
    ticks: Ints, valid: npt.NDArray[np.bool_], field: pa.Field, unit: str
) -> tuple[pa.Array, pa.Field]:
    kind = pa.timestamp(unit, field.type.tz)
    return pa.array(ticks, pa.int64(), mask=~valid).cast(kind), field.with_type(kind).with_nullable(True)
