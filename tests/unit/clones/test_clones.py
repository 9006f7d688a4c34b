"""Clones of pools: what they begin with, how they are read and written, and what ends what they hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import AlreadyExists, InvalidInput, NotFound
from lake_core.ids import home_of
from log_lake.agents.retention.run import retain
from log_lake.agents.tombstones.run import apply
from log_lake.erasure.run import erase, go_on
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.holds import needs
from log_lake.repair.fsck import Fsck
from log_lake.repair.rebuild import Wanted, plan_rebuild
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.sql import query
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from log_lake.vacuum.execute import vacuum
from tests.unit.clones.conftest import World


def test_a_clone_copies_no_object_and_begins_at_the_version_of_its_source(world: World) -> None:
    world.load(1, 2)
    world.load(3)
    world.pool.branch().delete(where="k = 2")
    clone = world.lake.clone("p", "c")
    assert world.keys("c") == [1, 3]
    assert world.objects(clone) == []
    origin = clone.config.clone
    assert origin is not None
    assert (origin.name, origin.version, origin.branch) == ("p", 3, "main")
    assert [r.seq for r in clone.at().references] == [r.seq for r in world.pool.at().references]
    assert [t.message for _, t in clone.log()] == ["clone of p@3"]
    world.load(4)
    world.load(5, pool="c")
    assert (world.keys("p"), world.keys("c")) == ([1, 3, 4], [1, 3, 5])


def test_every_reader_reads_a_clone(world: World) -> None:
    for key in range(4):
        world.load(key, key + 10)
    clone = world.lake.clone("p", "c")
    view = clone.at()
    assert view.get(2)["k"].to_pylist() == [2]
    assert view.content() == world.pool.at().content()
    assert query(world.lake, "SELECT count(*) AS n, max(k) AS m FROM c").read_all().to_pylist() == [
        {"n": 8, "m": 13}
    ]
    assert view.summary().records == 8
    assert len(view.explain(view.key_range(low=2, high=3))) == 1
    assert [t["k"].to_pylist() for t in view.scan(jobs=2)] != []
    assert list(Fsck(world.lake.context, older_than=0.0, data=True).run()) == []
    assert {home_of(r.object) for r in view.references} == {world.pool.config.id}
    assert world.store.get(view.object_name(view.references[0])) is not None


def test_a_clone_is_compacted_into_its_own_folder_and_then_needs_nothing(world: World) -> None:
    world.load(1, 2)
    world.load(3)
    clone = world.lake.clone("p", "c")
    clone.branch().delete(where="k = 2")
    apply(clone.branch(), now=world.clock.now, at_once=True)
    world.compact("c")
    assert world.keys("c") == [1, 3]
    assert all(not home_of(r.object) for r in clone.at().references)
    assert needs(world.lake, clone.config) == {world.pool.config.id}, "removed objects can still come back"
    theirs = world.objects(world.pool)
    vacuum(clone, grace=0.0)
    assert world.objects(world.pool) == theirs
    assert needs(world.lake, clone.config) == frozenset()
    retain(world.lake, "p")
    assert world.pool.tags == {}
    assert world.keys("p") == [1, 2, 3]


@pytest.mark.parametrize("settings", [{}, {"load.inline": "100kB"}, {"format": "zst"}, {"format": "zng"}])
def test_no_vacuum_of_the_source_breaks_a_clone(world: World, settings: dict[str, str]) -> None:
    pool = world.lake.create_pool("q", key="k", settings=settings)
    world.load(1, pool="q")
    world.load(2, pool="q")
    world.lake.clone("q", "c")
    world.load(3, pool="q")
    world.compact("q")
    vacuum(pool, grace=0.0)
    pool.branch().delete()
    apply(pool.branch(), now=world.clock.now, at_once=True)
    vacuum(pool, grace=0.0)
    assert world.keys("c") == [1, 2]
    world.compact("c")
    assert world.keys("c") == [1, 2]


def test_an_older_revision_and_another_branch_are_cloned(world: World) -> None:
    world.load(1, token="t1")
    world.load(2)
    world.pool.create_branch("side", at="1")
    world.load(3, branch="side", token="t3")
    world.load(4, token="t4")
    world.lake.clone("p", "old", at="1")
    clone = world.lake.clone("p", "c", at="side")
    assert (world.keys("old"), world.keys("c")) == ([1], [1, 3])
    assert sorted(clone.history.load().state.branches) == ["main"]
    again = pa.table({"k": [9]})
    for token in ("t1", "t3"):  # loaded already
        clone.branch().append(again, token=token)
    clone.branch().append(again, token="t4")
    assert world.keys("c") == [1, 3, 9]


def test_files_of_the_source_are_known_to_the_clone(world: World, tmp_path: object) -> None:
    world.load(1)
    world.pool.create_branch("side")
    world.load(2, branch="side")
    clone = world.lake.clone("p", "c", at="side")
    assert clone.at().state.branches["main"].fork is None
    clone.create_branch("mine")
    world.lake.pool("c").branch("mine").append(pa.table({"k": [7]}))
    clone.branch().merge("mine")
    assert world.keys("c") == [1, 2, 7]
    version = clone.at().version
    clone.branch().revert(str(version))
    assert world.keys("c") == [1, 2]


def test_a_clone_of_a_clone_outlives_both(world: World) -> None:
    world.load(1)
    world.lake.clone("p", "c")
    world.load(2, pool="c")
    world.lake.clone("c", "d")
    world.lake.drop_pool("c")
    world.lake.drop_pool("p")
    for _ in range(3):
        delete_dropped(world.lake, plan_dropped(world.lake, grace=0.0))
    assert world.keys("d") == [1, 2]
    assert {one.held for one in plan_dropped(world.lake, grace=0.0)} == {"clone"}
    world.compact("d")
    vacuum(world.lake.pool("d"), grace=0.0)
    for _ in range(3):
        delete_dropped(world.lake, plan_dropped(world.lake, grace=0.0))
    assert world.lake.dropped_pools() == []
    assert world.keys("d") == [1, 2]
    assert not [one for one in Fsck(world.lake.context, older_than=0.0).run() if one.pool != "d"]


def test_a_dropped_clone_lets_go_once_it_is_deleted(world: World) -> None:
    world.load(1)
    world.lake.clone("p", "c")
    world.lake.drop_pool("c")
    retain(world.lake, "p")
    assert len(world.pool.tags) == 1, "it can be restored"
    world.lake.restore_pool("c")
    assert world.keys("c") == [1]
    world.lake.drop_pool("c")
    delete_dropped(world.lake, plan_dropped(world.lake, grace=0.0))
    assert world.pool.tags == {}
    assert world.keys("p") == [1]


def test_a_tag_of_a_clone_holds_as_long_as_it_is_live(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    clone.tag("kept", expires=world.clock.now + 100)
    world.compact("c")
    vacuum(clone, grace=0.0)
    assert world.keys("c", at="kept") == [1]
    retain(world.lake, "p")
    assert len(world.pool.tags) == 1
    world.clock.now += 200
    world.load(2, pool="c")
    world.compact("c")
    vacuum(clone, grace=0.0)
    retain(world.lake, "p")
    assert world.pool.tags == {}


def test_an_erasure_of_the_source_waits_for_the_clone(world: World) -> None:
    world.load(1, 2)
    clone = world.lake.clone("p", "c")
    receipt = erase(world.pool, where="k = 1", grace=0.0)
    assert receipt.status == "pending"
    (held,) = receipt.held
    assert held.by == f"clone c (tag {naming.clone_tag(clone.config.id)})"
    done = erase(clone, where="k = 1", grace=0.0)
    assert (done.status, list(verify(clone, done))) == ("done", [])
    assert world.keys("c") == [2]
    retain(world.lake, "p")
    receipt = go_on(world.pool, receipt, grace=0.0)
    assert (receipt.status, list(verify(world.pool, receipt))) == ("done", [])


def test_an_erasure_of_a_clone_waits_for_its_own_tags(world: World) -> None:
    world.load(1, 2)
    clone = world.lake.clone("p", "c")
    clone.tag("kept")
    receipt = erase(clone, where="k = 1", grace=0.0)
    assert [one.by for one in receipt.held] == ["tag kept"]
    clone.delete_tag("kept")
    assert go_on(clone, receipt, grace=0.0).status == "done"
    assert world.keys("p") == [1, 2], "the records of the source are a matter of the source"


def test_what_cannot_be_cloned_is_refused_in_one_line(world: World) -> None:
    with pytest.raises(InvalidInput, match="nothing to clone"):
        world.lake.clone("p", "c")
    world.load(1)
    with pytest.raises(AlreadyExists, match="exists already"):
        world.lake.clone("p", "p")
    with pytest.raises(NotFound, match="version 99 does not exist"):
        world.lake.clone("p", "c", at="99")
    with pytest.raises(InvalidInput, match="takes it for an option"):
        world.lake.clone("p", "-c")
    with pytest.raises(InvalidInput, match="sub-pools come along"):
        world.lake.clone("p.$nokey", "c")
    old = Lake(world.store, world.lake.id, ids=world.lake.context.ids, format_version=2)
    with pytest.raises(InvalidInput, match="has no clones: run lake upgrade"):
        old.clone("p", "c")
    assert world.pool.tags == {}


def test_the_tag_of_a_clone_is_the_lakes_own(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    tag = naming.clone_tag(clone.config.id)
    assert world.pool.tags[tag].reason == "clone c"
    with pytest.raises(InvalidInput, match="a clone of pool 'p' needs"):
        world.pool.delete_tag(tag)
    with pytest.raises(InvalidInput, match="belongs to a clone"):
        world.pool.tag(naming.clone_tag(world.pool.config.id))


def test_a_clone_is_not_rebuilt_from_its_own_folder(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    with pytest.raises(InvalidInput, match=f"lake clone p NEW --at clone-{clone.config.id}"):
        plan_rebuild(world.lake, "c", Wanted())
    world.lake.clone("p", "d", at=naming.clone_tag(clone.config.id))
    assert world.keys("d") == [1]


def test_settings_that_only_one_pool_should_have_stay_behind() -> None:
    lake = Lake.create_on(MemoryStore("memory://settings"))
    settings = {"ingest.source": "/tmp/in/*.csv", "vacuum.grace": "3d"}
    lake.create_pool("p", key="k", settings=settings).branch().append(pa.table({"k": [1]}))
    assert lake.clone("p", "c").config.settings == {"vacuum.grace": "3d"}


def test_a_missing_object_of_the_source_is_damage_of_the_clone(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    world.store.delete(world.objects(world.pool)[0])
    found = [one for one in Fsck(world.lake.context, older_than=0.0).run() if one.pool == "c"]
    assert [one.kind for one in found] == ["object_missing"]
    assert clone.at().references[0].object in found[0].do
