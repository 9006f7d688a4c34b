"""The first task of an agent: looks at pools, finds their work, and hands it out.

It looks at pools in parallel, and hands out the work in their order.  It does not look at a deferred pool
(`why_put_off`), but hands it out with the reason, for the report only.

Every agent skips a paused pool (`agents=paused`).  `upkeep=paused` and hours (`upkeep.window`) limit the agents
that only merge, save or remove stored data: compact, split, checkpoint, tombstones, index, retention.  They do not
limit ingest and intervals, because users wait for the data, nor erasures, because each is due by a date.  Work
that began within the hours is finished.  Neither setting limits commands and programs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from hashlib import sha256
from typing import TypeVar

from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.naming import split_pool
from lake_core.phrases import counted
from log_lake.agents.request import Request
from log_lake.agents.roster import Purpose, names_of
from log_lake.agents.work import Found, PutOff, Work
from log_lake.lake import Lake
from log_lake.lake.isolated import answer_of
from log_lake.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")
W = TypeVar("W", bound=Work)

AT_ONCE = 16
"""Pools that an agent looks at in parallel: looking mostly means waiting for the store; each look holds one state
in memory."""

MAX_WORK = 10_000
"""The most pieces of work of a run that sets no limit.  Tasks pass each other a result for each, of a few hundred
bytes."""


def looks(pools: Iterable[str], look: Callable[[str], T]) -> Iterator[tuple[str, T | LakeError]]:
    """Yields each pool, in this order, with what `look` found there or with its error.  It looks at up to
    `AT_ONCE` pools at a time."""

    def one(name: str) -> tuple[str, T | LakeError]:
        return name, answer_of(name, lambda: look(name))

    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        yield from threads.map(one, pools)  # if the caller stops early, it begins no other pool


def look_at_each(
    pools: Iterable[str],
    look: Callable[[str], T],
    *,
    named: bool,
    must_find: bool = False,
    skips_gone: bool = True,
) -> Iterator[tuple[str, T | LakeError]]:
    """Yields each pool with what `look` found there, or with its error, which is logged.

    If `skips_gone`, NotFound means that the pool was dropped since, or lacks the branch, so the pool is
    skipped.  But NotFound is raised if the run `named` the pool, or if the run `must_find` one and all are
    skipped.
    """
    skipped: NotFound | None = None
    for name, answer in looks(pools, look):
        if isinstance(answer, NotFound) and skips_gone:
            if named:
                raise answer
            skipped = answer
            continue
        must_find = False
        if isinstance(answer, LakeError):
            log.error("%s: %s", name, answer)
        yield name, answer
    if must_find and skipped is not None:
        raise skipped


def divided(
    names: Sequence[str], lake: Lake, asked: Request, *, agent: str
) -> tuple[list[str], list[PutOff]]:
    """Divides the pools into those at which the agent looks now, and the deferred ones.

    A pool whose settings cannot be read is deferred too, because its hours are unknown.  If the run works at
    `any_time`, it defers none.
    """
    if asked.any_time:
        return list(names), []
    settings = {pool.name: Settings(pool.settings) for pool in lake.pools()}
    now = lake.context.now()
    open_names: list[str] = []
    put_off: list[PutOff] = []
    for name in names:
        of_pool = settings.get(split_pool(name)[0])
        try:
            why = None if of_pool is None else why_put_off(of_pool, agent=agent, now=now)
        except InvalidInput as error:
            why = str(error)
        if why is None:
            open_names.append(name)
        else:
            put_off.append(asked.put_off(name, why))
    return open_names, put_off


def pools_with(lake: Lake, setting: str, only: Sequence[str], *, example: str) -> list[str]:
    """Returns the names of the pools that have the setting; if `only` names pools, it returns only these.

    Raises NotFound for an unknown pool, and InvalidInput for a named pool without the setting.
    """
    for name in only:
        if not lake.pool(name).settings[setting]:
            raise InvalidInput(
                f"pool {name!r}: {setting} is empty; set it with: lake set {name} {setting}={example}"
            )
    return sorted(set(only)) or [p.name for p in lake.pools() if Settings(p.settings)[setting]]


def handed_out(
    all_work: Sequence[W],
    put_off: Sequence[PutOff] = (),
    *,
    dry_run: bool,
    nothing: str,
    not_done: str,
    limit: int | None = None,
    now: float = 0.0,
) -> Found[W]:
    """Returns what `find` hands out: the work that was found, and the deferred pools.  In a dry run it hands out
    nothing.

    It hands out at most `limit` pieces of work (None: `MAX_WORK`), and defers the other pieces together; `now`,
    in seconds, then decides which pools come first.  It logs what is deferred, that it is a dry run, or the
    text `nothing`.
    """
    most = MAX_WORK if limit is None else limit
    if len(all_work) > most:
        put_off = [_left(len(all_work) - most, most), *put_off]
        all_work = within(all_work, most, now=now)
    for one in put_off:
        log.info("%s", one.title)
    if not all_work:
        log.info("%s", nothing)
    if dry_run:
        log.info("dry run: %s", not_done)
        return Found()
    return Found(all_work, put_off)


def within(all_work: Sequence[W], limit: int, *, now: float) -> list[W]:
    """Returns at most `limit` pieces: those that come first in `in_turns`, but in the order of `all_work`."""
    return [all_work[index] for index in sorted(_turns(all_work, now=now)[:limit])]


def in_turns(all_work: Sequence[W], *, now: float) -> list[W]:
    """Returns the pieces in turns: first one piece of each pool, then further ones until each pool gave as many as
    its `share`, and so on.

    So neither many pieces nor a large share hold back another pool: a share counts only after the first pieces.
    """
    return [all_work[index] for index in _turns(all_work, now=now)]


def _turns(all_work: Sequence[Work], *, now: float) -> list[int]:
    """Returns the indexes of the pieces in turns; the smaller the part of its share that a pool has given, the
    earlier is its next piece.

    Among pools that are equal in this, a digest of the time and the pool chooses the first, so it changes from
    run to run.  If the order were by name, pools that always have work would hold back the others.
    """
    rank = {pool: sha256(f"{now} {pool}".encode()).digest() for pool in {work.pool for work in all_work}}
    before: Counter[str] = Counter()
    keys = []
    for index, work in enumerate(all_work):
        keys.append((Fraction(before[work.pool], work.share), rank[work.pool], index))
        before[work.pool] += 1
    return [index for _, _, index in sorted(keys)]


def _left(count: int, limit: int) -> PutOff:
    """Returns one deferral for all `count` pieces of work beyond the limit."""
    why = f"the limit of a run is {limit:,}"
    title = f"{counted(count, 'piece')} of work left for the next run: {why}"
    return PutOff(pool="", title=title, why=why, left=count)


BOUND_BY_HOURS = names_of(Purpose.UPKEEP)
"""The agents that `upkeep` and `upkeep.window` bind."""


def why_put_off(settings: Settings, *, agent: str, now: float) -> str | None:
    """Returns why the agent defers a pool with these settings at the time `now`; None if it may begin.  Pure.

    Raises InvalidInput if a setting cannot be read.
    """
    if settings["agents"] == "paused":
        return "agents=paused"
    if agent in BOUND_BY_HOURS and settings["upkeep"] == "paused":
        return "upkeep=paused"
    hours = settings["upkeep.window"] if agent in BOUND_BY_HOURS else None
    if hours is not None and not hours.is_open(now):
        return f"it is outside of upkeep.window ({hours})"
    return None
