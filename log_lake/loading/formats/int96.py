"""Reads Parquet's INT96 exactly: a day and the nanoseconds in it, which Arrow reads as nanoseconds that wrap
around.

So Arrow reads these columns once more, as bytes (`int96_footer`), which hold the exact time.  The nanoseconds
have a sign: PyArrow 17 and others write a time before 1970 as a later day minus some nanoseconds (decision
322).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from log_lake.columns.nested import RowNumbers, is_nested, rebuilt
from log_lake.loading.contract import Faults
from log_lake.loading.formats.calendars import Calendar
from log_lake.loading.formats.instants import Instants
from log_lake.loading.formats.int96_footer import WIDTH, bytes_metadata


class Int96:
    """The columns of a Parquet file that hold INT96, at any depth, in the order of the file's records."""

    def __init__(
        self,
        parquet: pq.ParquetFile,
        source: pa.NativeFile,
        row_groups: list[int],
        *,
        batch_rows: int,
        calendar: Calendar,
    ) -> None:
        self._calendar = calendar
        physical = {
            parquet.schema.column(at).path.split(".")[0]
            for at in range(len(parquet.schema))
            if parquet.schema.column(at).physical_type == "INT96"
        }
        self.names: tuple[str, ...] = tuple(
            name for name in parquet.schema_arrow.names if name.split(".")[0] in physical
        )
        """Fields of the file that may have them; those of others are read as they are."""
        if not self.names:
            return
        as_bytes = pq.ParquetFile(source, metadata=bytes_metadata(source), pre_buffer=False)
        self._batches: Iterator[pa.RecordBatch] = as_bytes.iter_batches(
            batch_size=batch_rows, row_groups=row_groups, columns=list(self.names)
        )
        self._left: pa.Table | None = None

    def exact(self, batch: pa.RecordBatch, faults: Faults) -> pa.RecordBatch:
        """Returns the next records of the file with exact times.  Adds times that no type can hold to `faults`.

        Raises what Arrow raises.
        """
        if not self.names:
            return batch
        stored = self._next(batch.num_rows)
        rows = np.arange(batch.num_rows)
        for at, field in enumerate(batch.schema):
            if field.name not in self.names or stored.schema.field(field.name).type == field.type:
                continue
            column = stored.column(field.name).combine_chunks()
            array, field = self._joined(batch.column(at), field, column, rows, faults)
            batch = batch.set_column(at, field, array)
        return batch

    def _next(self, count: int) -> pa.Table:
        """Returns the next `count` records in bytes, however Arrow divides them into batches."""
        parts, rows = ([] if self._left is None else [self._left]), 0
        rows = sum(part.num_rows for part in parts)
        while rows < count:  # bounded by the file
            batch = next(self._batches, None)
            if batch is None:
                raise pa.ArrowInvalid("its columns of INT96 end before its others")
            parts.append(pa.Table.from_batches([batch]))
            rows += batch.num_rows
        table = pa.concat_tables(parts)
        self._left = table.slice(count)
        return table.slice(0, count)

    def _joined(
        self, array: pa.Array, field: pa.Field, stored: pa.Array, rows: RowNumbers, faults: Faults
    ) -> tuple[pa.Array, pa.Field]:
        """Replaces Arrow's nanoseconds in a column by the exact times, taken from the same column in bytes
        (`stored`)."""
        values = iter(_leaves(stored))
        path = field.name

        def change(part: pa.Array, inner: pa.Field, at: RowNumbers) -> tuple[pa.Array, pa.Field] | None:
            if is_nested(inner.type):
                return None
            exact = next(values)
            if exact.type == inner.type:
                return part, inner
            times = _times(exact)
            if self._calendar.int96:
                times = replace(times, seconds=self._calendar.seconds(times.seconds))
            return times.stored(inner, at, path, faults)

        return rebuilt(array, field, rows, change)


_STORED = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_JULIAN = 2_440_588
"""The Julian day of 1970-01-01."""
_DAY = 86_400


def _times(stored: pa.FixedSizeBinaryArray) -> Instants:
    """Returns the times of an array of INT96 in bytes."""
    valid = np.asarray(stored.is_valid())
    values = np.zeros(len(stored), _STORED)
    if data := stored.buffers()[1]:
        values = np.frombuffer(data, _STORED, len(stored), stored.offset * WIDTH)
    nanos = np.where(valid, values["nanos"], 0)
    days = np.where(valid, values["day"], _JULIAN).astype(np.int64) - _JULIAN
    return Instants(days * _DAY + nanos // 10**9, nanos % 10**9, valid)


def _leaves(array: pa.Array) -> list[pa.Array]:
    """Returns the arrays that are not nested, in the order in which `rebuilt` visits them."""
    arrays: list[pa.Array] = []

    def gather(part: pa.Array, field: pa.Field, at: RowNumbers) -> tuple[pa.Array, pa.Field] | None:
        if is_nested(field.type):
            return None
        arrays.append(part)
        return part, field

    rebuilt(array, pa.field("", array.type), np.arange(len(array)), gather)
    return arrays
