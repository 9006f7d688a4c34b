"""Units of work spread over Spark tasks, each of which writes finished objects: for ingest and for compaction.

`spread` calls `build(n)` once for each n below `count`, in a Python worker each, and gives what they wrote.  What
comes back to the driver are only descriptions of objects.  An error of the lake is an ordinary answer of a task,
not a task failure that Spark would repeat; but for those that may pass (`Unavailable`): Spark does repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from lake_core import errors
from lake_core.objects.write import WrittenObject
from lake_core.records import AddObject

_ANSWER = "unit long, kind string, body binary, schema binary"

Build = Callable[[int], Sequence[WrittenObject]]


def spread(spark: Any, build: Build, count: int) -> list[WrittenObject]:
    """What the units wrote, by place.  `build` is shipped to the workers: it must hold plain values only.

    Raises the error of the first unit that met one.
    """
    answers = spark.range(0, count, 1, count).mapInArrow(_task(build), _ANSWER).collect() if count else []
    failures = sorted((row for row in answers if row.kind != "object"), key=lambda row: row.unit)
    if failures:
        kind = getattr(errors, failures[0].kind)
        raise kind(bytes(failures[0].body).decode())
    objects = [
        WrittenObject(
            (
                msgspec.msgpack.decode(row.body, type=AddObject),
                pa.ipc.read_schema(pa.py_buffer(bytes(row.schema))),
            )
        )
        for row in answers
    ]
    return sorted(objects, key=lambda written: written.action.place)


def parallelism(spark: Any) -> int:
    """Cores of the session; Spark Connect does not tell, but cuts a range into as many partitions."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    cut = "select spark_partition_id() as part from range(100000)"
    return int(spark.sql(f"select max(part) + 1 as cores from ({cut})").first().cores)


def _task(build: Build) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _answer(build, number)

    return run


def _answer(build: Build, number: int) -> pa.RecordBatch:
    rows: list[tuple[str, bytes, bytes | None]]
    try:
        rows = [
            ("object", msgspec.msgpack.encode(w.action), w.schema.serialize().to_pybytes())
            for w in build(number)
        ]
    except (errors.InvalidInput, errors.NotFound, errors.Corrupt) as error:
        rows = [(type(error).__name__, str(error).encode(), None)]
    return pa.record_batch(
        [
            pa.array([number] * len(rows), pa.int64()),
            pa.array([r[0] for r in rows], pa.string()),
            pa.array([r[1] for r in rows], pa.binary()),
            pa.array([r[2] for r in rows], pa.binary()),
        ],
        names=["unit", "kind", "body", "schema"],
    )
