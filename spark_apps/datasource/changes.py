"""The changes of a pool as rows: what was inserted, and what was deleted.

    spark.readStream.format("lake").option("changes", "true").load("flights")
    spark.read.format("lake").options(changes="true", since="12", until="40").load("flights")

Before the columns of the records come four of the change:

    _change    insert: a record was added
               delete: all records were deleted that were inserted before and for which `_where` holds
               delete_key: in an upsert pool, the records with the key of this row were deleted
    _version   the version of the transaction
    _seq       the order of changes: a delete hides what was inserted with a smaller one
    _where     of a delete: a condition of the lake, over keys and fields; null: all records

The read of a part of the history is a single batch of the stream.  `since` is the version after which it
begins, and `until` the last version whose changes it returns.  Compactions and expired records are no changes;
the feed leaves them out (`log_lake.lake.feed`).  A purged history begins with the state as inserts.  In an
aggregate pool an insert is what a transaction adds, in an upsert pool it is the newest record of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T
from pyspark.sql.datasource import InputPartition

from lake_core.conditions import And, top_level
from lake_core.errors import InvalidInput, LakeError, ObjectMissing
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.records import AddObject, AddTombstone, PutTombstone
from lake_core.records.transactions import sequence
from lake_core.schemas.hidden import DELETED
from log_lake.columns.cast import cast_table
from log_lake.combine.newest import are_markers
from log_lake.fields.names import SAME, FieldNames
from log_lake.lake.feed import Deleted, Inserted, read_object, with_marker_column
from log_lake.objects.located import Located
from log_lake.reading.deleted import apply_tombstones
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from log_lake.where import show
from log_lake.where.of_range import of_range
from spark_apps.datasource.to_spark import to_batches
from spark_apps.datasource.types import arrow_schema

CHANGE, VERSION, SEQUENCE, WHERE = "_change", "_version", "_seq", "_where"
INSERT, DELETE, DELETE_KEY = "insert", "delete", "delete_key"

COLUMNS = T.StructType(
    [
        T.StructField(CHANGE, T.StringType(), True),
        T.StructField(VERSION, T.LongType(), True),
        T.StructField(SEQUENCE, T.LongType(), True),
        T.StructField(WHERE, T.StringType(), True),
    ]
)

OPENING = 1 << 20
"""A plan counts each object as at least this many bytes, because opening it takes a task as long as reading so
many."""

Explain = Callable[[ObjectMissing], LakeError]
"""A function that returns the error for an object (by its id) that is not on the store."""


@dataclass(frozen=True)
class ChangeSource:
    """The pool whose changes are read: its `kind`; the schema of the changed records, with the names that
    readers see (`names`); and its filters, with stored names."""

    store: str
    pool_id: str
    key: PoolKey
    kind: str
    schema: pa.Schema
    filters: tuple[Tombstone, ...] = ()
    names: FieldNames = SAME


@dataclass(frozen=True)
class ObjectChange:
    """The records that an object added in a range; the tombstones `own` hide some of them from the
    beginning."""

    version: int
    seq: int
    located: Located
    key_range: KeyRange
    own: tuple[AddTombstone, ...]


@dataclass(frozen=True)
class RangeDelete:
    """A delete, as a condition on the records; None means that it deletes all records."""

    version: int
    seq: int
    where: str | None


@dataclass
class ChangesPartition(InputPartition):
    """The changes that one task returns, in order."""

    source: ChangeSource
    changes: tuple[ObjectChange | RangeDelete, ...]


def change_schema(records: T.StructType, *, pool_name: str) -> T.StructType:
    """Returns the columns of changes: the four of `COLUMNS` and those of the records.  Raises InvalidInput if a
    field of the pool has the name of one of the four."""
    taken = [name for name in records.names if name.lower() in COLUMNS.names]
    if taken:
        raise InvalidInput(
            f"pool {pool_name!r} has a column {taken[0]!r}, which a change has too; choose others (option columns)"
        )
    return T.StructType([*COLUMNS, *records])


def plan_changes(
    source: ChangeSource, changes: Sequence[Inserted | Deleted], *, task_size: int
) -> list[ChangesPartition]:
    """Divides the changes into runs; each run has about as many bytes as one task reads."""
    runs: list[list[ObjectChange | RangeDelete]] = []
    size = 0
    for change in changes:
        cost = max(change.action.size, OPENING) if isinstance(change, Inserted) else 0
        if not runs or size + cost > task_size:
            runs.append([])
            size = 0
        runs[-1].append(_planned(change, source))
        size += cost
    return [ChangesPartition(source, tuple(run)) for run in runs]


def _planned(change: Inserted | Deleted, source: ChangeSource) -> ObjectChange | RangeDelete:
    if isinstance(change, Deleted):
        return RangeDelete(change.version, change.seq, _where(change.mark, source, version=change.version))
    action = change.action
    whole = isinstance(action, AddObject)
    key_range = KeyRange() if whole else KeyRange(action.low, action.high)
    return ObjectChange(change.version, change.seq, Located.of(action), key_range, change.own)


def _where(mark: AddTombstone | PutTombstone, source: ChangeSource, *, version: int) -> str | None:
    for name in () if mark.condition is None else top_level(mark.condition):
        if source.names.of_stored(name) is None:
            raise InvalidInput(
                f"version {version} deletes by a condition on a field that was dropped since; begin after it "
                f"(since={version})"
            )
    within = of_range(KeyRange(mark.low, mark.high), source.key)
    asked = None if mark.condition is None else source.names.shown_condition(mark.condition)
    parts = [condition for condition in (within, asked) if condition is not None]
    if not parts:
        return None
    return show(parts[0] if len(parts) == 1 else And(tuple(parts)))


def read_changes(
    partition: ChangesPartition, schema: T.StructType, explain: Explain
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of one task, in order."""
    target = arrow_schema(schema)
    for change in partition.changes:
        if isinstance(change, RangeDelete):
            nothing = pa.table({"": pa.nulls(1)})
            yield from to_batches(
                _of_change(nothing, DELETE, change.version, change.seq, where=change.where), target
            )
            continue
        try:
            for table, kinds in _records(partition.source, change):
                yield from to_batches(_of_change(table, kinds, change.version, change.seq), target)
        except ObjectMissing as error:
            raise explain(error) from error


def _records(source: ChangeSource, change: ObjectChange) -> Iterator[tuple[pa.Table, str | pa.ChunkedArray]]:
    """Yields the records of an object in the schema of the changes, and the kind of change of each."""
    has_markers = source.kind == "upsert"
    fields = {name for mark in change.own if mark.condition for name in top_level(mark.condition)}
    names = dict.fromkeys(
        [
            *source.names.stored_names(source.schema.names),
            *source.key.names,
            *fields,
            *([DELETED] if has_markers else []),
        ]
    )
    tables = read_object(
        guarded(open_store(source.store)),
        pool_id=source.pool_id,
        located=change.located,
        key=source.key,
        columns=list(names),
        key_range=change.key_range,
        filters=source.filters,
        has_markers=has_markers,
    )
    if has_markers:
        tables = map(with_marker_column, tables)
    if change.own:
        marks = [_of_all(mark, change) for mark in change.own]
        tables = apply_tombstones(tables, marks, key=source.key, has_markers=has_markers)
    for table in tables:
        kinds = pc.if_else(are_markers(table), DELETE_KEY, INSERT) if has_markers else INSERT
        table = source.names.shown_table(table)
        shared = [name for name in table.schema.names if name in source.schema.names]
        yield cast_table(table.select(shared), source.schema, what=change.located.object), kinds


def _of_all(mark: AddTombstone, change: ObjectChange) -> Tombstone:
    """Returns the tombstone as one that hides every record in its range that fulfils its condition."""
    return Tombstone(
        mark.tombstone,
        change.version,
        change.seq,
        change.version,
        "",
        0,
        mark.low,
        mark.high,
        condition=mark.condition,
    )


def inserts_of_state(records: pa.Table, version: int) -> pa.Table:
    """Returns the records of the state at a version as inserts."""
    return _of_change(records, INSERT, version, sequence(version + 1) - 1)


def _of_change(
    table: pa.Table, kinds: str | pa.ChunkedArray, version: int, seq: int, *, where: str | None = None
) -> pa.Table:
    count = table.num_rows
    columns = {
        CHANGE: pa.repeat(kinds, count) if isinstance(kinds, str) else kinds,
        VERSION: pa.repeat(pa.scalar(version, pa.int64()), count),
        SEQUENCE: pa.repeat(pa.scalar(seq, pa.int64()), count),
        WHERE: pa.repeat(pa.scalar(where, pa.string()), count),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table
