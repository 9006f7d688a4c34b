"""Parquet's INT96: a day and the nanoseconds in it, which Arrow reads as nanoseconds that wrap around.

Arrow reads the columns twice: in whole seconds, which have room, and in nanoseconds modulo 2^64.  Together they are
the exact time (`instants`).
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
        seconds = pq.ParquetFile(source, metadata=parquet.metadata, coerce_int96_timestamp_unit="s")
        self._batches: Iterator[pa.RecordBatch] = seconds.iter_batches(
            batch_size=batch_rows, row_groups=row_groups, columns=list(self.names)
        )
        self._left: pa.Table | None = None

    def exact(self, batch: pa.RecordBatch, faults: Faults) -> pa.RecordBatch:
        """The next records of the file with exact times; adds times that no type can hold to `faults`.

        Raises what Arrow raises.
        """
        if not self.names:
            return batch
        seconds = self._next(batch.num_rows)
        rows = np.arange(batch.num_rows)
        for at, field in enumerate(batch.schema):
            if field.name not in self.names or seconds.schema.field(field.name).type == field.type:
                continue
            column = seconds.column(field.name).combine_chunks()
            array, field = self._joined(batch.column(at), field, column, rows, faults)
            batch = batch.set_column(at, field, array)
        return batch

    def _next(self, count: int) -> pa.Table:
        """The next `count` records in seconds, however Arrow divides them into batches."""
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
        self, array: pa.Array, field: pa.Field, seconds: pa.Array, rows: RowNumbers, faults: Faults
    ) -> tuple[pa.Array, pa.Field]:
        """A column of Arrow's nanoseconds with the times that the same column in seconds makes exact."""
        values = iter(_leaves(seconds))
        path = field.name

        def change(part: pa.Array, inner: pa.Field, at: RowNumbers) -> tuple[pa.Array, pa.Field] | None:
            if is_nested(inner.type):
                return None
            whole = next(values)
            if whole.type == inner.type:
                return part, inner
            times = Instants.of_both(whole, part)
            if self._calendar.int96:
                times = replace(times, seconds=self._calendar.seconds(times.seconds))
            return times.stored(inner, at, path, faults)

        return rebuilt(array, field, rows, change)


def _leaves(array: pa.Array) -> list[pa.Array]:
    """The arrays that are not nested, in the order in which `rebuilt` comes to them."""
    arrays: list[pa.Array] = []

    def gather(part: pa.Array, field: pa.Field, at: RowNumbers) -> tuple[pa.Array, pa.Field] | None:
        if is_nested(field.type):
            return None
        arrays.append(part)
        return part, field

    rebuilt(array, pa.field("", array.type), np.arange(len(array)), gather)
    return arrays
