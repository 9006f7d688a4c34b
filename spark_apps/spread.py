"""Runs units of work in Spark tasks: used by `workers` for the agents, loads and `fsck`, and for data frames.

`gather` calls `answer(n)` once for each n below `count`, each in a Python worker, and returns the pairs of bytes
that they return.  These must be small.  `spread_frame` does the same with the partitions of a data frame.

An error of the lake is an ordinary return value of a task, in serialized form (`errors.to_wire`), not a task
failure that Spark would repeat.  `Unavailable` may pass, so the task fails with it and Spark tries again; after
the last try the driver raises the original error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from lake_core.errors import LakeError, Unavailable, from_wire, to_wire
from lake_core.records import AddObject
from lake_core.records.decoders import MSGPACK
from log_lake.objects.write import WrittenObject
from spark_apps.in_task import InTask

_ANSWER = "unit long, error string, first binary, second binary"
_PASSING = "the lake's store did not answer: "
"""The text before the serialized error, in the text of a task failure that Spark repeats."""

Pair = tuple[bytes, bytes]
Answer = Callable[[int], Sequence[Pair]]
AnswerOfBatches = Callable[[int, Iterable[pa.RecordBatch]], Sequence[Pair]]
BuildOfBatches = Callable[[int, Iterable[pa.RecordBatch]], Sequence[WrittenObject]]


def gather(spark: Any, answer: Answer, count: int) -> list[Pair]:
    """Returns what `answer` returns for each unit, in order.  `answer` is sent to the workers, so it must hold
    plain values only.

    Raises the error of the first unit that had one.
    """
    if not count:
        return []
    return _gathered(spark.range(0, count, 1, count).mapInArrow(_task(answer), _ANSWER))


def _gathered(answers: Any) -> list[Pair]:
    with passing_errors():
        rows = answers.collect()
    ordered = sorted(rows, key=lambda row: row.unit)
    for row in ordered:
        if row.error:
            raise from_wire(row.error)
    return [(bytes(row.first), bytes(row.second)) for row in ordered]


@contextmanager
def passing_errors() -> Iterator[None]:
    """Returns a context for the driver.  If Spark gave up a task because of Unavailable, it raises that error
    instead of Spark's own."""
    try:
        yield
    except Exception as error:
        _, mark, rest = str(error).partition(_PASSING)
        if not mark:
            raise
        try:
            wire, _ = json.JSONDecoder().raw_decode(rest)
        except ValueError:  # Spark Connect cuts long texts
            raise Unavailable(f"the lake's store did not answer a Spark task: {rest[:200]}") from error
        raise from_wire(json.dumps(wire)) from error


class Passing(Exception):
    """Raised in a task: an error that may pass, in a form that the driver recognises."""

    def __init__(self, error: Unavailable) -> None:
        super().__init__(_PASSING + to_wire(error))


def spread_frame(frame: Any, build: BuildOfBatches) -> list[WrittenObject]:
    """Returns the objects that tasks wrote from the partitions of a data frame, in the order of the partitions.

    `build` gets the number of a partition and its batches, and is sent to the workers.  Raises the error of the
    first partition that had one.
    """
    pairs = gather_frame(frame, partial(_packed, build))
    return sorted((unpacked(pair) for pair in pairs), key=lambda written: written.action.ordinal)


def gather_frame(frame: Any, answer: AnswerOfBatches) -> list[Pair]:
    """Returns what `answer` returns for each partition of a data frame, in order.

    `answer` gets the number of a partition and its batches, and is sent to the workers.  Raises the error of
    the first partition that had one.
    """
    names = list(frame.columns)
    numbered = frame.toDF(*(f"c{number}" for number in range(len(names))))  # else Spark takes a.b for a in b
    return _gathered(numbered.mapInArrow(_task_of_batches(answer, names), _ANSWER))


def _packed(build: BuildOfBatches, partition: int, batches: Iterable[pa.RecordBatch]) -> list[Pair]:
    """Runs in a task: builds the objects of a partition, and returns their descriptions in the form that is sent
    to the driver."""
    return [packed(written) for written in build(partition, batches)]


def _task_of_batches(
    answer: AnswerOfBatches, names: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None  # only tasks run this
        named = (batch.rename_columns(names) for batch in batches)
        yield _answered(lambda partition: answer(partition, named), context.partitionId())

    return run


def packed(written: WrittenObject) -> Pair:
    """Returns a task's result in the form in which it is sent to the driver."""
    return msgspec.msgpack.encode(
        (written.action, dict(written.misfits))
    ), written.schema.serialize().to_pybytes()


def unpacked(pair: Pair) -> WrittenObject:
    """Returns a task's result as the driver decodes it."""
    action, schema = pair
    added, misfits = MSGPACK.of(tuple[AddObject, dict[str, int | None]]).decode(action)
    return WrittenObject(added, pa.ipc.read_schema(pa.py_buffer(schema)), misfits)


def parallelism(spark: Any) -> int:
    """Returns the number of cores of the session.

    Spark Connect does not report it; there the result is the number of partitions into which Spark cuts a
    range.
    """
    if isinstance(spark, InTask):
        return spark.parallelism
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
    except Unavailable as failure:
        raise Passing(failure) from failure
    except LakeError as failure:
        error, pairs = to_wire(failure), [(b"", b"")]
    return pa.record_batch(
        [
            pa.array([unit] * len(pairs), pa.int64()),
            pa.array([error] * len(pairs), pa.string()),
            pa.array([first for first, _ in pairs], pa.binary()),
            pa.array([second for _, second in pairs], pa.binary()),
        ],
        names=["unit", "error", "first", "second"],
    )
