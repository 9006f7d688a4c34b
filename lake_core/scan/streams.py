"""One reference as a stream of sorted tables: its records of a key range, in the columns of the plan.

The tables of an `ordered` stream end with the columns `hidden.ORDER`: from the object, where a compaction wrote it,
else the same for all records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lake_core.combine.hidden import ORDER, with_order
from lake_core.commits import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.objects.read import DataObject
from lake_core.objects.schema import cast_table
from lake_core.store import Store


@dataclass(frozen=True)
class Reading:
    """How references are read: of which pool, which keys, in which columns, how many records at a time."""

    store: Store
    pool: str
    key: PoolKey
    span: KeyRange
    schema: pa.Schema
    batch_rows: int


def read_reference(reference: Reference, reading: Reading, *, ordered: bool) -> Iterator[pa.Table]:
    """Tables of the reading's schema; raises ObjectMissing, Corrupt, Unavailable."""
    schema = reading.schema
    clip = reading.span.intersect(reference.span)
    with DataObject(reading.store, pool=reading.pool, object_id=reference.object) as data:
        own = ordered and reference.oldest is not None
        names = [*schema.names, *ORDER.names] if own else schema.names
        for batch in data.batches(clip, key=reading.key, columns=names, batch_rows=reading.batch_rows):
            table = pa.Table.from_batches([batch])
            if own:
                records = cast_table(table.drop_columns(ORDER.names), schema, what=data.name)
                for field in ORDER:
                    records = records.append_column(field, table.column(field.name).cast(field.type))
                yield records
            else:
                records = cast_table(table, schema, what=data.name)
                yield with_order(records, seq=reference.seq, place=reference.place) if ordered else records
