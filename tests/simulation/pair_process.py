"""One process at work on the pool of a pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lake_core.errors import (
    LakeError,
    OutcomeUnknown,
)
from lake_core.history import PoolState
from lake_core.ids import IdSource
from lake_core.journal import JournalLimits
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.results import DeleteResult, LoadResult
from log_lake.lake.view import View
from tests.simulation.oracle import ERASED, Write
from tests.simulation.truth import Violation

if TYPE_CHECKING:
    from lake_core.journal import Journal
    from tests.simulation.pair_world import World

POOL = "p"
KINDS = ("append", "upsert", "aggregate")
KEYS = 6
EPOCH = 2_000_000_000.0
GRACE, TTL, DAY = 100.0, 60.0, 86_400.0
ANY_CLOCK = JournalLimits(clock_skew=math.inf)
"""A machine whose clock is far off is not refused: it has to do no harm."""


class Process:
    """One process at work on the pool: it opened the lake by itself, and has a clock of its own."""

    def __init__(self, world: World, name: str, *, skew: float = 0.0) -> None:
        self.world, self.name, self.chance = world, name, world.chance
        ids = IdSource(clock=lambda: world.now() + skew, entropy=world.chance.randbytes)
        self.lake = Lake.open_on(world.store, ids=ids, author=name)
        self.lake.catalog.journal.fetch = one_by_one
        self.pool = self.lake.pool(POOL)
        journal = self.pool.history.journal
        self.settle_in(journal)
        if world.seen is not None and self.chance.random() < 0.7:  # otherwise it has just been started
            journal._loaded = world.seen

    def settle_in(self, journal: Journal[Any, Any]) -> None:
        """Make a journal one of this world."""
        journal.limits = ANY_CLOCK
        journal.fetch = one_by_one
        journal.retry = self.world.retry()

    @property
    def now(self) -> float:
        """By the process's clock."""
        return self.lake.context.now()

    @property
    def state(self) -> PoolState:
        """The newest one."""
        return self.pool.history.load_open().state

    def branch(self) -> Branch:
        """Mostly main."""
        others = sorted(name for name in self.state.branches if name != "main")
        return self.pool.branch(
            self.chance.choice(others) if others and self.chance.random() < 0.3 else "main"
        )

    def version(self) -> str:
        """One of the newest."""
        return str(max(1, self.pool.history.load_open().version - self.chance.randrange(10)))

    def rows(self, low: int = 0, high: int = KEYS) -> tuple[tuple[int, int, bool], ...]:
        """Records of different keys, and the number of this load."""
        number = self.world.number()
        keys = self.chance.sample(range(low, high), self.chance.randint(1, min(3, high - low)))
        upsert = self.world.kind == "upsert"
        rows = [(key, number, upsert and self.chance.random() < 0.2) for key in keys]
        if self.world.is_past and low == 0 and self.chance.random() < 0.5:
            rows.append((ERASED, number, False))
        return tuple(rows)

    def table(self, write: Write) -> pa.Table:
        """The records in Arrow."""
        keys, numbers, gone = (list(column) for column in zip(*write.rows, strict=True))
        table = pa.table({"k": keys, "n": numbers})
        return table.append_column("_deleted", pa.array(gone)) if self.world.kind == "upsert" else table

    def write(self, write: Write, commit: Callable[[str], LoadResult | DeleteResult]) -> None:
        """Commit under a message of its own, and check what is answered."""
        truth, message = self.world.truth, f"{self.name} {self.world.number()}"
        truth.writes[message] = write
        truth.begun[message] = len(truth.states) - 1
        try:
            done = commit(message)
        except OutcomeUnknown:
            raise
        except LakeError:
            truth.told_refusal(message)
            raise
        if done.version is not None:
            truth.told_version(message, done.version)

    def sleep(self, seconds: float) -> None:
        """Stand still: nothing of the process goes on, its leases neither."""
        self.world.stall(seconds)

    def settled_early(self, view: View) -> set[str]:
        """The transactions that a view shows though its version has them pending: they could not be settled."""
        return set(self.world.truth.states[view.version].pending.keys()) - set(view.state.pending.keys())

    def check(self, view: View, table: pa.Table) -> None:
        """The table is what the view's version shows."""
        rows = self.world.rows_of(table)
        expected = self.world.truth.shown_with(view.version, view.branch, self.settled_early(view))
        if rows != expected:
            raise Violation(f"version {view.version} of {view.branch} shows {rows}, not {expected}")


def one_by_one(read: Callable[[object], object], names: range) -> list[object]:
    return [read(name) for name in names]
