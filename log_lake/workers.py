"""Where units of work run: in this process, or on Spark.  Nothing above knows which.

A unit of work is one value.  A function does it, with the `Worker` that it runs on.  The planner cuts work into
units, and the committer gets their results, in order:

    objects = workers.map(partial(rewrite, work), range(len(work.pieces)))

`Here` does one unit after another; `spark_apps.workers.OnSpark` does them in Spark tasks.  So the function and its
units must be plain values that can be shipped, and a function may be called again for a unit that failed.  An error
of the lake ends the whole call; Unavailable may pass, so Spark tries such a unit again first.

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
    """Passed to each unit: the store of the lake, and new ids for the objects that it writes."""

    opens: Callable[[], Store]
    new_id: Callable[[], str]

    @cached_property
    def store(self) -> Store:
        """The store, opened when a unit first asks for it: a failure is that unit's own.  Raises LakeError."""
        return self.opens()


class Workers(Protocol):
    """Some workers."""

    @property
    def size(self) -> int:
        """Units at a time, at least 1."""

    @property
    def at_once(self) -> int:
        """Calls of `map` that are worth making at a time, from threads; at least 1."""

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        """The results of `do`, in the order of the units.

        One task takes `each` units.  Up to `alone` units are done in this process, because starting a task would
        take longer.  Raises the error of a unit that failed.
        """


@dataclass(frozen=True)
class Here:
    """One unit after another, in this process."""

    worker: Worker
    size: int = 1
    at_once: int = 1

    @classmethod
    def of(cls, context: Context) -> Here:
        """With the store and the ids of an open lake."""
        return cls(Worker(lambda: context.store, context.ids.new))

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        """As `Workers.map`."""
        return [do(self.worker, unit) for unit in units]
