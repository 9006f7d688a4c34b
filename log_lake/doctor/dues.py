"""When work of an agent on a pool became due, by the signs of the pool and its settings; pure.

Each function returns a time in seconds since 1970, which may be in the future, or None if there is nothing to
do. All raise InvalidInput if a setting that they need cannot be used. Callers: `kinds`, and the room `metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from log_lake.agents.tombstones.plan import MAX_TOMBSTONES
from log_lake.doctor.signs import PoolSigns

SHORT_TAIL = 64
"""Entries after a checkpoint that cost a reader almost nothing, so their age does not matter."""


def depth_due(signs: PoolSigns) -> float | None:
    """Returns the time since which more objects overlap than the policy allows; None if their number is allowed."""
    allowed = signs.settings.allowed_depth
    if signs.state is None or len(signs.state.arrivals) <= allowed:
        return None
    return signs.state.arrivals[allowed]


def tombstones_due(signs: PoolSigns) -> float | None:
    """Returns the time at which the first tombstone must be applied; None if none must."""
    if signs.state is None:
        return None
    deletes, replaces = signs.state.deletes, signs.state.replaces
    apply, remember = signs.settings["tombstones.apply"], signs.settings["tombstones.remember"]
    dues = [time + apply for time in deletes[:1]] + [time + max(apply, remember) for time in replaces[:1]]
    if len(deletes) > MAX_TOMBSTONES:
        dues.append(deletes[MAX_TOMBSTONES])
    return min(dues, default=None)


def checkpoint_due(signs: PoolSigns) -> float | None:
    """Returns the time at which the next checkpoint must be written; None if none must."""
    if signs.tail is None:
        return None
    age, first, full = signs.settings["checkpoint.age"], signs.tail.first, signs.tail.full
    if full is None and signs.tail.entries < SHORT_TAIL:
        return None
    dues = [time for time in (None if first is None else first + age, full) if time is not None]
    return min(dues, default=None)


def purge_due(signs: PoolSigns) -> float | None:
    """Returns the time at which the oldest entry of the journal may be purged; None if no entry may."""
    if signs.tail is None or signs.tail.oldest is None or not signs.tail.purgeable:
        return None
    due: float = signs.tail.oldest + signs.settings["history.keep"]
    return due


def garbage_due(signs: PoolSigns) -> float | None:
    """Returns the time at which the first removed object that nothing keeps may be deleted; None if there is no
    such object."""
    garbage = signs.garbage
    return garbage.due if garbage is not None and garbage.deletable else None


def erasure_due(signs: PoolSigns) -> float | None:
    """Returns the time at which the oldest pending erasure began; None if none is pending."""
    return signs.erasures[0] if signs.erasures else None


def publication_due(signs: PoolSigns) -> float | None:
    """Returns the time of the first transaction that the published table lacks; None if it lacks none."""
    return signs.publication.since if signs.publication is not None else None


def coverage_due(signs: PoolSigns) -> float | None:
    """Returns the time by which the first missing interval was expected; None if none is missing."""
    return signs.coverage.dues[0] if signs.coverage is not None and signs.coverage.dues else None


DUES: Mapping[str, Callable[[PoolSigns], float | None]] = {
    "intervals": coverage_due,
    "compact": depth_due,
    "publish": publication_due,
    "tombstones": tombstones_due,
    "checkpoint": checkpoint_due,
    "purge": purge_due,
    "retention": garbage_due,
    "erasure": erasure_due,
}
"""For each agent, or part of an agent's work, the function that tells when it became due."""
