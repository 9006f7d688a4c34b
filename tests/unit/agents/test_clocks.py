"""Clocks that are wrong once, or on one machine: nothing is dropped or forgotten early (docs/retention.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from lake_core.errors import ClocksApart, InvalidInput
from lake_core.ids import IdSource
from log_lake import Lake
from log_lake.agents.checkpoint.run import checkpoint_and_purge, purge_pool, write_checkpoint
from log_lake.agents.tombstones.run import apply
from log_lake.erasure.run import erase
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_before_vacuum, scan_orphans
from tests.support.clocks import DAY, Clock

HOUR = 3_600.0


@dataclass
class World:
    """A pool on a store whose clock a test may set wrong by `off` seconds."""

    settings: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    off: float = 0.0

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=lambda: self.clock.now + self.off)
        lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="right")
        self.pool = lake.create_pool("p", key="k", settings=self.settings)

    def lake(self, ahead: float = 0.0) -> Lake:
        """As a process opens it whose clock is so many seconds ahead."""
        return Lake.open_on(self.store, ids=IdSource(clock=lambda: self.clock.now + ahead), author="agent")

    def load(self, *keys: int, ts: float = 0.0, token: str = "") -> bool:
        """Whether the load was repeated."""
        table = pa.table({"k": list(keys), "ts": [int(ts)] * len(keys)})
        repeated = self.lake().pool("p").branch().append(table, token=token).repeated
        self.clock.now += 1
        return repeated

    def merge(self) -> None:
        """One object of all: the others wait out the grace time."""
        branch = self.pool.branch()
        compact(branch, branch.revision().references)
        self.clock.now += 60


def test_one_entry_with_an_old_time_ends_no_grace_time() -> None:
    world = World()
    world.load(1)
    world.load(2)
    view = world.pool.at("2")
    world.merge()
    world.off = -40 * DAY
    world.load(3)
    world.off = 0.0
    assert vacuum(world.pool).objects == 0
    assert view.to_table().num_rows == 2
    assert world.pool.branch().revert("3").version == 5
    assert purge_pool(world.lake(), "p", now=world.clock.now).entries == 0


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_journal_whose_times_are_all_old_ends_no_grace_time(with_checkpoint: bool) -> None:
    """The store had not asked for the time yet, or its files were put back with wrong times."""
    world = World()
    world.off = -40 * DAY
    world.load(1)
    world.load(2)
    view = world.pool.at("2")
    world.merge()
    world.load(3)
    if with_checkpoint:
        checkpoint_and_purge(world.lake(), "p", now=world.clock.now, purging=False)
    world.off = 0.0
    assert vacuum(world.pool).objects == 0
    assert view.to_table().num_rows == 2
    assert purge_pool(world.lake(), "p", now=world.clock.now).entries == 0
    world.clock.now += 40 * DAY
    assert vacuum(world.pool).objects == 2


def test_a_removal_itself_with_an_old_time_ends_no_grace_time() -> None:
    """Nothing came for 40 days, so all entries before it are old."""
    world = World()
    world.load(1)
    world.load(2)
    world.clock.now += 40 * DAY
    world.off = -40 * DAY
    world.merge()
    world.off = 0.0
    assert vacuum(world.pool).objects == 0
    world.clock.now += 31 * DAY
    assert vacuum(world.pool).objects == 2


def test_a_lease_that_the_store_dates_ahead_ends_no_grace_time() -> None:
    world = World()
    world.load(1)
    world.load(2)
    world.merge()
    world.off = 40 * DAY
    with pytest.raises(InvalidInput, match=r"40 d behind that of the store.*set the clock that is wrong"):
        vacuum(world.pool)
    world.off = 0.0
    assert vacuum(world.pool).objects == 0


def test_objects_removed_before_the_last_purge_are_vacuumed_after_their_grace_time() -> None:
    world = World(settings={"vacuum.grace": "60d"})
    world.load(1)
    world.load(2)
    world.merge()
    world.clock.now += 31 * DAY
    assert checkpoint_and_purge(world.lake(), "p", now=world.clock.now).entries == 3
    world.clock.now += 29 * DAY + HOUR
    world.load(3)
    assert vacuum(world.pool).objects == 0, (
        "the fence alone is one witness, the removal's author the other one"
    )
    world.clock.now += 31 * DAY
    checkpoint_and_purge(world.lake(), "p", now=world.clock.now)
    assert vacuum(world.pool).objects == 2


DROPPING: dict[str, Callable[[Lake], object]] = {
    "compaction": lambda lake: compact(
        lake.pool("p").branch(), lake.pool("p").branch().revision().references
    ),
    "purge": lambda lake: purge_pool(lake, "p", keep=60.0, now=lake.context.now()),
    "purge of the list of pools": lambda lake: purge_pool(lake, "lake:pools", now=lake.context.now()),
    "tombstones": lambda lake: apply(lake.pool("p").branch(), now=lake.context.now()),
    "vacuum": lambda lake: vacuum(lake.pool("p")),
    "orphans": lambda lake: scan_orphans(lake.pool("p")),
}


@pytest.mark.parametrize("name", DROPPING)
@pytest.mark.parametrize("ahead", [31 * DAY, 10 * HOUR, 901.0, -901.0, -31 * DAY])
def test_a_machine_whose_clock_is_far_off_drops_and_forgets_nothing(name: str, ahead: float) -> None:
    world = World(settings={"age_off": "ts:1d"})
    world.load(1, ts=world.clock.now - 15 * HOUR)
    world.load(2, ts=world.clock.now, token="t")
    way = "ahead of" if ahead > 0 else "behind"
    with pytest.raises(
        InvalidInput, match=f"{way} that of the store, and work that drops or forgets needs both"
    ):
        DROPPING[name](world.lake(ahead))
    assert world.pool.at().to_table()["k"].to_pylist() == [1, 2]
    assert world.load(2, token="t")


@pytest.mark.parametrize("ahead", [31 * DAY, -31 * DAY])
def test_a_vacuum_that_counts_no_age_deletes_what_is_removed_whatever_the_clock_says(
    ahead: float, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.load(1)
    world.load(2)
    world.merge()
    pool = world.lake(ahead).pool("p")
    assert scan_before_vacuum(pool, grace=0.0) is None
    assert any("does not look for objects that were never committed" in line for line in caplog.messages)
    assert pool.history.load_open().state.removed.floor == ""
    assert vacuum(pool, grace=0.0).objects == 2
    assert world.pool.at().to_table()["k"].to_pylist() == [1, 2]
    asked: tuple[tuple[float | None, bool], ...] = ((1.0, False), (None, False), (0.0, True))
    for grace, every_name in asked:
        with pytest.raises(ClocksApart):
            scan_before_vacuum(pool, grace=grace, every_name=every_name)


def test_dropped_pools_that_wait_for_no_age_are_deleted_whatever_the_clock_says() -> None:
    world = World()
    world.load(1)
    world.lake().drop_pool("p")
    lake = world.lake(31 * DAY)
    assert [one.pool for one in delete_dropped(lake, plan_dropped(lake, grace=0.0))] == ["p"]


def test_a_checkpoint_of_a_machine_whose_clock_is_far_ahead_forgets_no_token(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.load(1, token="t")
    ahead = world.lake(31 * DAY)
    assert write_checkpoint(ahead, "p", now=ahead.context.now()) == (True, 1)
    assert any("this checkpoint forgets no tokens: the clock" in message for message in caplog.messages)
    assert world.load(1, token="t")


def test_a_clock_that_is_a_little_ahead_is_said_and_hides_nothing_for_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(settings={"age_off": "ts:1d"})
    world.load(1, ts=world.clock.now - DAY + 300)
    world.load(2, ts=world.clock.now)
    ahead = world.lake(ahead=600.0)
    assert ahead.pool("p").at().to_table()["k"].to_pylist() == [2], "a read goes by its own clock"
    DROPPING["compaction"](ahead)
    assert world.pool.at().to_table()["k"].to_pylist() == [1, 2]
    assert "the clock of this machine is 10 min ahead of that of the store" in caplog.messages
    caplog.clear()
    DROPPING["compaction"](world.lake(ahead=50.0))
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_an_erasure_drops_nothing_by_age_whatever_its_clock_says() -> None:
    world = World(settings={"age_off": "ts:1d"})
    world.load(1, 2, ts=world.clock.now - 15 * HOUR)
    erase(world.lake(10 * HOUR).pool("p"), where="k = 1")
    assert world.pool.at().to_table()["k"].to_pylist() == [2]


@pytest.mark.parametrize("idle", [0.0, 40 * DAY])
def test_a_token_of_a_load_whose_clock_was_behind_is_remembered(idle: float) -> None:
    world = World(settings={"token.keep": "30d"})
    world.load(1)
    world.clock.now += idle
    table = pa.table({"k": [2], "ts": [0]})
    world.lake(ahead=-31 * DAY).pool("p").branch().append(table, token="t")
    assert checkpoint_and_purge(world.lake(), "p", now=world.clock.now).written
    assert pool_of(world).branch().append(table, token="t").repeated


def pool_of(world: World) -> Pool:
    return world.lake().pool("p")
