"""A batch read: the records of `lake scan`, cut into key ranges.

The reader pins the transaction and the time when it is planned, so all tasks read one snapshot.  A task reads a
range of keys and merges; the ranges weigh about the same and follow each other, so the rows of the whole read
are in key order.

Spark keeps one reader for a `load`, however many queries use it.  So the reader does not take Spark's filters
(`pushFilters`): a filter of one query would narrow what all others read.  Options of
the load itself read less: `from`, `to`, `where`, `columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lake_core.conditions import check, key_range_of
from lake_core.keys import KeyRange
from lake_core.lake.view import View
from lake_core.records.conditions import Condition
from lake_core.values.keytext import RangeText, check_range
from spark_apps.datasource import options as opts
from spark_apps.datasource.names import check_apart, check_known
from spark_apps.datasource.to_spark import check_readable, to_batches
from spark_apps.datasource.types import arrow_schema

TASK_SIZE = 64 << 20
MAX_TASKS = 256
_NOTHING = KeyRange(b"", b"")


@dataclass
class KeyPartition(InputPartition):
    """The range of keys that one task reads."""

    key_range: KeyRange


class LakeReader(DataSourceReader):
    """Plans the tasks of a read, and reads one of them."""

    def __init__(self, options: opts.Options, schema: StructType) -> None:
        opts.check_names(options, opts.READ, what="a read")
        self._schema = schema
        view = opts.leased_view(options)
        check_columns(schema, view.schema, options, pool_name=view.config.name)
        self._where = check(options["where"], view.schema) if "where" in options else None
        range_text = RangeText(low=options.get("from"), high=options.get("to"))
        self._key_range = range_text.read(view.key, view.key_classes)
        check_range(self._key_range, view.key)
        if self._where is not None:
            self._key_range = self._key_range.intersect(key_range_of(self._where, view.key, view.schema))
        if not view.version:  # no transaction to pin: this read does not see what is committed from here on
            self._key_range = _NOTHING
        self._tasks = opts.count(options, "tasks")
        # from here on every task reads this transaction, whatever is committed to the branch
        self._pinned = {
            "lake": view.store.uri,
            "path": opts.table_name(options).partition("@")[0],
            "at": str(view.version) if view.version else view.branch,
            "onmissing": view.on_missing,
        }
        self._now = view.now

    def _view(self) -> View:
        return replace(opts.open_view(self._pinned), now=self._now)

    def partitions(self) -> Sequence[InputPartition]:
        """One key range a task, of about equal weight, in key order."""
        if self._key_range.empty:
            return [KeyPartition(_NOTHING)]
        return [
            KeyPartition(key_range)
            for key_range in split_tasks(self._view(), self._key_range, tasks=self._tasks)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, in key order."""
        assert isinstance(partition, KeyPartition)
        if not partition.key_range.empty:
            yield from read_range(self._view(), partition.key_range, self._schema, self._where)


def check_columns(
    schema: StructType, pool_schema: pa.Schema, options: opts.Options, *, pool_name: str
) -> None:
    """Raise InvalidInput if a read cannot give the columns of `schema`, the pool's or a user's own."""
    check_apart(schema, options, what=f"pool {pool_name!r}")
    check_known(schema.names, pool_schema.names, options, pool_name=pool_name)
    check_readable(pool_schema, arrow_schema(schema))


def split_tasks(view: View, key_range: KeyRange, *, tasks: int | None = None) -> list[KeyRange]:
    """The range as the ranges of so many tasks, or of as many as its bytes are worth."""
    references = view.references_in(key_range)
    worth = -(-sum(r.size for r in references) // TASK_SIZE)
    pieces = tasks or max(1, min(MAX_TASKS, worth))
    return view.split(key_range, pieces=pieces)


def read_range(
    view: View, key_range: KeyRange, schema: StructType, where: Condition | None = None
) -> Iterator[pa.RecordBatch]:
    """The view's records of a range in Spark's types; columns that no record has are null."""
    target = arrow_schema(schema)
    names = set(view.schema.names)
    columns = [name for name in target.names if name in names]
    for table in view.scan(key_range=key_range, columns=columns, where=where):
        yield from to_batches(table, target)
