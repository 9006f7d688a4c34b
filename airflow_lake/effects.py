"""The effects of tasks on pools, in one form for all tasks; lineage and links use them.  Pure.

An effect is what a task plans to do to a pool, or what it did: which branch it reads or writes, and how much.
Operators and the agents' tasks maintain `effects` while they run: first the planned ones, then the finished
ones.  So even a task that fails shows what it did before.  `lineage` reports them to OpenLineage, `links` lead
to the web view.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lake_core.errors import InvalidInput
from lake_core.naming import MAIN, check_pool_name
from log_lake.agents.roster import Purpose, names_of

if TYPE_CHECKING:
    from log_lake.agents.work import Result, Work

LOADING = names_of(Purpose.LOADING)
"""Agents that bring records, and read nothing of the pool."""
SAVING = "checkpoint"
"""The agent that changes no records: it saves a version."""
OVERWRITE, TRUNCATE, CREATE, ALTER, DROP = "OVERWRITE", "TRUNCATE", "CREATE", "ALTER", "DROP"
"""Changes in the life of a dataset, by OpenLineage's names; a load, and a delete of a part, are none of
these."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a task plans to do to a pool, or did; `lake` is the name that the task uses.

    `branch`: the branch, or any revision of a pool that the task will read.  `is_done`: the task has done it,
    and does not only plan it.  `version`: the newest version that the task committed, or the one that it read;
    None if the effect is planned, or if the task committed nothing.  `records`, `objects` and `size` (bytes)
    are what was written, None if not known.  `files`: the URIs that were read.
    """

    lake: str
    pool: str
    branch: str = MAIN
    reads: bool = False
    writes: bool = True
    is_done: bool = False
    version: int | None = None
    records: int | None = None
    objects: int | None = None
    size: int | None = None
    change: str = ""
    files: tuple[str, ...] = ()


def is_pool(name: str) -> bool:
    """Whether the name in a piece of work names a pool, and not the dropped pools or the list of pools."""
    try:
        check_pool_name(name)
    except InvalidInput:
        return False
    return True


def planned_work(all_work: Iterable[Work], *, agent: str) -> list[Effect]:
    """Returns what pieces of an agent's work will do to their pools: one planned effect for each piece that belongs
    to a pool."""
    return [_planned(one, agent=agent) for one in all_work if is_pool(one.pool)]


def _planned(work: Work, *, agent: str) -> Effect:
    loads = agent in LOADING
    return Effect(
        lake=work.lake,
        pool=work.pool,
        branch=work.branch,
        reads=not loads,  # all others rewrite, save, or let go, what is there
        writes=agent != SAVING,
        change=OVERWRITE if work.replaces else "",
        files=tuple(file.uri for file in work.sources),
    )


def done_work(work: Work, result: Result, *, agent: str) -> list[Effect]:
    """Returns what a piece of an agent's work did to its pool, from its result: one effect, or none if the work
    belongs to no pool."""
    written = result.wrote
    return [
        done(
            replace(planned, files=tuple(file for file in planned.files if file not in written.unread)),
            version=written.version,
            records=written.records,
            objects=written.objects,
            size=written.size,
        )
        for planned in planned_work([work], agent=agent)
    ]


def done(
    planned: Effect,
    *,
    version: int | None,
    records: int | None = None,
    objects: int | None = None,
    size: int | None = None,
) -> Effect:
    """Returns the planned effect as finished at this version; without a version, nothing was changed."""
    return replace(
        planned,
        is_done=True,
        version=version,
        records=records,
        objects=objects,
        size=size,
        change=planned.change if version is not None else "",
    )


def only_target(effects: Iterable[Effect]) -> Effect | None:
    """Returns the newest effect of a task that works on one pool and branch; None if it works on several or
    none."""
    last = {(one.lake, one.pool, one.branch): one for one in effects if one.pool}
    return next(iter(last.values())) if len(last) == 1 else None
