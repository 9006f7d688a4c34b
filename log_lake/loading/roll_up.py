"""Roll-up: a load writes each time of a field as the beginning of the span of time that it lies in.

    lake create views --key ts,page --kind aggregate --aggregate n=count --set roll_up=ts:1h

An aggregate pool then holds one record for each hour and page.  Times are rounded before records are sorted.  So
keys, conditions, statistics and combined records have the rounded time, and the exact one is stored nowhere.  Spans
are counted from 1970-01-01T00:00 in UTC, or by the time's own clock if it has no zone.  A grain divides the day, so
no span crosses midnight.  A null stays null, and a date stays as it is, because it is no finer than a day.

Every load goes through the builder, which calls `rolled`.  Pure, and the same if it is done twice.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import TICKS
from lake_core.values.types import is_json, show_type

RollUp = tuple[str, int] | None
"""A field, and the length of a span in seconds; None: the pool has no roll-up."""


def rolled(table: pa.Table, roll_up: RollUp) -> pa.Table:
    """Returns the records with the times of the field rounded down.

    Raises InvalidInput if the field holds other values than times, or a time whose rounded value its type
    cannot hold.
    """
    if roll_up is None or roll_up[0] not in table.schema.names:
        return table
    name, seconds = roll_up
    at = table.schema.get_field_index(name)
    field = table.schema.field(at)
    if pa.types.is_null(field.type) or pa.types.is_date(field.type):
        return table
    if is_json(field) or not pa.types.is_timestamp(field.type):
        raise InvalidInput(
            f"field {name!r} is of type {show_type(field)}, and roll_up={name}:{seconds}s rounds timestamps; "
            f"declare its type (lake set POOL type.{name}=timestamp), or unset roll_up"
        )
    return table.set_column(at, field, _rounded(table.column(at), name, seconds))


def _rounded(column: pa.ChunkedArray, name: str, seconds: int) -> pa.ChunkedArray:
    kind = column.type
    array = column.cast(pa.int64()).combine_chunks()
    values = np.asarray(array.fill_null(0))
    span = seconds * TICKS[kind.unit]
    down = values - values % span  # numpy's remainder has the sign of the span
    if (down > values).any():
        raise InvalidInput(
            f"field {name!r}: nanoseconds do not reach the beginning of the span of {values.min()} ns; load the "
            "time in microseconds"
        )
    rounded = pa.array(down, pa.int64(), mask=np.asarray(array.is_null()))
    return pa.chunked_array([rounded.cast(kind)])
