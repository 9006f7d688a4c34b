"""Examines a lake: looks at its pools side by side, and remembers those that are well.

A pool that was well is not looked at again for half a day to a day if nothing was written to it since
(`history.activity`); agents do the same (decision 126). Things that change without a write to the pool are
always looked at: settings, parked files, jobs. With `anew` all pools are looked at, and so are those that a
caller names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lake_core import naming
from lake_core.errors import InvalidInput, LakeError
from lake_core.history.activity import read_notes
from lake_core.records.pools import PoolConfig
from log_lake.agents.finding import AT_ONCE
from log_lake.agents.jobs import Job
from log_lake.agents.quiet import Quiet
from log_lake.doctor.health_finding import LakeHealth, PoolHealth, Verdict, verdict_of
from log_lake.doctor.kinds import DAY, findings_of
from log_lake.doctor.lake_kinds import lake_findings_of
from log_lake.doctor.lake_look import look_at_lake
from log_lake.doctor.look import ingests, look_at, parked_times, unread
from log_lake.doctor.signs import PoolSigns
from log_lake.lake import Lake
from log_lake.lake.isolated import answer_of
from log_lake.lake.pool import Pool
from log_lake.settings import Settings

MEMORY = naming.quiet("doctor", "well")
"""The name of the object in which the doctor remembers the pools that were well."""


def examine(lake: Lake, pools: Sequence[str] = (), *, anew: bool = False, writes: bool = True) -> LakeHealth:
    """Returns the health of these pools (none: all), and of what they share.  If `writes` is false, it writes
    nothing.

    Raises NotFound for an unknown pool.  Raises Unavailable, Denied or Corrupt if the list of pools cannot be
    read.
    """
    for name in pools:
        lake.pool(name)
    now = lake.context.now()
    look = look_at_lake(lake, writes=writes)
    configs = [one for one in lake.pools() if not pools or one.name in pools]
    opened = lake.pools_of([one.name for one in configs])
    notes = read_notes(lake.store) or {}
    memory = Quiet.named(lake, configs, MEMORY, now=now, remembers=DAY, notes=notes)

    def health(config: PoolConfig) -> PoolHealth:
        pool, jobs = opened[config.name], look.jobs.get(config.name, ())
        seen = None if pools or anew else memory.seen_at(config)
        if seen is not None:
            return PoolHealth(
                pool=config.name, findings=tuple(findings_of(_known(config, pool, jobs, now=now))), seen=seen
            )
        answer = answer_of(config.name, lambda: look_at(pool, noted=notes.get(config.id), jobs=jobs, now=now))
        signs = unread(config, answer, jobs=jobs, now=now) if isinstance(answer, LakeError) else answer
        findings = findings_of(signs)
        if verdict_of(findings) is Verdict.WELL and _stays_well(signs):
            memory.found_nothing(config)
        return PoolHealth(pool=config.name, findings=tuple(findings), seen=now)

    with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
        examined = tuple(threads.map(health, configs))
    if not look.store.untried and not pools:  # a look at some pools knows nothing of the others
        memory.write()
    late = [one for pool in examined for one in pool.findings]
    signs = look.signs(now=now, written=_written(configs, notes), late=late)
    return LakeHealth(findings=tuple(lake_findings_of(signs)), pools=examined, now=now)


def _known(config: PoolConfig, pool: Pool, jobs: Sequence[Job], *, now: float) -> PoolSigns:
    """Returns the signs of a pool that was well, as far as they can change without a write."""
    failures: dict[str, LakeError] = {}
    parked: tuple[float, ...] = ()
    if ingests(pool):
        answer = answer_of(config.name, lambda: parked_times(pool))
        if isinstance(answer, LakeError):
            failures["its parked files"] = answer
        else:
            parked = answer
    return PoolSigns(config, now, jobs, parked=parked, failures=failures)


def _stays_well(signs: PoolSigns) -> bool:
    """Whether the mere passing of time brings no finding within a day, so that the pool need not be looked at for
    so long."""
    has_garbage = signs.garbage is not None and bool(signs.garbage.deletable or signs.garbage.leased)
    later = findings_of(replace(signs, now=signs.now + DAY))
    return not has_garbage and verdict_of(later) is Verdict.WELL


def _written(configs: Sequence[PoolConfig], notes: Mapping[str, float]) -> float | None:
    """Returns when a pool that agents may work on was last written to; None if no such pool has an activity
    note."""
    return max(
        (
            notes[one.id]
            for one in configs
            if one.id in notes and not _is_paused(one) and not naming.is_own(one.name)
        ),
        default=None,
    )


def _is_paused(config: PoolConfig) -> bool:
    try:
        return Settings(config.settings)["agents"] == "paused"
    except InvalidInput:
        return False
