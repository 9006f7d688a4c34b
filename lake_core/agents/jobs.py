"""Jobs: which agent worked on which pool, when, where, and what came of it; kept in the lake's own pool `$jobs`.

A job is written twice: when it begins, and when it ends.  `$jobs` is an upsert pool, so the end takes the place of
the begin.  In between the job holds a lease on `$jobs`: a job that is `running` without a live lease has died.

The record is no part of the work.  If it cannot be written, that is logged, and the work goes on.  Jobs on `$jobs`
itself are not written: each compaction of it would bring the next one about.  Old jobs expire as `$jobs` says
(`expire.age`).

Callers: `airflow_lake.groups.tasks` (`recorded`), commands and submitted applications (`recorded_if_kept`), `lake
jobs` and the web view (`list_jobs`).
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa

from lake_core import naming
from lake_core.agents.reporting import figures_of
from lake_core.conditions.literals import quoted
from lake_core.errors import LakeError, NotFound
from lake_core.history.state import MAIN
from lake_core.lake import Lake
from lake_core.lake.pool import Pool
from lake_core.leases.holding import HeldLease
from lake_core.leases.lease import WRITE, LeaseNote

log = logging.getLogger(__name__)

KEY, KIND = "began:desc,id", "upsert"
SETTINGS = {"expire.age": "90d", "expire.by": "began"}
"""Of a pool `$jobs` that is made anew; a user may change them."""

RUNNING, DONE, FAILED, DIED = "running", "done", "failed", "died"
STATES = (RUNNING, DONE, FAILED, DIED)
"""`died` is never written: a job that died wrote nothing more."""

ERROR_CHARACTERS = 1_000
"""Characters of an error that are kept."""

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
    ]
)


@dataclass(frozen=True)
class Job:
    """One job.  `figures` are the numbers of its result; `run` says where it ran: DAG, run, task and try.

    `ended` and `seconds` are None while it runs, and if it died.
    """

    began: dt.datetime
    id: str
    agent: str
    pool: str
    branch: str
    state: str = RUNNING
    ended: dt.datetime | None = None
    seconds: float | None = None
    figures: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    host: str = ""
    process: int = 0
    run: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def recorded(lake: Lake, *, agent: str, pool_name: str, branch: str = MAIN) -> Iterator[dict[str, Any]]:
    """Within the block a job runs.  Put its result into the dictionary; its whole numbers are the figures.

    `pool_name` is empty if the job works on several pools.
    """
    result: dict[str, Any] = {}
    if naming.split_pool(pool_name)[0] in naming.OWN_POOLS:
        yield result
        return
    record = _Record(lake, _begun(lake, agent=agent, pool_name=pool_name, branch=branch))
    record.begin()
    try:
        yield result
    except BaseException as error:
        record.end(FAILED, {}, _text_of(error))
        raise
    record.end(DONE, figures_of(result), None)


@contextmanager
def recorded_if_kept(
    lake: Lake, *, agent: str, pool_name: str, branch: str = MAIN
) -> Iterator[dict[str, Any]]:
    """As `recorded`, in a lake that has `$jobs`; in another one nothing is written.

    For commands and submitted applications: only agents make the pool, so a lake without them has none.  A command
    does an agent's work (`agent`), and its record bears no DAG.
    """
    if naming.JOBS not in lake.catalog.load().state.names:
        yield {}
        return
    with recorded(lake, agent=agent, pool_name=pool_name, branch=branch) as result:
        yield result


def _begun(lake: Lake, *, agent: str, pool_name: str, branch: str) -> Job:
    return Job(
        _time(lake.context.now()),
        lake.context.ids.new(),
        agent,
        pool_name,
        branch,
        host=socket.gethostname(),
        process=os.getpid(),
        run=dict(lake.context.metadata),
    )


class _Record:
    """A job that is being written; no method raises a LakeError."""

    def __init__(self, lake: Lake, job: Job) -> None:
        self._lake, self._job = lake, job
        self._pool: Pool | None = None
        self._lease: HeldLease | None = None

    def begin(self) -> None:
        """Write the job, and hold its lease."""
        try:
            pool = self._lake.own_pool(naming.JOBS, key=KEY, kind=KIND, settings=SETTINGS)
            note = LeaseNote(
                WRITE,
                pool.at().version,
                self._lake.context.author,
                pool.settings["lease.ttl"],
                f"{self._job.agent} {self._job.pool}",
                self._job.id,
            )
            lease = HeldLease(self._lake.store, pool.config.id, self._job.id, note)
            lease.__enter__()
            self._pool, self._lease = pool, lease
            pool.branch().append(_table([self._job]))
        except LakeError as error:
            log.warning("%s %s: the job is not recorded: %s", self._job.agent, self._job.pool, error)

    def end(self, state: str, figures: Mapping[str, int], error: str | None) -> None:
        """Write what became of the job, then let the lease go: a reader sees the one or the other."""
        if self._pool is None or self._lease is None:
            return
        now = self._lake.context.now()
        began = self._job.began.timestamp()
        ended = replace(
            self._job,
            state=state,
            ended=_time(now),
            seconds=max(0.0, round(now - began, 3)),
            figures=figures,
            error=error,
        )
        try:
            self._pool.branch().append(_table([ended]))
        except LakeError as failure:
            log.warning("%s %s: the job's end is not recorded: %s", ended.agent, ended.pool, failure)
        finally:
            self._lease.__exit__(None, None, None)


def list_jobs(
    lake: Lake, *, pool_name: str = "", agent: str = "", state: str = "", limit: int | None = None
) -> list[Job]:
    """Jobs, newest first, at most `limit`; those of a pool, of an agent, in a state, if they are named.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    try:
        pool = lake.pool(naming.JOBS)
    except NotFound:  # no agent has run yet
        return []
    listed = pool.leases()  # before the records: a job that ends meanwhile has its end written
    live = {lease.id for lease in listed.all if lease.is_live(listed.now)}
    view = pool.at()
    if not view.references:  # no field that a condition could name
        return []
    named = {"pool": pool_name, "agent": agent}
    where = " and ".join(f"{name} = {quoted(text)}" for name, text in named.items() if text)
    rows = (
        row for table in view.scan(where=where or None) for row in table.to_pylist(maps_as_pydicts="lossy")
    )
    jobs = (_job(row, live) for row in rows)
    return list(islice((job for job in jobs if not state or job.state == state), limit))


def _job(row: Mapping[str, Any], live: set[str]) -> Job:
    values: dict[str, Any] = {name: row.get(name) for name in _SCHEMA.names}
    job = Job(**values | {"figures": values["figures"] or {}, "run": values["run"] or {}})
    return replace(job, state=DIED) if job.state == RUNNING and job.id not in live else job


def _table(jobs: list[Job]) -> pa.Table:
    return pa.Table.from_pylist(
        [{**vars(job), "figures": list(job.figures.items()), "run": list(job.run.items())} for job in jobs],
        schema=_SCHEMA,
    )


def _text_of(error: BaseException) -> str:
    """What is kept of an error; names of files in it may be no text."""
    text = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
    return text[:ERROR_CHARACTERS]


def _time(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
