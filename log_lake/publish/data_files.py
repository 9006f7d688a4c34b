"""Describes an object of the pool, and its file of deletes, in Iceberg's form.

Counts and bounds come from the state, which has them exactly.  Sizes, the number of records and the beginnings
of row groups come from the object's footer.  Iceberg, too, has counts only for the first columns of very wide
tables.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg import types as T
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from lake_core.records import Column
from log_lake.objects.read import DataObject
from log_lake.publish.bounds import lower_bound, upper_bound
from log_lake.publish.metadata import Layout
from log_lake.publish.positions import FILE_PATH_ID

MAX_COUNTED = 100
"""Columns with statistics in each description, which is read for every query.  Iceberg writes the same
number."""


def data_file(data: DataObject, statistics: Iterable[Column], *, location: str, layout: Layout) -> DataFile:
    """Returns Iceberg's description of an object.  Raises Corrupt, Unavailable."""
    records = data.metadata.records
    fields = layout.names.of_pool()
    counted = {fields.get(column.name, column.name): column for column in layout.schema.fields[:MAX_COUNTED]}
    counted = {name: column for name, column in counted.items() if data.schema.get_field_index(name) >= 0}
    told = {one.name: one for one in statistics if one.name in counted}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for name, one in told.items():
        id, kind = counted[name].field_id, counted[name].field_type
        if not isinstance(kind, T.PrimitiveType):
            continue
        if (low := lower_bound(kind, one.low)) is not None:
            lower[id] = low
        if (high := upper_bound(kind, one.high)) is not None:
            upper[id] = high
    sizes = data.column_sizes(counted)
    plain = {name: c for name, c in counted.items() if isinstance(c.field_type, T.PrimitiveType)}
    return _described(
        location,
        records=records,
        size=data.size,
        column_sizes={c.field_id: sizes[name] for name, c in plain.items()},
        value_counts={c.field_id: records for c in plain.values()},
        null_value_counts={plain[name].field_id: one.nulls for name, one in told.items() if name in plain},
        nan_value_counts={},
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=data.group_offsets,
        sort_order_id=layout.order.order_id,
    )


def copy_description(*, location: str, size: int, records: int) -> DataFile:
    """Returns Iceberg's description of a copy with converted columns; it has no statistics."""
    return _described(location, records=records, size=size)


def deletes_description(*, location: str, size: int, count: int, of: str) -> DataFile:
    """Returns Iceberg's description of a file that hides `count` records of the object at the location `of`."""
    path = of.encode()
    return _described(
        location,
        content=DataFileContent.POSITION_DELETES,
        records=count,
        size=size,
        value_counts={FILE_PATH_ID: count},
        null_value_counts={FILE_PATH_ID: 0},
        nan_value_counts={},
        lower_bounds={FILE_PATH_ID: path},
        upper_bounds={FILE_PATH_ID: path},
    )


def _described(
    location: str,
    *,
    records: int,
    size: int,
    content: DataFileContent = DataFileContent.DATA,
    column_sizes: dict[int, int] | None = None,
    value_counts: dict[int, int] | None = None,
    null_value_counts: dict[int, int] | None = None,
    nan_value_counts: dict[int, int] | None = None,
    lower_bounds: dict[int, bytes] | None = None,
    upper_bounds: dict[int, bytes] | None = None,
    split_offsets: list[int] | None = None,
    sort_order_id: int | None = None,
) -> DataFile:
    """Returns a file of a table without partitions; statistics are by the ids of fields."""
    return DataFile.from_args(
        content=content,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=records,
        file_size_in_bytes=size,
        column_sizes=column_sizes,
        value_counts=value_counts,
        null_value_counts=null_value_counts,
        nan_value_counts=nan_value_counts,
        lower_bounds=lower_bounds,
        upper_bounds=upper_bounds,
        key_metadata=None,
        split_offsets=split_offsets,
        equality_ids=None,
        sort_order_id=sort_order_id,
        spec_id=0,
    )
