"""The vacuum of dropped pools deletes all that they have, once nothing keeps them, wherever it is killed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Conflict, LakeError, NotFound
from lake_core.history import Draft
from lake_core.history.activity import read_notes
from lake_core.ids import IdSource
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.leases import HeldLease, LeaseNote
from log_lake.vacuum.dropped import DeletedPool, delete_dropped, plan_dropped
from tests.support.stores import StoreInFront
from tests.unit.vacuum.conftest import GRACE, World


def dropped_world() -> World:
    """A pool with an object, which is dropped, and another one."""
    world = World()
    world.load(1)
    world.lake.create_pool("q", key="k")
    world.lake.drop_pool("p")
    return world


@pytest.fixture
def world() -> World:
    return dropped_world()


def vacuumed(world: World, *, grace: float | None = None) -> list[DeletedPool]:
    lake = Lake.open_on(world.store, ids=IdSource(clock=world.clock), author="vacuum")
    return delete_dropped(lake, plan_dropped(lake, grace=grace))


def held(world: World) -> list[str | None]:
    return [planned.held for planned in plan_dropped(world.lake)]


def left(world: World) -> list[str]:
    return [info.name for info in world.store.list(world.pool.config.id)]


def write_lease(pool: Pool, ttl: float = 600.0) -> HeldLease:
    note = LeaseNote("write", 1, "vera", ttl)
    return HeldLease(pool.store, pool.config.id, pool.context.ids.new(), note, renewing=False)


def test_a_dropped_pool_is_deleted_once_its_grace_time_is_over(world: World) -> None:
    world.wait(GRACE - 100)
    before = left(world)
    assert (held(world), vacuumed(world)) == (["grace"], [])
    assert left(world) == before
    world.wait(200)
    (done,) = vacuumed(world)
    assert (done.pool, done.id, done.objects, done.size > 0) == ("p", world.pool.config.id, len(before), True)
    assert left(world) == []
    assert [p.name for p in world.lake.pools()] == ["q"]
    assert (world.lake.dropped_pools(), vacuumed(world)) == ([], [])
    with pytest.raises(NotFound, match="no pool with the name 'p' was dropped, or nothing is left of it"):
        world.lake.restore_pool("p")


def test_the_grace_time_of_a_pool_begins_with_its_drop_however_old_the_entry_before_it_is() -> None:
    world = World()
    world.load(1)
    world.wait(3 * GRACE)
    world.lake.drop_pool("p")
    assert (held(world), vacuumed(world)) == (["grace"], [])
    world.wait(GRACE + 100)
    assert [done.pool for done in vacuumed(world)] == ["p"]


def test_the_activity_note_of_a_pool_goes_with_it(world: World) -> None:
    note = naming.activity(world.pool.config.id)
    assert world.store.get(note) is not None
    world.wait(GRACE + 100)
    vacuumed(world)
    assert world.store.get(note) is None


def test_the_age_of_a_drop_is_counted_by_the_clock_of_the_store(world: World) -> None:
    behind = Lake.open_on(world.store, ids=IdSource(clock=lambda: 1_500_000_000.0), author="behind")
    behind.drop_pool("q")
    assert next(d.time for d in behind.dropped_pools()) == 1_500_000_000_000_000
    assert held(world) == ["grace", "grace"]


def test_a_live_lease_keeps_a_dropped_pool_and_a_dead_one_does_not(world: World) -> None:
    world.wait()
    with write_lease(world.pool):
        assert (held(world), vacuumed(world)) == (["lease"], [])
        world.wait(700)
        assert held(world) == [None]
        assert len(vacuumed(world)) == 1
        assert left(world) == []


def test_a_grace_time_that_is_given_is_used_instead_of_the_setting(world: World) -> None:
    assert len(vacuumed(world, grace=0.0)) == 1


def test_a_pool_that_was_restored_since_the_plan_is_kept(world: World) -> None:
    world.wait()
    planned = plan_dropped(world.lake)
    world.lake.restore_pool("p")
    assert delete_dropped(world.lake, planned) == []
    world.lake.drop_pool("p")
    assert delete_dropped(world.lake, planned) == []
    assert held(world) == ["grace"]
    assert world.lake.restore_pool("p").at().to_table()["k"].to_pylist() == [1]


def test_a_pool_that_is_being_deleted_is_not_restored(world: World) -> None:
    world.wait()
    (planned,) = plan_dropped(world.lake)
    world.lake.catalog.begin_delete(world.pool.config.id, version=planned.dropped.version)
    with pytest.raises(NotFound, match="its grace time is over: its objects are being deleted"):
        world.lake.restore_pool("p")
    with pytest.raises(NotFound, match="are deleted, or about to be"):
        world.lake.catalog.restore(world.pool.config.id, name="p")
    with pytest.raises(Conflict, match="another process deletes it"):
        world.lake.catalog.begin_delete(world.pool.config.id, version=planned.dropped.version)


class Killed(BaseException):
    """The process ends here."""


class Killing(StoreInFront):
    """A store whose process is killed before the request of a number."""

    def __init__(self, behind: Store, number: int) -> None:
        self.behind, self.left = behind, number

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left < 0:
            raise Killed
        return call()


def test_a_vacuum_that_is_killed_anywhere_is_finished_by_the_next() -> None:
    for number in range(200):
        world = dropped_world()
        world.wait()
        ids = IdSource(clock=world.clock)
        lake = Lake(Killing(world.store, number), world.lake.id, ids=ids, author="killed")
        with contextlib.suppress(Killed):
            delete_dropped(lake, plan_dropped(lake))
        whole = lake.store.behind.left >= 0  # type: ignore[attr-defined]
        world.wait(700)  # the lease of the killed process dies
        vacuumed(world)
        assert left(world) == [], number
        assert world.lake.dropped_pools() == []
        if whole:
            assert number > 10
            return
    raise AssertionError("more requests than were tried")


def test_the_note_that_a_writer_of_a_deleted_pool_wrote_again_is_deleted(world: World) -> None:
    stays = world.lake.pool("q")
    stays.branch().append(pa.table({"k": [1]}))
    world.wait()
    assert len(vacuumed(world)) == 1
    gone = world.pool.config.id
    draft = Draft(world.lake.context.ids.new(), "main", 1, "late", ())
    with contextlib.suppress(LakeError):  # its work began before the drop, and ends now
        world.pool.history.commit(draft)
    world.store.put(f"{naming.ACTIVITY}/of another program", b"kept")
    assert gone in (read_notes(world.store) or {})
    vacuumed(world)
    assert sorted(read_notes(world.store) or {}) == sorted([stays.config.id, "of another program"])
