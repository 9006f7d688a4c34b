"""Records in: `df.write.format("lake").mode("append").save("flights")`, and `df.writeStream` to the same.

With `mode("overwrite")` the records replace those of a key range that fulfil a condition (options `from`, `to`,
`where`), otherwise all records of the pool.  One transaction removes the old records and adds the new ones, as
`lake replace` does.

A task builds finished objects, as a task of ingest does, and sends back their descriptions; the driver's
`commit` commits one transaction.  Only objects named in the messages that Spark hands to `commit` count.
Nothing refers to objects of an attempt that failed or lost a race with another attempt, nor to those of an
aborted write: the vacuum removes them.  Nothing here deletes.

A batch is written once under its option `token`.  Writing it again changes nothing, and the log says so; the
tasks then only count their records, and other data under a used token is refused as far as counts tell
(decision 44).  A micro-batch of a stream has a token of its own, made of the query's id and the batch's number
(decision 13).  So if Spark dies between the commit and its own note of it, and commits the batch again, nothing
changes.

A task returns bad records as a result, not as a failure, which Spark would repeat.  Records count as arrived in
the order of the partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lake_core.conditions import top_level
from lake_core.errors import Conflict, InvalidInput, LakeError, Unavailable, from_wire, to_wire
from lake_core.ids import IdSource
from lake_core.naming import NOKEY
from lake_core.records import AddObject
from lake_core.records.pools import PoolConfig
from lake_core.schemas.hidden import DELETED
from log_lake.lake.branch import Branch
from log_lake.lake.by_keys import as_markers, in_types
from log_lake.lake.loads import builder
from log_lake.lake.replaces import PendingReplace
from log_lake.lake.results import LoadResult, PendingLoad, check_same, repeated_line
from log_lake.loading.block import Block
from log_lake.loading.builder import ObjectBuilder
from log_lake.loading.declared import declared_columns
from log_lake.loading.key_paths import may_have_key
from log_lake.loading.misfits import Misfits, summed
from log_lake.loading.roll_up import rolled
from log_lake.objects.write import WrittenObject
from log_lake.settings import Settings
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from log_lake.texts.keytext import RangeText
from log_lake.where.of_keys import check_keys
from spark_apps.datasource import options as opts
from spark_apps.datasource.from_spark import check_storable, from_spark, stored_schema
from spark_apps.datasource.names import check_apart, check_known, check_known_inside

log = logging.getLogger(__name__)

QUERY_ID = "sql.streaming.queryId"
"""The local property that gives the tasks of a stream the id of their query."""


@dataclass(frozen=True)
class WriteWork:
    """Everything that a task of a write needs, as plain values that Spark can send to any worker.

    `replaces`: what the records replace, None if they are added.  `keyed`: every record without the key is
    refused. Otherwise such a record goes to the sub-pool `$nokey`, if another record has the key (the setting
    `nokey`).
    """

    store: str
    config: PoolConfig
    job: PendingLoad
    replaces: PendingReplace | None = None
    keyed: bool = False
    markers: pa.Schema | None = None
    """The fields of the key, if the records are delete markers."""


@dataclass
class WrittenPartition(WriterCommitMessage):
    """The result of one task of a write: objects in their order of arrival, or the error, in its serialized form.

    `query` is the id of the stream's query, "" for a batch; `counted` is the number of records of a repeated
    write.
    """

    partition: int
    job: PendingLoad | None = None
    objects: tuple[AddObject, ...] = ()
    schemas: tuple[pa.Schema, ...] = ()
    failed: str = ""
    query: str = ""
    counted: int = 0
    misfits: Misfits = field(default_factory=dict)


def begin(
    options: opts.Options, schema: StructType, *, accepted: tuple[str, ...], overwrite: bool
) -> tuple[Branch, WriteWork | LoadResult]:
    """Begins a write.  Returns its branch, and the work that tasks share; if the token was used before, returns
    the first result in place of the work.

    Raises InvalidInput for an impossible write, before anything is written.
    """
    check(options, schema, (*accepted, *(opts.REPLACE if overwrite else ())))
    branch = opts.open_branch(options)
    check_case(branch, schema, options)
    if branch.key.fields and not may_have_key(branch.key.names[0], schema.names):
        _refuse_keyless(branch, f"it has {', '.join(map(repr, schema.names[:8]))}")
    return branch, _begun(branch, options, schema, overwrite=overwrite)


def _begun(
    branch: Branch, options: opts.Options, schema: StructType, *, overwrite: bool
) -> WriteWork | LoadResult:
    token, message = options.get("token", ""), options.get("message", "")
    settings = {"schema": options["schema"]} if "schema" in options else {}
    if not overwrite:
        bulk = opts.flag(options, "bulk")
        job = branch.begin_load(token=token, message=message, options=settings, bulk=bulk)
        return job if isinstance(job, LoadResult) else WriteWork(branch.store.uri, branch.config, job)
    begun = branch.begin_replace(
        key_range=RangeText(low=options.get("from"), high=options.get("to")),
        where=options.get("where"),
        token=token,
        message=message,
        options=settings,
        brought=stored_schema(schema),
    )
    if isinstance(begun, LoadResult):
        return begun
    return WriteWork(branch.store.uri, branch.config, begun.load, begun)


def built(
    work: WriteWork, batches: Iterable[pa.RecordBatch], *, first_ordinal: int = 0
) -> list[WrittenObject]:
    """Sorts and writes these records in a task, and returns the objects.  Raises InvalidInput, Unavailable."""
    store, new_id = guarded(open_store(work.store)), IdSource().new
    building = builder(ObjectBuilder, store, work.config, work.job, new_id, first_ordinal=first_ordinal)
    with building:
        for block in blocks_of(work, batches):
            building.add(block)
        return building.finish()


def blocks_of(work: WriteWork, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Yields the records of the batches in the form that a load accepts.  Raises InvalidInput."""
    settings = Settings(work.config.settings)
    declared, roll_up = settings.declared, settings["roll_up"]
    for batch in batches:
        records = rolled(declared_columns(from_spark(batch), declared, source="the data frame"), roll_up)
        if work.keyed:
            check_keys(records, work.config.key)
        if work.markers is not None:
            records = as_markers(in_types(records, work.markers))
        if work.replaces is not None:
            work.replaces.check(records)
        yield Block(records)


def build(work: WriteWork, batches: Iterator[pa.RecordBatch]) -> WrittenPartition:
    """Writes the records of a partition in a task of Spark's writer, and returns the result of `built`, or its
    error."""
    context = TaskContext.get()
    assert context is not None  # only tasks build
    done = WrittenPartition(context.partitionId(), work.job, query=context.getLocalProperty(QUERY_ID) or "")
    try:
        written = built(work, batches)
    except Unavailable:
        raise  # it may pass: Spark tries again
    except LakeError as error:
        return replace(done, failed=to_wire(error))
    return replace(
        done,
        objects=tuple(w.action for w in written),
        schemas=tuple(w.schema for w in written),
        misfits=summed(w.misfits for w in written),
    )


def commit_tasks(
    branch: Branch,
    tasks: list[WrittenPartition],
    *,
    token: str | None = None,
    replaces: PendingReplace | None = None,
) -> LoadResult:
    """Commits on the driver the objects of the tasks, under `token` unless it is None.

    `replaces`: what the objects replace.  Raises the error of a failed task, and what `Branch.commit` raises.
    """
    tasks = sorted(tasks, key=lambda task: task.partition)
    for task in tasks:
        if task.failed:
            raise from_wire(task.failed)
    job = next((task.job for task in tasks if task.job is not None), replaces.load if replaces else None)
    if job is None:
        return LoadResult(None)
    if job.origin.pool_id != branch.config.id:
        raise Conflict(
            f"pool {branch.config.name!r} was dropped and created again since this write began; write again"
        )
    objects = [action for task in tasks for action in task.objects]
    return commit_objects(
        branch,
        job if token is None else replace(job, token=token),
        objects=[msgspec.structs.replace(action, ordinal=ordinal) for ordinal, action in enumerate(objects)],
        schemas=[schema for task in tasks for schema in task.schemas],
        replaces=replaces,
        is_checked=token is None,
        misfits=summed(task.misfits for task in tasks),
    )


def commit_objects(
    branch: Branch,
    job: PendingLoad,
    *,
    objects: list[AddObject],
    schemas: list[pa.Schema],
    replaces: PendingReplace | None,
    is_checked: bool = True,
    misfits: Misfits | None = None,
) -> LoadResult:
    """Commits the objects of a write; logs if it is a repetition.

    `is_checked`: refuses a write in which no record has the key (the setting nokey), and a repeated write of
    other data, as far as counts show it.  Raises what `Branch.commit` raises.
    """
    if is_checked and objects and all(one.sub_pool == NOKEY for one in objects):
        _refuse_keyless(branch, "it is null in every record")
    result = branch.commit(
        job,
        objects=objects,
        schemas=schemas,
        replaced=replaces.settled(branch, objects, schemas) if replaces is not None else None,
        misfits=misfits,
    )
    if result.repeated:
        log.warning(repeated_line(result, pool_name=branch.config.name, token=job.token))
        if is_checked and branch.rule.kind == "append":
            check_same(result, token=job.token, records=sum(o.records for o in objects), exact=True)
    return result


def _refuse_keyless(branch: Branch, why: str) -> None:
    """Raises InvalidInput for a write in which no record has the key, unless the pool's setting `nokey` allows
    such loads."""
    if branch.key.fields and branch.settings["nokey"] == "fail":
        raise InvalidInput(
            f"the data frame: no record has the key field {branch.key.names[0]!r}; {why}; "
            f"lake set {branch.config.name} nokey=accept sends such records to $nokey"
        )


def repeat(branch: Branch, first: LoadResult, *, token: str, records: int) -> None:
    """Logs that a write is repeated.  Raises InvalidInput if it has another number of records than the
    first."""
    check_same(first, token=token, records=records, exact=branch.rule.kind == "append")
    log.warning(repeated_line(first, pool_name=branch.config.name, token=token))


def check(options: opts.Options, schema: StructType, accepted: tuple[str, ...]) -> None:
    """Raises InvalidInput for a write that is impossible, before anything is written."""
    opts.check_names(options, accepted, what="a write")
    if not schema.names:
        raise InvalidInput("the data frame has no columns; a record needs at least one")
    check_apart(schema, options, what="the data frame")
    check_storable(schema)


def check_case(branch: Branch, schema: StructType, options: opts.Options) -> None:
    """Raises InvalidInput for a column whose name differs from a name of the pool in case only."""
    name, stored = branch.config.name, branch.revision().schema
    check_known(schema.names, _fields(branch, stored), options, pool_name=name)
    check_known_inside(schema, stored, options, pool_name=name)


def _fields(branch: Branch, stored: pa.Schema) -> list[str]:
    """Returns the names that the pool has so far: of its key and its settings, and of its records."""
    ages, kept, own = (branch.settings[name] for name in ("age_off", "keep.where", "keep.by"))
    rounded = branch.settings["roll_up"]
    return [
        *branch.config.key.names,
        *branch.settings.declared,
        *branch.config.aggregates,
        *([ages[0]] if ages else []),
        *([rounded[0]] if rounded else []),
        *(top_level(kept) if kept else []),
        *(own.fields if own else []),
        *([DELETED] if branch.config.kind == "upsert" else []),
        *stored.names,
    ]


class _Writes:
    """The common part of writers of batches and of streams.

    Spark makes a writer on the driver and sends copies of it to the tasks.  The writer that commits is a copy
    too, or is made anew in another process.  A copy opens the branch again.
    """

    _known: ClassVar[tuple[str, ...]]

    def __init__(self, options: opts.Options, schema: StructType, *, overwrite: bool) -> None:
        opts.check_not_bulk(options)
        self._options = options
        self._branch, self._work = begin(options, schema, accepted=self._known, overwrite=overwrite)

    @cached_property
    def _branch(self) -> Branch:
        return opts.open_branch(self._options)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_branch"}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPartition:
        """Runs in a task: writes the objects of one partition and returns them."""
        if isinstance(self._work, LoadResult):
            return WrittenPartition(0, counted=sum(batch.num_rows for batch in iterator))
        return build(self._work, iterator)


class LakeWriter(_Writes, DataSourceArrowWriter):
    """Writes a data frame as one transaction."""

    _known = opts.WRITE

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Runs on the driver: commits one transaction, or none if the token was used before."""
        tasks = [m for m in messages if isinstance(m, WrittenPartition)]
        if isinstance(self._work, WriteWork):
            commit_tasks(self._branch, tasks, replaces=self._work.replaces)
            return
        records = sum(task.counted for task in tasks)
        repeat(self._branch, self._work, token=self._options["token"], records=records)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Does nothing: the objects stay until there is a vacuum, and no transaction names them."""


class LakeStreamWriter(_Writes, DataSourceStreamArrowWriter):
    """Writes each micro-batch as one transaction.  Spark makes one writer for a batch's tasks, and one to commit
    the batch."""

    _known = opts.WRITE_STREAM

    def __init__(self, options: opts.Options, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidInput(
                "output mode complete would replace all records of the pool with each batch; use output mode append"
            )
        super().__init__(options, schema, overwrite=False)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Runs on the driver: commits one transaction, under the token of the batch."""
        tasks = [m for m in messages if isinstance(m, WrittenPartition)]
        if tasks:
            commit_tasks(self._branch, tasks, token=batch_token(tasks, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Does nothing: the objects stay until there is a vacuum, and no transaction names them."""


def batch_token(tasks: list[WrittenPartition], batch: int) -> str:
    """Returns the token of a query's batch, the same at every try.  Raises InvalidInput if Spark does not name the
    query."""
    queries = {task.query for task in tasks}
    if len(queries) != 1 or "" in queries:
        raise InvalidInput(
            f"this Spark does not tell tasks which query they are of ({QUERY_ID}), so that the batch could be "
            "written twice; use foreachBatch and the option token"
        )
    return f"spark:{queries.pop()}:{batch}"
