"""Sorts records and writes one data object.

A load passes a table that fits its memory budget (`write_object`).  It is sorted by the pool key, with records
of equal keys in their order of arrival, and written.  A compaction passes sorted tables one after another
(`ObjectWriter`), with the sequence and ordinal of each record.  Both write under a new id and return the
AddObject that a transaction will carry.  Until that transaction is in the journal, no reader sees the object.

Groups are small, so that a point read decodes little (decision 124).  `objects.containers` defines the bytes of
a group.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import accumulate
from types import TracebackType
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from lake_core import naming
from lake_core.errors import CannotHold
from lake_core.ids import ID_LENGTH
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import key_class
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddInlined, AddObject, Column
from lake_core.schemas import APPEND, Rule
from lake_core.schemas.hidden import SEQ, user_fields, without_rows
from lake_core.schemas.schema import schema_id
from lake_core.store import Store
from log_lake.columns.keys import keys_at, sort_order
from log_lake.combine.combine import combine
from log_lake.content.content import ObjectSums
from log_lake.indexes.cluster import BucketSeen
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.indexes.rule import IndexRule
from log_lake.indexes.writing import IndexWriter
from log_lake.objects import metadata
from log_lake.objects.checksums import SummedFile
from log_lake.objects.containers import Sink
from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits
from log_lake.objects.containers.parquet_sink import ParquetSink
from log_lake.objects.containers.zng import ZngSink
from log_lake.objects.containers.zst import ZstSink
from log_lake.objects.failures import writing
from log_lake.objects.held_file import HeldFile
from log_lake.objects.metadata import ObjectMetadata, Origin, Sample
from log_lake.objects.statistics import column_statistics, unite_statistics
from log_lake.objects.weight import Sizes

log = logging.getLogger(__name__)

_SMALL_CHUNK = 1_024
"""Tables with fewer records than this, on average, are joined before they are written, because a chunk of any size
costs as much as this many records."""

_PLAINER = {naming.ZST: naming.ZNG, naming.ZNG: naming.PARQUET}
"""For each format, the format in which an object is written if it cannot hold one of the records."""

_BEYOND = b"\0"
"""A key with this byte appended is the smallest key above it."""


@dataclass(frozen=True)
class WrittenObject:
    """A new object in the form that a transaction needs: the action, and the schema that the action names.

    `misfits`: for each field, how many records have a value that the pool's field cannot hold; None if they
    were not counted.  `lost`: for each field that `schema=discard` left out, from how many records of the
    worker's files. Only the worker's first object has this.
    """

    action: AddObject
    schema: pa.Schema
    misfits: Mapping[str, int | None] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)


def write_object(
    store: Store,
    table: pa.Table,
    *,
    key: PoolKey,
    object_id: str,
    origin: Origin,
    ordinal: int = 0,
    sub_pool: str = "",
    rule: Rule = APPEND,
    limits: ObjectLimits = OBJECT_LIMITS,
    inline: int = 0,
    sums: bool = False,
    indexes: tuple[IndexRule, ...] = (),
    cluster: ClusterRule | None = None,
) -> WrittenObject:
    """Sorts records, combines them by the rule, and writes them as an object.  `table` must be `normalized`, with
    at least one record.

    An object of at most `inline` bytes is not written to the store: the action has its bytes.  `sums`: the action
    has the sums of its records.  `indexes`: an object on the store gets these indexes.  `cluster`: an object with
    records of one bucket states it.

    The format is that of `object_id`, or the next plainer one that can hold the records.  Raises InvalidInput
    if a key field has a type without order, and Unavailable if the store fails.
    """
    with writing(f"{store.uri}/{naming.data_object(origin.pool_id, object_id)}"):
        table = sorted_table([table], key, rule)

    writer = ObjectWriter(
        store,
        key=key,
        object_id=object_id,
        origin=origin,
        ordinal=ordinal,
        sub_pool=sub_pool,
        limits=limits,
        inline=inline,
        sums=sums,
        indexes=indexes,
        cluster=cluster,
    )
    written = write_tables(writer, lambda: [table])
    assert written is not None
    return written


def sorted_table(tables: list[pa.Table], key: PoolKey, rule: Rule) -> pa.Table:
    """Returns the records of all tables, which have one schema: sorted by key and arrival, and combined by the
    rule.

    Empties the list, so that each column is freed once it is sorted.  Raises InvalidInput if a key field has a
    type without order.
    """
    table = pa.concat_tables(tables)
    tables.clear()
    for name in key.names:
        key_class(table.schema.field(name).type)
    if rule.kind == "aggregate":
        table = without_rows(table)
    if (order := sort_order(table, key)) is not None:
        schema, columns, places = table.schema, table.columns[::-1], pa.array(order)
        del table, order
        ordered = []
        while columns:
            column = columns.pop().combine_chunks()  # `take` would do it, and keep the chunks meanwhile
            ordered.append(pc.take(column, places, boundscheck=False))
        table = pa.table(ordered, schema=schema)
    return combine(table, key, rule)


def write_tables(writer: ObjectWriter, tables: Callable[[], Iterable[pa.Table]]) -> WrittenObject | None:
    """Writes the tables as the writer's object.  Returns None if they have no records.

    If a record does not fit the format, it writes all tables again, in the next plainer format.
    """
    while True:  # ends: Parquet holds all records of a pool
        try:
            with writer:
                for table in tables():
                    writer.write(table)
            return writer.written if writer.records else None
        except CannotHold as error:
            plainer = plainer_of(writer.object_id)
            log.info("%s: %s; writes %s instead", writer.object_id, error, plainer)
            writer = replace(writer, object_id=plainer)


def plainer_of(object_id: str) -> str:
    """Returns the name that the object has in the next plainer format."""
    return naming.object_id_of(object_id[:ID_LENGTH], _PLAINER[naming.format_of(object_id)])


@dataclass
class ObjectWriter:
    """Writes sorted tables of one schema as one object.  It is a context: at the end of its block the object is
    made, and `written` is set.

    Tables of a compaction have the hidden columns of `hidden.ORDER`.  If the block raises, or writes no record,
    no object appears.  Raises Unavailable if the store fails.
    """

    store: Store
    key: PoolKey
    object_id: str
    origin: Origin
    ordinal: int = 0
    sub_pool: str = ""
    limits: ObjectLimits = OBJECT_LIMITS
    inline: int = 0
    sums: bool = False
    indexes: tuple[IndexRule, ...] = ()
    cluster: ClusterRule | None = None
    partition: KeyRange = EVERYTHING
    """The key range of the merge that writes this object, even if it has fewer records; other objects of the same
    merge have other ranges."""
    siblings: tuple[str, ...] = ()
    """The ids of the objects that the same merge writes for the same keys, this one included; empty: no others."""
    records: int = field(default=0, init=False)
    _schema: pa.Schema = field(default=None, init=False)
    _written: WrittenObject | None = field(default=None, init=False)
    _gathered: list[pa.Table] = field(default_factory=list, init=False)
    _rows: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)
    _sizes: Sizes | None = field(default=None, init=False)
    _sink: Sink | None = field(default=None, init=False)
    _file: SummedFile | None = field(default=None, init=False)
    _held: HeldFile | None = field(default=None, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _groups: list[bytes] = field(default_factory=list, init=False)
    _sample: Sample = field(default_factory=Sample, init=False)
    _columns: tuple[Column, ...] = field(default=(), init=False)
    _seqs: tuple[int, int] | None = field(default=None, init=False)
    _sums: ObjectSums = field(default_factory=ObjectSums, init=False)
    _indexing: IndexWriter | None = field(default=None, init=False)
    _bucket: BucketSeen | None = field(default=None, init=False)
    _low: bytes = field(default=b"", init=False)
    _last: bytes = field(default=b"", init=False)

    @property
    def name(self) -> str:
        """The object's name in the store."""
        return naming.data_object(self.origin.pool_id, self.object_id)

    @property
    def written(self) -> WrittenObject:
        """The finished object.  Read it only after the writer's `with` block, and only if records were written in
        it."""
        assert self._written is not None
        return self._written

    @property
    def size(self) -> int:
        """The bytes of the object so far.  Like `records`, this number leaves out records that wait for a whole
        row group."""
        return self._file.tell() if self._file is not None else 0

    def __enter__(self) -> ObjectWriter:
        self._stack.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        written = None
        try:
            if kind is None and (self.records or self._rows):
                with self._writing():
                    self._flush(everything=True)
                    written = self._finish()
        except BaseException as failure:
            self._abandon(failure)
            raise
        if error is not None:
            self._abandon(error)
            return
        with self._writing():
            self._stack.__exit__(None, None, None)
        if self._indexing is not None and written is not None and not written.action.data:
            self._indexing.write(self.store, self.origin.pool_id, self.object_id)
        self._written = written

    @property
    def _group_records(self) -> int:
        return self.limits.group_records(naming.format_of(self.object_id))

    def _abandon(self, failure: BaseException) -> None:
        """Ends the file so that no object appears.  If this fails too, the first failure is the one that is
        reported."""
        with contextlib.suppress(Exception):
            self._stack.__exit__(type(failure), failure, failure.__traceback__)

    def _writing(self) -> AbstractContextManager[None]:
        return writing(f"{self.store.uri}/{self.name}")

    def write(self, table: pa.Table) -> None:
        """Writes the next records; all tables have the schema of the first."""
        if not table.num_rows:
            return
        if naming.format_of(self.object_id) == naming.PARQUET:
            table = without_rows(table)
        self._gathered.append(table)
        self._rows += table.num_rows
        self._sizes = self._sizes or Sizes.of(table.schema)
        self._bytes += self._sizes.size(table)
        limits = self.limits
        if self._rows >= limits.gathered * self._group_records or self._bytes >= limits.max_bytes(
            self._sizes
        ):
            with self._writing():
                self._flush(everything=False)

    def _flush(self, *, everything: bool) -> None:
        """Writes the gathered records; unless `everything` is set, only whole row groups."""
        if not self._rows:
            return
        assert self._sizes is not None
        gathered = pa.concat_tables(self._gathered)
        most = self.limits.max_bytes(self._sizes)
        few = self._rows < _SMALL_CHUNK * len(self._gathered)
        if few and self._bytes < 2 * most:
            gathered = gathered.combine_chunks()
        groups = _row_groups(gathered, self._sizes, self._bytes, rows=self._group_records, most=most)
        rows = self._rows
        if not everything and groups[-1] < self._group_records and len(groups) > 1:
            rows -= groups.pop()
        table, rest = gathered.slice(0, rows), gathered.slice(rows)
        self._gathered, self._rows = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
        self._bytes = self._sizes.size(rest) if rest.num_rows else 0
        if self._sink is None:
            self._open(table)
        assert self._sink is not None
        self._describe(table, groups)
        self._sink.write(table, groups)

    def _open(self, first: pa.Table) -> None:
        self._schema = first.schema
        self._indexing = IndexWriter(self.indexes) if self.indexes and not self.sub_pool else None
        self._bucket = BucketSeen(self.cluster) if self.cluster is not None and not self.sub_pool else None
        file = self._stack.enter_context(self._new_file())
        self._file = SummedFile(file)
        self._sink = self._stack.enter_context(closing(self._new_sink(self._file, first)))

    def _new_file(self) -> AbstractContextManager[BinaryIO]:
        if not self.inline:
            return self.store.open_output(self.name)
        self._held = HeldFile(lambda: self.store.open_output(self.name), most=self.inline)
        return self._held

    def _new_sink(self, file: SummedFile, first: pa.Table) -> Sink:
        format = naming.format_of(self.object_id)
        if format == naming.PARQUET:
            return ParquetSink(file, first, key=self.key, limits=self.limits)
        return ZngSink(file) if format == naming.ZNG else ZstSink(file)

    def _describe(self, table: pa.Table, groups: list[int]) -> None:
        """Adds the records to the statistics, the sample and the list of groups, for the footer and the
        transaction."""
        firsts = [0, *accumulate(groups[:-1])]
        ranks = self._sample.wants(self.records, table.num_rows)
        rows = [*firsts, *(rank - self.records for rank in ranks), table.num_rows - 1]
        keys = keys_at(table, rows, self.key)
        self._groups += keys[: len(firsts)]
        self._sample.take(zip(ranks, keys[len(firsts) : -1], strict=True))
        self._low, self._last = self._groups[0], keys[-1]
        ordered = SEQ in table.schema.names
        users = table.select(user_fields(table.schema).names)
        self._columns = unite_statistics(self._columns, column_statistics(users))
        if ordered:
            bounds = pc.min_max(table.column(SEQ))
            oldest, newest = bounds["min"].as_py(), bounds["max"].as_py()
            seqs = self._seqs or (oldest, newest)
            self._seqs = min(seqs[0], oldest), max(seqs[1], newest)
        if self.sums:
            self._sums.add(table)
        if self._indexing is not None:
            self._indexing.add(users, groups)
        if self._bucket is not None:
            self._bucket.add(users)
        self.records += table.num_rows

    def _finish(self) -> WrittenObject:
        assert self._sink is not None
        assert self._file is not None
        schema = user_fields(self._schema)
        described = ObjectMetadata(
            version=metadata.VERSION if self.siblings else metadata.PLAIN_VERSION,
            object=self.object_id,
            origin=self.origin,
            key=str(self.key),
            sub_pool=self.sub_pool,
            schema=schema_id(schema),
            records=self.records,
            low=self._low,
            high=self._last + _BEYOND,
            groups=tuple(self._groups),
            sample=self._sample.done(self.records - 1, self._last),
            partition=(
                metadata.ALL_KEYS
                if self.partition == EVERYTHING
                else (self.partition.low, self.partition.high)
            ),
            first_seq=self._seqs[0] if self._seqs else None,
            last_seq=self._seqs[1] if self._seqs else None,
            siblings=self.siblings,
        )
        self._sink.finish(described)
        data = self._held.data if self._held is not None else b""
        action = (AddInlined if data else AddObject)(
            object=self.object_id,
            records=self.records,
            size=self._file.tell(),
            schema=described.schema,
            low=described.low,
            high=described.high,
            ordinal=self.ordinal,
            sub_pool=self.sub_pool,
            columns=self._bucket.stated(self._columns) if self._bucket is not None else self._columns,
            seqs=self._seqs,
            data=data,
            content=self._sums.packed if self.sums else b"",
        )
        return WrittenObject(action, schema)


def _row_groups(table: pa.Table, sizes: Sizes, size: int, *, rows: int, most: int) -> list[int]:
    """Splits a table of `size` bytes into row groups of at most `rows` records and `most` bytes.  Returns the
    records of each.

    A slice that has too many bytes is halved.
    """
    row_counts: list[int] = []
    left = [(at, min(rows, table.num_rows - at)) for at in range(0, table.num_rows, rows)][::-1]
    small = size <= most
    while left:  # a slice of one record is not halved
        at, rows = left.pop()
        if rows == 1 or small or sizes.size(table.slice(at, rows)) <= most:
            row_counts.append(rows)
        else:
            left += [(at + rows // 2, rows - rows // 2), (at, rows // 2)]
    return row_counts
