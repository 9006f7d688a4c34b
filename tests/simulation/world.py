"""One seed: a store, actors, faults; run to the end, with the invariants checked after every step."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.checkpoints import CheckpointLimits
from lake_core.context import Context
from lake_core.errors import LakeError, NotFound
from lake_core.history import History, HistoryLimits
from lake_core.journal import JournalLimits, Retry
from lake_core.journal.windows import LARGEST_WINDOW
from lake_core.keys import PoolKey
from lake_core.records import Action, AddTombstone
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.settings.settings import check_pool
from log_lake.stores.guard import guarded
from tests.simulation import actors
from tests.simulation.faulty import Faults, FaultyStore
from tests.simulation.scheduler import Scheduler
from tests.simulation.truth import ListTruth, PoolTruth, Truth, Violation, replaced
from tests.support.records import add, an_id, draft

POOL = "pool"
KEY = PoolKey.parse("k")
EPOCH = 1_700_000_000.0
FOR_EVER = 1e9
MOST_REQUESTS = 3 * LARGEST_WINDOW
LONGEST_PAUSE = 2_000.0
"""Seconds that a pause may take where the machine sleeps: longer than a request may be committed by others."""


@dataclass
class World:
    """All of one simulation.

    `generation` is how long ids are remembered, small so that it matters; so are the row groups of checkpoints, and
    none is kept in memory; and a writer asks others after its first lost race.  `drops`: the pool is dropped while
    others hold it.
    """

    seed: int
    drops: bool = False
    generation: int = 8
    rots: bool = False
    """Whether checkpoints rot: then nothing is purged, and all entries are there to mend them."""
    passed: float = 0.0
    """Seconds that passed in pauses."""
    chance: random.Random = field(init=False)
    truth: Truth = field(init=False)
    scheduler: Scheduler = field(init=False)
    store: FaultyStore = field(init=False)
    faults: Faults = field(default_factory=Faults)
    token_keep: float = FOR_EVER
    numbers: int = 0
    unknown: set[str] = field(default_factory=set)
    outcomes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        if self.chance.random() < 0.3:
            self.token_keep = self.chance.choice((0.0, 100.0))
        if self.chance.random() < 0.2 and not self.drops:
            self.truth = ListTruth(naming.POOLS_JOURNAL)
        else:
            self.truth = PoolTruth(naming.pool_journal(POOL), keeps_tokens=self.token_keep == FOR_EVER)
        self.rots = self.chance.random() < 0.2
        self.scheduler = Scheduler(self.chance, stalls=self.chance.choice((0.0, 0.01, 0.05)))
        self.scheduler.after_step = self.truth.check
        if self.chance.random() < 0.2:
            self.faults = Faults(refused=0.05, answer_lost=0.2, never_arrived=0.1, late=0.08)
        self.store = FaultyStore(
            self.chance,
            self.scheduler,
            self.truth,
            self.faults,
            lists_from_name=self.chance.random() < 0.5,
        )

    def run(self) -> None:
        """Raises Violation, or anything that an actor should not raise."""
        writer = actors.list_writer if isinstance(self.truth, ListTruth) else actors.pool_writer
        for number in range(self.chance.choice((2, 3, 4, 5, 9))):
            self._start(f"writer {number}", writer)
        for number in range(self.chance.randint(0, 2)):
            self._start(f"purger {number}", actors.purger)
        for number in range(self.chance.randint(0, 2)):
            self._start(f"reader {number}", actors.reader)
        if self.chance.random() < 0.3:
            self._start("vandal", actors.vandal)
        if self.drops:
            self._start("dropper", actors.dropper)
        if self.rots:
            self._start("rot", actors.rot)
        self._start("reaper", actors.reaper)
        self.scheduler.run()
        self._afterwards()

    def _start(self, name: str, run: Callable[[World], None]) -> None:
        self.scheduler.start(name, lambda: run(self))

    # --- processes

    @property
    def limits(self) -> HistoryLimits:
        """Small, so that few entries reach all of them."""
        checkpoints = CheckpointLimits(group_rows=3, kept_groups=0)
        journal = JournalLimits(generation_versions=self.generation, checkpoints=checkpoints)
        return HistoryLimits(lost_races_before_request=1, journal=journal)

    def process(self) -> History | Catalog:
        """A new process that works on the journal of this world."""
        return self.catalog() if isinstance(self.truth, ListTruth) else self.history()

    def history(self) -> History:
        """The pool's history as a new process sees it."""
        history = History(
            self.guarded_store(),
            pool_id=POOL,
            key=KEY,
            clock=self.clock(),
            retry=self._retry(),
            token_keep=self.token_keep,
            limits=self.limits,
        )
        history.journal.fetch = _one_by_one
        history._contended = int(self.chance.random() < 0.5)
        return history

    def catalog(self, ids: actors.NumberedIds | None = None) -> Catalog:
        """The list of pools as a new process sees it."""
        ids = ids or actors.NumberedIds(self, self.clock())
        context = Context(self.guarded_store(), "", ids, "test")  # type: ignore[arg-type]
        catalog = Catalog(context, check=check_pool, limits=self.limits.journal)
        catalog.journal.retry, catalog.journal.fetch = self._retry(), _one_by_one
        return catalog

    def _retry(self) -> Retry:
        return Retry(races=400, repeats=4, sleep=self._sleep, clock=self._elapsed, jitter=self.chance.random)

    def guarded_store(self) -> Store:
        """The store as the engine sees it."""
        return guarded(self.store)

    def _elapsed(self) -> float:
        return self.scheduler.steps / 100 + self.passed

    def _sleep(self, seconds: float) -> None:
        self.passed += seconds
        if self.chance.random() < 0.01:
            self.count("long pause")
            self.passed += self.chance.uniform(0, LONGEST_PAUSE)
        self.scheduler.pause()

    def clock(self) -> Callable[[], float]:
        """A process's clock: a second a step and what passes in pauses, and often wrong."""
        skew = self.chance.choice((0.0, 0.0, self.chance.uniform(-1e6, 1e6)))
        return lambda: EPOCH + skew + self.scheduler.steps + self.passed

    def number(self) -> int:
        """One that nobody has had."""
        self.numbers += 1
        return self.numbers

    def pool(self, name: str) -> PoolConfig:
        """A pool to be made."""
        return PoolConfig(an_id(self.number()), name, KEY)

    # --- the end

    def _afterwards(self) -> None:
        """Faults have stopped; late requests may still arrive."""
        self.faults.none()
        self.store.arrive()
        self.truth.check()
        for id, n in self.truth.acknowledged.items():
            if self.truth.ids.get(id) != n:
                raise Violation(f"{id}, acknowledged as {n}, is not there")
        actors.look(self, self.process().journal)
        before = self.store.requests
        self._one_more()
        if self.store.requests - before > MOST_REQUESTS + 2 * len(self.store.objects):
            raise Violation(f"a new writer needed {self.store.requests - before} requests")
        if not self.truth.fence:  # then all entries are there, and say the same without any checkpoint
            for name in [n for n in self.store.objects if n.startswith(naming.marks(self.truth.journal))]:
                del self.store.objects[name]
            actors.look(self, self.process().journal)
        self.count("steps", self.scheduler.steps)
        self.count("combined", sum(len(self.truth.ids_of(entry)) > 1 for entry in self.truth.entries))
        for what, times in self.store.happened.items():
            self.count(what, times)
        if isinstance(self.truth, PoolTruth):
            requested = [t for entry in self.truth.entries for t in entry.transactions[1:]]
            self.count("tombstones combined", sum(any(map(_is_tombstone, t.actions)) for t in requested))
            self.count("replaces combined", sum(bool(replaced(t.actions)) for t in requested))

    def _one_more(self) -> None:
        number = self.number()
        if isinstance(self.truth, ListTruth):
            ids = actors.NumberedIds(self, self.clock())
            n = self.catalog(ids).create(self.pool("one-more"))
            self.truth.acknowledge(ids.last, n)
            return
        try:
            landed = self.history().commit(draft(number, add(number)))
        except NotFound:
            if not (isinstance(self.truth, PoolTruth) and self.truth.closed):
                raise
        else:
            self.truth.acknowledge(landed.transaction_id, landed.version)

    def count(self, what: str, times: int = 1) -> None:
        """That something happened."""
        self.outcomes[what] = self.outcomes.get(what, 0) + times


def _is_tombstone(action: Action) -> bool:
    return isinstance(action, AddTombstone)


def _one_by_one(read: Callable[[int], Any], numbers: range) -> list[Any]:
    return [read(n) for n in numbers]


def simulate(seed: int, **settings: int) -> dict[str, int]:
    """Run one seed; how often what happened.  Raises Violation with the seed in its message."""
    world = World(seed, **settings)
    try:
        world.run()
    except (AssertionError, LakeError) as error:
        raise Violation(f"seed {seed}: {type(error).__name__}: {error}") from error
    finally:
        world.scheduler.bury()
    return world.outcomes


def failing_seeds(seeds: range, *, enough: int = 1, **settings: int) -> Iterator[tuple[int, str]]:
    """Seeds that fail, and how, up to `enough` of them."""
    found = 0
    for seed in seeds:
        try:
            simulate(seed, **settings)
        except Violation as violation:
            yield seed, str(violation)
            found += 1
            if found >= enough:
                return
