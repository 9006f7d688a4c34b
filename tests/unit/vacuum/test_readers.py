"""Readers with a lease: nothing that they read is deleted, and nobody is held for longer than was said."""

from __future__ import annotations

import pytest

from lake_core.errors import InvalidInput, NotFound, ObjectVacuumed
from log_lake.lake import Lake
from log_lake.lake.view import WARN
from log_lake.vacuum.execute import vacuum
from tests.support.stores import ScriptedStore
from tests.unit.vacuum.conftest import World


@pytest.fixture
def world(world: World) -> World:
    world.load(1)
    world.load(2)
    return world


def test_a_lease_that_is_left_holds_for_as_long_as_it_says(world: World) -> None:
    view = world.pool.at("2")
    world.pool.leave_lease(view, duration=3600.0, why="Spark read")
    (lease,) = world.pool.leases().live
    assert (lease.note.kind, lease.note.version, lease.note.why) == ("read", 2, "Spark read")
    world.compact()
    world.clock.now += 3500
    assert vacuum(world.pool, grace=0.0).objects == 0
    assert view.to_table()["k"].to_pylist() == [1, 2]
    world.clock.now += 200
    assert vacuum(world.pool, grace=0.0).objects == 2
    assert world.pool.leases().all == ()


@pytest.mark.parametrize("duration", [0.0, 86_401.0])
def test_a_lease_lives_for_a_day_at_most(world: World, duration: float) -> None:
    with pytest.raises(InvalidInput, match="it may be up to 1 d"):
        world.pool.leave_lease(world.pool.at(), duration=duration)
    assert world.pool.leases().all == ()


def test_a_lease_that_comes_too_late_is_refused_unless_the_reader_only_wants_a_warning(world: World) -> None:
    world.compact()
    vacuum(world.pool, grace=0.0)
    with pytest.raises(ObjectVacuumed), world.pool.leased("2"):
        pass
    with world.pool.leased("2", on_missing=WARN) as view:
        assert view.to_table().num_rows == 0
    assert world.pool.leases().all == ()


def test_a_reader_that_takes_its_lease_while_the_pool_is_dropped_is_told(world: World) -> None:
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids).pool("p")
    store.on("create", ".lease", before=lambda: world.lake.drop_pool("p"))
    with pytest.raises(NotFound, match="was dropped"), pool.leased():
        raise AssertionError("the pool may be deleted by now")
    assert list(world.store.list(f"{world.pool.config.id}/leases")) == []
