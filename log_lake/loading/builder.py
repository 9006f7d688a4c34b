"""Turns blocks into objects: gathers records up to the memory budget, sorts, writes and describes them.

An `ObjectBuilder` takes blocks in their order of arrival.  When the budget is full it sorts what it has, and
keeps that on disk (`on_disk`); `finish` merges all of it into one run of objects that share no key.  With
`load.sort=parts` it writes an object whenever the budget is full, so that objects overlap.  Records without the key
go to the sub-pool `$nokey`, rejected ones to `$rejected`; these need no order.  The builder returns everything that
a transaction needs.  One builder serves one load, or one task of a distributed load; `first_ordinal` keeps the
order of arrival between tasks.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.ids import id_time
from lake_core.keys import PoolKey
from lake_core.keys.encoding import class_of
from lake_core.keys.spec import ARRIVAL
from lake_core.naming import NOKEY, PARQUET, REJECTED, format_in, object_id_of
from lake_core.schemas import APPEND, Rule
from lake_core.schemas.hidden import check_names
from lake_core.schemas.limits import Fields, leaves
from lake_core.schemas.schema import unit_remedy, unite_schemas
from lake_core.store import Store
from lake_core.values.types import is_json
from log_lake.columns.cast import cast_table
from log_lake.combine.prepare import prepared
from log_lake.fields.names import SAME, FieldNames
from log_lake.indexes.cluster import buckets_of, divided
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.indexes.rule import IndexRule
from log_lake.loading.block import WIDE, Block, most_absent, rejected_table
from log_lake.loading.checks import program_table
from log_lake.loading.contract import Contract, lost_line
from log_lake.loading.misfits import Misfits, misfits, summed
from log_lake.loading.on_disk import SortedOnDisk
from log_lake.loading.options import PARTS, RUN
from log_lake.loading.roll_up import RollUp, rolled
from log_lake.measuring import timed
from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits
from log_lake.objects.failures import writing
from log_lake.objects.metadata import Origin
from log_lake.objects.normalize import normalized
from log_lake.objects.run import Cuts, Tables, write_run
from log_lake.objects.spool import Spool
from log_lake.objects.write import ObjectWriter, WrittenObject, sorted_table, write_object
from log_lake.texts.typed_json import value_of

log = logging.getLogger(__name__)


_ALIKE_BYTES = 64 << 20
_MOST_ALIKE = 100
"""How many small blocks with one schema are gathered, at most, to be processed together."""


@dataclass
class ObjectBuilder:
    """Writes the objects of a load. Call `add` for each block, then `finish`.

    `inline`: if all objects together have at most this many bytes, they are not written to the store; their
    actions hold their bytes.
    """

    store: Store
    key: PoolKey
    origin: Origin
    memory: int
    new_id: Callable[[], str]
    first_ordinal: int = 0
    rule: Rule = APPEND
    limits: ObjectLimits = OBJECT_LIMITS
    format: str = PARQUET
    fields: pa.Schema = field(default_factory=lambda: pa.schema([]))
    contract: Contract | None = None
    inline: int = 0
    sums: bool = False
    sort: str = RUN
    target_size: int = 128 << 20
    """About how many stored bytes each object of a run has."""
    points: tuple[bytes, ...] = ()
    """Encoded keys in ascending order; a run that was sorted on disk is cut at them too."""
    indexes: tuple[IndexRule, ...] = ()
    cluster: ClusterRule | None = None
    """How records are divided by the hash of a field; it has the field's stored name."""
    names: FieldNames = SAME
    """The stored names of the fields, which the objects get; everything before has the names of the records."""
    bulk: bool = False
    """Whether a run that was sorted in memory is cut at the points as well."""
    roll_up: RollUp = None
    written: list[WrittenObject] = field(default_factory=list)
    _pending: dict[str, list[pa.Table]] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)
    _fields: Fields = field(default_factory=Fields)
    _alike: list[pa.Table] = field(default_factory=list)
    _alike_bytes: int = 0
    _spool: Spool = field(default_factory=lambda: Spool("the load", packed=True))
    _sorted: dict[int, SortedOnDisk] = field(default_factory=dict)
    """What is on disk, by bucket; records that are not divided have the bucket -1."""
    _misfits: list[Misfits] = field(default_factory=list)

    def __enter__(self) -> ObjectBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    @property
    def _budget(self) -> int:
        """Bytes of records to gather.  Reading and sorting these take the rest of the memory (decision 306)."""
        return self.memory // 3

    def add(self, block: Block) -> None:
        """Adds a block to the records that wait for `finish`.  Raises InvalidInput if the key has no order, or the
        block exceeds a limit."""
        with timed(self.store, "load.sort"):
            self._add(block)

    def _add(self, block: Block) -> None:
        if not block.checked:
            block = replace(block, table=program_table(block.table, tuple(self.key.names), self.rule))
            if fault := self._fields.take(block.table.schema):
                raise InvalidInput(fault)
            if self.contract is not None:
                block = replace(block, table=self._kept(block.table, self.contract))
        if block.rejected:
            id = self.origin.transaction_id
            rejected = rejected_table(list(block.rejected), transaction=id, time=id_time(id))
            self._gather(REJECTED, normalized(rejected))
        if self._alike and not block.table.schema.equals(self._alike[0].schema, check_metadata=True):
            self._take_alike()
        self._alike.append(block.table)
        few = len(self._alike) < _MOST_ALIKE and sum(table.num_rows for table in self._alike) < WIDE
        self._alike_bytes += block.table.nbytes if few else 0
        if not few or self._alike_bytes >= min(_ALIKE_BYTES, self._budget // 8):
            self._take_alike()

    def add_keyed(self, table: pa.Table) -> None:
        """Adds records that another builder of the load has checked and found to have the key (`pieces`)."""
        self._gather("", table)

    def _kept(self, table: pa.Table, contract: Contract) -> pa.Table:
        """Returns a program's records as the contract keeps them.  Raises InvalidInput for the first record that
        breaks it."""
        kept = contract.keep(table, first=True)
        for row, why in sorted(kept.wrong.items()):
            raise InvalidInput(f"record {row + 1}: {why}")
        if kept.lost:
            log.warning("%s", lost_line(kept.lost))
        return kept.table

    def _take_alike(self) -> None:
        """Processes the gathered small blocks together, because work on whole columns has a fixed cost."""
        if not self._alike:
            return
        table = self._alike[0] if len(self._alike) == 1 else pa.concat_tables(self._alike).combine_chunks()
        self._alike, self._alike_bytes = [], 0
        keyed, keyless = by_key(rolled(normalized(table), self.roll_up), self.key)
        self._gather(NOKEY, keyless)
        self._gather("", keyed)

    def finish(self) -> list[WrittenObject]:
        """Writes the records that are not written yet, and returns all objects of the load.  Frees the space on
        disk."""
        with self, timed(self.store, "load.write"):
            self._take_alike()
            for sub_pool in list(self._pending):
                if not self._sorted or sub_pool:
                    self._write(sub_pool)
                else:
                    self._sort_on_disk()
            for bucket in sorted(self._sorted):
                self._write_sorted(bucket)
            return self.written

    def _gather(self, sub_pool: str, table: pa.Table) -> None:
        if not table.num_rows:
            return
        self._pending.setdefault(sub_pool, []).append(table)
        self._bytes[sub_pool] = self._bytes.get(sub_pool, 0) + table.nbytes
        if sum(self._bytes.values()) < self._budget:
            return
        largest = max(self._bytes, key=self._bytes.__getitem__)
        if largest or self.sort == PARTS or not self.key.fields:
            self._write(largest)
        else:
            self._sort_on_disk()

    def _taken(self, sub_pool: str) -> list[pa.Table]:
        self._bytes[sub_pool] = 0
        return self._pending.pop(sub_pool, [])

    def _write(self, sub_pool: str) -> None:
        for alike in groups(self._taken(sub_pool)):
            self._write_object(sub_pool, alike)

    def _sort_on_disk(self) -> None:
        """Sorts what was gathered, and keeps it on disk as a sorted run, or as one of each bucket."""
        for alike in groups(self._taken("")):
            ready = [self._ready("", alike)]
            alike.clear()
            self._misfits.append(self._misfits_of(ready[0]))
            with writing(f"{self.store.uri}/{self.origin.pool_id}"):
                ordered = sorted_table(ready, self.key, self.rule)
                for bucket, part in self._divided(ordered):
                    self._on_disk(bucket, part).add(part)
            pa.default_memory_pool().release_unused()  # else the allocator keeps as much again

    def _on_disk(self, bucket: int, table: pa.Table) -> SortedOnDisk:
        """Returns the runs of a bucket, which take the table; others are written first."""
        if bucket in self._sorted and not self._sorted[bucket].takes(table.schema, table.num_rows):
            self._write_sorted(bucket)
        if bucket not in self._sorted:
            self._sorted[bucket] = SortedOnDisk(self._spool, key=self.key, rule=self.rule, memory=self.memory)
        return self._sorted[bucket]

    def _write_sorted(self, bucket: int) -> None:
        """Writes what is on disk of a bucket as one run of objects."""
        merged, misfits, self._misfits = self._sorted.pop(bucket), self._misfits, []
        self._write_run(merged.merged, records=merged.records, points=self.points, misfits=misfits)

    def _divided(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Yields the records of each bucket; all of them as bucket -1 if they are not divided."""
        buckets = None if self.cluster is None else buckets_of(self._to_store("", table), self.cluster)
        if buckets is None:
            yield -1, table
        else:
            yield from divided(table, buckets)

    def _write_object(self, sub_pool: str, tables: list[pa.Table]) -> None:
        table = self._ready(sub_pool, tables)
        counts = self._misfits_of(table) if not sub_pool else {}
        points = self.points if self.bulk else ()
        is_large = self.sort == RUN and (bool(points) or table.nbytes > self.target_size)
        divides = self._divides(table)
        if not sub_pool and (is_large or divides):
            ordered = [sorted_table([table], self.key, self.rule)]
            del table
            for _, part in self._divided(ordered.pop()) if divides else [(-1, ordered.pop())]:
                alone = partial(iter, (part,))
                self._write_run(alone, records=part.num_rows, points=points, misfits=[counts])
                counts = {}
            return
        key, rule = (ARRIVAL, APPEND) if sub_pool else (self.key, self.rule)
        written = write_object(
            self.store,
            self._to_store(sub_pool, table),
            key=key,
            object_id=self._new_object(sub_pool),
            origin=self.origin,
            ordinal=self.first_ordinal + len(self.written),
            sub_pool=sub_pool,
            rule=rule,
            limits=self.limits,
            inline=max(0, self.inline),
            sums=self.sums,
            indexes=self.indexes,
            cluster=self.cluster,
        )
        self.inline -= len(written.action.data)
        self.written.append(replace(written, misfits=counts))

    def _divides(self, table: pa.Table) -> bool:
        """Whether a load's table is divided by bucket; a small one is one object, or lies in the journal."""
        size = table.nbytes
        return self.cluster is not None and size > self.inline and self.cluster.divides(size)

    def _write_run(
        self, tables: Tables, *, records: int, points: tuple[bytes, ...], misfits: list[Misfits]
    ) -> None:
        first = self.first_ordinal + len(self.written)

        def writer(number: int) -> ObjectWriter:
            return ObjectWriter(
                self.store,
                key=self.key,
                object_id=self._new_object(""),
                origin=self.origin,
                ordinal=first + number,
                limits=self.limits,
                sums=self.sums,
                indexes=self.indexes,
                cluster=self.cluster,
            )

        def stored() -> Iterator[pa.Table]:
            return (self._to_store("", table) for table in tables())

        written = write_run(stored, Cuts(self.target_size, records, points), writer, key=self.key)
        self.written += [replace(written[0], misfits=summed(misfits)), *written[1:]]

    def _ready(self, sub_pool: str, tables: list[pa.Table]) -> pa.Table:
        """Joins tables to one, in the form in which the pool stores records."""
        key, rule = (ARRIVAL, APPEND) if sub_pool else (self.key, self.rule)
        return prepared(self._united(tables, key), rule, key)

    def _united(self, tables: list[pa.Table], key: PoolKey) -> pa.Table:
        """Joins tables to one. Raises InvalidInput if their keys have no common order."""
        schema = unite_schemas(t.schema for t in tables)
        check_names(schema.names)
        table = pa.concat_tables([cast_table(t, schema, what="the load") for t in tables])
        for name in key.names:
            if is_json(table.schema.field(name)):
                raise InvalidInput(_no_order(name, table.column(name)))
        return table

    def _to_store(self, sub_pool: str, table: pa.Table) -> pa.Table:
        """Returns records with the stored names of their fields; rejected records have names of their own."""
        return table if sub_pool == REJECTED else self.names.to_store(table)

    def _misfits_of(self, table: pa.Table) -> Misfits:
        return misfits(table, self.fields) if len(self.fields) else {}

    def _new_object(self, sub_pool: str) -> str:
        return object_id_of(self.new_id(), format_in(sub_pool, self.format))


def _no_order(name: str, column: pa.ChunkedArray) -> str:
    """Returns why the values of a key field, which are typed JSON, have no common type."""
    values = [value_of(text) for text in column.drop_null().to_pylist()]
    advice = f"declare its type (lake set POOL type.{name}="
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        low, high = min(values), max(values)
        return f"key field {name!r}: no type of 64 bits holds {low} and {high}; {advice}'decimal(20,0)')"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        whole = next((v for v in values if isinstance(v, int) and float(v) != v), max(values))
        part = next(v for v in values if not isinstance(v, int))
        return f"key field {name!r}: no type holds both {whole} and {part}; {advice}double, or decimal(P,S))"
    with contextlib.suppress(InvalidInput):  # raised for a value that is in no key
        if remedy := unit_remedy({class_of(value) for value in values}):
            return f"key field {name!r}: some values have nanoseconds, some are too far for them; {remedy}"
    return f"key field {name!r}: its values are of several classes, which have no common order; {advice}TYPE)"


def groups(tables: list[pa.Table]) -> Iterator[list[pa.Table]]:
    """Yields groups of tables, in their order; each group becomes one object.  Empties `tables`, to free their
    memory early.

    All tables of a group get the fields of all of them.  A group ends when too many values would be missing.
    The more fields there are, the fewer values may be missing, because chunks of columns are then short.
    """
    left = tables[::-1]
    tables.clear()
    group: list[pa.Table] = []
    rows = values = 0
    fields = Fields()
    while left:
        table = left.pop()
        cells = table.num_rows * sum(1 for _ in leaves(table.schema))
        fault = fields.take(table.schema)
        rows, values = rows + table.num_rows, values + cells
        if group and (fault or rows * fields.count - values > most_absent(fields.count)):
            yield group
            group, rows, values, fields = [], table.num_rows, cells, Fields()
            fields.take(table.schema)
        group.append(table)
    if group:
        del table
        yield group


def by_key(table: pa.Table, key: PoolKey) -> tuple[pa.Table, pa.Table]:
    """Returns the records that have the key, and those that lack it.

    A record has the key if the leading key field exists and is not null.  Further key fields may be null; null
    sorts first.
    """
    if not key.fields:
        return table, table.slice(0, 0)
    leading = table.schema.get_field_index(key.names[0])
    if leading < 0 or pa.types.is_null(table.schema.field(leading).type):
        return table.slice(0, 0), table
    for name in key.names[1:]:
        if table.schema.get_field_index(name) < 0:
            table = table.append_column(name, pa.nulls(table.num_rows))
    if not table.column(leading).null_count:
        return table, table.slice(0, 0)
    valid = pc.is_valid(table.column(leading))
    return table.filter(valid), table.filter(pc.invert(valid))
