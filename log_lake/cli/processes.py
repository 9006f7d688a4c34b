"""Workers that are processes of this machine: `lake compact -j N`.

Each process opens the lake's store by its address.  What goes to a process and comes back is pickled, so it must be
small, as for Spark's tasks.  This process commits.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lake_core.context import Context
from lake_core.ids import IdSource
from lake_core.store import Address, address_of
from lake_core.store.meter import Counts, meter_of
from log_lake.stores import open_store
from log_lake.stores.guard import guarded
from log_lake.workers import Here, Worker, Workers

U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True)
class Processes:
    """Workers that are processes; each does one unit at a time."""

    context: Context
    executor: ProcessPoolExecutor
    size: int

    @property
    def at_once(self) -> int:
        """How many jobs may run at once: one per process.  For each, a thread waits for the units of the
        job."""
        return self.size

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        """Runs units in the processes, and returns their results in order, as `Workers.map` says."""
        if len(units) <= alone:
            return Here.of(self.context).map(do, units)
        answers = self.executor.map(partial(_done, address_of(self.context.store), do), units, chunksize=each)
        results = []
        for result, counts in answers:
            meter_of(self.context.store).add(counts)
            results.append(result)
        return results


@contextmanager
def processes(context: Context, count: int) -> Iterator[Workers]:
    """Yields workers that are `count` processes; for 1, this process itself does the work."""
    if count == 1:
        yield Here.of(context)
        return
    spawned = multiprocessing.get_context(
        "spawn"
    )  # a fork would copy threads of Arrow and of the store's client
    with ProcessPoolExecutor(count, mp_context=spawned) as executor:
        yield Processes(context, executor, count)


def _done(store: Address, do: Callable[[Worker, U], R], unit: U) -> tuple[R, Counts]:
    """Does a unit in a process of its own.  Returns its result, and the requests and bytes that it cost, for the
    meter of the process that waits."""
    worker = Worker(lambda: guarded(open_store(store)), IdSource().new)
    return do(worker, unit), worker.counted()
