"""The trigger "a pool has a new transaction": for deferred sensors, and for assets that others write.

    Asset(asset_uri("flights"), watchers=[AssetWatcher(name="flights",
    trigger=TransactionTrigger(pools=["flights"]))])

All triggers of one lake with one pause share a loop in the triggerer, however many pools they watch.  Airflow
keeps, with the asset, the position up to which a watcher has seen its pools.  A triggerer that starts again
goes on from there, so a transaction of the meantime is an event too.  The position is stored only after Airflow
has stored the event: Airflow then calls `advance` of the shared stream's producer.  So after a crash an event
may come twice, but it is never lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from airflow_lake.reach import lake_name, open_lake

if TYPE_CHECKING:
    from airflow_lake.triggers.interest import Interest
    from log_lake.lake import Lake
    from log_lake.lake.watch import News, Watcher, WatchPosition

log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE = 4.0
"""Seconds between two looks: with the look itself, an event comes within 5 s of its commit (decision 102)."""
LEAST_PAUSE = 0.05
"""The smallest pause: each look asks the store, and all triggers of the triggerer wait meanwhile."""

REST = 10.0
"""Seconds that a trigger of a deferred task stays silent after its start.  Airflow 3.3.2 fails a task whose
trigger fires before the scheduler has recorded that the task was deferred, which takes seconds on a busy
machine."""

KEPT = "lake_seen"
"""The name under which Airflow stores, with the asset, the last position of a pool: `lake_seen:POOL`."""


class _Loop:
    """What the triggers of one lake share: the lake, and their interest.  Only one look runs at a time.

    The lake is opened once, and again after it could not be read.

    `_imported` must have imported `lake_core` before: the import takes seconds, and if a coroutine did it, no
    trigger of the triggerer would run meanwhile.
    """

    def __init__(self, name: str) -> None:
        from airflow_lake.triggers.interest import Interest

        self.name = name
        self.interest: Interest = Interest()
        self.turn = asyncio.Lock()
        self.missed: list[_Look] = []
        self._lake: Lake | None = None
        self._watcher: Watcher | None = None

    def lake(self) -> Lake:
        """Returns the lake; called in a thread, by the trigger whose turn it is to look."""
        if self._lake is None:
            self._lake = open_lake(self.name)
        return self._lake

    def look(self, positions: Mapping[str, WatchPosition]) -> tuple[list[News], dict[str, WatchPosition]]:
        """Returns the news after the positions, as `Watcher.look` does."""
        from log_lake.lake.watch import Watcher

        if self._watcher is None:
            self._watcher = Watcher(self.lake())
        return self._watcher.look(positions)

    def close(self) -> None:
        """Makes the next look open the lake again: its connection may have other credentials by then."""
        self._lake = self._watcher = None


@dataclass(frozen=True, eq=False)
class _Look:
    """The result of one look after the positions `before`.

    `keeps`: what triggers store of it once Airflow has stored their events.
    """

    news: Sequence[News]
    before: Mapping[str, WatchPosition]
    keeps: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    async def keep(self) -> None:
        """Stores the positions."""
        for keep in self.keeps:
            await keep()


async def _imported() -> None:
    """Imports, in a thread, the modules that a loop needs."""

    def load() -> None:
        import airflow_lake.hooks.lake
        import airflow_lake.triggers.interest  # noqa: F401

    await asyncio.to_thread(load)


async def _looked(loop: _Loop, pause: float, look: Callable[[], T]) -> T | None:
    """Runs the look in a thread.  Returns its result, or None if the lake cannot be read now: the caller looks
    again later.

    A store that does not answer, or a damaged lake, may recover while triggers wait; a trigger that ends would
    fail its sensor.  Raises InvalidInput for a name that is not a lake's, because waiting does not help.
    """
    from lake_core.errors import InvalidInput, LakeError

    try:
        return await asyncio.to_thread(look)
    except InvalidInput:
        raise
    except LakeError as error:
        log.warning("%s: %s; looks again in %g s", loop.name, error, pause)
        loop.close()
        return None


async def _looks(loop: _Loop, pause: float) -> AsyncIterator[_Look]:
    """Yields the news in the pools of the loop's interest, look by look, until the caller ends it.

    News that a new trigger has missed come first, then the news of later transactions.
    """
    while True:
        async with loop.turn:
            before = dict(loop.interest.positions)
            news, after = await _looked(loop, pause, partial(loop.look, before)) or ([], before)
            loop.interest.advance(before, after)
            looks, loop.missed = loop.missed, []
        for look in [*looks, _Look(news, before)] if news else looks:
            yield look
        await asyncio.sleep(pause)


async def _looks_kept(loop: _Loop, pause: float) -> AsyncIterator[_Look]:
    """Like `_looks`, for a loop that no other trigger shares: Airflow does not say when it has stored an event."""
    async for look in _looks(loop, pause):
        yield look
        await look.keep()


class _Producer(SharedStreamProducer):
    """The shared loop, as Airflow runs it: Airflow calls `advance` for each look whose events are stored."""

    def __init__(self, lake: str, pause: float) -> None:
        self._lake = lake
        self._pause = pause

    async def open_stream(self) -> AsyncIterator[tuple[_Look, _Look]]:
        """Yields each look twice: as the value, and as the argument for `advance`."""
        await _imported()
        async for look in _looks(_loop_of(self._lake, self._pause), self._pause):
            yield look, look

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Stores the positions of these looks.  If an event of a look could not be stored, no position of that
        look is stored."""
        for look, outcome in batch:
            if not outcome.failed:
                await look.keep()


_LOOPS: dict[Hashable, _Loop] = {}
"""The loops by the key of the shared stream, one for each lake and pause of this triggerer."""


def check_pause(pause: Any, *, who: str) -> None:
    """Raises ValueError unless `pause` is a number of seconds that may lie between two looks at the pools."""
    is_number = isinstance(pause, int | float) and not isinstance(pause, bool)
    if not (is_number and LEAST_PAUSE <= pause < math.inf):
        raise ValueError(f"{who}: pause must be a number of seconds, at least {LEAST_PAUSE} (got {pause!r})")


class TransactionTrigger(BaseEventTrigger):
    """Fires when one of the pools has a new transaction on the branch.

    `lake`: the id of a connection, or a URI; empty: the variable LAKE of the triggerer, then lake_default.
    `after`: by pool, the id of the pool and the version that was seen last; by default what is there when the
    trigger starts.  Compaction and other maintenance, which changes no record, is no event unless `maintenance`
    is set.  `rest`: seconds from the start of the trigger in which it says nothing yet (`REST`).
    """

    def __init__(
        self,
        *,
        pools: Sequence[str] | str,
        lake: str = "",
        branch: str = "main",  # `naming.MAIN`; see `_imported`
        after: Mapping[str, Sequence[Any]] | None = None,
        maintenance: bool = False,
        pause: float = PAUSE,
        rest: float = 0.0,
    ) -> None:
        super().__init__()
        pools = [pools] if isinstance(pools, str) and pools else pools
        if isinstance(pools, str) or not pools or not all(isinstance(pool, str) for pool in pools):
            raise ValueError(f"TransactionTrigger: pools must be a list of names (got {pools!r})")
        for name, value in (("lake", lake), ("branch", branch)):  # of another kind it would wait in vain
            if not isinstance(value, str) or (name == "branch" and not value):
                raise ValueError(f"TransactionTrigger: {name} must be a text (got {value!r})")
        if after is not None and not (isinstance(after, Mapping) and all(map(_is_position, after.values()))):
            raise ValueError(
                f"TransactionTrigger: after must be the id of a pool and a version, by pool (got {after!r})"
            )
        check_pause(pause, who="TransactionTrigger")
        if any("{{" in pool or "{%" in pool for pool in pools):
            raise ValueError(
                f"TransactionTrigger: pools may be no templates: nothing fills them in (got {pools!r})"
            )
        if unknown := sorted(set(after or ()) - set(pools)):
            raise ValueError(
                f"TransactionTrigger: after names the pool {unknown[0]!r}, which is none of pools"
            )
        if not isinstance(maintenance, bool):
            raise ValueError(f"TransactionTrigger: maintenance must be true or false (got {maintenance!r})")
        if not isinstance(rest, int | float) or isinstance(rest, bool) or not 0 <= rest < math.inf:
            raise ValueError(
                f"TransactionTrigger: rest must be a number of seconds, at least 0 (got {rest!r})"
            )
        self.pools = sorted(set(pools))
        self.lake = lake
        self.branch = branch
        self.after = {pool: list(seen) for pool, seen in (after or {}).items()}
        self.maintenance = maintenance
        self.pause = pause
        self.rest = rest
        self._alone: _Loop | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns the class and the values of the trigger, as Airflow stores them."""
        return (
            "airflow_lake.triggers.transactions.TransactionTrigger",
            {
                "pools": self.pools,
                "lake": self.lake,
                "branch": self.branch,
                "after": self.after,
                "maintenance": self.maintenance,
                "pause": self.pause,
                "rest": self.rest,
            },
        )

    def shared_stream_key(self) -> Hashable | None:
        """Returns the key by which triggers of one lake with the same pause share a loop."""
        return _key(self.lake, self.pause)

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> SharedStreamProducer:
        """Returns the loop that looks at all pools for which some trigger waits."""
        return _Producer(kwargs["lake"], kwargs["pause"])

    async def filter_shared_stream(self, shared_stream: AsyncIterator[_Look]) -> AsyncIterator[TriggerEvent]:
        """Yields the events of this trigger: one for each of its pools in each look that found something
        new."""
        await _imported()
        from airflow_lake.triggers.interest import is_new, leaves_gap

        loop, quiet_until = self._alone or _loop_of(self.lake, self.pause), time.monotonic() + self.rest
        seen = await self._begin(loop)
        try:
            async for look in shared_stream:
                for pool in self.pools:
                    mine = [one for one in look.news if one.pool == pool]
                    if not mine or leaves_gap(look.before[pool], mine[0], seen[pool]):
                        continue
                    fresh = [
                        one
                        for one in mine
                        if is_new(one, seen[pool], branch=self.branch, maintenance=self.maintenance)
                    ]
                    seen[pool] = _later(seen[pool], mine[-1].position)
                    if fresh:
                        await _until(quiet_until)
                        yield TriggerEvent(event_of_news(fresh, lake=loop.name, branch=self.branch))
                    look.keeps.append(partial(self._keep, pool, seen[pool]))
        finally:
            loop.interest.remove(seen)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields the same events from a separate loop, if the triggerer shares none."""
        await _imported()
        self._alone = _Loop(lake_name(self.lake))
        stream = self.filter_shared_stream(_looks_kept(self._alone, self.pause))
        async with contextlib.aclosing(stream) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    async def _begin(self, loop: _Loop) -> dict[str, WatchPosition]:
        """Adds the pools to the loop's interest.  Returns the last position of each that this trigger has seen.

        It is the one that Airflow stores, otherwise the one in `after`, otherwise the present one.  News that
        were purged meanwhile are a look of their own.
        """
        from log_lake.lake.watch import WatchPosition, begin, resume

        kept = {pool: await self._kept(pool) or self.after.get(pool) for pool in self.pools}
        seen = {pool: WatchPosition(str(at[0]), int(at[1])) for pool, at in kept.items() if at}

        def positions() -> tuple[dict[str, WatchPosition], list[News]]:
            lake = loop.lake()
            at = begin(lake, [pool for pool in self.pools if pool not in seen])
            missed: list[News] = []
            for pool, position in seen.items():
                news, at[pool] = resume(lake, pool, position)
                missed += news
            return at, missed

        while True:
            async with loop.turn:
                begun = await _looked(loop, self.pause, positions)
            if begun is not None:
                break
            await asyncio.sleep(self.pause)
        at, missed = begun
        for pool in self.pools:
            if pool not in seen:
                await self._keep(pool, at[pool])
        loop.interest.add(at)
        loop.missed += [_Look([one], {one.pool: seen[one.pool]}) for one in missed]
        return {**at, **{one.pool: seen[one.pool] for one in missed}}

    async def _kept(self, pool: str) -> Sequence[Any] | None:
        """Returns what Airflow stores for the pool; None if this trigger watches no asset, or more than one."""
        if self.asset_state_store is None:
            return None
        try:
            value = await self.asset_state_store.aget(f"{KEPT}:{pool}")
        except ValueError:  # Airflow keeps it for one asset only
            return None
        return value if isinstance(value, list) and len(value) == 2 else None

    async def _keep(self, pool: str, position: WatchPosition) -> None:
        if self.asset_state_store is None:
            return
        try:
            await self.asset_state_store.aset(f"{KEPT}:{pool}", list(position))
        except ValueError:
            log.warning("%s: watched by more than one asset: what was seen is not kept", pool)


def event_of_news(news: Sequence[News], *, lake: str, branch: str) -> dict[str, Any]:
    """Returns the event that stands for new transactions of one pool, which are given oldest first."""
    newest = news[-1]
    return {
        "lake": lake,
        "pool": newest.pool,
        "branch": branch,
        "pool_id": newest.position.pool_id,
        "version": newest.position.version,
        "entries": len(news),
    }


def _is_position(value: Any) -> bool:
    """Whether a value is the id of a pool and a version, as `after` has them."""
    match value:
        case [str(), int(version)]:
            return not isinstance(version, bool) and version >= 0
    return False


async def _until(moment: float) -> None:
    """Waits until the monotonic clock reaches `moment`."""
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


def _later(seen: WatchPosition, position: WatchPosition) -> WatchPosition:
    """Returns the later of two positions; for a pool that was made again, the new one."""
    return position if position.pool_id != seen.pool_id or position.version > seen.version else seen


def _key(lake: str, pause: float) -> tuple[str, str, float]:
    return ("lake transactions", lake_name(lake), pause)


def _loop_of(lake: str, pause: float) -> _Loop:
    key = _key(lake, pause)
    if key not in _LOOPS:
        _LOOPS[key] = _Loop(key[1])
    return _LOOPS[key]
