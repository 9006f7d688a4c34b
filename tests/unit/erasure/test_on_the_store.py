"""An erasure looks at what is on the store, not at what lists say; and what that costs in requests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.ids import ID_LENGTH, IdSource
from lake_core.naming import FORMATS
from log_lake.agents.tombstones import run as tombstones
from log_lake.erasure.holders import release
from log_lake.erasure.receipt import DONE, PENDING
from log_lake.erasure.run import _Run, erase, go_on
from log_lake.erasure.sighting import look
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.loading.block import Block
from log_lake.repair.fsck import Fsck
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from log_lake.workers import Here
from tests.support.stores import ScriptedStore
from tests.support.workers import Watched
from tests.unit.erasure.conftest import Row, World, is_ann

ANN = "who = 'ann'"
DAY = 86_400


class Killed(BaseException):
    """The process is gone."""


def die(*_: Any) -> None:
    raise Killed


def begun_vacuum(world: World, object_id: str) -> None:
    """A vacuum takes the object, and is killed before it deletes."""
    with pytest.raises(Killed):
        vacuum(world.reopened(), grace=0.0, workers=Watched(Here.of(world.pool.context), before=die))
    assert object_id in world.reopened().history.load().state.removed.vacuumed()


def sleeper(world: World, *rows: Row) -> str:
    """A load stands still while a scan passes the id of its object; then it writes, and is killed."""
    branch = world.reopened().branch()
    pending = branch.begin_load()
    builder = branch.builder(pending)
    id = builder.new_id()
    builder.new_id = lambda: id
    world.clock.now += 8 * DAY
    world.people("dan", first=90)
    world.clock.now += 10
    scan_orphans(world.pool)
    vacuum(world.pool)
    builder.add(Block(pa.Table.from_pylist(list(rows))))
    builder.finish()
    world.clock.now += 9 * DAY
    world.people("zoe", first=95)
    world.clock.now += 10
    (left,) = [one for one in world.objects if one.startswith(id[:ID_LENGTH])]
    assert left < world.reopened().history.load().state.removed.scanned
    return left


def ahead(world: World, seconds: float, *rows: Row) -> str:
    """A load whose clock is ahead is killed before it commits; returns the id of its object."""
    before = set(world.objects)
    ids = IdSource(clock=lambda: world.clock.now + seconds)
    branch = Lake.open_on(world.store, ids=ids, author="ahead").pool("p").branch()
    builder = branch.builder(branch.begin_load())
    builder.add(Block(pa.Table.from_pylist(list(rows))))
    builder.finish()
    (id,) = set(world.objects) - before
    return id


def test_an_object_of_a_vacuum_that_was_begun_is_gone_before_the_erasure_says_done(world: World) -> None:
    world.people("ann", "bob")
    world.people("cid", first=0)
    old = world.holding(is_ann)
    world.compact()
    (object_id,) = old & set(world.objects)
    begun_vacuum(world, object_id)
    done = erase(world.reopened(), where=ANN, grace=0.0)
    assert done.status == DONE
    assert object_id in {one.object for one in done.erased}
    assert not world.holding(is_ann)
    assert not list(verify(world.reopened(), done))


def test_a_vacuum_that_begins_between_two_looks_of_an_erasure_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others take an applied delete back and apply it again; then their vacuum begins, and is killed."""
    world.people("ann")
    world.people("bob", first=5)
    world.pool.branch().delete(where=ANN)
    tombstones.apply(world.pool.branch(), now=world.clock.now, at_once=True)
    applied = world.pool.history.load().version
    while not any(type(a).__name__ == "RemoveReference" for a in dict(world.pool.log())[applied].actions):
        applied -= 1
    (object_id,) = world.holding(is_ann)
    step, rounds = _Run._vacuum, []

    def vacuum_step(self: _Run) -> None:
        rounds.append(1)
        if len(rounds) > 1:
            step(self)
            return
        for version in (applied + 1, applied):
            world.reopened().branch().undo(str(version))
        step(self)
        tombstones.apply(world.reopened().branch(), now=world.clock.now, at_once=True)
        begun_vacuum(world, object_id)

    monkeypatch.setattr(_Run, "_vacuum", vacuum_step)
    done = erase(world.pool, where=ANN, grace=0.0)
    assert (done.status, len(rounds)) == (DONE, 2)
    assert not world.holding(is_ann)
    assert not list(verify(world.reopened(), done))


def test_the_check_finds_an_object_of_a_vacuum_that_was_begun_later(world: World) -> None:
    world.people("ann", "bob")
    done = erase(world.pool, where=ANN)
    world.people("ann", first=20)
    world.people("cid", first=20)
    (object_id,) = world.holding(is_ann)
    world.pool.branch().delete(where=ANN)
    tombstones.apply(world.pool.branch(), now=world.clock.now, at_once=True)
    begun_vacuum(world, object_id)
    (finding,) = verify(world.reopened(), done)
    assert finding == (
        f"object {object_id}, of a vacuum that has begun and not ended, holds such a record; run: lake vacuum p"
    )
    assert look(world.reopened(), where=ANN).removed == (object_id,)


@pytest.mark.parametrize("format", FORMATS)
def test_an_orphan_below_the_scans_is_erased(format: str) -> None:
    """A load that stood still writes below the floor: no scan looks at that name again."""
    world = World(settings={"format": format})
    world.people("bob")
    orphan = sleeper(world, {"k": 1, "who": "ann", "n": 1})
    assert look(world.reopened(), where=ANN, grace=0.0).uncommitted == (orphan,)
    done = erase(world.reopened(), where=ANN, grace=0.0)
    assert (done.status, orphan in world.objects) == (DONE, False)
    assert orphan in {one.object for one in done.erased}
    assert not list(verify(world.reopened(), done))
    assert world.names() == ["bob", "dan", "zoe"]


def test_the_check_finds_an_orphan_below_the_scans(world: World) -> None:
    world.people("bob")
    done = erase(world.pool, where=ANN)
    orphan = sleeper(world, {"k": 1, "who": "ann", "n": 1})
    assert list(verify(world.reopened(), done)) == [
        f"object {orphan}, which was never committed, holds such a record"
    ]


@pytest.mark.parametrize("seconds", [3 * 3600, 31 * DAY, 5 * 366 * DAY])
def test_an_orphan_whose_id_is_ahead_of_the_clock_is_erased_once_it_is_old(
    world: World, seconds: float
) -> None:
    world.people("bob")
    orphan = ahead(world, seconds, {"k": 1, "who": "ann", "n": 1})
    young = erase(world.pool, where=ANN)
    assert young.status == PENDING
    assert {one.by for one in young.held} == {"a load that has not committed"}
    world.clock.now += world.pool.settings["vacuum.grace"] + 10
    world.people("cid", first=5)
    world.clock.now += world.pool.settings["vacuum.grace"] + 10
    done = go_on(world.reopened(), young)
    assert (done.status, orphan in world.objects) == (DONE, False)
    world.people("eve", first=7)  # new objects have ids above the floor
    world.compact()
    assert world.names() == ["bob", "cid", "eve"]
    assert not [
        one for one in Fsck(world.pool.context, data=True, older_than=0.0).run() if one.where.endswith("t")
    ]


def test_an_orphan_of_the_last_year_of_ids_is_left_and_said(world: World) -> None:
    world.people("bob")
    orphan = ahead(world, 60 * 366 * DAY, {"k": 1, "who": "ann", "n": 1})
    world.clock.now += 10
    world.people("cid", first=5)
    world.clock.now += 10
    assert erase(world.pool, where=ANN, grace=0.0).status == PENDING
    assert orphan in world.objects
    world.people("eve", first=7)
    assert world.names() == ["bob", "cid", "eve"]


def test_fsck_finds_orphans_that_are_ahead_of_the_clock(world: World) -> None:
    world.people("bob")
    orphans = {ahead(world, (n + 1) * 3600, {"k": n, "who": "ann", "n": 1}) for n in range(5)}
    world.clock.now += 10
    world.people("cid", first=9)
    world.clock.now += 10
    found = {naming.data_id(one.where) for one in Fsck(world.pool.context, older_than=0.0).run()}
    assert found == orphans
    assert not list(Fsck(world.pool.context, older_than=3600.0).run())
    assert scan_orphans(world.pool, grace=0.0).orphans == 0
    assert scan_orphans(world.pool, grace=0.0, every_name=True).orphans == 5
    assert vacuum(world.pool, grace=0.0).objects == 5


@pytest.mark.parametrize("name", ["copy.parquet", "old/%s.parquet", "zz"])
def test_a_file_that_is_none_of_the_pools_objects_holds_the_erasure(world: World, name: str) -> None:
    world.people("ann", "bob")
    (object_id,) = world.objects
    folder = naming.data(world.pool.config.id)
    file = f"{folder}/{name % object_id if '%' in name else name}"
    world.store.put(file, world.objects[object_id])
    pending = erase(world.pool, where=ANN)
    assert pending.status == PENDING
    (held,) = pending.held
    assert (held.object, held.by) == (file, f"file {file}, which is none of the pool's objects")
    assert "move it out of the lake" in release(held.by, pool_name="p", erasure_id=pending.id)
    assert any(file in line for line in verify(world.pool, pending))
    world.store.delete(file)
    done = go_on(world.pool, pending)
    assert done.status == DONE
    assert not list(verify(world.pool, done))


def requests(tags: int) -> int:
    """Requests of an erasure of a pool with so many tags that deleted branches have left."""
    world = World()
    world.people("ann", "bob")
    for n in range(tags):
        world.pool.create_branch(f"dev{n}")
        world.people(f"x{n}", first=100 + n, branch=f"dev{n}")
        world.pool.delete_branch(f"dev{n}")
    world.people("cid", first=50)
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=IdSource(clock=world.clock)).pool("p")
    erase(pool, where=ANN)
    return len(store.requests)


def test_the_version_of_a_tag_is_read_twice_in_an_erasure(world: World) -> None:
    """Once by the erasure and once by its vacuum: a listing and a checkpoint each."""
    assert requests(40) <= requests(0) + 4 * 40


def test_a_version_that_many_tags_name_is_read_once(world: World) -> None:
    world.people("ann", "bob")
    version = str(world.pool.history.load().version)
    counts = []
    for tags in (1, 20):
        for n in range(tags):
            world.pool.tag(f"t{tags}-{n}", at=version)
        store = ScriptedStore(world.store)
        pool = Lake.open_on(store, ids=IdSource(clock=world.clock)).pool("p")
        pool.history.load()
        before = len(store.requests)
        assert len(look(pool, where=ANN).tags) >= tags
        counts.append(len(store.requests) - before)
    assert counts[1] == counts[0]
