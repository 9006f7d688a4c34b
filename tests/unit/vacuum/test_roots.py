"""What a deleted branch kept is deleted once its tag NAME@N is, and nothing that others keep."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from lake_core.errors import NotFound, ObjectVacuumed
from lake_core.ids import IdSource
from lake_core.journal import purge
from log_lake.agents.checkpoint.run import checkpoint_and_purge, write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.tags import delete_tag
from log_lake.presence.roots import tagged_objects
from log_lake.vacuum.execute import make_plan, vacuum, vacuum_lease
from tests.support.clocks import DAY
from tests.support.stores import ScriptedStore
from tests.unit.vacuum.conftest import World


@pytest.fixture
def world(world: World) -> World:
    """Main with an object, and the branch dev with three more."""
    world.load(1)
    world.pool.create_branch("dev")
    for key in (2, 3, 4):
        world.pool.branch("dev").append(pa.table({"k": [key]}))
    return world


def removed(world: World) -> set[str]:
    return {id for id, _ in world.reopened().history.load().state.removed.items()}


def planned(world: World) -> tuple[int, dict[str, int]]:
    with vacuum_lease(world.pool, "test") as lease:
        plan = make_plan(world.pool, lease)
    return len(plan.objects), plan.held


def test_a_deleted_branch_keeps_its_objects_until_its_tag_is_deleted(world: World) -> None:
    own = world.held("dev") - world.held()
    assert len(own) == 3
    root = world.pool.delete_branch("dev").root
    world.wait()
    assert (removed(world), vacuum(world.pool).objects) == (set(), 0)
    world.pool.delete_tag(root)
    assert removed(world) == own
    listed = world.pool.history.load().state.removed.items()
    assert all(removal.size > 0 for _, removal in listed)
    assert planned(world) == (0, {"grace": 3})
    world.wait()
    assert vacuum(world.pool).objects == 3
    assert world.objects == world.held()


def test_what_main_gave_up_before_counts_as_removed_when_the_deleted_branch_goes(world: World) -> None:
    """Its versions needed the object until then: they are vacuumed, not damaged, and the grace time begins anew."""
    world.pool.branch().revert("1")
    world.pool.branch("dev").append(pa.table({"k": [5]}))
    last = world.pool.history.load().version
    root = world.pool.delete_branch("dev").root
    world.wait()
    world.pool.delete_tag(root)
    assert planned(world) == (0, {"grace": 5})
    world.wait()
    assert vacuum(world.pool).objects == 5
    with pytest.raises(ObjectVacuumed):
        world.reopened().at(str(last)).to_table()


def test_what_a_tag_or_another_branch_keeps_stays(world: World) -> None:
    world.pool.tag("first", at="4")
    world.pool.create_branch("other", at="dev")
    assert "other" in world.pool.history.load().state.branches
    world.pool.branch("other").append(pa.table({"k": [9]}))
    other = world.pool.delete_branch("other").root
    root = world.pool.delete_branch("dev").root
    world.pool.delete_tag(root)
    assert len(removed(world)) == 3
    world.wait()
    assert planned(world) == (0, {"tag": 3})
    world.pool.delete_tag(other)
    world.wait()
    assert planned(world)[1] == {"tag": len(world.held("first") - world.held())}
    vacuum(world.pool)
    assert world.objects == world.held() | world.held("first")


def test_a_branch_that_was_restored_keeps_its_objects_though_the_tag_goes(world: World) -> None:
    root = world.pool.delete_branch("dev").root
    world.pool.create_branch("dev", at=root)
    world.pool.delete_tag(root)
    world.wait()
    assert vacuum(world.pool).objects == 0
    assert world.pool.at("dev").to_table()["k"].to_pylist() == [1, 2, 3, 4]


def test_a_branch_that_is_restored_at_the_same_time_keeps_its_objects(world: World) -> None:
    root = world.pool.delete_branch("dev").root
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids, author="other").pool("p")
    store.on("create", ".txn", before=lambda: world.pool.create_branch("dev", at=root))
    pool.delete_tag(root)
    assert removed(world) == set()
    world.wait()
    assert vacuum(world.pool).objects == 0
    assert world.pool.at("dev").to_table().num_rows == 4


def test_many_objects_go_in_several_transactions_and_a_kill_between_them_loses_none(world: World) -> None:
    own = world.held("dev") - world.held()
    root = world.pool.delete_branch("dev").root
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids, author="other").pool("p")
    before = pool.history.load().version

    def killed() -> None:
        raise KeyboardInterrupt

    store.on("create", f"{before + 2:020d}.txn", before=killed)
    with pytest.raises(KeyboardInterrupt):
        delete_tag(pool, root, chunk=1)
    assert len(removed(world)) == 1
    world.wait()
    assert planned(world) == (0, {"tag": 1})
    delete_tag(world.pool, root, chunk=1)
    assert removed(world) == own
    assert root not in world.pool.tags


def test_a_tag_whose_state_cannot_be_read_is_deleted_and_what_stays_is_said(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    root = world.pool.delete_branch("dev").root
    pool = world.reopened()

    def unreadable(version: int) -> object:
        raise NotFound(f"version {version} is purged")

    object.__setattr__(pool.history, "load_version", unreadable)
    with caplog.at_level(logging.WARNING):
        pool.delete_tag(root)
    assert "objects of the deleted branch dev stay on the store" in caplog.text
    assert root not in world.reopened().tags


def test_a_writer_whose_clock_is_ahead_does_not_make_a_tag_expire_too_early(world: World) -> None:
    world.pool.tag("report", at="2", expires=world.clock.now + 10 * DAY)
    objects = world.held("report")
    ahead = IdSource(clock=lambda: world.clock.now + 20 * DAY)
    Lake.open_on(world.store, ids=ahead, author="ahead").pool("p").branch().append(pa.table({"k": [7]}))
    world.compact()
    world.wait()
    checkpoint_and_purge(world.lake, "p", now=world.clock.now)
    vacuum(world.reopened())
    assert objects <= world.objects
    assert world.reopened().at("report").to_table()["k"].to_pylist() == [1]


def test_a_tag_that_was_deleted_and_purged_since_the_state_was_loaded_keeps_nothing(world: World) -> None:
    world.pool.tag("first", at="1")
    state = world.pool.history.load().state
    among = world.held()
    assert tagged_objects(world.pool.history, state, among, now=None) == among
    world.pool.delete_tag("first")
    write_checkpoint(world.lake, "p", now=world.clock.now)
    pool = world.reopened()
    purge(pool.history.journal, until=pool.history.load().version)
    assert tagged_objects(pool.history, state, among, now=None) == frozenset()
