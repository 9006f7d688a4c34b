"""The Spark data source: `spark.read.format("lake").option("lake", URI).load("pool")`.

    load("flights")          the newest state of main
    load("flights@12")       a revision; also a branch, BRANCH@TIME, a transaction id
    load("flights.$nokey")   a sub-pool

Options: `lake` (or the variable LAKE), `columns` (A,B: only these are read), `from`, `to` (a key range,
JSON), `at`, `tasks` (how many the read is split into; by default one for each `TASK_SIZE` bytes, at most
256).  A schema given by the user (`.schema("a int, b string")`) chooses columns and their types as well; a
column that no record has is null.  Comparisons with the leading key field in a `where` are used to read
less, and still applied by Spark, when `spark.sql.python.filterPushdown.enabled` is on.

The reader pins the transaction when it is planned, so all tasks read one snapshot.  A task reads a range of
keys and merges; the ranges follow each other, so the rows of the whole read are in key order.  It runs on
Python workers, by the same scan as `lake scan`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from lake_core.commits.landing import key_classes
from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER
from lake_core.lake import Lake
from lake_core.planning.ranges import WeightedSample, split_range
from lake_core.scan.scan import result_schema
from lake_core.view import View
from spark_apps.sparktypes import spark_schema, to_batch

TASK_SIZE = 64 << 20
MOST_TASKS = 256
_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
_NOTHING = KeyRange(b"", b"")
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass
class KeyPartition(InputPartition):
    """The range of keys that one task reads."""

    span: KeyRange


class LakeDataSource(DataSource):
    """A pool at a revision."""

    @classmethod
    def name(cls) -> str:
        return "lake"

    def schema(self) -> StructType:
        """The columns asked for, in Spark's types."""
        view = open_view(self.options)
        return spark_schema(result_schema(view.plan(columns=_columns(self.options))))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`."""
        pushes = _PUSHING_WORKER in sys.modules
        return (PushingReader if pushes else LakeReader)(dict(self.options), schema)


def open_view(options: dict[str, str]) -> View:
    """The pool and revision that the options name; raises what `Lake.open` and `Pool.at` raise."""
    path = options.get("path", "")
    if not path:
        raise InvalidInput('no pool named: spark.read.format("lake").load("POOL")')
    pool, _, revision = path.partition("@")
    lake = Lake.open(options.get("lake") or os.environ.get("LAKE", ""))
    return lake.pool(pool).at(revision or options.get("at") or "main")


def _columns(options: dict[str, str]) -> list[str] | None:
    names = options.get("columns")
    return names.split(",") if names else None


class LakeReader(DataSourceReader):
    """Plans the tasks of a read, and reads one of them."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = options
        self._schema = schema
        view = open_view(options)
        # from here on the read is of this transaction, whatever the branch does
        self._options["at"] = str(view.n) if view.n else view.branch
        self._options["path"] = options["path"].partition("@")[0]
        self._span = view.span(low=_key(options.get("from")), high=_key(options.get("to")))
        if self._span.empty:
            raise InvalidInput("the key range is empty: `to` does not come after `from`")
        if not view.n:  # no transaction to pin: what is committed from here on is not of this read
            self._span = _NOTHING
        self._tasks = _count(options.get("tasks"))

    def partitions(self) -> Sequence[InputPartition]:
        """One key range a task, of about equal weight, in key order."""
        if self._span.empty:
            return [KeyPartition(_NOTHING)]
        view = open_view(self._options)
        references = view.state.branches[view.branch].snapshot.find(self._span, sub=view.sub)
        size = sum(r.size for r in references)
        tasks = self._tasks or min(MOST_TASKS, -(-size // TASK_SIZE))
        samples = [WeightedSample.of_bounds(r.low, r.high, weight=r.size) for r in references]
        return [KeyPartition(span) for span in split_range(samples, self._span, pieces=max(1, tasks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range, in key order."""
        from pyspark.sql.pandas.types import to_arrow_schema

        assert isinstance(partition, KeyPartition)
        target = to_arrow_schema(self._schema, timezone="UTC")
        if partition.span.empty:
            return
        view = open_view(self._options)
        known = set(view.schema.names)
        columns = [name for name in target.names if name in known]
        for table in view.scan(span=partition.span, columns=columns):
            yield from to_batch(table, target)


class PushingReader(LakeReader):
    """Also hears of the filters.

    Spark refuses a reader that could hear of filters while its setting for that is off, and does not tell a
    reader which it is; but only the worker that hands filters down has loaded the module that does so.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Narrow the key range; every filter is left to Spark as well."""
        view = open_view(self._options)
        for wanted in filters:
            narrowed = _range_of(wanted, view)
            if narrowed is not None:
                self._span = self._span.intersect(narrowed)
            yield wanted


def _key(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _count(text: str | None) -> int:
    if text is not None and not (text.isdigit() and int(text)):
        raise InvalidInput(f"tasks={text}: use a whole number of at least 1")
    return int(text or 0)


def _range_of(wanted: Filter, view: View) -> KeyRange | None:
    """The keys that can fulfil a comparison with the leading key field; None where it says nothing."""
    if not isinstance(wanted, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return None
    leading = view.key.fields[0] if view.key.fields else None
    if leading is None or wanted.attribute != (leading.name,):
        return None
    values = _key_values(wanted.value, key_classes(view.state, view.key).get(leading.name))
    if not values:
        return None
    bounds = sorted(view.bound(value) for value in values)
    if isinstance(wanted, EqualTo):
        return KeyRange(bounds[0], bounds[-1] + AFTER)
    upwards = isinstance(wanted, GreaterThan | GreaterThanOrEqual) != leading.descending
    return KeyRange(bounds[0], None) if upwards else KeyRange(b"", bounds[-1] + AFTER)


def _key_values(value: Any, key_class: str | None) -> list[Any]:
    """The least and the greatest key value that Spark may take for `value`; none where it is of another type.

    Spark compares what it was given: unsigned integers as decimals, instants cut to microseconds.
    """
    match key_class, value:
        case "number", decimal.Decimal() if value == value.to_integral_value():
            return [int(value)] if -(2**63) <= value < 2**64 else []
        case "number", int() | float() if not isinstance(value, bool):
            return [value]
        case "timestamp" | "timestamp with zone", dt.datetime():
            try:
                return [value - _MICROSECOND, value + _MICROSECOND]
            except OverflowError:
                return []
        case "date", dt.date() if not isinstance(value, dt.datetime):
            return [value]
        case ("string", str()) | ("bytes", bytes()) | ("boolean", bool()) | ("decimal", decimal.Decimal()):
            return [value]
    return []
