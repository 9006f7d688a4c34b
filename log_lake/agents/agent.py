"""What an agent is: the parts of `find`, `run` and `report` that differ between agents.  `driver` has the rest.

    look       finds the work in one pool; reads the store, writes nothing, needs no Spark
    run        does one piece of work, on any `Workers`
    line       describes the result of one piece of work; `sums` and `total` describe all results

An agent is a folder below `agents` and a row of `roster`.  `run.py` of the folder names it `AGENT`.  An agent
that only looks at pools and does one thing in each needs `look`, `run`, `line` and `total`; the rest has
defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from lake_core.context import Context
from lake_core.errors import LakeError
from lake_core.records.decoders import converted
from lake_core.records.decoding import decoding
from lake_core.records.pools import PoolConfig
from log_lake.agents.packs import ADVICE
from log_lake.agents.quiet import Quiet
from log_lake.agents.reporting import missing
from log_lake.agents.request import Request, named_pools
from log_lake.agents.work import Found, PutOff, Result, Work
from log_lake.lake import Lake
from log_lake.workers import Here, Workers

W = TypeVar("W", bound=Work)
R = TypeVar("R", bound=Result)
V = TypeVar("V")


class OpenWorkers(Protocol):
    """A function that opens workers for a `with` block: `here`, or Spark's.  The title describes the work for
    people.

    `size`: the bytes of the work.  If it is not known (None), Spark starts when a unit first needs it.
    """

    def __call__(
        self, context: Context, title: str, /, *, size: int | None = None
    ) -> AbstractContextManager[Workers]:
        """Returns a context manager that opens the workers and closes them at the end of its block."""


@contextmanager
def here(context: Context, title: str, /, *, size: int | None = None) -> Iterator[Workers]:
    """Gives this process as the workers, in a `with` block, whatever the work is."""
    yield Here.of(context)


@dataclass(frozen=True)
class AgentRun:
    """One run of an agent's task `find`: the lake, the parameters that the run was given, and what the agent
    remembers of earlier runs."""

    lake: Lake
    asked: Request
    quiet: Quiet

    @cached_property
    def configs(self) -> dict[str, PoolConfig]:
        """The configurations of the lake's pools by name; they are read once."""
        return {pool.name: pool for pool in self.lake.pools()}


@dataclass(frozen=True, kw_only=True)
class PoolLook(Generic[W]):
    """What an agent found in one pool: work, and `lines` and `warnings` for its log.

    `leaves`: work of the pool that the agent defers.  `rests`: the configuration of a pool that needs no
    further look for now; None if the next run must look again.  The pool rests until something is written to
    it, until the time `until` (seconds since 1970), or until `seen` changes, a digest of things outside of the
    lake (`quiet`).
    """

    lines: Sequence[str] = ()
    warnings: Sequence[str] = ()
    work: Sequence[W] = ()
    leaves: Sequence[PutOff] = ()
    rests: PoolConfig | None = None
    until: float = float("inf")
    seen: str = ""


class Agent(Generic[W, R]):
    """What one agent does differently from the others, as methods that `driver` calls.  It has no state."""

    work: type[W]
    result: type[R]

    nothing: ClassVar[str]
    """The line of its log if there is nothing to do."""
    not_done: ClassVar[str]
    """What a dry run does not do, such as "nothing is rewritten"."""
    none_done: ClassVar[str]
    """The line of the report if there is no result."""
    to_do: ClassVar[str]
    """What a person should do after a failure."""
    sums: ClassVar[tuple[str, ...]] = ()
    """The names of the figures that the report adds up."""
    counted_as: ClassVar[str] = "pools"
    """The name under which the report gives the number of results."""
    skips_gone: ClassVar[bool] = True
    """Whether NotFound from `look` means that the pool, or its branch, is gone, so that the pool is skipped."""

    # ---------------------------------------------------------------- find

    def check(self, asked: Request) -> None:
        """Raises InvalidInput if the parameters are wrong for every lake.  No lake is open yet."""

    def pools(self, lake: Lake, asked: Request) -> list[str]:
        """Returns the names of the pools that the run looks at.  Raises NotFound, InvalidInput."""
        return named_pools(lake, asked.pools)

    def begin(self, lake: Lake, asked: Request, names: Sequence[str]) -> None:
        """Takes the steps that concern all pools in `names` together, or raises an error to refuse the run.
        Called once, before `look`."""

    def paused(self, run: AgentRun, put_off: Sequence[PutOff]) -> list[PutOff]:
        """Returns those deferred pools that the report mentions.  The agent has not looked at any of
        `put_off`."""
        return list(put_off)

    def others(self, run: AgentRun, names: Sequence[str]) -> list[str]:
        """Returns the pools that the run must look at, because the agent's memory does not cover them."""
        return run.quiet.others(names)

    def look(self, run: AgentRun, name: str) -> PoolLook[W]:
        """Finds the work in one pool.  Called from threads, for several pools at a time.  Raises LakeError."""
        raise NotImplementedError

    def unreadable(self, asked: Request, name: str, error: LakeError) -> W | PutOff:
        """Returns what `find` hands out for a pool that it cannot read.  That is either work, which will fail with
        the same error, or a reason to defer the pool."""
        return asked.work(self.work, name, "cannot be read")

    def merged(self, all_work: Sequence[W], *, now: float) -> list[W]:
        """Returns the work of all pools as `find` hands it out: an agent may combine or sort it.  `now`, in
        seconds, may decide its order."""
        return list(all_work)

    def beside(self, run: AgentRun) -> Sequence[W]:
        """Returns further work that belongs to no single pool, such as the work on dropped pools."""
        return ()

    def nothing_in(self, names: Sequence[str]) -> str:
        """Returns the line for the log if none of these pools has work."""
        return self.nothing

    def left(
        self, asked: Request, looks: Mapping[str, PoolLook[W]], work: Sequence[W], handed: Found[W]
    ) -> Found[W]:
        """Returns the final result of `find`.  `handed`: the work that the run's limit chose from all `work`."""
        return handed

    # ---------------------------------------------------------------- run

    def run(self, lake: Lake, work: W, open_workers: OpenWorkers) -> R:
        """Does one piece of work and returns its result.  Raises LakeError."""
        raise NotImplementedError

    def run_together(self, lake: Lake, all_work: Sequence[W], open_workers: OpenWorkers) -> Sequence[R]:
        """Does all work at once; only for an agent whose row in `roster` says `together`.

        Returns a result for each piece, also for each piece that failed.
        """
        raise NotImplementedError

    def check_answered(self, results: Sequence[R]) -> None:
        """Raises Unavailable if pieces of work that were done together failed, and a retry may succeed."""

    def has_changed(self, lake: Lake, work: W) -> bool:
        """Whether the work no longer fits what `find` saw.  If so, a task that is retried must start its own
        Spark application, because that of the earlier attempt does other work."""
        return False

    # ---------------------------------------------------------------- report

    def line(self, result: R) -> str:
        """Returns one line that describes the result of a piece of work."""
        raise NotImplementedError

    def lines(self, result: R) -> Sequence[str]:
        """Returns further lines that describe the result of a piece of work; often none."""
        return [self.line(result)]

    def lags(self, all_work: Sequence[W], results: Sequence[R]) -> dict[str, str]:
        """Returns, by pool, a line that says how far the agent is behind the writers.  Pools without a lag are
        left out."""
        return {}

    def totals(self, handed: Found[W], results: Sequence[R]) -> dict[str, int]:
        """Returns the sums of the figures of all results, by name."""
        return self.summed(results)

    def summed(self, results: Sequence[object]) -> dict[str, int]:
        """Returns the number of results under the name `counted_as`, and the sum of each figure in `sums`."""
        return {self.counted_as: len(results)} | {
            name: sum(int(getattr(one, name)) for one in results) for name in self.sums
        }

    def total(self, totals: Mapping[str, int]) -> str:
        """Returns a line that says what the whole run did, from its sums."""
        raise NotImplementedError

    def failures(self, handed: Found[W], results: Sequence[R]) -> list[str]:
        """Returns a line for each piece of work that failed."""
        return missing(handed.work, results)

    # ---------------------------------------------------------------- values

    def decoded_work(self, values: Any) -> W:
        """Returns the work that `work.encoded` turned into plain values.  Raises Corrupt."""
        return decoded(values, self.work, "a piece of work")

    def decoded_result(self, values: Any) -> R:
        """Returns the result that `work.encoded` turned into plain values.  Raises Corrupt."""
        return decoded(values, self.result, "a result")


def decoded(values: Any, kind: type[V], what: str) -> V:
    """Returns plain values as an instance of `kind`.  Raises Corrupt, whose text calls them `what`."""
    with decoding("values between tasks", f"not {what} of this agent", advice=ADVICE):
        return converted(values, kind)
