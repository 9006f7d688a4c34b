"""Records deferred pools with their reasons in `$jobs`.  It writes seldom, because each hourly run may defer the
same pools.

A deferred pool is recorded once.  It is recorded again if the reason changes, or if a day has passed and
something was written to the pool since.  So an idle pool that is paused for a year has one record.  What a
person refused, and what the limit of a run left, is recorded at most once a day.

One object for each agent (`quiet/<agent>.put-off.json`) remembers what was recorded.  It is a hint: if it is
gone, or if two runs overwrite each other's, a record is written once more.  A run that defers nothing sends no
request.  A run that defers pools sends one read, and one listing if a record is a day old.  Nothing here raises
a LakeError, because the record is not part of the work.

Callers: the tasks `find` and `report` of the groups.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, LakeError, Unavailable
from lake_core.history.activity import is_quiet, read_notes
from lake_core.naming import MAIN
from lake_core.records.decoding import decoded_json
from log_lake.agents.jobs import PUT_OFF, Job, new_jobs, write_jobs
from log_lake.agents.work import PutOff
from log_lake.lake import Lake

log = logging.getLogger(__name__)

MAX_RECORDED = 1_000
"""The most records of one run; the next one writes the others."""

AGAIN = 86_400.0
"""Seconds after which the same reason is recorded again, if the pool is not idle."""

WAY = "put-off"

FIGURES = ("left", "parked", "late")
"""What a deferral may count: pieces that the limit left, parked files, files that are late."""


class Said(msgspec.Struct, frozen=True):
    """What the last record of a deferral in `$jobs` says: the reason, the time in seconds since 1970, and the id
    of the pool."""

    why: str
    at: float
    pool_id: str = ""


def record_put_off(lake: Lake, put_off: Sequence[PutOff], *, agent: str) -> None:
    """Writes what an agent defers into `$jobs`, if it is new.  A pool in which it found work never counts as
    idle."""
    if not put_off:
        return
    try:
        _record(lake, put_off, agent=agent)
    except LakeError as error:
        log.warning("%s: what was put off is not recorded: %s", agent, error)


def _record(lake: Lake, put_off: Sequence[PutOff], *, agent: str) -> None:
    ids = {pool.name: pool.id for pool in lake.pools()}
    name, now = naming.quiet(agent, WAY), lake.context.now()
    recorded = _read(lake, name)
    notes = cache(lambda: read_notes(lake.store) or {})

    def id_of(one: PutOff) -> str | None:
        return ids.get(naming.split_pool(one.pool)[0])

    def is_news(one: PutOff) -> bool:
        before, pool_id = recorded.get(_key(one)), id_of(one)
        if before is None or before.why != one.why or (before.pool_id or pool_id) != pool_id:
            return True
        if not before.at <= now < before.at + AGAIN:
            return pool_id is None or one.looked_at or not is_quiet(notes(), pool_id, since=before.at)
        return False

    named = {_key(one): one for one in put_off if not naming.is_own(one.pool)}
    news = [one for one in named.values() if is_news(one)][:MAX_RECORDED]
    if not news:
        return
    write_jobs(lake, [_job(lake, one, agent=agent) for one in news])
    kept = {key: value for key, value in recorded.items() if key in named or _pool_of(key) in {"", *ids}}
    kept |= {_key(one): Said(one.why, now, id_of(one) or "") for one in news}
    lake.store.put(name, msgspec.json.encode(kept))


def _job(lake: Lake, one: PutOff, *, agent: str) -> Job:
    (job,) = new_jobs(lake, agent=agent, pool_names=[one.pool], branch=one.branch or MAIN)
    figures = {name: count for name in FIGURES if (count := getattr(one, name))}
    return replace(job, state=PUT_OFF, ended=job.began, seconds=0.0, figures=figures, why=one.why)


def _key(one: PutOff) -> str:
    """Returns the key of what is remembered: a pool, a branch of it, or "@main" for the work beyond a run's
    limit."""
    return f"{one.pool}@{one.branch or MAIN}"


def _pool_of(key: str) -> str:
    """Returns the pool whose journal shows whether it is idle; "" for the work beyond a run's limit."""
    return naming.split_pool(key.partition("@")[0])[0] if not key.startswith("@") else ""


def _read(lake: Lake, name: str) -> dict[str, Said]:
    try:
        kept: dict[str, Said] = decoded_json(lake.store.get(name) or b"{}", dict[str, Said], name=name)
    except (Unavailable, Corrupt) as error:
        log.info("%s: not read: %s", name, error)
        return {}
    return kept
