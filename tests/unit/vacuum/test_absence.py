"""Reading a revision of which a vacuum took objects says so, or leaves them out and lists them."""

from __future__ import annotations

import logging

import pytest

from lake_core.errors import InvalidInput, NotFound, ObjectMissing, ObjectVacuumed
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.lake.view import FAIL, WARN
from log_lake.system_tables.sql import query
from log_lake.vacuum.execute import vacuum
from tests.unit.vacuum.conftest import GRACE, World


@pytest.fixture
def vacuumed(world: World) -> World:
    """A pool whose version 2 lost the objects of both loads, and whose version 5 is whole."""
    world.load(3, 1)
    world.load(2)
    world.compact()
    world.wait()
    assert vacuum(world.pool).objects == 2
    return world


def test_a_revision_that_was_vacuumed_says_when_and_by_which_transaction(vacuumed: World) -> None:
    begun = [t.id for _, t in vacuumed.pool.log() if t.message.startswith("vacuum 2")]
    with pytest.raises(
        ObjectVacuumed, match=rf"was vacuumed at 20..-.*by transaction {begun[0]} \(version 4\)"
    ):
        vacuumed.pool.at("2").to_table()
    assert ObjectVacuumed.exit_status == 10
    assert vacuumed.pool.at("3").to_table().num_rows == 3


def test_when_the_history_is_purged_the_time_is_bounded(vacuumed: World) -> None:
    view = vacuumed.pool.at("2")
    vacuumed.wait()
    vacuumed.load(9)
    write_checkpoint(vacuumed.lake, "p", now=vacuumed.clock.now)
    purge_pool(vacuumed.lake, "p", keep=0.0, now=vacuumed.clock.now + 5)
    with pytest.raises(ObjectVacuumed, match="vacuumed before"):
        view.to_table()


def test_what_a_tag_kept_until_it_expired_was_vacuumed_and_is_no_damage(world: World) -> None:
    world.load(3, 1)
    world.load(2)
    world.pool.tag("kept", expires=world.clock.now + 2 * GRACE)
    view = world.pool.at("2")
    world.compact()
    world.wait(3 * GRACE)
    assert vacuum(world.pool).objects == 2
    with pytest.raises(ObjectVacuumed, match="was vacuumed"):
        view.to_table()


def test_with_warn_the_rest_is_read_and_what_is_left_out_is_listed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.load(3, 1)
    world.pool.tag("kept")
    world.load(2)
    lost = world.held() - world.held("kept")
    world.compact()
    world.wait()
    assert vacuum(world.pool).objects == 1
    with pytest.raises(ObjectVacuumed):
        world.pool.at("3").to_table()
    with caplog.at_level(logging.WARNING):
        left = world.pool.at("3", on_missing="warn").to_table()
    assert left["k"].to_pylist() == [1, 3]
    assert f"left out 1 object with 1 record, which were vacuumed: {lost.pop()}" in caplog.text
    assert query(world.lake, 'SELECT count(*) AS n FROM "p@3"', on_missing="warn").read_all().to_pylist() == [
        {"n": 2}
    ]
    with pytest.raises(ObjectVacuumed):
        query(world.lake, 'SELECT k FROM "p@3"').read_all()


def test_an_object_that_is_missing_and_was_not_vacuumed_is_damage(vacuumed: World) -> None:
    (object_id,) = vacuumed.held()
    vacuumed.store.delete(f"{vacuumed.pool.config.id}/data/{object_id}.parquet")
    with pytest.raises(ObjectMissing):
        vacuumed.pool.at().to_table()
    with pytest.raises(ObjectMissing):
        vacuumed.pool.at(on_missing="warn").to_table()


def test_a_word_that_is_no_policy_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="use fail or warn"):
        world.pool.at(on_missing="ignore")


def test_a_leased_view_keeps_its_objects_while_its_block_runs(world: World) -> None:
    world.load(3, 1)
    world.load(2)
    with world.pool.leased("2", why="a long query") as view:
        world.compact()
        world.clock.now += 8 * 86_400
        for info in list(world.store.list(f"{world.pool.config.id}/leases")):  # renewed, as the thread does
            world.store.put(info.name, world.store.get(info.name) or b"")
        (lease,) = world.reopened().leases().live
        assert (lease.note.kind, lease.note.version, lease.note.why) == ("read", 2, "a long query")
        assert vacuum(world.reopened()).objects == 0
        assert view.to_table().num_rows == 3
    assert world.pool.leases().all == ()
    assert vacuum(world.pool).objects == 2


@pytest.mark.parametrize("on_missing", [FAIL, WARN])
def test_a_lease_on_a_pool_that_was_dropped_is_refused_at_once(world: World, on_missing: str) -> None:
    world.load(1)
    pool = world.pool
    view = pool.at(on_missing=on_missing)
    world.lake.drop_pool(pool.name)
    with pytest.raises(NotFound, match="dropped"):
        pool.leave_lease(view, duration=60.0)


def test_a_lease_on_a_revision_that_was_vacuumed_is_refused_at_once(vacuumed: World) -> None:
    with pytest.raises(ObjectVacuumed, match="2 objects of version 2"), vacuumed.pool.leased("2"):
        pass
    assert vacuumed.pool.leases().all == ()
