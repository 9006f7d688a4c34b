"""The intervals agent: finds the files of an interval of time, pool by pool, and loads them.

A run for an interval replaces exactly that interval of a pool by the files of the interval, in one transaction.
So runs may be repeated, in any order and in parallel, and end in the same state.  If there are no files, the run
fails; with `intervals.missing=empty` the interval becomes empty.  A run without an interval appends the files
that it names, once. The agent works on pools whose setting `intervals.source` says where the files are.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence

from lake_core.errors import LakeError, NotFound
from lake_core.phrases import counted
from lake_core.store import Address, address_of
from log_lake.agents.agent import AgentRun, OpenWorkers, PoolLook
from log_lake.agents.finding import pools_with
from log_lake.agents.intervals.plan import check_asked, path_of
from log_lake.agents.intervals.policy import IntervalsPolicy, policy_of
from log_lake.agents.intervals.report import IntervalsResult, interval_line, plan_line
from log_lake.agents.load_files import load_files
from log_lake.agents.loads import LoadingAgent
from log_lake.agents.request import Request
from log_lake.agents.work import Found, Work
from log_lake.lake import Lake
from log_lake.loading.source_files import SourceFile
from log_lake.loading.sources import find_files

log = logging.getLogger(__name__)


def find_source_files(policy: IntervalsPolicy, begin: dt.datetime, *, access: Address) -> list[SourceFile]:
    """Returns the files of the interval that begins at that time; `access` is the address of the lake.

    Raises NotFound if there is no file, unless the pool allows intervals without files.  Without this error, a
    folder that is late or misspelt would empty the interval.
    """
    path = path_of(policy.source, begin)
    try:
        files = find_files([path], include=policy.include, exclude=policy.exclude, access=access)
        return [f for f in files if f.size]
    except NotFound as error:
        if policy.may_be_missing:
            return []
        raise NotFound(
            f"no file for the interval that begins {begin.isoformat()}: {path} has none. Run the interval again "
            "when its files are there; if it may have none: lake set POOL intervals.missing=empty"
        ) from error


class IntervalsWork(Work, frozen=True, kw_only=True):
    """An interval of a pool, as two instants in ISO 8601; `begin` is "" if the run appends files.

    `files` is None if `find` could not list them.  Then the task gets the same error, and does not hold up
    other pools.
    """

    begin: str = ""
    end: str = ""
    token: str = ""
    files: tuple[SourceFile, ...] | None = None

    @property
    def weight(self) -> int:
        return max(1, len(self.sources))

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        return self.files or ()

    @property
    def replaces(self) -> bool:
        """Whether the work replaces an interval, and does not append files."""
        return bool(self.begin)

    @property
    def interval(self) -> tuple[dt.datetime, dt.datetime] | None:
        """When the interval begins and ends; None if the run appends files."""
        if not self.begin:
            return None
        return dt.datetime.fromisoformat(self.begin), dt.datetime.fromisoformat(self.end)


class IntervalsAgent(LoadingAgent[IntervalsWork, IntervalsResult]):
    """The agent for pools with `intervals.source`; the request's `begin` and `end` are the interval that the run
    replaces."""

    work, result = IntervalsWork, IntervalsResult
    nothing = "no pool has intervals.source"
    not_done = "nothing is loaded"
    none_done = "nothing to do"
    to_do = "What failed changed nothing. Mend what its log names, then run the interval again"
    skips_gone = False

    def pools(self, lake: Lake, asked: Request) -> list[str]:
        """Returns the names of the pools with `intervals.source`."""
        return pools_with(lake, "intervals.source", asked.pools, example="PATTERN")

    def begin(self, lake: Lake, asked: Request, names: Sequence[str]) -> None:
        """Raises InvalidInput if the run has neither an interval nor files, or has both."""
        check_asked(asked, names)

    def look(self, run: AgentRun, name: str) -> PoolLook[IntervalsWork]:
        """Returns the files of the interval, or those that the run names, as work."""
        asked, access = run.asked, address_of(run.lake.store)
        if asked.begin is None:
            files = find_files(list(asked.files), access=access)
        else:
            files = find_source_files(policy_of(run.lake.pool(name).settings), asked.begin, access=access)
        line = plan_line(name, files, begin=asked.begin, end=asked.end)
        return PoolLook(lines=[line], work=[_work(asked, name, files)])

    def unreadable(self, asked: Request, name: str, error: LakeError) -> IntervalsWork:
        """Returns the work for the interval without its files.  Raises the error if the run has no other
        pool."""
        if asked.begin is None:
            raise error
        return _work(asked, name, None)

    def run(self, lake: Lake, work: IntervalsWork, open_workers: OpenWorkers) -> IntervalsResult:
        """Replaces the interval, or appends the files, once for each run.

        It replaces an interval as a whole or not at all, so a file that is refused fails the task.
        """
        pool, interval = lake.pool(work.pool), work.interval
        if work.files is None and interval is not None:
            files = find_source_files(policy_of(pool.settings), interval[0], access=address_of(lake.store))
        else:
            files = list(work.sources)
        size = sum(file.size for file in files)
        with open_workers(lake.context, f"lake intervals {work.pool}", size=size) as workers:
            loaded = load_files(
                workers,
                lake,
                pool_name=work.pool,
                files=files,
                branch=work.branch,
                format=pool.settings["ingest.format"],
                token=work.token,
                message=f"replaced {work.begin} to {work.end}" if interval else "appended by hand",
                consume=False,
                interval=interval,
            )
        result = IntervalsResult(pool=work.pool, begin=work.begin, **vars(loaded))
        log.info("%s", interval_line(result))
        return result

    def has_changed(self, lake: Lake, work: IntervalsWork) -> bool:
        """Whether the files of the interval differ from those that `find` found.

        It does not compare files that a person named, nor files that `find` could not list.  Raises Unavailable.
        """
        if work.interval is None or work.files is None:
            return False
        policy = policy_of(lake.pool(work.pool).settings)
        try:
            now = find_source_files(policy, work.interval[0], access=address_of(lake.store))
        except NotFound:
            return True
        return [one.source for one in now] != [one.source for one in work.files]

    def line(self, result: IntervalsResult) -> str:
        return interval_line(result)

    def failures(self, handed: Found[IntervalsWork], results: Sequence[IntervalsResult]) -> list[str]:
        """Returns the pools that failed, and the deferred pools, because no later run does their interval."""
        return [*super().failures(handed, results), *(one.title for one in handed.put_off)]


def _work(asked: Request, name: str, files: Sequence[SourceFile] | None) -> IntervalsWork:
    begin, end = (moment.isoformat() if moment else "" for moment in (asked.begin, asked.end))
    return asked.work(
        IntervalsWork,
        name,
        begin or counted(len(files or ()), "file"),
        begin=begin,
        end=end,
        token="" if begin else f"interval:{asked.run}:{name}",
        files=None if files is None else tuple(files),
    )


AGENT = IntervalsAgent()
