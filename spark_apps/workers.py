"""Workers that are Spark tasks (`log_lake.workers.Workers`); small work runs in the driver's process.

A task opens the lake's store by its address and does its units; what they return comes back pickled, so it must be
small.  An error of the lake is an ordinary answer of a task, not a failure that Spark would repeat.  Unavailable
may pass, so the task fails with it and Spark tries again; after the last try the driver raises it as it was.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from lake_core.context import Context
from lake_core.ids import IdSource
from lake_core.store import Address, address_of
from lake_core.store.meter import meter_of
from log_lake.agents.agent import OpenWorkers
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from log_lake.workers import Divide, Here, Shuffle, SortedPiece, Worker, Workers, exchange
from spark_apps.exchange import exchanged
from spark_apps.in_task import InTask
from spark_apps.session import OpenSpark, session_when_needed
from spark_apps.spread import Pair, gather, parallelism

U = TypeVar("U")
R = TypeVar("R")

CALLS = 4
"""How many jobs may use these workers at once, each from a thread of the driver.  So a small job of a pool need
not wait for a large one."""


def workers_of(spark: Any, context: Context) -> Workers:
    """Returns the workers of a session, or of what an opener returned in place of a session."""
    return Here.of(context) if isinstance(spark, InTask) else OnSpark(lambda: spark, context)


@dataclass(frozen=True)
class OnSpark:
    """Workers that are tasks of a session, which `session` opens when it is first needed.

    `always`: even a few units run in tasks; for tests.
    """

    session: Callable[[], Any]
    context: Context
    always: bool = False
    at_once: int = CALLS

    @property
    def size(self) -> int:
        """The number of cores of the session."""
        return parallelism(self.session())

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        """Runs units in Spark tasks, and returns their results in order, as `Workers.map` says."""
        if not units:
            return []
        if len(units) <= alone and not self.always:
            return Here.of(self.context).map(do, units)
        spark = self.session()
        if isinstance(spark, InTask):
            return Here.of(self.context).map(do, units)
        parts = [tuple(units[at : at + each]) for at in range(0, len(units), each)]
        answers = gather(spark, partial(_done, address_of(self.context.store), do, parts), len(parts))
        meter = meter_of(self.context.store)
        for _, counts in answers:
            if counts:  # those of a task, with the last of its units
                meter.add(pickle.loads(counts))
        return [pickle.loads(answer) for answer, _ in answers]

    def exchange(
        self,
        work: Shuffle[U, R],
        units: Sequence[U],
        *,
        divide: Divide,
        bounds: tuple[bytes, ...] | None,
    ) -> list[R]:
        """Runs work in two steps in Spark tasks, as `log_lake.workers.exchange` says."""
        spark = self.session() if units else InTask()
        if isinstance(spark, InTask):
            return exchange(Here.of(self.context), work, units, divide=divide, bounds=bounds)
        return exchanged(
            spark.range(0, len(units), 1, len(units)),
            partial(_units, work, units, bounds or ()),
            work,
            store=address_of(self.context.store),
            divide=divide,
            bounds=bounds,
        )


def _units(
    work: Shuffle[U, R],
    units: Sequence[U],
    bounds: tuple[bytes, ...],
    worker: Worker,
    _: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, SortedPiece | R]]:
    """Runs in a task: yields the pieces and results of its units."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for one in work.give(worker, number, units[number], bounds):
                yield number, one


def on_spark(open_spark: OpenSpark) -> OpenWorkers:
    """Returns a function that opens workers for the agents, on a session that `open_spark` opens.

    If the size of the work is not known, the session is opened when a unit first needs it.
    """

    @contextmanager
    def opened(context: Context, title: str, /, *, size: int | None = None) -> Iterator[Workers]:
        if size is None:
            with session_when_needed(title, open_spark=open_spark) as session:
                yield OnSpark(session, context)
            return
        with open_spark(title, size=size) as spark:
            yield workers_of(spark, context)

    return opened


def _done(
    store: Address, do: Callable[[Worker, U], R], parts: Sequence[Sequence[U]], number: int
) -> list[Pair]:
    """Runs in a task: returns the result of each unit of one part, and with the last one the counts of the store's
    meter."""
    worker = Worker(lambda: guarded(open_store(store)), IdSource().new)
    answers = [pickle.dumps(do(worker, unit)) for unit in parts[number]]
    return [*((answer, b"") for answer in answers[:-1]), (answers[-1], pickle.dumps(worker.counted()))]
