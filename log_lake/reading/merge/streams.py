"""One reference as a stream of sorted tables: its records of a key range, in the columns of the plan.

With `has_sequence` the tables end with the columns `hidden.ORDER`.  An object that a compaction wrote stores them;
otherwise all records of the reference have the same values.

A stream holds one batch of the size that `ReferenceReading.limits` allow, beside the row group that it decodes.  An
object that fits one batch is read and closed at once.  If a row group is larger than a stream's share, it goes
through the merge's `Spool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import pyarrow as pa

from lake_core.history import Reference
from lake_core.history.lift import Lifts, lifted
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import parts_within
from lake_core.schemas.hidden import ORDER, ROW, SEQ, TYPE, with_order
from lake_core.store import Store
from log_lake.columns.cast import cast_table
from log_lake.objects.containers.rows import with_rows_of_fields
from log_lake.objects.read import DataObject
from log_lake.objects.spool import Spool
from log_lake.objects.weight import Sizes, least_width
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.reading.places import records_in


@dataclass(frozen=True)
class ReferenceReading:
    """How to read references: the pool's store and key, the key range, the columns, and how many bytes at a time.

    `streams`: how many streams are open at the same time; they share the bytes that the limits allow.  `lifts`:
    the lifts (renumberings) to which the references refer.
    """

    store: Store
    pool_id: str
    key: PoolKey
    key_range: KeyRange
    schema: pa.Schema
    limits: ScanLimits = LIMITS
    streams: int = 1
    lifts: Lifts = field(default_factory=dict)
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    """The references' schemas by id, as far as they are known."""
    ranges: tuple[KeyRange, ...] = ()
    """The parts of `key_range` that are read (`keys.ranges.united`); if empty, all of it."""
    spare: frozenset[str] = frozenset()
    """Fields of the key in `schema` that are read only to find where the range cuts an object. An object that lies
    in the range is read without them."""

    groups: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By object, the only row groups that are read; objects that are not named are read whole."""

    def narrowed(self, references: Iterable[Reference]) -> ReferenceReading:
        """Returns the reading without columns that none of the references has; key columns and hidden ones
        stay."""
        schemas = [self.schemas.get(reference.schema) for reference in references]
        names = {name for schema in schemas if schema is not None for name in schema.names}
        if any(schema is None for schema in schemas) or names.issuperset(self.schema.names):
            return self
        kept = {*names, *self.key.names, *ORDER.names, *ROW.names}
        return replace(self, schema=pa.schema([field for field in self.schema if field.name in kept]))

    def without_spare(self) -> ReferenceReading:
        """Returns the reading without the fields in `spare`; unchanged if no other field would be left."""
        left = [field for field in self.schema if field.name not in self.spare]
        return replace(self, schema=pa.schema(left), spare=frozenset()) if left else self

    @property
    def batch_bytes(self) -> int:
        """How many decoded bytes a batch has at most."""
        return self.limits.batch_bytes(self.streams)

    @cached_property
    def record_bytes(self) -> int:
        """The decoded bytes of a record whose fields are all null, the smallest possible record."""
        return least_width(self.schema)


def read_reference(
    reference: Reference, reading: ReferenceReading, *, has_sequence: bool, spool: Spool | None = None
) -> Iterator[pa.Table]:
    """Yields the tables of a reference, in the schema of `ReferenceReading`.  Raises ObjectMissing, Corrupt,
    Unavailable.

    Between two tables a stream holds at most its share of the limits if it has a `spool`, otherwise a row
    group.
    """
    clip = reading.key_range.intersect(reference.key_range)
    share = reading.batch_bytes
    whole_bytes = share if reading.limits.max_tiny_bytes else 0
    with DataObject.at(
        reading.store, reference, pool_id=reading.pool_id, share=share, whole=whole_bytes
    ) as data:
        if reading.spare and not reading.ranges and data.inside(clip):
            reading = reading.without_spare()
        schema = pa.schema([*reading.schema, *ORDER]) if has_sequence else reading.schema
        sizes = Sizes.of(schema)
        parts = parts_within(reading.ranges, clip)
        groups = sorted({group for part in parts or (clip,) for group in data.groups(part)})
        if (only := reading.groups.get(reference.object)) is not None:
            groups = [group for group in groups if group in only]
            if not groups:
                return
        decoded = partial(_tables, data, clip, reference, reading, has_sequence=has_sequence)
        group_bytes = data.weigh(clip, schema.names).largest_group
        if spool is not None and group_bytes > reading.limits.share_bytes(reading.streams):
            took = 0.0
            for group in groups:
                pieces = []
                with spool.turn:  # one row group at a time is decoded, whatever the number of threads
                    for table in decoded([group], took):
                        took = sizes.record(table)
                        pieces += [spool.put(batch) for batch in table.combine_chunks().to_batches()]
                for piece in pieces:
                    yield pa.Table.from_batches([spool.take(piece, schema)])
            return
        tables = decoded(groups, 0.0)
        first = next(tables, None)
        if first is None:
            return
        if data.rows(clip) * sizes.record(first) > reading.batch_bytes:
            yield first
            del first  # so that it is not held together with those that follow
            yield from tables
            return
        whole = [first, *tables]
    yield from whole  # a merge may have more streams than files may be open


def _tables(
    data: DataObject,
    clip: KeyRange,
    reference: Reference,
    reading: ReferenceReading,
    groups: list[int],
    took: float,
    *,
    has_sequence: bool,
) -> Iterator[pa.Table]:
    schema = reading.schema
    stored_sequence = has_sequence and reference.oldest is not None
    for batch in data.batches(
        clip,
        key=reading.key,
        columns=[*schema.names, *ORDER.names] if stored_sequence else schema.names,
        groups=groups,
        batch_rows=reading.limits.max_batch_rows,
        batch_bytes=reading.batch_bytes,
        record_bytes=reading.record_bytes,
        took=took,
    ):
        table = pa.Table.from_batches([batch])
        if reading.ranges:
            table = records_in(table, reading.ranges, reading.key)
            if not table.num_rows:
                continue
        if (
            TYPE in schema.names and TYPE not in table.schema.names
        ):  # here the fields still have their own types
            table = with_rows_of_fields(table)
        if stored_sequence:
            records = cast_table(table.drop_columns(ORDER.names), schema, what=data.name)
            for column in ORDER:
                values = table.column(column.name).cast(column.type)
                if column.name == SEQ and reference.lifts:
                    values = pa.array(lifted(values.to_numpy(), reference.lifts, reading.lifts))
                records = records.append_column(column, values)
            yield records
        else:
            records = cast_table(table, schema, what=data.name)
            yield (
                with_order(records, seq=reference.seq, ordinal=reference.ordinal) if has_sequence else records
            )
