"""Spark tasks that give each other pieces of sorted records (`log_lake.workers.Shuffle`), by a shuffle.

Each row of the shuffle is a piece, or the result of a unit, or its error.  `repartitionById` sends a row to the
task of its part, and Spark sorts the rows of a task by unit and number, which is their order of arrival.  So
Spark moves and orders bytes of some hundred kilobytes, packed by column; keys are compared by the lake's own
rules, in Python.

If the caller gives no bounds between the parts, the pieces wait on the disks of the executors (`persist`) until
the bounds were chosen from their keys.  So the input is read once.  Called by `workers` (files) and
`frames.bulk` (data frames).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from lake_core.errors import LakeError, Unavailable, from_wire, to_wire
from lake_core.ids import IdSource
from lake_core.store import Address
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from log_lake.workers import Divide, Shuffle, SortedPiece, Worker
from spark_apps.spread import Pair, Passing, gather_frame, passing_errors

R = TypeVar("R")

PIECE = pa.schema(
    [
        ("part", pa.int32()),
        ("unit", pa.int32()),
        ("number", pa.int32()),
        ("keys", pa.binary()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("data", pa.binary()),
    ]
)
ROW = "part int, unit int, number int, keys binary, records bigint, size bigint, data binary"
"""The columns of a row of the exchange, in Spark's words."""

_KEYS = msgspec.msgpack.Decoder(tuple[bytes, ...])

RESULT, ERROR = 2**31 - 2, 2**31 - 1
"""Numbers that are greater than those of all pieces; a row with such a number holds a result or an error instead
of a piece."""

TOGETHER = 4 << 20
"""Bytes of pieces that a task passes to Spark at once."""

Batches = Iterable[pa.RecordBatch]
Given = Callable[[Worker, int, Batches], Iterator["tuple[int, SortedPiece | R]"]]
"""A function that a task calls with its number and its batches: it yields pieces and results, each with the number
of its unit."""


def worker_of(store: Address) -> Worker:
    """Returns the worker of a task: it opens the lake's store, and makes ids for new objects."""
    return Worker(lambda: guarded(open_store(store)), IdSource().new)


def exchanged(
    frame: Any,
    give: Given[R],
    work: Shuffle[Any, R],
    *,
    store: Address,
    divide: Divide,
    bounds: tuple[bytes, ...] | None,
) -> list[R]:
    """Runs an exchange in which the tasks of a frame produce the pieces, and returns the results of its parts.

    Without `bounds` the tasks produce uncut pieces, and `divide` chooses the bounds.  Raises the error of the
    first unit that failed.
    """
    pieces = frame.mapInArrow(partial(_giving, store, give), ROW)
    if bounds is not None:
        return _taken(pieces, work, store, len(bounds) + 1)
    from pyspark import StorageLevel

    pieces = pieces.persist(StorageLevel.DISK_ONLY)
    try:
        cuts = divide(_described(pieces))
        cut = pieces.mapInArrow(partial(_cutting, work, cuts), ROW)
        return _taken(cut, work, store, len(cuts) + 1)
    finally:
        pieces.unpersist()


def _described(pieces: Any) -> list[SortedPiece]:
    """Returns all pieces without their data.  Raises the error of the first unit that failed."""
    with passing_errors():
        error = f"case when number = {ERROR} then data end as error"
        rows = pieces.selectExpr("unit", "number", "keys", "records", "size", error).collect()
    for row in sorted((row for row in rows if row.number == ERROR), key=lambda row: row.unit):
        raise from_wire(bytes(row.error).decode())
    return [
        SortedPiece(0, row.number, _KEYS.decode(bytes(row.keys)), row.records, row.size, b"")
        for row in rows
        if row.number < RESULT
    ]


def _taken(pieces: Any, work: Shuffle[Any, R], store: Address, parts: int) -> list[R]:
    by_part = pieces.repartitionById(parts, "part").sortWithinPartitions("unit", "number")
    pairs = gather_frame(by_part.select("number", "data"), partial(_take, work, store))
    return [pickle.loads(pair[0]) for pair in sorted(pairs, key=lambda pair: pair[1] != _OF_UNIT)]


_OF_UNIT, _OF_PART = b"unit", b"part"


def _take(work: Shuffle[Any, R], store: Address, partition: int, batches: Batches) -> list[Pair]:
    """Runs in a task: returns the object or result that `work` makes of the pieces of one part, and the results of
    units that were sent with these pieces."""
    results: list[Pair] = []

    def pieces() -> Iterator[bytes]:
        for batch in batches:
            numbers, data = batch.columns
            for number, piece in zip(numbers.to_pylist(), data, strict=True):
                if number == ERROR:
                    raise from_wire(piece.as_py().decode())
                if number == RESULT:
                    results.append((piece.as_py(), _OF_UNIT))
                else:
                    yield piece.as_buffer()

    taken = work.take(worker_of(store), pieces())
    return [*results, (pickle.dumps(taken), _OF_PART)]


def _giving(store: Address, give: Given[R], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Runs in a task: yields the rows of what `give` yields."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None  # only tasks run this
    rows = _Rows()
    unit = context.partitionId()
    try:
        for unit, one in give(worker_of(store), unit, batches):  # noqa: B020, the error is of the last unit
            if isinstance(one, SortedPiece):
                yield from rows.add(unit, one)
            else:
                yield from rows.add(unit, SortedPiece(0, RESULT, (), 0, 0, pickle.dumps(one)))
    except Unavailable as error:
        raise Passing(error) from error
    except LakeError as error:
        yield from rows.add(unit, SortedPiece(0, ERROR, (), 0, 0, to_wire(error).encode()))
    yield from rows.left()


def _cutting(work: Shuffle[Any, R], bounds: tuple[bytes, ...], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Runs in a task: yields the rows of its batches again, with pieces cut at the bounds."""
    rows = _Rows()
    for batch in batches:
        columns = [batch.column(name) for name in PIECE.names]
        for _, unit, number, keys, records, size, data in zip(*columns, strict=True):
            place = number.as_py()
            piece = SortedPiece(
                0, place, _KEYS.decode(keys.as_py()), records.as_py(), size.as_py(), data.as_py()
            )
            for one in [piece] if place >= RESULT else work.cut_again(piece, bounds):
                yield from rows.add(unit.as_py(), one)
    yield from rows.left()


class _Rows:
    """Gathers rows into batches of about `TOGETHER` bytes."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, SortedPiece]] = []
        self._bytes = 0

    def add(self, unit: int, piece: SortedPiece) -> Iterator[pa.RecordBatch]:
        """Adds a row for a piece; yields a batch if there are enough rows."""
        self._rows.append((unit, piece))
        self._bytes += len(piece.data)
        if self._bytes >= TOGETHER:
            yield from self.left()

    def left(self) -> Iterator[pa.RecordBatch]:
        """Yields a batch of the remaining rows, if there are any."""
        rows, self._rows, self._bytes = self._rows, [], 0
        if rows:
            columns = [
                [p.part for _, p in rows],
                [unit for unit, _ in rows],
                [p.number for _, p in rows],
                [msgspec.msgpack.encode(p.keys) for _, p in rows],
                [p.records for _, p in rows],
                [p.size for _, p in rows],
                [p.data for _, p in rows],
            ]
            arrays = [pa.array(c, f.type) for c, f in zip(columns, PIECE, strict=True)]
            yield pa.record_batch(arrays, schema=PIECE)
