"""Reads ORC, whose records have types; Arrow's reader decodes them (`orc_batches`).

Timestamps of years that Arrow refuses are read by `orc_times`, and get the type that holds them (`instants`).
Dates and times of the hybrid calendar become Gregorian (`calendars`).  Spark writes times without a zone as
integers, and says so in an attribute of the type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.schemas.limits import schema_fault
from log_lake.columns.nested import RowNumbers, rebuilt
from log_lake.loading.block import Block, Reading
from log_lake.loading.contract import Faults
from log_lake.loading.expansion import least_bytes
from log_lake.loading.formats.calendars import Calendar
from log_lake.loading.formats.instants import Instants
from log_lake.loading.formats.orc_batches import batches
from log_lake.loading.formats.orc_footer import codec_of, has_hybrid_calendar
from log_lake.loading.formats.orc_times import NANOS, SECONDS, pair_zone
from log_lake.loading.formats.promises import rows_fault
from log_lake.loading.opening import open_seekable
from log_lake.loading.typed_records import with_declared

_SPARK_TYPE = b"spark.sql.catalyst.type"


def read_orc(reading: Reading) -> Iterator[Block]:
    """Yields the file's records, in blocks.  Raises InvalidInput."""
    from pyarrow import orc  # few files are ORC, and loading it takes time

    with open_seekable(reading) as opened:
        with _naming(reading):
            file = orc.ORCFile(pa.PythonFile(opened, mode="r"))
            fault = schema_fault(file.schema) or reading.expansion.fault(
                file.nrows * least_bytes(file.schema)
            )
        if fault:
            reading.unreadable(0, fault)
        with _naming(reading):
            is_hybrid = has_hybrid_calendar(opened, file)
            codec = codec_of(opened, file) if is_hybrid is None else ""
            calendar = _calendar(is_hybrid is not False)
        rows = 0
        decoded = batches(opened, file)
        while True:  # bounded by the file
            faults: Faults = {}
            with _naming(reading):
                stored = next(decoded, None)
                if stored is None:
                    break
                batch = _stored(stored, calendar, codec, faults)
            rows += batch.num_rows
            records = with_declared(pa.Table.from_batches([batch]), reading)
            yield Block(records.table, faults={**records.faults, **faults}, raws=records.raws)
        if fault := rows_fault(rows, file.nrows):
            reading.unreadable(0, fault)


def _calendar(is_hybrid: bool) -> Calendar:
    return Calendar(dates=is_hybrid, naive=is_hybrid, zone="UTC")  # times are the writer's times of day


@contextmanager
def _naming(reading: Reading) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        reading.unreadable(0, str(error))
    except Exception as error:  # Arrow, pyorc and decompressors raise many classes for a damaged file
        reading.unreadable(0, f"not a readable ORC file: {error}")


@dataclass(frozen=True)
class _Change:
    """Converts a stripe's values to their types and dates.

    `codec` is the compression of a file whose calendar could not be found out; empty otherwise.  For such a
    file it raises InvalidInput if a value depends on the calendar.
    """

    calendar: Calendar
    path: str
    codec: str
    faults: Faults

    def __call__(
        self, array: pa.Array, field: pa.Field, rows: RowNumbers
    ) -> tuple[pa.Array, pa.Field] | None:
        kind, zone = field.type, pair_zone(field)
        if zone is not None:
            target = pa.field(field.name, pa.timestamp("ns", zone or None))
            return self._times(Instants.of_pairs(array, SECONDS, NANOS), target, rows)
        if pa.types.is_timestamp(kind):
            return self._times(Instants.of(array), field, rows)
        if pa.types.is_int64(kind) and (field.metadata or {}).get(_SPARK_TYPE) == b"timestamp_ntz":
            return array.cast(pa.timestamp("us")), pa.field(field.name, pa.timestamp("us"))
        changed = self.calendar.changed(array, field, rows)
        if changed is not None and changed[0] is not array and not changed[0].equals(array):
            self._check()
        return changed

    def _times(self, times: Instants, field: pa.Field, rows: RowNumbers) -> tuple[pa.Array, pa.Field]:
        if self.calendar.naive:
            seconds = self.calendar.seconds(times.seconds)
            if (seconds != times.seconds)[times.valid].any():
                self._check()
            times = replace(times, seconds=seconds)
        return times.stored(field, rows, self.path, self.faults)

    def _check(self) -> None:
        if self.codec:
            raise InvalidInput(
                f"field {self.path!r} has dates or times before 15 October 1582, and the file's compression, "
                f"{self.codec}, hides their calendar from a load; write it with ZSTD"
            )


def _stored(batch: pa.RecordBatch, calendar: Calendar, codec: str, faults: Faults) -> pa.RecordBatch:
    rows = np.arange(batch.num_rows)
    columns = [
        rebuilt(array, field, rows, _Change(calendar, field.name, codec, faults))
        for array, field in zip(batch.columns, batch.schema, strict=True)
    ]
    return pa.record_batch([array for array, _ in columns], schema=pa.schema([field for _, field in columns]))
