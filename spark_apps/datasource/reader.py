"""A batch read: the records of `lake scan`, cut into key ranges.

When the read is planned, the reader fixes the pool, the version, the branch and the time.  So all tasks read one
revision, whatever pool has the name by then.  A task reads ranges of keys and merges them.  The tasks weigh
about the same and follow each other, so the rows of the whole read are in key order.  The option `part` names a
revision and some key ranges of it; a native read sets it (`part`).

Spark keeps one reader for a `load`, however many queries use it.  So the reader does not take Spark's filters
(`pushFilters`): a filter of one query would also limit the other queries.  Options of the load itself limit the
read: `from`, `to`, `where`, `columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lake_core.history.snapshot.snapshot import Identity
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Condition
from log_lake.lake.by_type import Records, United, records_of
from log_lake.lake.view import View, among
from log_lake.reading.tasks import shares
from log_lake.texts.keytext import RangeText, check_range
from log_lake.where import check
from log_lake.where.keyrange import key_range_of
from spark_apps.datasource import options as opts
from spark_apps.datasource.names import check_apart, check_known, check_known_inside
from spark_apps.datasource.part import Part, decode
from spark_apps.datasource.to_spark import check_readable, to_batches
from spark_apps.datasource.types import arrow_schema

TASK_SIZE = 64 << 20
MAX_TASKS = 256


@dataclass
class KeyPartition(InputPartition):
    """The ranges of keys that one task reads, in key order."""

    key_ranges: tuple[KeyRange, ...]


class LakeReader(DataSourceReader):
    """Plans the tasks of a read, and reads one of them."""

    def __init__(self, options: opts.Options, schema: StructType) -> None:
        public = {name: value for name, value in options.items() if name != opts.PART}
        opts.check_names(public, opts.READ, what="a read")
        self._schema = schema
        part = decode(options[opts.PART]) if opts.PART in options else None
        # the part's version counts: a branch that the path names may have moved on since
        if part is None:
            view = opts.leased_view(options)
        else:
            view = part.pin(opts.leased_view(opts.pinned(options, part.version), pool_id=part.pool))
        shape = opts.shape(options)
        self._records = records_of(view, shape) if shape else United(view.schema)
        check_columns(schema, self._records.schema, options, pool_name=view.config.name)
        self._where = check(options["where"], view.schema) if "where" in options else None
        range_text = RangeText(low=options.get("from"), high=options.get("to"))
        self._key_range = range_text.read(view.key, view.key_classes)
        check_range(self._key_range, view.key)
        if self._where is not None:
            self._key_range = self._key_range.intersect(key_range_of(self._where, view.key, view.schema))
        self._tasks = opts.count(options, "tasks")
        # from here on every task reads this revision, whatever is committed to the branch
        self._part = part or Part.of(view, [EVERYTHING])
        key_ranges = [r.intersect(self._key_range) for r in self._part.key_ranges if view.version]
        self._key_ranges = [key_range for key_range in key_ranges if not key_range.empty]
        self._pinned = {
            "lake": view.store.uri,
            "path": opts.pool_name(options),
            # without a transaction there is nothing to pin, and nothing to read
            "at": str(view.version) if view.version else view.branch,
            "onmissing": view.on_missing,
        }

    def _view(self) -> View:
        return self._part.pin(opts.open_view(self._pinned, pool_id=self._part.pool))

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the key ranges of each task, of about equal weight, in key order."""
        if not self._key_ranges:
            return [KeyPartition(())]
        whole = KeyRange(self._key_ranges[0].low, self._key_ranges[-1].high)
        pieces = split_tasks(self._view(), whole, tasks=self._tasks, only=self._part.references)
        inside = (
            tuple(r.intersect(piece) for r in self._key_ranges if r.overlaps(piece)) for piece in pieces
        )
        return [KeyPartition(key_ranges) for key_ranges in inside if key_ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the records of one task, in key order."""
        assert isinstance(partition, KeyPartition)
        view = self._view() if partition.key_ranges else None
        for key_range in partition.key_ranges:
            assert view is not None
            yield from read_range(
                view, key_range, self._schema, self._where, only=self._part.references, records=self._records
            )


def check_columns(
    schema: StructType, pool_schema: pa.Schema, options: opts.Options, *, pool_name: str
) -> None:
    """Raises InvalidInput if a read cannot produce the columns of `schema`, which is the pool's or a user's."""
    check_apart(schema, options, what=f"pool {pool_name!r}")
    check_known(schema.names, pool_schema.names, options, pool_name=pool_name)
    check_known_inside(schema, pool_schema, options, pool_name=pool_name)
    check_readable(pool_schema, arrow_schema(schema))


def split_tasks(
    view: View, key_range: KeyRange, *, tasks: int | None = None, only: Sequence[Identity] | None = None
) -> list[KeyRange]:
    """Returns the key ranges for about `tasks` tasks, or for fewer if there are few bytes; it cuts at split points
    first. `only`: counts only the bytes of these references."""
    names = None if only is None else frozenset(only)
    references = among(view.references_in(key_range), names)
    worth = -(-sum(r.size for r in references) // TASK_SIZE)
    pieces = tasks or max(1, min(MAX_TASKS, worth))

    def split(part: KeyRange, pieces: int) -> list[KeyRange]:
        return view.split(part, pieces=pieces, only=names)

    return shares(references, view.points, key_range, pieces=pieces, split=split)


def read_range(
    view: View,
    key_range: KeyRange,
    schema: StructType,
    where: Condition | None = None,
    *,
    only: Sequence[Identity] | None = None,
    records: Records | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields the view's records of a range, in Spark's types; a column that no record has is null.

    `only`: reads only these references; None: all.  `records`: the shape of the records; None: the united
    fields.
    """
    target = arrow_schema(schema)
    shown = records or United(view.schema)
    names = set(shown.schema.names)
    columns = [name for name in target.names if name in names]
    plan = shown.plan(view, columns, key_range=key_range, where=where)
    if only is not None:
        plan = replace(plan, references=tuple(among(plan.references, only)))
    for table in view.run(plan):
        yield from to_batches(shown.shown(table, columns), target)
