"""Converts dates and times of the hybrid calendar: Julian up to 4 October 1582, Gregorian from the 15th.

Spark before 3.0 wrote such files.  Later versions write them in their mode LEGACY, and say so in the file. In
ORC every program says so in its files.  A reader that ignores this shifts dates by up to ten days.  The lake
has one calendar, Gregorian also before 1582, like SQL, Spark and Python.  So a date keeps its year, month and
day, and a time also its time of day in the writer's zone (decision 141).  `julian_zones.txt` has the offsets of
Java's old calendar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import TICKS
from log_lake.columns.arrays import Ints
from log_lake.columns.nested import RowNumbers, is_nested, rebuilt

_DAY = 86_400
_BEGINS = np.array([
    -719164, -682945, -646420, -609895, -536845, -500320, -463795,
    -390745, -354220, -317695, -244645, -208120, -171595, -141427,
])  # fmt: skip
"""The days since 1970 at which the difference between the calendars changes to the next of `_SHIFTS`: 1 January of
the year 1, 1 March of each century that is no leap year of the Gregorian calendar, and 15 October 1582."""

_SHIFTS = np.array([2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0])
"""Days to add to a date of the hybrid calendar."""

_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])([0-9]{1,2}):?([0-9]{2})?(?::?([0-9]{2}))?")
_VERSION, _ZONE = b"org.apache.spark.version", b"org.apache.spark.timeZone"


@dataclass(frozen=True)
class Calendar:
    """The calendar of a file's dates and times, and the time zone of its writer.

    Each flag says whether such values use the hybrid calendar: `dates`; `times` for timestamps with a zone;
    `int96` for Parquet's INT96; `naive` for ORC's timestamps, which are times in the writer's zone.
    """

    dates: bool = False
    times: bool = False
    int96: bool = False
    naive: bool = False
    zone: str = ""

    @property
    def is_hybrid(self) -> bool:
        """Whether some of the file's dates or times must be converted."""
        return self.dates or self.times or self.int96 or self.naive

    @staticmethod
    def of_spark(metadata: Mapping[bytes, bytes]) -> Calendar:
        """Returns the calendar that Spark's metadata in a Parquet or Avro file states, understood as Spark
        understands it.

        Raises InvalidInput if the zone is unknown.
        """
        version = metadata.get(_VERSION)
        if version is None:
            return Calendar()
        times = version < b"3.0.0" or b"org.apache.spark.legacyDateTime" in metadata
        int96 = version < b"3.1.0" or b"org.apache.spark.legacyINT96" in metadata
        calendar = Calendar(
            dates=times, times=times, int96=int96, zone=metadata.get(_ZONE, b"UTC").decode(errors="replace")
        )
        if calendar.is_hybrid:
            _changes(calendar.zone)
        return calendar

    def seconds(self, seconds: Ints) -> Ints:
        """Seconds since 1970 in the lake's calendar, for seconds that were counted in the hybrid calendar."""
        moments, shifts = _changes(self.zone)
        return seconds + shifts[np.maximum(np.searchsorted(moments, seconds, side="right") - 1, 0)]

    def rebased(self, table: pa.Table) -> pa.Table:
        """Returns the records with their dates and their timestamps with a zone converted, at any depth."""
        if not (self.dates or self.times):
            return table
        rows = np.arange(table.num_rows)
        for at, field in enumerate(table.schema):
            array = table.column(at).combine_chunks()
            array, changed = rebuilt(array, field, rows, self.changed)
            table = table.set_column(at, changed, array)
        return table

    def number(self, value: int, kind: pa.DataType) -> int:
        """Returns the stored number of one date or timestamp with a zone, converted to the lake's calendar.
        Numbers of other types are returned unchanged."""
        if pa.types.is_date32(kind) and self.dates:
            return value + int(_shifts_of(np.array([value]))[0])
        if pa.types.is_timestamp(kind) and kind.tz and self.times:
            ticks = TICKS[kind.unit]
            whole = value // ticks
            return value + (int(self.seconds(np.array([whole]))[0]) - whole) * ticks
        return value

    def changed(self, array: pa.Array, field: pa.Field, _: RowNumbers) -> tuple[pa.Array, pa.Field] | None:
        """Returns a converted date or timestamp with a zone, as the array and field that `rebuilt` expects; None
        for other types."""
        kind = field.type
        if is_nested(kind):
            return None
        if pa.types.is_date32(kind) and self.dates:
            days = np.asarray(array.cast(pa.int32()).fill_null(0)).astype(np.int64)
            return _with(array, days + _shifts_of(days)), field
        if pa.types.is_timestamp(kind) and kind.tz and self.times:
            ticks = TICKS[kind.unit]
            values = np.asarray(array.cast(pa.int64()).fill_null(0))
            whole = values // ticks
            return _with(array, values + (self.seconds(whole) - whole) * ticks), field
        return array, field


def _with(array: pa.Array, values: Ints) -> pa.Array:
    """Returns an array of the same type, with the same nulls, but with other dates or timestamps."""
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return pa.array(values, pa.int64(), mask=np.asarray(array.is_null())).cast(width).cast(array.type)


def _shifts_of(days: Ints) -> Ints:
    return np.asarray(_SHIFTS[np.maximum(np.searchsorted(_BEGINS, days, side="right") - 1, 0)])


@cache
def _changes(zone: str) -> tuple[Ints, Ints]:
    """Returns the moments, in seconds since 1970, at which the difference between the calendars changes, and
    the difference in seconds from each moment on.  Raises InvalidInput if the zone is unknown."""
    offset, shift, later = _zone(zone)
    moments = np.array([*(_BEGINS * _DAY - offset).tolist(), *(moment for moment, _ in later)], np.int64)
    shifts = np.array([*(_SHIFTS * _DAY + shift).tolist(), *(after for _, after in later)], np.int64)
    return moments, shifts


def _zone(zone: str) -> tuple[int, int, list[tuple[int, int]]]:
    for line in (files(__package__) / "julian_zones.txt").read_text().splitlines():
        words = line.split()
        if zone in words and not line.startswith("#"):
            later = [(int(a), int(b)) for a, _, b in (word.partition("=") for word in words if "=" in word)]
            return int(words[0]), int(words[1]), later
    if match := _OFFSET.fullmatch(zone):
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        size = hours * 3600 + minutes * 60 + seconds
        return (-size if match[1] == "-" else size), 0, []
    if zone == "Z":
        return 0, 0, []
    raise InvalidInput(
        f"its old dates are of the Julian calendar in the time zone {zone!r}, which is unknown; write it again "
        "with Spark's mode CORRECTED (spark.sql.parquet.datetimeRebaseModeInWrite)"
    )
