"""One seed: a lake of some pools, those who work on it, and the end, when nothing may be left."""

from __future__ import annotations

import functools
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lake_core.errors import Corrupt, LakeError
from lake_core.ids import IdSource
from lake_core.journal import Journal, JournalLimits, Retry
from lake_core.records.pools import PoolConfig
from log_lake.lake import Lake
from log_lake.lake.open_transactions import GRACE, clean
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from tests.simulation.faulty import Faults, FaultyStore
from tests.simulation.histories import actors
from tests.simulation.histories.checking import check
from tests.simulation.histories.recorded import History, Read, Seen, Values
from tests.simulation.pair_world import FAULTS
from tests.simulation.pairs import renewed_by_the_world
from tests.simulation.scheduler import Scheduler
from tests.simulation.truth import Unwatched, Violation

EPOCH = 2_000_000_000.0
LONG = 100_000.0
"""Seconds after which every lease is dead, and every transaction open for too long."""
LATE = 25.0
"""Seconds after which a late request has arrived."""
VICTIMS = 8
REGISTERS = (100, 101)
"""Their keys; those of other records are below, or from 1,000 on."""
ANY_CLOCK = JournalLimits(clock_skew=math.inf)
SETTINGS = {"history.keep": "0s", "lease.after": "1d", "vacuum.grace": "300s", "lease.ttl": "60s"}


class SimulatedLake(Lake):
    """A lake whose pauses take the time of a world, and no time of ours."""

    world: World

    def _pool(self, config: PoolConfig, sub_pool: str) -> Pool:
        pool = super()._pool(config, sub_pool)
        self.world.settle_in(pool.history.journal)
        return pool


@dataclass
class World:
    """All of one seed."""

    seed: int
    passed: float = 0.0
    registers: tuple[int, ...] = REGISTERS
    history: History = field(default_factory=History)
    happened: Counter[str] = field(default_factory=Counter)
    late_since: float | None = None

    def __post_init__(self) -> None:
        chance = self.chance = random.Random(self.seed)
        self.tick = chance.choice((0.01, 0.05, 0.3))
        stall = int(chance.choice((5.0, 40.0, 100.0)) / self.tick)
        self.scheduler = Scheduler(
            chance, most_steps=300_000, stalls=chance.choice((0.0, 0.003, 0.01)), longest_stall=stall
        )
        self.faults = Faults(0.0, 0.0, 0.0, 0.0)
        self.store = FaultyStore(
            chance,
            self.scheduler,
            Unwatched(),
            self.faults,
            lists_from_name=chance.random() < 0.7,
            puts_halves=False,
            clock=self.now,
            page=chance.choice((3, 30)),
        )
        self.scheduler.after_step = self._after_step
        self.cleans = chance.choice((0.0, GRACE))
        """Seconds for which decisions are kept."""

    def now(self) -> float:
        """By the store's clock."""
        return EPOCH + self.scheduler.steps * self.tick + self.passed

    @property
    def tells_the_end(self) -> bool:
        """Whether a transaction that is not known any more was never committed."""
        return self.cleans == GRACE and self.now() - EPOCH < GRACE

    def sleep(self, seconds: float) -> None:
        """Who runs stands still; the others go on."""
        running = self.scheduler.running
        if running is None:
            self.passed += seconds
        else:
            running.stalled = math.ceil(seconds / self.tick)
            self.scheduler.pause()

    def settle_in(self, journal: Journal[Any, Any]) -> None:
        """Make a journal one of this world."""
        journal.fetch = _one_by_one
        journal.limits = ANY_CLOCK
        journal.retry = Retry(
            races=400, repeats=4, sleep=self.sleep, clock=self.now, jitter=self.chance.random
        )

    def process(self, name: str) -> SimulatedLake:
        """A process that opens the lake.  Raises Unavailable."""
        lake = SimulatedLake.open_on(self.store, ids=self._ids(), author=name)
        return self._settled(lake)

    def _ids(self) -> IdSource:
        skew = self.chance.choice((0.0, 0.0, 0.0, 0.0, -40.0, 40.0))
        return IdSource(clock=lambda: self.now() + skew, entropy=self.chance.randbytes)

    def _settled(self, lake: Lake) -> SimulatedLake:
        assert isinstance(lake, SimulatedLake)
        lake.world = self
        self.settle_in(lake.catalog.journal)
        return lake

    def count(self, what: str) -> None:
        self.happened[what] += 1

    def _after_step(self) -> None:
        if not self.store.late:
            self.late_since = None
        elif self.late_since is None:
            self.late_since = self.now()
        elif self.now() - self.late_since > LATE:
            self.store.arrive()

    # --- the seed

    def run(self) -> Counter[str]:
        """How often what happened.  Raises Violation, or what nobody should raise."""
        self._begin()
        chance = self.chance
        for number in range(chance.randint(2, 4)):
            self.start(f"transaction {number}", actors.transactor)
        for number in range(chance.randint(0, 2)):
            self.start(f"single writer {number}", actors.single_writer)
        for number in range(chance.randint(1, 3)):
            self.start(f"reader {number}", actors.reader)
        for number in range(chance.randint(0, 2)):
            self.start(f"upkeep {number}", actors.upkeep)
        if chance.random() < 0.2:
            self.start("reaper", actors.reaper)
        rates = chance.choice(FAULTS)
        self.faults.refused, self.faults.answer_lost, self.faults.never_arrived, self.faults.late = rates
        self.scheduler.run()
        self.faults.none()
        self.store.arrive()
        self._end()
        return self.happened + check(self.history)

    def start(self, name: str, act: Callable[[World, str], None]) -> None:
        """One more at work."""
        self.scheduler.start(name, functools.partial(self._act, name, act))

    def _act(self, name: str, act: Callable[[World, str], None]) -> None:
        try:
            act(self, name)
        except Corrupt:
            raise
        except LakeError as error:
            self.count(f"{name.rpartition(' ')[0] or name}: {type(error).__name__}")

    def _begin(self) -> None:
        """The pools, with the records that will be removed."""
        chance = self.chance
        lake = self._settled(SimulatedLake.create_on(self.store, ids=self._ids()))
        self.kinds = {
            name: chance.choice(("append", "append", "upsert")) for name in "abcd"[: chance.randint(2, 4)]
        }
        self.victims: dict[str, Values] = {}
        for name, kind in self.kinds.items():
            settings = SETTINGS | {"load.inline": chance.choice(("0", "64KiB"))}
            pool = lake.create_pool(name, key="k", kind=kind, settings=settings)
            values = [self.history.value() for _ in range(VICTIMS)]
            pool.branch().append(self.table(name, values))
            self.victims[name], self.history.initial[name] = values, set(values)

    def key(self, pool: str, value: int) -> int:
        """The key of a record that is no register: its own in pools that show one record a key."""
        return value % 17 if self.kinds[pool] == "append" else 1_000 + value

    def table(self, pool: str, values: Values, registers: dict[int, int] | None = None) -> pa.Table:
        rows = [(self.key(pool, value), value) for value in values] + sorted((registers or {}).items())
        return pa.table({"k": [key for key, _ in rows], "v": [value for _, value in rows]})

    def seen(self, view: View) -> Seen:
        """What a view shows."""
        table = view.to_table()
        found = Seen([], {})
        for key, value in zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True):
            if key in REGISTERS:
                found.registers.setdefault(key, []).append(value)
            else:
                found.records.append(value)
        return found

    def read(self, lake: Lake, names: list[str], reader: str, *, time: str = "", pauses: int = 0) -> None:
        """Pools at one moment; the records are read after a while.  Raises what the lake raises."""
        begun = self.history.now()
        views = lake.at(*names, time=time)
        ended = self.history.now()
        for _ in range(pauses):
            self.scheduler.pause()
        pools = {name: self.seen(view) for name, view in views.items()}
        self.history.reads.append(Read(reader, begun, ended, pools, bool(time)))

    def _end(self) -> None:
        """Nobody acts any more: no write has to wait, and nothing of a transaction is left."""
        self.passed += LONG
        for name in self.kinds:
            self.process("afterwards").pool(name).branch().delete(where="v = -1", reason="after all")
        clean(self.process("cleaner"), grace=0.0)
        self.read(self.process("last"), sorted(self.kinds), "the last reader")
        self.passed += LONG
        clean(self.process("cleaner"), grace=0.0)
        if left := [name for name in self.store.objects if name.startswith("transactions/")]:
            raise Violation(f"left over: {left}")
        lake = self.process("last")
        for name in self.kinds:
            state = lake.pool(name).history.load().state
            if set(state.branches) != {"main"} or len(state.pending):
                raise Violation(
                    f"left over in {name}: {sorted(state.branches)}, {sorted(state.pending.keys())}"
                )


def _one_by_one(read: Callable[[object], object], names: range) -> list[object]:
    return [read(name) for name in names]


@renewed_by_the_world()
def simulate_history(seed: int) -> Counter[str]:
    """Run one seed; how often what happened.  Raises Violation with the seed in its message."""
    world = World(seed)
    try:
        return world.run()
    except (AssertionError, LakeError) as error:
        raise Violation(f"history {seed}: {type(error).__name__}: {error}") from error
    finally:
        world.scheduler.bury()
