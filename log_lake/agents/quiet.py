"""An agent's memory of its runs: the pools in which it found nothing to do.

With it, a thousand idle pools cost a run one read and one listing together, instead of several requests each.
`find` skips a pool if all of this is true:

- a run that looked at it found nothing to do, and the memory of that is not too old (`forgotten_after`);
- time alone has brought no work since (`until`);
- nothing was written to it since that look (`history.activity`);
- its settings have not changed;
- what the agent sees outside of the lake, such as source files, has not changed (`is_as_seen`).

The memory is a hint: one object for each agent and each set of parameters.  If it is gone, unreadable, or
refused by the store, or if two runs overwrite each other's, the agent looks at pools again.  A run in which a
person names the pools, and a dry run, look at all of them.

Called by `find` of all agents except intervals, whose work depends on an interval of time (decision 126).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, Unavailable
from lake_core.history.activity import is_quiet, read_notes, write_note
from lake_core.phrases import counted
from lake_core.records.decoding import decoded_json
from lake_core.records.pools import PoolConfig
from log_lake.agents.finding import AT_ONCE
from log_lake.agents.request import Request
from log_lake.agents.roster import AGENTS
from log_lake.lake import Lake

log = logging.getLogger(__name__)

ALWAYS = float("inf")
"""The value of `until` if time alone brings no work."""


class Look(msgspec.Struct, frozen=True):
    """The memory of a look at a pool that found nothing to do.

    It has the time of the look, a digest of the pool's settings, and a digest of what was seen outside of the
    lake.  Before `until`, no work comes by time alone.  Times are in seconds since 1970; `until` is None for
    `ALWAYS`, which JSON cannot express.
    """

    at: float
    until: float | None
    settings: str
    seen: str = ""


class Quiet:
    """What an agent remembers of its looks at pools, from the beginning of a run to its end."""

    def __init__(
        self,
        lake: Lake,
        pools: Sequence[PoolConfig],
        name: str,
        looks: Mapping[str, Look],
        *,
        now: float,
        remembers: float,
        notes: Mapping[str, float] | None = None,
    ) -> None:
        self._lake, self._name, self._now, self._remembers = lake, name, now, remembers
        self._pools = {pool.name: pool for pool in pools}
        self._notes = (read_notes(lake.store) if notes is None else notes) if name else None
        self._standing = {
            pool.id: looks[pool.id]
            for pool in pools
            if pool.id in looks and self._stands(looks[pool.id], pool)
        }
        self._new: dict[str, Look] = {}

    @classmethod
    def of(cls, lake: Lake, asked: Request, *, agent: str) -> Quiet:
        """Reads what the agent remembers of runs with the same parameters.

        Raises Unavailable or Corrupt if the list of pools cannot be read.
        """
        now, remembers = lake.context.now(), AGENTS[agent].remembers  # before anything is read
        if not remembers or (asked.pools and not asked.recurring) or asked.dry_run:
            return cls(lake, (), "", {}, now=now, remembers=remembers)
        how = [asked.branch, asked.strategy, *([sorted(asked.pools)] if asked.pools else [])]
        how += ["at once"] if asked.at_once else []
        way = sha256(msgspec.json.encode(how)).hexdigest()[:16]
        name = naming.quiet(agent, way)
        return cls(lake, lake.pools(), name, _read(lake, name), now=now, remembers=remembers)

    @classmethod
    def named(
        cls,
        lake: Lake,
        pools: Sequence[PoolConfig],
        name: str,
        *,
        now: float,
        remembers: float,
        notes: Mapping[str, float],
    ) -> Quiet:
        """Reads the memory with this name, for a program that is not an agent; `notes` are the activity notes of
        the pools."""
        return cls(lake, pools, name, _read(lake, name), now=now, remembers=remembers, notes=notes)

    def seen_at(self, pool: PoolConfig) -> float | None:
        """Returns when the last look that still counts was made at the pool; None if there is no such look."""
        look = self._standing.get(pool.id)
        return None if look is None else look.at

    def _stands(self, look: Look, pool: PoolConfig) -> bool:
        return (
            look.settings == _digest(pool)
            and look.at <= self._now < look.at + forgotten_after(pool.id, self._remembers)
            and (look.until is None or self._now < look.until)
            and is_quiet(self._notes or {}, pool.id, since=look.at)
        )

    def others(self, names: Sequence[str]) -> list[str]:
        """Returns the pools among these that the run must look at."""
        open_names = [
            name for name in names if name not in self._pools or self._pools[name].id not in self._standing
        ]
        if len(open_names) < len(names):
            log.info(
                "nothing was written to %s since the last look", counted(len(names) - len(open_names), "pool")
            )
        return open_names

    def is_as_seen(self, pool: PoolConfig, seen: str) -> bool:
        """Whether the pool may be skipped; `seen` is a digest of what this run saw outside of the lake."""
        return pool.id in self._standing and self._standing[pool.id].seen == seen

    def found_nothing(self, pool: PoolConfig, *, until: float = ALWAYS, seen: str = "") -> None:
        """Remembers that the run found nothing to do in the pool, and that time alone brings no work before
        `until`.

        `pool` is the configuration at which the run looked: another pool may have got its name since the run
        began.
        """
        self._new[pool.id] = Look(self._now, None if until == ALWAYS else until, _digest(pool), seen)

    def write(self) -> None:
        """Stores what this run saw, if it looked at any pool.  (To look, an agent needs no right to write.)

        A pool without an activity note, such as one of an older lake, gets one here; otherwise each run would
        look at it.
        """
        store = self._lake.store
        if not (self._name and self._new):
            return
        try:
            store.put(self._name, msgspec.json.encode({**self._standing, **self._new}))
        except Unavailable as error:
            log.info("%s: not written: %s; the next run looks again", self._name, error)
            return
        if self._notes is not None:
            with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
                list(threads.map(partial(write_note, store), self._new.keys() - self._notes.keys()))


def _read(lake: Lake, name: str) -> dict[str, Look]:
    try:
        looks: dict[str, Look] = decoded_json(lake.store.get(name) or b"{}", dict[str, Look], name=name)
    except (Unavailable, Corrupt) as error:
        log.info("%s: not read: %s; looks at every pool", name, error)
        return {}
    return looks


def forgotten_after(pool_id: str, remembers: float) -> float:
    """Returns the seconds after which a look at this pool is forgotten, even if nothing was written: at least half
    of `remembers`, at most all of it.

    The id of the pool decides the exact number.  If it were the same for all pools, all looks would be
    forgotten in the same run, and that run would have to look at all pools.
    """
    part = int.from_bytes(sha256(pool_id.encode()).digest()[:4]) / 2**32
    return remembers * (1 + part) / 2


def _digest(pool: PoolConfig) -> str:
    """Returns a digest of the settings of a pool."""
    return sha256(msgspec.json.encode(pool.settings, order="sorted")).hexdigest()[:16]
