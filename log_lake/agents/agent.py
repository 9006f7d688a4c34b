"""What an agent is: the parts of `find`, `run` and `report` in which agents differ.  `driver` has what they share.

    look       what there is to do in one pool; reads the store, writes nothing, needs no Spark
    run        one piece of work, on any `Workers`
    line       what came of it, in words; `sums` and `total` say what came of all

An agent is a folder below `agents` and a row of `roster`.  `run.py` of the folder names it `AGENT`.  An agent that
only looks at pools and does one thing in each needs `look`, `run`, `line` and `total`; all else has a default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from lake_core.context import Context
from lake_core.errors import LakeError
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
    """Opens workers for work of that title, for a block: `here`, or Spark's.

    `size`: the bytes of the work.  If it is not known (None), Spark starts when a unit first needs it.
    """

    def __call__(
        self, context: Context, title: str, /, *, size: int | None = None
    ) -> AbstractContextManager[Workers]:
        """The workers."""


@contextmanager
def here(context: Context, title: str, /, *, size: int | None = None) -> Iterator[Workers]:
    """The workers of this process, whatever the work."""
    yield Here.of(context)


@dataclass(frozen=True)
class AgentRun:
    """A run of `find`: the lake, what was asked for, and what the agent remembers."""

    lake: Lake
    asked: Request
    quiet: Quiet

    @cached_property
    def configs(self) -> dict[str, PoolConfig]:
        """The pools of the lake by name, read once."""
        return {pool.name: pool for pool in self.lake.pools()}


@dataclass(frozen=True, kw_only=True)
class PoolLook(Generic[W]):
    """What an agent sees in a pool: `lines` and `warnings` for its log, and work.

    `rests`: the configuration of a pool that may be left alone until something is written to it, `until` a time in
    seconds since 1970, or what is `seen` outside of the lake changes (`quiet`); None if it must be looked at again.
    `leaves`: what it leaves alone there.
    """

    lines: Sequence[str] = ()
    warnings: Sequence[str] = ()
    work: Sequence[W] = ()
    leaves: Sequence[PutOff] = ()
    rests: PoolConfig | None = None
    until: float = float("inf")
    seen: str = ""


class Agent(Generic[W, R]):
    """One agent; it has no state."""

    work: type[W]
    result: type[R]

    nothing: ClassVar[str]
    """What its log says if there is nothing to do."""
    not_done: ClassVar[str]
    """What a dry run leaves: "nothing is rewritten"."""
    none_done: ClassVar[str]
    """What the report says without results."""
    to_do: ClassVar[str]
    """What a person does after a failure."""
    sums: ClassVar[tuple[str, ...]] = ()
    """The figures of results that the report sums up."""
    counted_as: ClassVar[str] = "pools"
    """The figure that counts the results."""
    skips_gone: ClassVar[bool] = True
    """Whether a look that raises NotFound means that the pool, or its branch, is gone."""

    # ---------------------------------------------------------------- find

    def check(self, asked: Request) -> None:
        """Raises InvalidInput for what no lake could do; nothing was opened yet."""

    def pools(self, lake: Lake, asked: Request) -> list[str]:
        """The names of the pools that the run looks at.  Raises NotFound, InvalidInput."""
        return named_pools(lake, asked.pools)

    def begin(self, lake: Lake, asked: Request, names: Sequence[str]) -> None:
        """Do, or refuse, what concerns all these pools at once, before they are looked at."""

    def paused(self, run: AgentRun, put_off: Sequence[PutOff]) -> list[PutOff]:
        """Which of the pools that are put off, and not looked at, are worth a word."""
        return list(put_off)

    def others(self, run: AgentRun, names: Sequence[str]) -> list[str]:
        """Those of these pools that must be looked at."""
        return run.quiet.others(names)

    def look(self, run: AgentRun, name: str) -> PoolLook[W]:
        """What there is to do in a pool.  Called from threads, for several pools at a time.  Raises LakeError."""
        raise NotImplementedError

    def unreadable(self, asked: Request, name: str, error: LakeError) -> W | PutOff:
        """What is handed out for a pool that cannot be read: work, which will fail with the same error."""
        return asked.work(self.work, name, "cannot be read")

    def merged(self, all_work: Sequence[W]) -> list[W]:
        """The work of all looks as it is handed out."""
        return list(all_work)

    def beside(self, run: AgentRun) -> Sequence[W]:
        """Work that is of no single pool."""
        return ()

    def nothing_in(self, names: Sequence[str]) -> str:
        """What the log says if there is nothing to do in these pools."""
        return self.nothing

    def left(
        self, asked: Request, looks: Mapping[str, PoolLook[W]], work: Sequence[W], handed: Found[W]
    ) -> Found[W]:
        """What is handed out, once the limit of the run has chosen `handed` of all `work`."""
        return handed

    # ---------------------------------------------------------------- run

    def run(self, lake: Lake, work: W, open_workers: OpenWorkers) -> R:
        """Do one piece of work.  Raises LakeError."""
        raise NotImplementedError

    def run_together(self, lake: Lake, all_work: Sequence[W], open_workers: OpenWorkers) -> Sequence[R]:
        """Do all work, if the agent takes it `together` (`roster`): a result for each piece, or for its failure."""
        raise NotImplementedError

    def check_answered(self, results: Sequence[R]) -> None:
        """Raises Unavailable if trying again may do what failed of work that was done together."""

    def has_changed(self, lake: Lake, work: W) -> bool:
        """Whether what the work was found for is there no more, so that another job of it is not this one."""
        return False

    # ---------------------------------------------------------------- report

    def line(self, result: R) -> str:
        """What came of a piece of work, in a line."""
        raise NotImplementedError

    def lines(self, result: R) -> Sequence[str]:
        """What came of a piece of work, if that takes several lines, or none."""
        return [self.line(result)]

    def lags(self, all_work: Sequence[W], results: Sequence[R]) -> dict[str, str]:
        """By pool, in which way the agent lags behind what is written to it."""
        return {}

    def totals(self, handed: Found[W], results: Sequence[R]) -> dict[str, int]:
        """The sums over all results."""
        return self.summed(results)

    def summed(self, results: Sequence[object]) -> dict[str, int]:
        """How many there are, and the sums of their figures."""
        return {self.counted_as: len(results)} | {
            name: sum(int(getattr(one, name)) for one in results) for name in self.sums
        }

    def total(self, totals: Mapping[str, int]) -> str:
        """The sums in words."""
        raise NotImplementedError

    def failures(self, handed: Found[W], results: Sequence[R]) -> list[str]:
        """What failed, a line each."""
        return missing(handed.work, results)

    # ---------------------------------------------------------------- values

    def decoded_work(self, values: Any) -> W:
        """The work that `work.encoded` made these values of.  Raises Corrupt."""
        return decoded(values, self.work, "a piece of work")

    def decoded_result(self, values: Any) -> R:
        """The result that `work.encoded` made these values of.  Raises Corrupt."""
        return decoded(values, self.result, "a result")


def decoded(values: Any, kind: type[V], what: str) -> V:
    """The values as one of this kind.  Raises Corrupt; `what` they should be."""
    with decoding("values between tasks", f"not {what} of this agent", advice=ADVICE):
        return msgspec.convert(values, kind)
