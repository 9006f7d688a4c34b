"""The vacuum deletes what nobody needs any more, and nothing else."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Conflict, ObjectMissing, ObjectVacuumed, PlanAgain, Unavailable
from lake_core.ids import IdSource
from lake_core.journal import write_state
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import BeginVacuum, ConfirmVacuum
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.leases import HeldLease, LeaseNote
from log_lake.presence.absence import explained_to_reader_of_feed
from log_lake.vacuum.execute import (
    TRIES,
    make_plan,
    read_plan,
    vacuum,
    vacuum_lease,
    write_plan,
)
from tests.support.records import an_id
from tests.support.stores import ScriptedStore, StoreInFront, unavailable
from tests.unit.vacuum.conftest import GRACE, World


def test_objects_that_a_compaction_replaced_are_deleted_once_the_grace_time_is_over(world: World) -> None:
    world.load(3, 1)
    world.load(2)
    before = world.held()
    world.compact()
    assert vacuum(world.pool).objects == 0
    world.wait(GRACE - 100)
    assert vacuum(world.pool).objects == 0
    assert world.objects == before | world.held()
    world.wait(200)
    done = vacuum(world.pool)
    assert (done.objects, done.spared) == (2, 0)
    assert done.size > 0
    assert world.objects == world.held()
    assert world.pool.at().to_table()["k"].to_pylist() == [1, 2, 3]
    assert not dict(world.pool.history.load().state.removed.items())


def test_the_history_that_is_kept_keeps_its_objects(world: World) -> None:
    pool = world.pool
    world.lake.catalog.configure("p", {"history.keep": "30d"})
    world.pool = world.lake.pool("p")
    world.replaced()
    world.wait()
    assert vacuum(world.pool).objects == 0
    assert pool.at("2").to_table().num_rows == 2


@pytest.mark.parametrize("checkpointed", [False, True])
def test_the_list_of_the_removed_outlives_a_checkpoint(world: World, checkpointed: bool) -> None:
    world.replaced()
    listed = dict(world.pool.history.load().state.removed.items())
    assert len(listed) == 2
    assert all(removal.version == 3 and removal.size > 0 for removal in listed.values())
    if checkpointed:
        history = world.pool.history
        write_state(history.journal, history.load(), id=world.lake.context.ids.new(), now=world.clock.now)
    again = world.reopened()
    assert dict(again.history.load().state.removed.items()) == listed
    world.wait()
    assert vacuum(again).objects == 2


def test_a_branch_keeps_what_it_refers_to(world: World) -> None:
    world.load(1)
    world.load(2)
    world.pool.create_branch("dev")
    kept = world.held("dev")
    world.compact()
    world.wait()
    assert vacuum(world.pool).objects == 0
    assert kept <= world.objects
    assert world.pool.at("dev").to_table().num_rows == 2


def test_a_tag_keeps_what_its_version_refers_to_until_it_expires(world: World) -> None:
    world.load(1)
    world.load(2)
    world.pool.tag("kept", expires=world.clock.now + 2 * GRACE)
    world.compact()
    world.wait()
    assert vacuum(world.pool).objects == 0
    assert world.pool.at("kept").to_table().num_rows == 2
    world.wait(2 * GRACE)
    assert vacuum(world.pool).objects == 2


def test_a_deleted_branch_keeps_its_objects_while_it_can_be_restored(world: World) -> None:
    world.load(1)
    world.pool.create_branch("dev")
    world.pool.branch("dev").append(pa.table({"k": [7]}))
    root = world.pool.delete_branch("dev").root
    world.wait()
    assert vacuum(world.pool).objects == 0
    world.pool.create_branch("dev", at=root)
    assert world.pool.at("dev").to_table()["k"].to_pylist() == [1, 7]


def lease(pool: Pool, version: int, **fields: Any) -> HeldLease:
    note = LeaseNote("read", version, "reader", 600.0, **fields)
    return HeldLease(pool.store, pool.config.id, pool.context.ids.new(), note, renewing=False)


def test_a_live_lease_keeps_the_objects_of_its_version_and_a_dead_one_nothing(world: World) -> None:
    world.replaced()
    world.wait()
    with lease(world.pool, 2):
        assert vacuum(world.pool).objects == 0
        assert world.pool.at("2").to_table().num_rows == 2
        world.clock.now += 601
        assert vacuum(world.pool).objects == 2


def test_a_lease_of_a_later_version_keeps_nothing_older(world: World) -> None:
    world.load(1)
    world.load(2)
    version = world.compact()
    world.wait()
    with lease(world.pool, version):
        assert vacuum(world.pool).objects == 2


def test_a_lease_that_comes_between_plan_and_deletion_is_respected(world: World) -> None:
    """The listing after `begin_vacuum` finds it; its objects go back onto the list."""
    world.replaced()
    world.wait()
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids).pool("p")
    held = lease(world.pool, 2)
    store.on("create", f"{4:020d}.txn", before=held.__enter__)  # the entry of begin_vacuum
    before = world.objects
    done = vacuum(pool)
    assert (done.objects, done.spared) == (0, 2)
    assert world.objects == before
    assert len(dict(pool.history.load().state.removed.items())) == 2
    held.__exit__(None, None, None)
    assert vacuum(pool).objects == 2


def test_a_branch_that_is_made_on_an_old_revision_while_a_vacuum_plans_is_respected(world: World) -> None:
    world.replaced()
    world.wait()
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids).pool("p")
    store.on("create", f"{4:020d}.txn", before=lambda: world.pool.create_branch("old", at="2"))
    assert vacuum(pool).objects == 0
    assert world.pool.at("old").to_table().num_rows == 2


def test_a_tag_that_is_set_while_a_vacuum_plans_is_respected(world: World) -> None:
    world.replaced()
    world.wait()
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids).pool("p")
    store.on("create", f"{4:020d}.txn", before=lambda: world.pool.tag("t", at="2"))
    assert vacuum(pool).objects == 0
    assert world.pool.at("t").to_table().num_rows == 2


def test_once_objects_are_vacuumed_their_revision_does_not_come_back(world: World) -> None:
    world.replaced()
    world.wait()
    assert vacuum(world.pool).objects == 2
    with pytest.raises(ObjectVacuumed, match="vacuumed"):
        world.pool.create_branch("old", at="2")
    with pytest.raises(ObjectVacuumed, match="older than version 3"):
        world.pool.tag("old", at="2")
    world.pool.tag("new", at="3")
    world.pool.create_branch("dev", at="3")


def kill(*_: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("request_kind", ["create", "delete_all", "list", "get", "put", "delete"])
@pytest.mark.parametrize("nth", range(8))
def test_a_vacuum_that_is_killed_anywhere_is_finished_by_the_next(
    world: World, request_kind: str, nth: int
) -> None:
    world.replaced()
    world.wait()
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids).pool("p")
    pool.history.load()
    if nth:
        store.on(request_kind, "", times=nth)
    store.on(request_kind, "", instead=kill)
    try:
        vacuum(pool)
    except KeyboardInterrupt:
        assert world.held() <= world.objects
        removed = world.pool.history.load().state.removed
        assert set(dict(removed.items())) <= world.objects  # what is on the list is there
    world.clock.now += 700
    vacuum(world.reopened())
    assert world.objects == world.held()
    assert not len(world.pool.history.load().state.removed.vacuums)


def test_objects_of_a_begun_vacuum_cannot_be_referred_to_and_are_spared_for_a_lease(world: World) -> None:
    world.replaced()
    world.wait()
    pool = world.pool
    with vacuum_lease(pool, "test") as own:
        plan = make_plan(pool, own)
        begin = BeginVacuum(tuple(planned.object for planned in plan.objects))
        committed = pool.commit_actions((begin,), on=plan.version, message="")
        seq = pool.history.load().state.removed.begun_by(committed.transaction_id)
    assert seq is not None
    with pytest.raises(ObjectVacuumed):
        pool.create_branch("old", at="2")
    pool.commit_actions((ConfirmVacuum(seq, begin.objects),), message="")
    with pytest.raises(Conflict, match="another process"):
        pool.commit_actions((ConfirmVacuum(seq),), message="")
    pool.create_branch("old", at="2")
    assert pool.at("old").to_table().num_rows == 2


def test_a_plan_that_was_written_down_is_done_later_and_never_more(world: World) -> None:
    world.replaced()
    world.wait()
    with vacuum_lease(world.pool, "test") as own:
        plan = make_plan(world.pool, own)
    write_plan(world.pool, plan)
    assert len(plan.objects) == 2
    assert plan.size > 0
    world.load(5)
    world.compact()
    world.wait()
    assert read_plan(world.pool, plan.id) == plan
    assert vacuum(world.pool, plan=plan).objects == 2
    assert {p.object for p in plan.objects}.isdisjoint(world.objects)
    assert vacuum(world.pool).objects == 2  # those of the second compaction


def test_a_plan_is_done_less_what_a_new_branch_needs(world: World) -> None:
    world.replaced()
    world.wait()
    with vacuum_lease(world.pool, "test") as own:
        plan = make_plan(world.pool, own)
    world.pool.create_branch("old", at="2")
    assert vacuum(world.pool, plan=plan).objects == 0
    assert world.pool.at("old").to_table().num_rows == 2


def test_no_listing_of_the_data_is_made(world: World) -> None:
    for key in range(5):
        world.load(key)
    world.compact()
    world.wait()
    store = ScriptedStore(world.store)
    assert vacuum(Lake.open_on(store, ids=world.lake.context.ids).pool("p"), chunk=2).objects == 5
    assert store.asked("list", "/data") == 0
    assert store.asked("delete_all") == 3


def test_a_deletion_that_fails_is_repeated_by_the_next_vacuum(world: World) -> None:
    world.replaced()
    world.wait()
    store = ScriptedStore(world.store)
    store.on("delete_all", "", instead=unavailable)
    pool = Lake.open_on(store, ids=world.lake.context.ids).pool("p")
    with pytest.raises(Unavailable):
        vacuum(pool)
    assert len(world.objects) == 3
    done = vacuum(pool)
    assert (done.objects, done.resumed) == (2, 2)
    assert world.objects == world.held()


def interrupted(world: World) -> None:
    """A vacuum of two objects has begun, and its process died before it deleted them."""
    world.replaced()
    world.wait()
    store = ScriptedStore(world.store)
    store.on("delete_all", "", instead=unavailable)
    with pytest.raises(Unavailable):
        vacuum(Lake.open_on(store, ids=world.lake.context.ids).pool("p"))


def test_a_plan_names_what_an_interrupted_vacuum_will_delete(world: World) -> None:
    interrupted(world)
    pool = world.reopened()
    with vacuum_lease(pool, "plan") as lease:
        plan = make_plan(pool, lease)
    assert (len(plan.objects), len(plan.begun)) == (0, 2)
    assert plan.size_begun == sum(
        info.size
        for info in world.store.list(naming.data(pool.config.id))
        if naming.data_id(info.name) in {one.object for one in plan.begun}
    )
    write_plan(pool, plan)
    assert read_plan(pool, plan.id) == plan
    assert vacuum(pool, plan=plan).resumed == 2


def test_a_plan_deletes_no_interrupted_vacuum_that_it_does_not_name(world: World) -> None:
    pool = world.reopened()
    with vacuum_lease(pool, "plan") as lease:
        plan = make_plan(pool, lease)
    interrupted(world)
    before = world.objects
    assert vacuum(pool, plan=plan).objects == 0
    assert world.objects == before
    assert vacuum(pool).resumed == 2


def test_every_way_to_read_a_vacuumed_version_says_that_it_was_vacuumed(world: World) -> None:
    world.load(1)
    world.load(2)
    brought = [(version, action.object) for version, action in world.pool.feed().between(0, 2)]
    world.compact()
    world.wait()
    vacuum(world.pool)
    view = world.pool.at("2")
    for read in (
        view.to_table,
        lambda: view.get(1),
        lambda: view.explain(EVERYTHING),
        lambda: view.split(EVERYTHING, pieces=2),
    ):
        with pytest.raises(ObjectVacuumed, match="was vacuumed at"):
            read()
    left = world.pool.at("2", on_missing="warn")
    assert left.to_table().num_rows == 0
    assert left.explain(EVERYTHING) == []
    assert left.split(EVERYTHING, pieces=2) == [EVERYTHING]
    for _, object_id in brought:
        missing = ObjectMissing(f"{object_id}: gone", object_id=object_id)
        told = explained_to_reader_of_feed(missing, world.pool.history)
        assert isinstance(told, ObjectVacuumed)
        assert "begin again from the newest state" in str(told)


def test_a_vacuumed_version_is_not_called_damaged_whichever_request_fails(world: World) -> None:
    class Failing(StoreInFront):
        behind, number, calls = world.store, 0, 0

        def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
            self.calls += 1
            return unavailable() if self.calls == self.number else call()

    world.load(1)
    world.load(2)
    store = Failing()
    view = Lake.open_on(store, ids=world.lake.context.ids).pool("p").at("2")
    world.compact()
    world.wait()
    vacuum(world.pool)
    said: Counter[type[Exception]] = Counter()
    store.calls = 0
    with pytest.raises(ObjectVacuumed):
        view.to_table()
    for number in range(1, store.calls + 1):
        store.number, store.calls = number, 0
        with pytest.raises((ObjectVacuumed, Unavailable)) as raised:
            view.to_table()
        said[raised.type] += 1
    assert min(said[ObjectVacuumed], said[Unavailable]) > 0


def test_an_object_that_no_vacuum_took_stays_missing_for_the_reader_of_a_feed(world: World) -> None:
    world.load(1)
    ((_, action),) = world.pool.feed().between(0, 1)
    missing = ObjectMissing(f"{action.object}: gone", object_id=action.object)
    assert explained_to_reader_of_feed(missing, world.pool.history) is missing


def test_a_vacuum_deletes_dead_leases(world: World) -> None:
    world.load(1)
    with HeldLease(
        world.store, world.pool.config.id, an_id(5), LeaseNote("read", 1, "gone", 60.0), renewing=False
    ):
        world.wait(100)
        vacuum(world.pool)
        assert world.pool.leases().all == ()


def test_progress_is_said_after_each_chunk(world: World) -> None:
    for key in range(5):
        world.load(key)
    world.compact()
    world.wait()
    said: list[tuple[int, int]] = []
    done = vacuum(world.pool, chunk=2, progress=lambda objects, size: said.append((objects, size)))
    assert [objects for objects, _ in said] == [2, 4, 5]
    assert said == sorted(said)
    assert said[-1][1] == done.size


class Changing(StoreInFront):
    """Before each entry that is written through it, another process changes the pool."""

    def __init__(self, behind: Store, change: Callable[[], object]) -> None:
        self.behind, self.change, self.entries = behind, change, 0

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if request == "create" and naming.entry_version(name) is not None:
            self.entries += 1
            self.change()
        return call()


def test_a_vacuum_of_a_pool_that_keeps_changing_ends_with_an_error_and_deletes_nothing(world: World) -> None:
    world.replaced()
    before, numbers = world.objects, itertools.count()
    store = Changing(world.store, lambda: world.reopened().tag(f"t{next(numbers)}", at="main"))
    with pytest.raises(PlanAgain, match="a tag was set since the vacuum was planned"):
        vacuum(Lake.open_on(store, ids=IdSource(clock=world.clock)).pool("p"), grace=0.0)
    assert store.entries == TRIES
    assert world.objects == before
