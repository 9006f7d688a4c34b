"""Where units of work run: in this process, or on Spark.  No caller knows which.

A unit of work is one value.  A function does it, with the `Worker` that it runs on.  A planner cuts work into
units, and `map` returns their results in order:

    objects = workers.map(partial(rewrite, work), range(len(work.pieces)))

`Here` does one unit after another; `spark_apps.workers.OnSpark` does them in Spark tasks.  So the function and
its units must be plain values that can be serialized, and the function may be called again for a unit that
failed.  An error of the lake ends the whole call.  Unavailable may pass, so Spark first tries such a unit again.

Called by compaction, tombstones, checkpoints, retention, erasure, fsck and loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar, runtime_checkable

from lake_core.context import Context
from lake_core.store import Store
from lake_core.store.meter import Counts, meter_of

U = TypeVar("U")
R = TypeVar("R")
U_contra = TypeVar("U_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Worker:
    """What each unit gets: the store of the lake, and ids for the objects that it writes."""

    opens: Callable[[], Store]
    new_id: Callable[[], str]

    @cached_property
    def store(self) -> Store:
        """The store, opened when a unit first needs it, so that a failure belongs to that unit.  Raises
        LakeError."""
        return self.opens()

    def counted(self) -> Counts:
        """Returns what was asked of the worker's store so far; nothing if no unit needed the store."""
        return meter_of(self.__dict__.get("store")).counts()


@dataclass(frozen=True)
class SortedPiece:
    """Sorted records that one worker gives to another, as bytes (`data`); `size` is the number of bytes.

    `part`: the number of the share to which it belongs; `number`: its place among the pieces of its unit, which
    is unique within unit and part.  `keys` are some of its keys, encoded, about equally far apart: the first
    one, and at the end the last one.
    """

    part: int
    number: int
    keys: tuple[bytes, ...]
    records: int
    size: int
    data: bytes

    def of_part(self, part: int) -> SortedPiece:
        """Returns the same piece in another part."""
        return self if part == self.part else replace(self, part=part)


class Shuffle(Protocol[U_contra, R_co]):
    """Work in two steps: each worker cuts the results of its units into pieces, each for one part; then each
    part's pieces go to one worker.

    It is sent to workers, so it holds plain values.
    """

    def give(
        self, worker: Worker, number: int, unit: U_contra, bounds: tuple[bytes, ...]
    ) -> Iterator[SortedPiece | R_co]:
        """Yields the pieces of a unit; no piece crosses a bound.  It also yields results, for which no other
        worker is needed."""

    def cut_again(self, piece: SortedPiece, bounds: tuple[bytes, ...]) -> Iterator[SortedPiece]:
        """Yields a piece that was given without bounds, cut at these bounds."""

    def take(self, worker: Worker, pieces: Iterator[bytes]) -> R_co:
        """Builds and returns the result of a part from its pieces, which come by unit and number."""


Divide = Callable[[Sequence[SortedPiece]], tuple[bytes, ...]]
"""A function that chooses the bounds of the parts from all pieces; these come without their `data`."""


class Workers(Protocol):
    """A group of workers that does units of work."""

    @property
    def size(self) -> int:
        """How many units run at a time, at least 1."""

    @property
    def at_once(self) -> int:
        """How many threads may usefully call `map` at the same time, at least 1."""

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        """Runs `do` on each unit, and returns the results in the order of the units.

        One task takes `each` units.  If there are at most `alone` units, this process does them itself, because
        starting a task would take longer.  Raises the error of a unit that failed.
        """


@dataclass(frozen=True)
class Here:
    """Workers in this process, which do one unit after another."""

    worker: Worker
    size: int = 1
    at_once: int = 1

    @classmethod
    def of(cls, context: Context) -> Here:
        """Returns workers with the store and the ids of an open lake."""
        return cls(Worker(lambda: context.store, context.ids.new))

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        """Runs the units in this process, as `Workers.map` says."""
        return [do(self.worker, unit) for unit in units]


@runtime_checkable
class Exchanging(Protocol):
    """Workers that give each other pieces of what they read, for work in two steps (`Shuffle`)."""

    def exchange(
        self,
        work: Shuffle[U, R],
        units: Sequence[U],
        *,
        divide: Divide,
        bounds: tuple[bytes, ...] | None,
    ) -> list[R]:
        """Runs work in two steps by many workers, as the function `exchange` says."""


def exchange(
    workers: Workers,
    work: Shuffle[U, R],
    units: Sequence[U],
    *,
    divide: Divide,
    bounds: tuple[bytes, ...] | None = None,
) -> list[R]:
    """Runs work in two steps.  Returns the results of `give`, in the order of the units, then those of `take`, in
    the order of the parts.

    Without `bounds`, `divide` chooses them once all units are read.  In one process all pieces form one part,
    because there is only one worker.  Raises the error of a unit that failed.
    """
    if isinstance(workers, Exchanging):
        return workers.exchange(work, units, divide=divide, bounds=bounds)

    def alone(worker: Worker, units: Sequence[U]) -> list[R]:
        return taken_alone(worker, work, units)

    return workers.map(alone, [units])[0]


def taken_alone(worker: Worker, work: Shuffle[U, R], units: Sequence[U]) -> list[R]:
    """Returns the results of an exchange by one worker."""
    results: list[R] = []

    def given() -> Iterator[bytes]:
        for number, unit in enumerate(units):
            for one in work.give(worker, number, unit, ()):
                if isinstance(one, SortedPiece):
                    yield one.data
                else:
                    results.append(one)

    taken = work.take(worker, given())
    return [*results, taken]
