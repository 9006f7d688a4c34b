"""Sorting records and writing one data object.

A caller hands over a table that fits its memory budget; it is sorted by the pool key (records of equal keys
keep the order in which they came), written in one go under a fresh id, and described by the AddObject that
a transaction will carry.  Until that transaction is in the journal nobody sees the object.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core import naming
from lake_core.errors import Unavailable
from lake_core.keys import PoolKey
from lake_core.keys.columns import key_at, keys_at, sort_order
from lake_core.keys.encoding import key_class
from lake_core.objects import metadata
from lake_core.objects.metadata import ObjectMetadata, Origin
from lake_core.objects.schema import normalized, schema_id
from lake_core.objects.statistics import column_statistics
from lake_core.records import AddObject
from lake_core.store import Store

ROW_GROUP = 100_000
_BEYOND = b"\0"
"""Appended to a key it is the smallest key above it."""


class WrittenObject(tuple[AddObject, pa.Schema]):
    """What a transaction needs of a new object: the action, and the schema it names."""

    __slots__ = ()

    @property
    def action(self) -> AddObject:
        return self[0]

    @property
    def schema(self) -> pa.Schema:
        return self[1]


def write_object(
    store: Store,
    table: pa.Table,
    *,
    key: PoolKey,
    object_id: str,
    origin: Origin,
    place: int = 0,
    sub: str = "",
) -> WrittenObject:
    """Sort and write the records (at least one).

    Raises InvalidInput where a key field has a type without order, Unavailable where the store fails.
    """
    table = normalized(table)
    for name in key.names:
        key_class(table.schema.field(name).type)
    order = sort_order(table, key)
    if order is not None:
        table = table.take(pa.array(order))
    low, last = key_at(table, 0, key), key_at(table, table.num_rows - 1, key)
    schema = table.schema
    ranks = metadata.sample_ranks(table.num_rows)
    described = ObjectMetadata(
        version=metadata.VERSION,
        object=object_id,
        origin=origin,
        key=str(key),
        sub=sub,
        schema=schema_id(schema),
        records=table.num_rows,
        low=low,
        high=last + _BEYOND,
        groups=tuple(keys_at(table, list(range(0, table.num_rows, ROW_GROUP)), key)),
        sample=tuple(zip(ranks, keys_at(table, ranks, key), strict=True)),
    )
    name = naming.data_object(origin.pool, object_id)
    try:
        with store.open_output(name) as file:
            size = write_parquet(file, table, key=key, described=described)
    except OSError as error:
        raise Unavailable(f"{store.uri}/{name}: cannot be written: {error}") from error
    action = AddObject(
        object=object_id,
        records=table.num_rows,
        size=size,
        schema=described.schema,
        low=low,
        high=described.high,
        place=place,
        sub=sub,
        columns=column_statistics(table),
    )
    return WrittenObject((action, schema))


def write_parquet(file: BinaryIO, table: pa.Table, *, key: PoolKey, described: ObjectMetadata) -> int:
    """Write the sorted table with its footer; returns the size in bytes."""
    sorting = [
        pq.SortingColumn(table.schema.get_field_index(f.name), descending=f.descending, nulls_first=True)
        for f in key.fields
    ]
    with pq.ParquetWriter(
        file,
        table.schema,
        compression="zstd",
        write_page_index=True,
        sorting_columns=sorting or None,
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)
        writer.add_key_value_metadata({metadata.KEY: metadata.encode(described)})
    return file.tell()
