"""Collects a small frame's records on the driver, in the lake's types: to write them there, or to take their
keys.

Spark's `toArrow` gives plain columns directly, but refuses some records, lists, maps and variants.  A task
converts these, as the writer's tasks do.  Called by `write` and `keys`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from lake_core.errors import InvalidInput
from spark_apps.datasource.from_spark import from_spark, stored_schema
from spark_apps.spread import Pair, gather_frame, passing_errors


def collected(frame: Any, *, most: int) -> pa.Table | None:
    """Returns all records of the frame; None if there are more than `most`.

    The frame is evaluated once.  Raises InvalidInput for a value that the lake does not store.
    """
    few = frame.limit(most + 1)
    if is_flat(frame.schema):
        with passing_errors():
            batches = few.toArrow().to_batches()
        tables = [from_spark(batch) for batch in batches]
    else:
        tables = [pa.ipc.open_stream(records).read_all() for records, _ in gather_frame(few, _as_stored)]
    table = pa.concat_tables(tables or [stored_schema(frame.schema).empty_table()])
    return table if table.num_rows <= most else None


def check_frame(frame: Any, *, what: str) -> None:
    """Raises InvalidInput unless `frame` is a data frame of Spark; `what` names it in the error."""
    if not isinstance(getattr(frame, "schema", None), T.StructType):
        raise InvalidInput(
            f"{what}: {type(frame).__name__} is no data frame of Spark; spark.createDataFrame(...) makes one"
        )


def is_flat(schema: T.StructType) -> bool:
    """Whether all columns are plain: none of them holds records, lists, maps or variants."""
    return all(
        isinstance(field.dataType, T.AtomicType) and not isinstance(field.dataType, T.VariantType)
        for field in schema
    )


def _as_stored(partition: int, batches: Iterable[pa.RecordBatch]) -> list[Pair]:
    """Runs in a task: returns each batch in the lake's types, as a stream of Arrow."""
    answers: list[Pair] = []
    for batch in batches:
        table = from_spark(batch)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        answers.append((sink.getvalue().to_pybytes(), b""))
    return answers
