"""The world of a pair: one pool, its store, its clock, its past, and the end of a seed."""

from __future__ import annotations

import functools
import random
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core import naming
from lake_core.errors import (
    CheckpointDamaged,
    Corrupt,
    LakeError,
    ObjectMissing,
)
from lake_core.history import PoolState
from lake_core.ids import IdSource
from lake_core.journal import LoadedState, Retry
from lake_core.store import Created
from log_lake.erasure.receipt import DONE
from log_lake.erasure.run import erase
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.lake.view import View
from log_lake.loading.block import Block
from log_lake.stores.guard import guarded
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from tests.simulation import pair_transactions
from tests.simulation.faulty import Faults, FaultyStore
from tests.simulation.oracle import ERASED, PairTruth, Rows, Write
from tests.simulation.pair_actors import ACTORS, TRANSACTOR, loader
from tests.simulation.pair_process import DAY, EPOCH, GRACE, POOL, TTL, Process
from tests.simulation.scheduler import Actor, Scheduler
from tests.simulation.truth import Violation

ROUNDS = 2
"""Times that all grace passes and upkeep runs, at most: the orphans of a first scan wait once more."""

FAULTS = (
    *((0.0, 0.0, 0.0, 0.0),) * 2,
    *((0.001, 0.01, 0.002, 0.005),) * 2,
    (0.01, 0.05, 0.02, 0.05),
)
"""How likely a request is refused; a create or a delete loses its answer, never arrives, arrives late."""

ANSWERS = (ObjectMissing, CheckpointDamaged)
"""Damage, as the errors say it, that is none here: what was read is gone, or was purged, and that was allowed."""


PAST = (
    *("loader",) * 4,
    "deleter",
    *("compactor",) * 2,
    "replacer",
    *("branch maker and merger",) * 3,
    *("tagger", "orphan", "tombstones", "checkpoint and purge", "undoer", "vacuum", "splitter"),
)
"""What may have happened before."""


@dataclass
class World:
    """One pool, its store, its clock, and all who work on it."""

    kind: str
    chance: random.Random
    is_past: bool = False
    start: float = EPOCH
    tick: float = 1.0
    """Seconds that a step takes."""
    passed: float = 0.0
    numbers: int = 0
    holders: dict[str, Actor | None] = field(default_factory=dict)
    """Who holds which lease, by its name."""
    happened: dict[str, int] = field(default_factory=dict)
    late_since: float | None = None
    has_neighbour: bool = False
    seen: LoadedState[PoolState] | None = None
    """The newest state of the past, as a process has it that was there."""

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.chance, stalls=0.0, longest_stall=200)
        self.faults = Faults(0.0, 0.0, 0.0, 0.0)
        self.truth = PairTruth("", kind=self.kind)
        self.store = Shared(
            self.chance,
            self.scheduler,
            self.truth,
            self.faults,
            lists_from_name=self.chance.random() < 0.7,
            puts_halves=False,
            clock=self.now,
        )
        self.store.world = self
        self._join()

    def _join(self) -> None:
        """Bring the store and its truth together."""
        self.store.truth = self.truth
        self.truth.objects, self.truth.clock, self.truth.read = self.store.objects, self.now, self.read
        self.scheduler.after_step = self.after_step

    def now(self) -> float:
        """By the store's clock."""
        return self.start + self.scheduler.steps * self.tick + self.passed

    @property
    def runs(self) -> Actor | None:
        """Who runs."""
        return self.scheduler.running

    def number(self) -> int:
        """One that nobody has had."""
        self.numbers += 1
        return self.numbers

    def retry(self) -> Retry:
        """Pauses that take no time of ours."""
        return Retry(races=100, repeats=4, sleep=self._sleep, clock=self.now, jitter=self.chance.random)

    def _sleep(self, seconds: float) -> None:
        self.passed += seconds
        self.scheduler.pause()

    def stall(self, seconds: float) -> None:
        """Who runs stands still; a past just takes longer."""
        if self.runs is None:
            self.passed += seconds
        else:
            self.runs.stalled = int(seconds / self.tick)
            self.scheduler.pause()

    def after_step(self) -> None:
        """Late requests arrive in time; who lives and does not stand still renews its leases."""
        self.truth.check()
        if self.store.late:
            self.late_since = self.now() if self.late_since is None else self.late_since
            if self.now() - self.late_since > GRACE / 4:
                self.store.arrive()
        if not self.store.late:
            self.late_since = None
        for name in self.holders.keys() & self.store.objects.keys():
            age, holder = self.now() - self.store.modified[name], self.holders[name]
            if age > TTL:  # it was dead, even if it is written again
                self.truth.promises = [p for p in self.truth.promises if p.lease != name]
            if age > TTL / 3 and holder in self.scheduler.actors and not holder.stalled:
                self.store.modified[name] = self.now()

    def rows_of(self, table: pa.Table) -> Rows:
        """A table as the oracle says it."""
        keys, numbers = table["k"].to_pylist(), table["n"].to_pylist()
        rows: Rows = {}
        for key, number in zip(keys, numbers, strict=True):
            if self.kind == "append":
                rows[key, number] = rows.get((key, number), 0) + 1
            elif key in rows:
                raise Violation(f"key {key} is shown twice: {numbers}")
            else:
                rows[key] = number
        return rows

    def read(self, state: PoolState, version: int, branch: str) -> Rows:
        """What the engine shows of a state, on a store that does not fail."""
        quiet = self.store.is_quiet
        self.store.is_quiet = True
        try:
            view = View(self.pool.config, version, branch, state, self.now(), store=guarded(self.store))
            return self.rows_of(view.to_table()) if view.references else {}
        finally:
            self.store.is_quiet = quiet

    def check_erased(self, before: set[str]) -> None:
        """An erasure says that it is done: nothing in reach holds such a record, and nothing that did before it."""
        holding = self.truth.holding(ERASED)
        if left := holding & before:
            raise Violation(f"erased, and on the store: {sorted(left)}")
        for what, objects in (*self.truth.needed(), *self.truth.promised()):
            if erased := holding & objects:
                raise Violation(f"erased, and {what} has {sorted(erased)}")

    # --- the past

    def begin(self) -> None:
        """Make the pool, and what happened to it before the seed."""
        ids = IdSource(clock=self.now, entropy=self.chance.randbytes)
        lake = Lake.create_on(self.store, ids=ids)
        keep = self.chance.choice(("0s", f"{GRACE:.0f}s"))
        settings = {
            "vacuum.grace": f"{GRACE:.0f}s",
            "lease.ttl": f"{TTL:.0f}s",
            "history.keep": keep,
            "lease.after": self.chance.choice(("0s", "1d")),
            "load.inline": self.chance.choice(("0", "64KiB")),
            "tombstones.remember": self.chance.choice(("0s", "50s", "7d")),
            **({"expire.records": "4"} if keep == "0s" else {"expire.age": f"{GRACE:.0f}s"}),
        }
        aggregates = {"n": "sum"} if self.kind == "aggregate" else {}
        self.pool: Pool = lake.create_pool(
            POOL, key="k", kind=self.kind, settings=settings, aggregates=aggregates
        )
        self.truth.journal = naming.pool_journal(self.pool.config.id)
        names = ["loader", "loader", *self.chance.choices(PAST, k=16), "loader"]
        for name in names:
            self.passed += self.chance.choice((1.0, 5.0, 40.0))
            with suppress(LakeError):
                self.do(name, Process(self, name))
            self.truth.check()
            self.pool.history.load()

    def do(self, name: str, process: Process) -> None:
        """One piece of work."""
        if name == "orphan":
            branch = process.pool.branch()
            begun = branch.begin_load()
            assert isinstance(begun, PendingLoad)
            builder = branch.builder(begun)
            builder.add(Block(process.table(Write(process.rows()))))
            builder.finish()
        else:
            ACTORS[name](process)

    # --- the seed

    @classmethod
    def of_seed(cls, kind: str, past: World, chance: random.Random) -> World:
        """A world that goes on from a past."""
        world = cls(kind, chance)
        world.start, world.numbers, world.pool = past.now(), past.numbers, past.pool
        world.store.objects.update(past.store.objects)
        world.store.modified.update(past.store.modified)
        world.truth = past.truth.copied()
        world._join()
        seen = past.pool.history.load()
        world.seen = seen if seen.checkpoint is None else None
        world.store.page = chance.choice((3, 30, 30))
        return world

    def run(self, names: tuple[str, ...]) -> None:
        """The actors at the same time, and then the end."""
        chance = self.chance
        if TRANSACTOR in names:
            self._make_neighbour()
        self.tick = chance.choice((0.2, 1.0, 3.0))
        self.scheduler.stalls = chance.choice((0.0, 0.01, 0.03))
        for number, name in enumerate(names):
            self.scheduler.start(f"{name} {number}", functools.partial(self._work, name))
        if chance.random() < 0.3:
            self.scheduler.start("reaper", self._reap)
        rates = chance.choice(FAULTS)
        self.faults.refused, self.faults.answer_lost, self.faults.never_arrived, self.faults.late = rates
        self.scheduler.run()
        self.faults.none()
        self.store.arrive()
        self.truth.check()
        self._end("eraser" in names)

    def _make_neighbour(self) -> None:
        self.store.is_quiet = True
        ids = IdSource(clock=self.now, entropy=random.Random(pair_transactions.NEIGHBOUR).randbytes)
        pair_transactions.make_neighbour(Lake.open_on(self.store, ids=ids), self.store)
        self.store.is_quiet = False
        self.has_neighbour = True

    def _work(self, name: str) -> None:
        skew = self.chance.choice((0.0, 0.0, 0.0, -10 * GRACE, 2 * GRACE))
        for _ in range(self.chance.randint(1, 3)):
            for _ in range(self.chance.choice((0, 0, 10, 40))):
                self.scheduler.pause()
            try:
                ACTORS[name](Process(self, name, skew=skew))
                self.count(f"{name}: done")
            except LakeError as error:
                if isinstance(error, Corrupt) and not isinstance(error, ANSWERS):
                    raise
                self.count(f"{name}: {type(error).__name__}")

    def _reap(self) -> None:
        for _ in range(self.chance.randint(1, 60)):
            self.scheduler.pause()
        victims = [actor for actor in self.scheduler.actors if actor is not self.runs]
        if victims:
            victim = self.chance.choice(victims)
            self.scheduler.kill(victim)
            self.count("killed")

    def count(self, what: str) -> None:
        """That something happened."""
        self.happened[what] = self.happened.get(what, 0) + 1

    def _end(self, erases: bool) -> None:
        """Nobody acts any more; all grace passes, and upkeep runs to its end."""
        truth, me, eraser = self.truth, Process(self, "upkeep"), Process(self, "eraser").pool
        if (points := me.state.points) != truth.states[-1].points:
            raise Violation(f"the split points are {points}, not {truth.states[-1].points}")
        for name in me.state.branches:
            view = me.pool.at(name)
            if view.references:
                me.check(view, view.to_table())
            elif truth.shown[-1][name]:
                raise Violation(f"{name} is empty, and not {truth.shown[-1][name]}")
        if self.has_neighbour:
            pair_transactions.end(me)
        for turn in range(ROUNDS):
            self.passed += 2 * DAY
            loader(me)  # a later write shows that the journal goes on
            truth.promises.clear()
            if erases:
                for name in me.pool.tags:
                    me.pool.delete_tag(name)
                receipt = erase(eraser, where=f"k = {ERASED}")
                if receipt.status != DONE or (self.chance.random() < 0.2 and list(verify(eraser, receipt))):
                    raise Violation(f"an erasure with nothing to wait for: {receipt.held}")
            self.passed += 4 * GRACE
            # The last round looks at every name: an object whose writer was killed after the scan had passed its
            # name is found by nothing else.
            scan_orphans(me.pool, every_name=turn == ROUNDS - 1)
            self.passed += 4 * GRACE
            vacuum(me.pool)
            left = truth.there_now() - {id for _, objects in truth.needed() for id in objects}
            if not left:
                break
        truth.check()
        if left:
            state = truth.states[-1]
            raise Violation(f"left over: {sorted((id, state.removed.get(id)) for id in left)}")
        if erases and (holding := truth.holding(ERASED)):
            raise Violation(f"erased, and on the store: {sorted(holding)}")
        if left_leases := [name for name in self.store.objects if naming.lease_id(name)]:
            raise Violation(f"leases are left over: {left_leases}")


class Shared(FaultyStore):
    """The store of a pair: it knows who holds which lease, and is quiet while the oracle reads."""

    world: World
    is_quiet = False

    def _request(self) -> None:
        if not self.is_quiet:
            super()._request()

    def create(self, name: str, data: bytes) -> Created:
        if naming.lease_id(name) is not None:
            self.world.holders[name] = self.world.runs
        return super().create(name, data)
