"""Units of work spread over Spark tasks: for ingest, compaction and deletes.

`gather` calls `answer(n)` once for each n below `count`, in a Python worker each, and gives the pairs of bytes that
they answer; `spread` is given units that write finished objects, and gives what they wrote.  What comes back to the
driver is small.  An error of the lake is an ordinary answer of a task, not a task failure that Spark would repeat;
but for those that may pass (`Unavailable`): Spark does repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from lake_core import errors
from lake_core.objects.write import WrittenObject
from lake_core.records import AddObject

_ANSWER = "unit long, error string, first binary, second binary"

Pair = tuple[bytes, bytes]
Answer = Callable[[int], Sequence[Pair]]
Build = Callable[[int], Sequence[WrittenObject]]


def gather(spark: Any, answer: Answer, count: int) -> list[Pair]:
    """The answers of the units, in order.  `answer` is shipped to the workers: it must hold plain values only.

    Raises the error of the first unit that met one.
    """
    rows = spark.range(0, count, 1, count).mapInArrow(_task(answer), _ANSWER).collect() if count else []
    ordered = sorted(rows, key=lambda row: row.unit)
    for row in ordered:
        if row.error:
            raise getattr(errors, row.error)(bytes(row.first).decode())
    return [(bytes(row.first), bytes(row.second)) for row in ordered]


def spread(spark: Any, build: Build, count: int) -> list[WrittenObject]:
    """What the units wrote, by place; as `gather`."""
    objects = [
        WrittenObject(
            (msgspec.msgpack.decode(action, type=AddObject), pa.ipc.read_schema(pa.py_buffer(schema)))
        )
        for action, schema in gather(spark, partial(_written, build), count)
    ]
    return sorted(objects, key=lambda written: written.action.place)


def _written(build: Build, unit: int) -> list[Pair]:
    """In a worker."""
    return [(msgspec.msgpack.encode(w.action), w.schema.serialize().to_pybytes()) for w in build(unit)]


def parallelism(spark: Any) -> int:
    """Cores of the session; Spark Connect does not tell, but cuts a range into as many partitions."""
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    cut = "select spark_partition_id() as part from range(100000)"
    return int(spark.sql(f"select max(part) + 1 as cores from ({cut})").first().cores)


def _task(answer: Answer) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for unit in batch.column(0).to_pylist():
                yield _answered(answer, unit)

    return run


def _answered(answer: Answer, unit: int) -> pa.RecordBatch:
    error = ""
    try:
        pairs = list(answer(unit))
    except (errors.InvalidInput, errors.NotFound, errors.Corrupt) as failure:
        error, pairs = type(failure).__name__, [(str(failure).encode(), b"")]
    return pa.record_batch(
        [
            pa.array([unit] * len(pairs), pa.int64()),
            pa.array([error] * len(pairs), pa.string()),
            pa.array([first for first, _ in pairs], pa.binary()),
            pa.array([second for _, second in pairs], pa.binary()),
        ],
        names=["unit", "error", "first", "second"],
    )
