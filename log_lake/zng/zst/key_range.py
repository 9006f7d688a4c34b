"""Finds the values of a file whose key field is in a range: their positions, for `ZstFile.batches`.

It reads only the segments of that field.  The values may have any order; if the file is sorted by the field,
each range is one run of positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from log_lake.columns.arrays import Mask
from log_lake.zng.rows import by_kind
from log_lake.zng.to_arrow import record_batches
from log_lake.zng.zst.projection import Path
from log_lake.zng.zst.reader import ZstFile


def positions(
    file: ZstFile, field: str | Path, *, low: Any = None, high: Any = None
) -> Iterator[tuple[int, int]]:
    """Yields runs of positions (start, stop) of the values at or above `low` and below `high`; None means no
    bound.

    The bounds are Python or Arrow values of the field.  A null, or a value that Arrow cannot compare with the
    bounds, is in no range.  Raises Corrupt.
    """
    path = tuple(field.split(".")) if isinstance(field, str) else field
    begun, run = 0, None
    for batch in file.batches(fields=[path]):
        inside = np.zeros(len(batch), np.bool_)
        for records, rows in zip(record_batches(batch), by_kind(batch.kinds, len(batch.types)), strict=True):
            inside[rows] = _between(_values(records, path), len(rows), low, high)
        edges = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0)) + begun
        begun += len(batch)
        for first, last in edges.reshape(-1, 2).tolist():
            if run is not None and run[1] == first:  # it goes on where the last batch ended
                run = run[0], last
                continue
            if run is not None:
                yield run
            run = first, last
    if run is not None:
        yield run


def _values(records: pa.RecordBatch, path: Path) -> pa.Array | None:
    """Returns the values of the field, or None if the records do not have it."""
    values: Any = records
    for name in path:
        names = values.schema.names if values is records else [member.name for member in values.type]
        if name not in names:
            return None
        values = values.column(name) if values is records else pc.struct_field(values, [name])
    return values


def _between(values: pa.Array | None, count: int, low: Any, high: Any) -> Mask:
    if values is None:
        return np.zeros(count, np.bool_)
    inside = values.is_valid()
    try:
        for compare, bound in ((pc.greater_equal, low), (pc.less, high)):
            if bound is not None:
                inside = pc.and_(inside, pc.fill_null(compare(values, bound), False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return np.zeros(count, np.bool_)
    return np.asarray(inside)
