"""A step computes the touched groups, no others, and is committed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.ids import IdSource
from log_lake.derived.standing import standing_of
from log_lake.derived.step import keep, keep_all
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.pools import compact_all
from tests.support.stores import ScriptedStore, StoreInFront
from tests.unit.derived.conftest import DerivedWorld


def line(world: DerivedWorld, name: str = "d") -> str:
    standing = standing_of(world.lake, world.lake.pool(name))
    assert standing is not None
    return standing.line


def test_a_step_computes_the_groups_that_are_touched(world: DerivedWorld) -> None:
    assert world.derive().groups is None
    world.check()
    world.load(3, 25)
    assert line(world) == "derived from p: as of its version 1, 1 change behind"
    assert world.keep().groups == 2
    world.check()
    assert line(world) == "derived from p: as of its version 2, up to date"
    world.pool.branch().delete(where="v = 1 AND k < 10")
    assert world.keep().groups == 1
    world.check()
    world.pool.branch().revert("3")
    assert world.keep().groups == 1
    world.check()


def test_upkeep_of_the_source_is_no_change(world: DerivedWorld) -> None:
    world.derive()
    world.load(3)
    world.keep()
    compact_all(world.pool)
    done = world.keep()
    assert (done.version, done.groups) == (None, 0)
    assert line(world).endswith("up to date")
    world.load(4)
    assert world.keep().groups == 1
    world.check()


def test_a_dry_run_says_what_it_would_do(world: DerivedWorld) -> None:
    world.derive()
    world.load(3, 25)
    done = keep(world.lake, world.lake.pool("d"), dry_run=True)
    assert (done.version, done.groups) == (None, 2)
    assert done.line == "d: would compute 2 groups anew, p@1 to 2"
    assert world.lake.pool("d").at().version == 1
    world.derive("e", dry_run=True)
    assert [one.name for one in world.lake.pools()] == ["d", "p"]


def test_steps_are_bounded_and_go_on_to_the_end(world: DerivedWorld) -> None:
    world.derive(settings={"derive.entries": "2"})
    for key in range(5):
        world.load(key)
    assert [done.upto for done in keep_all(world.lake, world.lake.pool("d"))] == [3, 5, 6]
    world.check()


def test_more_groups_than_a_condition_names_are_a_range_of_them(world: DerivedWorld) -> None:
    sql = "SELECT v, who, count(*) AS n FROM p GROUP BY ALL"
    world.derive(sql=sql)
    rows = [{"k": number, "who": f"w{number}", "v": number % 17} for number in range(300)]
    world.pool.branch().append(pa.Table.from_pylist(rows))
    assert world.keep().groups == 300
    world.check(sql=sql)


def test_two_steps_from_one_version_are_one(world: DerivedWorld) -> None:
    world.derive()
    world.load(3)
    store = ScriptedStore(world.store)
    slow = Lake.open_on(store, ids=IdSource(clock=world.clock), author="slow")
    pool = slow.pool("d")
    pool.history.load_open()
    entry = naming.entry(naming.pool_journal(pool.config.id), 2)
    store.on("create", entry, before=lambda: keep(world.reopened(), world.reopened().pool("d")))
    assert keep(slow, pool).version is None
    world.check()
    assert world.reopened().pool("d").at().version == 2


class Killed(StoreInFront):
    """A store whose caller is killed at a request that may write."""

    def __init__(self, behind: Any, at: int) -> None:
        self.behind, self.left = behind, at

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if request not in ("get", "get_listed", "list", "open_input"):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return call()


def copied(world: DerivedWorld) -> MemoryStore:
    store = MemoryStore("memory://killed", clock=world.clock)
    for info in world.store.list(""):
        store.put(info.name, world.store.get(info.name) or b"")
    return store


def test_a_step_that_is_killed_at_any_write_is_done_once(world: DerivedWorld) -> None:
    world.derive(settings={"load.inline": "0"})
    world.load(3, 25)
    before = copied(world)
    for at in range(1, 100):
        world.store = before
        world.store = copied(world)  # as it was before the step
        try:
            lake = Lake.open_on(Killed(world.store, at), ids=IdSource(clock=world.clock), author="killed")
            keep(lake, lake.pool("d"))
        except KeyboardInterrupt:
            again = world.reopened()
            keep(again, again.pool("d"))
            world.check()
            assert again.pool("d").at().version == 2
        else:
            break
    assert 2 < at < 99


def test_a_chain_is_kept_link_by_link(world: DerivedWorld) -> None:
    world.derive()
    sql = "SELECT b, sum(s) AS s FROM d GROUP BY b"
    world.derive("e", sql, source="d")
    world.load(3, 25)
    assert world.keep("d").groups == 2
    assert world.keep("e").groups == 2
    world.check("e", sql)


def test_a_cycle_is_refused(world: DerivedWorld) -> None:
    world.derive()
    world.derive("e", "SELECT b, sum(s) AS s FROM d GROUP BY b", source="d")
    world.lake.catalog.configure("d", {"derive.from": world.lake.pool("e").config.id})
    with pytest.raises(InvalidInput, match="a cycle"):
        world.keep("d")
    world.lake.catalog.configure("d", {"derive.from": world.lake.pool("d").config.id})
    with pytest.raises(InvalidInput, match="a cycle"):
        world.keep("d")


def test_a_source_that_is_dropped_leaves_the_records(world: DerivedWorld) -> None:
    world.derive()
    world.load(3)
    world.lake.drop_pool("p")
    with pytest.raises(
        NotFound, match="'d' is not kept: its source 'p' is dropped; lake restore takes it back"
    ):
        world.keep()
    assert "not kept: its source 'p' is dropped" in line(world)
    assert world.lake.pool("d").at().records == 4
    world.pool = world.lake.restore_pool("p")
    assert world.keep().groups == 1
    world.check()


def test_another_query_is_computed_whole(world: DerivedWorld) -> None:
    world.derive()
    first = world.lake.pool("d").settings["derive.query"]
    world.lake.catalog.configure("d", {"derive.query": f"{first} HAVING sum(v) > 100"})
    assert world.keep().groups is None
    assert not world.rows("SELECT * FROM d")
    world.lake.catalog.configure("d", {"derive.query": first})
    assert world.keep().why == "it is computed for the first time"
    world.check()


def test_a_field_of_another_type_computes_all(world: DerivedWorld) -> None:
    world.derive()
    world.pool.branch().append(pa.table({"k": [3], "who": ["bob"], "v": [1.5]}))
    assert world.keep().why == "field 'v' of p has another type"
    world.check("(SELECT b, who, n, CAST(s AS DOUBLE) AS s FROM d)")  # numbers of two classes are JSON


def test_a_source_without_records_empties_it(world: DerivedWorld) -> None:
    world.derive()
    world.pool.branch().delete()
    world.keep()
    assert not world.rows("SELECT * FROM d")
    world.load(7)
    world.keep()
    world.check()


def test_a_pool_that_is_not_derived_is_not_kept(world: DerivedWorld) -> None:
    with pytest.raises(LakeError, match="'p' is not derived"):
        world.keep("p")
    assert standing_of(world.lake, world.pool) is None
