"""A copy of a pool in another lake has objects of its own, and means the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import AlreadyExists, InvalidInput, Unavailable
from lake_core.ids import home_of
from log_lake.lake import Lake
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from log_lake.stores.read_only import ReadOnlyStore
from log_lake.vacuum.execute import vacuum
from tests.support.stores import StoreInFront
from tests.unit.clones.conftest import World


@pytest.fixture
def other(world: World) -> Lake:
    return Lake.create_on(MemoryStore("memory://other", clock=world.clock), ids=world.lake.context.ids)


@pytest.mark.parametrize("settings", [{}, {"load.inline": "100kB"}, {"format": "zst"}])
def test_a_copy_needs_nothing_of_its_source(world: World, other: Lake, settings: dict[str, str]) -> None:
    pool = world.lake.create_pool("q", key="k", settings=settings)
    world.load(1, pool="q", token="t1")
    world.lake.clone("q", "c")
    world.load(2, 3, pool="c", token="t2")
    world.lake.pool("c").branch().delete(where="k = 3")
    copy = world.lake.clone("c", "d", to=other)
    assert pool.tags.keys() == {tag for tag in pool.tags if tag.startswith("clone-")}
    assert world.lake.pool("c").tags == {}
    assert (copy.config.clone, copy.store.uri) == (None, "memory://other")
    assert not any(home_of(r.object) for r in copy.at().references)
    world.lake.pool("c").branch().delete()
    world.compact("c")
    vacuum(world.lake.pool("c"), grace=0.0)
    copy = Lake.open_on(other.store, ids=world.lake.context.ids).pool("d")
    assert copy.at().to_table()["k"].to_pylist() == [1, 2]
    assert list(Fsck(other.context, older_than=0.0, data=True).run()) == []
    copy.branch().append(pa.table({"k": [9]}), token="t2")
    assert copy.at().to_table()["k"].to_pylist() == [1, 2]
    copy.branch().append(pa.table({"k": [4]}))
    assert copy.at().to_table()["k"].to_pylist() == [1, 2, 4]


def test_a_copy_to_the_same_lake_is_a_clone(world: World) -> None:
    world.load(1)
    assert world.lake.clone("p", "c", to=world.opened()).config.clone is not None


def test_what_cannot_be_copied_is_refused_before_anything_is_written(world: World, other: Lake) -> None:
    with pytest.raises(InvalidInput, match="nothing to copy"):
        world.lake.clone("p", "c", to=other)
    world.load(1)
    other.create_pool("c", key="k")
    with pytest.raises(AlreadyExists, match="in memory://other"):
        world.lake.clone("p", "c", to=other)
    old = Lake(other.store, other.id, ids=world.lake.context.ids, format_version=2)
    with pytest.raises(InvalidInput, match="run lake upgrade there"):
        world.lake.clone("p", "d", to=old)
    assert [one for one in other.store.list("") if "/data/" in one.name] == []


def test_a_copy_has_each_transaction_over_pools_that_readers_see(
    world: World, other: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.load(1)
    over = world.lake.transaction(message="over pools")
    over.pool("p").append(pa.table({"k": [2]}))
    with monkeypatch.context() as patch:
        patch.setattr(type(over), "_settled", lambda *_: {})  # its owner dies after the decision
        over.commit()
    reader = Lake.open_on(ReadOnlyStore(world.store), ids=world.lake.context.ids)
    assert reader.pool("p").at().to_table()["k"].to_pylist() == [1, 2]
    with pytest.raises(Unavailable, match="committed, but not settled"):
        reader.clone("p", "c", to=other)
    assert reader.clone("p", "old", at="1", to=other).at().to_table()["k"].to_pylist() == [1]
    assert world.keys("p") == [1, 2]  # which settles it
    assert reader.clone("p", "c", to=other).at().to_table()["k"].to_pylist() == [1, 2]


class Full(StoreInFront):
    """A store that takes no second object of records."""

    def __init__(self, behind: MemoryStore) -> None:
        self.behind = behind

    def ask(self, request: str, name: str, call: object) -> object:
        if request == "open_output" and any("/data/" in one.name for one in self.behind.list("")):
            raise Unavailable("full")
        return call()  # type: ignore[operator]


def test_a_copy_that_fails_is_seen_by_fsck_alone(world: World, other: Lake) -> None:
    world.load(1)
    world.load(2)
    store = other.store
    full = Lake.open_on(Full(store.behind), ids=world.lake.context.ids)  # type: ignore[attr-defined]
    with pytest.raises(Unavailable):
        world.lake.clone("p", "c", to=full)
    assert other.pools() == []
    assert [one.kind for one in Fsck(other.context, older_than=0.0).run()] == ["rebuild_interrupted"]
