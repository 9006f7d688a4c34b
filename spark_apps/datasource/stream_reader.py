"""A stream: `spark.readStream.format("lake").load("flights")` gives new transactions, each once and in order.

An offset is the version of the last entry that was delivered.  Within a batch records come by transaction,
within a transaction by object, in the order of arrival, and within an object by key; tasks take runs of
objects.  Rewrites (compactions) deliver nothing.

    startingTransaction       earliest (the default): everything, and then what is new.  If transactions were
                              purged, the state at the oldest entry that can be resolved comes first, in key order,
                              in their place
                              latest: what is committed after the stream's start
                              N: transaction N and what follows
    maxTransactionsPerBatch   how many entries one batch takes (1,000): Spark's admission control

Two rules prevent that records are lost or come twice.  First, every offset tells where the stream began.  If
Spark restarts a stream before its first batch is done, it asks for the first offset again, and `latest` would
then be another version.  So the offset at the end of the planned batch decides.  Second, a batch is planned
from the entries themselves: an entry that was purged meanwhile, or a missing object, is an error, never a gap.

From an upsert pool a stream gives every version of a record, from an aggregate pool what each transaction adds.
A delete marker is a record with the column `_deleted`, which a stream has if it was chosen (`.schema`,
`columns`).  Without the column a stream stops at a delete marker; skipping it would keep deleted records.

With the option `changes` deletes are rows too (`changes`); the rest is the same.

The columns are those of the pool when the stream starts, or those that the user chose (`stream_columns`).  In
the first case a transaction that changes the columns stops the stream with an error; restart it to pick the new
columns up.  Objects and the state at the beginning are read in one schema, that of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lake_core.errors import InvalidInput, LakeError, NotFound, ObjectMissing
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import DELETED
from lake_core.store import Store
from log_lake.combine.newest import without_markers
from log_lake.fields.names import SAME, FieldNames
from log_lake.lake.feed import Brought, Feed, Inserted, read_object
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.leases import HeldLease
from log_lake.objects.located import Located
from log_lake.presence.absence import explained_to_reader_of_feed
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from spark_apps.datasource import options as opts
from spark_apps.datasource.changes import (
    OPENING,
    ChangeSource,
    ChangesPartition,
    inserts_of_state,
    plan_changes,
    read_changes,
)
from spark_apps.datasource.names import check_apart
from spark_apps.datasource.reader import TASK_SIZE, split_tasks
from spark_apps.datasource.stream_columns import (
    StreamColumns,
    check_names,
    fitted,
    shown_schemas,
    state_at,
)
from spark_apps.datasource.to_spark import to_batches
from spark_apps.datasource.types import arrow_schema

MAX_TRANSACTIONS = 1_000
Offset = dict[str, Any]
"""`transaction`: the last entry delivered; `since`: the one after which the stream began; `pool`: the pool's id."""


@dataclass
class StatePartition(InputPartition):
    """A key range that one task reads from the state at `version`, which replaces purged transactions; `schema` is
    the schema of the records read.

    `now` is the time from which ages count, in seconds since 1970; all tasks of a batch share it.
    """

    lake: str
    pool_id: str
    version: int
    now: float
    schema: pa.Schema
    key_range: KeyRange


@dataclass
class ObjectsPartition(InputPartition):
    """Objects that transactions added, in order, which one task reads; `schema` is the schema of the records read.

    `refuses_markers`: there may be delete markers among the records, and the stream has no column to show them.
    `has_markers`: the pool has delete markers.  `filters`: those of the pool, which hide records.
    """

    store: str
    pool_id: str
    key: PoolKey
    schema: pa.Schema
    refuses_markers: bool
    objects: tuple[Located, ...]
    has_markers: bool = False
    filters: tuple[Tombstone, ...] = ()
    names: FieldNames = SAME


class LakeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the batches of a stream, in one process that lives as long as the query; tasks call only `read`."""

    def __init__(
        self,
        options: opts.Options,
        schema: StructType,
        *,
        told: pa.Schema | None,
        task_size: int = TASK_SIZE,
        pool_id: str = "",
    ) -> None:
        """`pool_id`: the id of the pool whose changes are read, even if it was renamed; without an id, the pool
        with the name."""
        opts.check_names(options, opts.READ_STREAM, what="a stream")
        self._options, self._pool_id = options, pool_id
        self._schema = schema
        self._columns = StreamColumns(options, schema, told)
        self._gives_changes = opts.flag(options, "changes")
        if self._gives_changes and told is None:
            raise InvalidInput(
                "changes=true has columns of its own; leave .schema out, or choose with columns=A,B"
            )
        self._task_size = task_size
        self._most = opts.count(options, "maxTransactionsPerBatch") or MAX_TRANSACTIONS
        if told is not None and not schema.names:
            raise InvalidInput(
                f"stream of {opts.table_name(options)!r}: the pool has no records yet, so it has no columns; "
                "give them: "
                '.schema("k long, ...")'
            )
        check_apart(schema, options, what=f"pool {opts.table_name(options)!r}")
        self._last: int | None = None
        self._seen: Offset | None = None
        self._is_leased = opts.flag(options, "lease")
        self._lease: HeldLease | None = None

    # --- offsets

    def initialOffset(self) -> Offset:
        """Returns the first offset of a stream without a checkpoint; every call returns the same."""
        return self._initial

    @cached_property
    def _initial(self) -> Offset:
        return self._offset(since := self._begin(), since=since)

    def _begin(self) -> int:
        newest, fence = self._feed.newest(), self._feed.start()
        text = (self._options.get("startingtransaction") or "earliest").lower()
        if text in ("earliest", "latest"):
            return 0 if text == "earliest" else newest
        first = opts.count(self._options, "startingTransaction") or 0
        if first > newest + 1:
            raise NotFound(
                f"startingTransaction={first} does not exist; use 1 to {newest + 1}, earliest or latest"
            )
        if first <= fence:
            raise NotFound(
                f"startingTransaction={first} is purged; the history begins after {fence}. Use a later one, "
                "or earliest (the state at the beginning)"
            )
        return first - 1

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns how many transactions a batch may have, as the option says.  Spark counts files; here an entry
        counts as one."""
        return ReadMaxFiles(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Makes this run ignore everything that is committed later."""
        self._last = self._feed.newest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Returns the offset at the end of the next batch; `start` if there is nothing new."""
        at = self._number(start)
        newest = self._feed.newest()
        if at > newest:
            raise NotFound(
                f"pool {self._pool.name!r} ends at version {newest}, and the stream has delivered {at}: this "
                "lake is an "
                "older copy. Name the right lake, or start a new stream with a checkpointLocation of its own"
            )
        self._hold(at)
        self._seen = self._offset(newest, since=start["since"])
        end = newest if self._last is None else min(newest, self._last)
        if isinstance(limit, ReadMaxFiles):
            # at the beginning, the state in place of what was purged counts as one
            end = min(end, (at or max(0, self._feed.start() - 1)) + limit.max_files)
        return start if end <= at else self._offset(end, since=start["since"])

    def _hold(self, version: int) -> None:
        """Holds, by a lease, everything that was committed after a version, if the option says so."""
        if not self._is_leased:
            return
        if self._lease is None:
            self._lease = self._pool.read_lease(version, why="Spark stream").__enter__()
        self._lease.move(version)

    def stop(self) -> None:
        """Ends the lease of the stream, if it has one; Spark calls this when the query ends."""
        if self._lease is not None:
            self._lease.__exit__(None, None, None)

    def reportLatestOffset(self) -> Offset | None:
        """Returns the offset of the newest entry that was seen, for the query's status."""
        return self._seen

    def _offset(self, version: int, *, since: int) -> Offset:
        return {"pool": self._pool.config.id, "since": since, "version": version}

    def _number(self, offset: Offset) -> int:
        if offset["pool"] != self._pool.config.id:
            raise InvalidInput(
                f"pool {self._pool.name!r} was dropped and created again since this stream began; start a new "
                "stream, with a checkpointLocation of its own"
            )
        return int(offset["version"])

    # --- planning

    @cached_property
    def _pool(self) -> Pool:
        return opts.open_pool(self._options, what="stream of", pool_id=self._pool_id)

    @cached_property
    def _feed(self) -> Feed:
        return self._pool.feed(opts.branch_name(self._options))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Returns the tasks of a batch, in order."""
        after, until = self._number(start), self._number(end)
        if start["since"] != end["since"]:  # the first batch, planned before the query was started again
            after = end["since"]
        if after >= until:
            return []
        begin = after or self._feed.start()
        if begin > until:
            raise NotFound(
                f"version {until} is purged: the history begins after {begin}, and the batch up to {until} was "
                "planned before; start a new stream, with a checkpointLocation of its own"
            )
        state = state_at(self._pool, self._feed, begin) if begin and not after else None
        if self._gives_changes:
            changes = list(self._feed.changes(begin, until))
            brought = [change.action for change in changes if isinstance(change, Inserted)]
        else:
            brought = [action for _, action in self._feed.between(begin, until)]
        view = self._pool.at(self._feed.branch)
        if state is not None:
            check_names(state, view)
        ids = dict.fromkeys(action.schema for action in brought)
        schemas = [] if state is None else [state.schema]
        schema = self._columns.of_batch(view, [*schemas, *shown_schemas(view, ids)])
        opening = [] if state is None else self._state(state, schema)
        if self._gives_changes:
            place = (self._pool.store.uri, self._pool.config.id)
            kind, filters = view.rule.kind, view.lasting_filters
            source = ChangeSource(*place, view.key, kind, schema, filters, view.names)
            return [*opening, *plan_changes(source, changes, task_size=self._task_size)]
        return [*opening, *self._objects(brought, view, schema)]

    def _state(self, view: View, schema: pa.Schema) -> list[StatePartition]:
        """Returns tasks that read a state in place of all transactions before it."""
        spans = split_tasks(view, EVERYTHING) if view.references else []
        place = (view.store.uri, view.config.id)
        return [StatePartition(*place, view.version, view.now, schema, span) for span in spans]

    def _objects(self, brought: list[Brought], view: View, schema: pa.Schema) -> list[ObjectsPartition]:
        """Runs of objects, each of about a task's size."""
        if view.lasting_filters and view.rule.kind == "upsert" and DELETED in self._schema.names:
            schema = schema if DELETED in schema.names else schema.append(pa.field(DELETED, pa.bool_()))
        refuses = view.rule.kind == "upsert" and DELETED not in schema.names
        runs: list[list[Located]] = []
        size = 0
        for action in brought:
            cost = max(action.size, OPENING)
            if not runs or size + cost > self._task_size:
                runs.append([])
                size = 0
            runs[-1].append(Located.of(action))
            size += cost
        store, pool = self._pool.store.uri, self._pool.config.id
        how = (store, pool, view.key, schema, refuses)
        more = (view.rule.kind == "upsert", view.lasting_filters, view.names)
        return [ObjectsPartition(*how, tuple(run), *more) for run in runs]

    # --- reading

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the records of one task, in order."""
        if isinstance(partition, StatePartition):
            options = {**self._options, "lake": partition.lake}
            pool = opts.open_pool(options, what="stream of", pool_id=partition.pool_id)
            view = pool.at(str(partition.version))
            view = replace(view, branch=opts.branch_name(options), now=partition.now)
            yield from self._read_state(view, partition)
            return
        if isinstance(partition, ChangesPartition):
            explain = partial(self._explained, partition.source.store, partition.source.pool_id)
            yield from read_changes(partition, self._schema, explain)
            return
        assert isinstance(partition, ObjectsPartition)
        target = arrow_schema(self._schema)
        store, schema = guarded(open_store(partition.store)), partition.schema
        columns = [*schema.names, *([DELETED] if partition.refuses_markers else [])]
        for located in partition.objects:
            for table in self._tables(partition, located, store, columns=columns):
                if partition.refuses_markers and without_markers(table).num_rows < table.num_rows:
                    raise InvalidInput(
                        f"object {located.object} deletes keys, and the stream has no column {DELETED} for that; "
                        f"start the query again with it: .schema(..., {DELETED} boolean)"
                    )
                yield from to_batches(fitted(table, schema, what=located.object), target)

    def _read_state(self, view: View, partition: StatePartition) -> Iterator[pa.RecordBatch]:
        names = [name for name in partition.schema.names if name in view.schema.names]
        for table in view.scan(key_range=partition.key_range, columns=names):
            records = fitted(table, partition.schema, what=f"version {view.version}")
            if self._gives_changes:
                records = inserts_of_state(records, view.version)
            yield from to_batches(records, arrow_schema(self._schema))

    def _tables(
        self, partition: ObjectsPartition, located: Located, store: Store, *, columns: list[str]
    ) -> Iterator[pa.Table]:
        pool_id, key = partition.pool_id, partition.key
        try:
            tables = read_object(
                store,
                pool_id=pool_id,
                located=located,
                key=key,
                columns=partition.names.stored_names(columns),
                filters=partition.filters,
                has_markers=partition.has_markers,
            )
            yield from map(partition.names.shown_table, tables)
        except ObjectMissing as error:
            raise self._explained(partition.store, pool_id, error) from error

    def _explained(self, store: str, pool_id: str, error: ObjectMissing) -> LakeError:
        pool = opts.open_pool({**self._options, "lake": store}, what="stream of", pool_id=pool_id)
        return explained_to_reader_of_feed(error, pool.history)
