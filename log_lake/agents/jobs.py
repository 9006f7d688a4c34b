"""Jobs: which agent worked on which pool, when, where, and with what result; stored in the lake's own pool
`$jobs`.

A job is written twice: when it begins, and when it ends.  `$jobs` is an upsert pool, so the second record
replaces the first.  In between the job holds a lease on `$jobs`: a job that is `running` without a live lease
has died.  Work on many pools at once is one job for each pool; they are written together and share a lease.
Deferred pools are written once (`put_off_jobs`).

The record is not part of the work: if it cannot be written, that is logged, and the work continues.  Jobs on
`$jobs` itself are not written, because each compaction of it would cause the next one.  Old jobs expire by the
settings of `$jobs` (`expire.age`).

Callers: the tasks of `airflow_lake.groups` and its operators (`recorded`, `recorded_each`), commands and
submitted applications (`recorded_if_kept`), `lake jobs` and the web view (`list_jobs`).
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from lake_core import naming
from lake_core.errors import LakeError, NotFound
from lake_core.naming import MAIN
from lake_core.phrases import listed
from lake_core.records.decoders import converted
from lake_core.records.decoding import decoding
from lake_core.store.meter import Counts, meter_of
from log_lake.agents.costs import COST, shares, stored_cost
from log_lake.agents.reporting import figures_of
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.leases.holding import HeldLease
from log_lake.leases.lease import WRITE, LeaseNote
from log_lake.where.literals import quoted

log = logging.getLogger(__name__)

KEY, KIND = "began:desc,id", "upsert"
SETTINGS = {"expire.age": "90d", "expire.by": "began", "lease.ttl": "2m"}
"""The settings of a new pool `$jobs`; a user may change them.  A job is seen as died after `lease.ttl`."""

RUNNING, DONE, FAILED, DIED, PUT_OFF = "running", "done", "failed", "died", "put off"
"""The states of a job.  `died` is never written, because a job that died wrote nothing more."""

ERROR_CHARACTERS = 1_000
"""The most characters of an error that are stored."""

_ADVICE = f"read its records with: lake scan '{naming.JOBS}'"

JobTime = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""A time of a job, with its zone."""

_TIME = pa.timestamp("us", "UTC")
_SCHEMA = pa.schema(
    [
        ("began", _TIME),
        ("id", pa.string()),
        ("agent", pa.string()),
        ("pool", pa.string()),
        ("branch", pa.string()),
        ("state", pa.string()),
        ("ended", _TIME),
        ("seconds", pa.float64()),
        ("figures", pa.map_(pa.string(), pa.int64())),
        ("error", pa.string()),
        ("host", pa.string()),
        ("process", pa.int64()),
        ("run", pa.map_(pa.string(), pa.string())),
        ("why", pa.string()),
        ("cost", COST),
    ]
)


@dataclass(frozen=True)
class Job:
    """One job.  `figures` are the numbers of its result; `run` says where it ran: DAG, run, task and try.

    `ended` and `seconds` are None while it runs, and if it died.  `why`: the reason if it was deferred.  `pool`
    is empty if several pools were deferred together.  `cost`: what its work asked of the store, None if it did not
    end; jobs that ran together share theirs evenly.
    """

    began: JobTime
    id: str
    agent: str
    pool: str
    branch: str
    state: str = RUNNING
    ended: JobTime | None = None
    seconds: float | None = None
    figures: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    host: str = ""
    process: int = 0
    run: Mapping[str, str] = field(default_factory=dict)
    why: str | None = None
    cost: Counts | None = None


@contextmanager
def recorded(lake: Lake, *, agent: str, pool_name: str, branch: str = MAIN) -> Iterator[dict[str, Any]]:
    """Records what happens in the block as a job.  Put the job's result into the dictionary; whole numbers in it
    become the job's figures."""
    result: dict[str, Any] = {}
    with recorded_each(lake, agent=agent, pool_names=[pool_name], branch=branch) as results:
        yield result
        results[pool_name] = result


@contextmanager
def recorded_each(
    lake: Lake, *, agent: str, pool_names: Sequence[str], branch: str = MAIN
) -> Iterator[dict[str, Mapping[str, Any]]]:
    """Records what happens in the block as a job on each of these pools.  Put each pool's result into the
    dictionary, under the pool's name.

    A result with the field `failed` records a failed job with that reason.  If the block raises, the jobs
    without a result are recorded as failed.
    """
    results: dict[str, Mapping[str, Any]] = {}
    names = [name for name in pool_names if not naming.is_own(name)]
    if not names:
        yield results
        return
    record = _Record(lake, new_jobs(lake, agent=agent, pool_names=names, branch=branch))
    record.begin()
    try:
        yield results
    except BaseException as error:
        record.end(results, otherwise=_text_of(error))
        raise
    record.end(results, otherwise="it has no result")


@contextmanager
def recorded_if_kept(
    lake: Lake, *, agent: str, pool_name: str, branch: str = MAIN
) -> Iterator[dict[str, Any]]:
    """Like `recorded` if the lake has `$jobs`; otherwise nothing is written.

    For commands and submitted applications: only agents create `$jobs`.  A command does the work of an agent
    (`agent`), and its record names no DAG.
    """
    if not keeps_jobs(lake):
        yield {}
        return
    with recorded(lake, agent=agent, pool_name=pool_name, branch=branch) as result:
        yield result


def keeps_jobs(lake: Lake) -> bool:
    """Whether the lake has the pool `$jobs`."""
    return naming.JOBS in lake.catalog.load().state.names


def write_jobs(lake: Lake, jobs: Sequence[Job]) -> None:
    """Writes jobs that have ended.  Raises what a commit raises."""
    _pool_of(lake).branch().append(_table(jobs))


def new_jobs(lake: Lake, *, agent: str, pool_names: Sequence[str], branch: str = MAIN) -> list[Job]:
    """Returns a job for each pool, which begins now in this process.  Their ids begin with the id of the lease
    that they share."""
    lease, began = lake.context.ids.new(), _time(lake.context.now())
    return [
        Job(
            began,
            f"{lease}.{number}" if number else lease,
            agent,
            pool_name,
            branch,
            host=socket.gethostname(),
            process=os.getpid(),
            run=dict(lake.context.metadata),
        )
        for number, pool_name in enumerate(pool_names)
    ]


def _lease_of(job: Job) -> str:
    """Returns the id of the lease that a job holds; jobs that began together share one."""
    return job.id.partition(".")[0]


def _pool_of(lake: Lake) -> Pool:
    return lake.own_pool(naming.JOBS, key=KEY, kind=KIND, settings=SETTINGS)


class _Record:
    """Jobs that began together and are being written; no method raises a LakeError."""

    def __init__(self, lake: Lake, jobs: Sequence[Job]) -> None:
        self._lake, self._jobs = lake, jobs
        self._title = f"{jobs[0].agent} {listed([job.pool for job in jobs])}"
        self._pool: Pool | None = None
        self._lease: HeldLease | None = None
        self._before = Counts()

    def begin(self) -> None:
        """Writes the jobs, and takes their lease."""
        lease_id = _lease_of(self._jobs[0])
        try:
            pool = _pool_of(self._lake)
            note = LeaseNote(
                WRITE,
                pool.at().version,
                self._lake.context.author,
                pool.settings["lease.ttl"],
                self._title,
                lease_id,
            )
            lease = HeldLease(self._lake.store, pool.config.id, lease_id, note)
            lease.__enter__()
            self._pool, self._lease = pool, lease
            pool.branch().append(_table(self._jobs))
        except LakeError as error:
            log.warning("%s: the job is not recorded: %s", self._title, error)
        self._before = meter_of(self._lake.store).counts()

    def end(self, results: Mapping[str, Mapping[str, Any]], *, otherwise: str) -> None:
        """Writes the results of the jobs, then releases the lease, so that a reader never sees an ended job as
        died.

        `otherwise`: why jobs without a result failed.
        """
        if self._pool is None or self._lease is None:
            return
        now = self._lake.context.now()
        costs = shares(meter_of(self._lake.store).counts() - self._before, len(self._jobs))
        ended = [
            replace(_ended(job, results.get(job.pool, {"failed": otherwise}), now=now), cost=cost)
            for job, cost in zip(self._jobs, costs, strict=True)
        ]
        try:
            self._pool.branch().append(_table(ended))
        except LakeError as failure:
            log.warning("%s: the job's end is not recorded: %s", self._title, failure)
        finally:
            self._lease.__exit__(None, None, None)


def _ended(job: Job, result: Mapping[str, Any], *, now: float) -> Job:
    error = result.get("failed")
    return replace(
        job,
        state=FAILED if error else DONE,
        ended=_time(now),
        seconds=max(0.0, round(now - job.began.timestamp(), 3)),
        figures={} if error else figures_of(result),
        error=str(error)[:ERROR_CHARACTERS] if error else None,
    )


def list_jobs(
    lake: Lake,
    *,
    pool_name: str = "",
    agent: str = "",
    state: str = "",
    since: dt.datetime | None = None,
    limit: int | None = None,
) -> list[Job]:
    """Returns jobs, newest first, at most `limit`.  If the caller names a pool, an agent or a state, it returns
    only the jobs that have these; with `since`, only jobs that began then or later.

    Raises ObjectMissing, Corrupt (also for a record that is no job), Unavailable.
    """
    try:
        pool = lake.pool(naming.JOBS)
    except NotFound:  # no agent has run yet
        return []
    leases = pool.leases()  # before the records: a job that ends meanwhile has its end written
    live = {lease.id for lease in leases.all if lease.is_live(leases.now)}
    view = pool.at()
    if not view.references:  # no field that a condition could name
        return []
    named = {"pool": pool_name, "agent": agent}
    asked = [f"{name} = {quoted(text)}" for name, text in named.items() if text]
    asked += [] if since is None else [f"began >= timestamp '{since.isoformat()}'"]
    where = " and ".join(asked)
    jobs = (_seen(job, live) for job in _read(view, where or None))
    return list(islice((job for job in jobs if not state or job.state == state), limit))


def _read(view: View, where: str | None) -> Iterator[Job]:
    """Yields the jobs as they were written.  A record may have any fields, because any writer of the pool may load
    them."""
    with decoding(f"pool {naming.JOBS!r}", "a record is no job", advice=_ADVICE):
        for table in view.scan(where=where):
            for row in table.to_pylist(maps_as_pydicts="lossy"):
                told = {name: value for name, value in row.items() if value is not None}
                yield converted(told, Job)


def _seen(job: Job, live: set[str]) -> Job:
    return replace(job, state=DIED) if job.state == RUNNING and _lease_of(job) not in live else job


def _table(jobs: Sequence[Job]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                **vars(job),
                "figures": list(job.figures.items()),
                "run": list(job.run.items()),
                "cost": stored_cost(job.cost),
            }
            for job in jobs
        ],
        schema=_SCHEMA,
    )


def _text_of(error: BaseException) -> str:
    """Returns the text of an error as it can be stored: file names in it may contain bytes that are not valid
    text."""
    text = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
    return text[:ERROR_CHARACTERS]


def _time(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
