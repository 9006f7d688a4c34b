"""Writes the merged records of a piece as one object for each bucket of the pool's rule (`cluster.by`).

The records come once, in order.  Those of each bucket wait in memory, and on disk if they are many.  Then each
object is written alone, so that memory does not depend on the number of buckets.  All objects of a piece lie in the
same range of keys, so each names the others (`siblings`): only together they replace the inputs there, as a rebuild
must know.  Called by `rewriting.work`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lake_core.ids import ID_LENGTH
from log_lake.indexes.cluster import buckets_of, divided
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.objects.spool import Spool, SpooledBatch
from log_lake.objects.write import ObjectWriter, WrittenObject, write_tables

WAITING_BYTES = 1 << 20
"""About how many bytes of a bucket wait in memory before they go to disk."""

UNKNOWN = 0
"""The bucket of records whose field has no hash; nothing is said of their objects."""


@dataclass
class _Waiting:
    """The records of one bucket: first those on disk, then those in memory."""

    spooled: list[SpooledBatch] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)
    size: int = 0

    def add(self, table: pa.Table, spool: Spool, *, most: int) -> None:
        self.tables.append(table)
        self.size += table.nbytes
        if self.size >= most:
            batches = pa.concat_tables(self.tables).combine_chunks().to_batches()
            self.spooled += map(spool.put, batches)
            self.tables, self.size = [], 0

    def records(self, schema: pa.Schema, spool: Spool) -> Iterator[pa.Table]:
        """Yields the records; every call gives all of them."""
        for batch in self.spooled:
            yield pa.Table.from_batches([spool.read(batch, schema)])
        yield from self.tables


def write_divided(
    tables: Iterable[pa.Table],
    rule: ClusterRule,
    new_writer: Callable[[int], ObjectWriter],
    *,
    waiting_bytes: int = WAITING_BYTES,
) -> list[WrittenObject]:
    """Writes the tables, which have one schema, as one object for each bucket that has records.

    `new_writer` gets the bucket, and returns a new writer.  Raises what `ObjectWriter` raises.
    """
    waiting: dict[int, _Waiting] = defaultdict(_Waiting)
    schema: pa.Schema | None = None
    with Spool("the compaction", packed=True) as spool:
        for table in tables:
            schema = table.schema
            buckets = buckets_of(table, rule)
            for bucket, part in [(UNKNOWN, table)] if buckets is None else divided(table, buckets):
                if part.num_rows:
                    waiting[bucket].add(part, spool, most=waiting_bytes)
        writers = {bucket: new_writer(bucket) for bucket in sorted(waiting)}
        siblings = tuple(writer.object_id[:ID_LENGTH] for writer in writers.values())
        written: list[WrittenObject] = []
        for bucket, writer in writers.items():
            writer.siblings = siblings if len(siblings) > 1 else ()
            records = waiting.pop(bucket)
            one = write_tables(writer, partial(records.records, schema, spool))
            assert one is not None
            written.append(one)
    return written
