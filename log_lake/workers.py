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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from lake_core.context import Context
from lake_core.store import Store

U = TypeVar("U")
R = TypeVar("R")


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
        """The results of `do`, in the order of the units.

        One task takes `each` units.  If there are at most `alone` units, this process does them itself, because
        starting a task would take longer.  Raises the error of a unit that failed.
        """


@dataclass(frozen=True)
class Here:
    """Does one unit after another, in this process."""

    worker: Worker
    size: int = 1
    at_once: int = 1

    @classmethod
    def of(cls, context: Context) -> Here:
        """Workers with the store and the ids of an open lake."""
        return cls(Worker(lambda: context.store, context.ids.new))

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        """Like `Workers.map`."""
        return [do(self.worker, unit) for unit in units]
