"""What needs no job of Spark: a record by its key (`pyspark_lake.get`), counts and bounds (`pyspark_lake.summary`).

For a record the driver's Python reads the few row groups that hold its key.  The rows are those that a frame of the
data source would collect.  Counts and bounds come from the state, if it has them exactly.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import AFTER
from lake_core.keys.ranges import KeyRange
from log_lake.lake.view import View
from log_lake.reading.summary import Summary
from spark_apps.datasource import options as opts
from spark_apps.datasource.names import check_apart
from spark_apps.datasource.to_spark import to_batches
from spark_apps.datasource.types import arrow_schema, spark_schema


def get(key: Any, options: opts.Options) -> list[Row]:
    """Returns the records of one key, or of all keys that begin with the given values, in key order.

    Raises InvalidInput, NotFound, ObjectVacuumed, ObjectMissing, Corrupt, Unavailable.
    """
    from pyspark.sql.conversion import ArrowTableToRowsConversion

    view = _opened(options, ("at", "columns", "onMissing"), what="a get")
    low = view.bound(key)
    table = view.to_table(key_range=KeyRange(low, low + AFTER), columns=opts.columns(options))
    schema = spark_schema(table.schema)
    check_apart(schema, options, what=f"pool {view.config.name!r}")
    target = arrow_schema(schema)
    converted = pa.Table.from_batches(to_batches(table, target), target)
    return ArrowTableToRowsConversion.convert(converted, schema)


def summary(options: opts.Options) -> Summary:
    """Returns the counts and bounds that the state shows (`View.summary`).  Raises NotFound, InvalidInput,
    Corrupt, Unavailable."""
    return _opened(options, ("at",), what="a summary").summary()


def _opened(options: opts.Options, accepted: tuple[str, ...], *, what: str) -> View:
    opts.check_names(options, accepted, what=what)
    if opts.names_system_table(options) or opts.shape(options):
        raise InvalidInput(f"{what} of {opts.table_name(options)!r}: it is of a pool; use read, then filter")
    return opts.open_view(options)
