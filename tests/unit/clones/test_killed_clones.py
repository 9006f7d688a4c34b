"""A clone whose maker is killed at each of its requests, or stands still while others work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lake_core.errors import LakeError, NotFound
from log_lake.agents.retention.run import retain
from log_lake.lake import Lake
from log_lake.lake.holds import clone_tags
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from log_lake.vacuum.execute import vacuum
from tests.support.clocks import DAY
from tests.support.stores import StoreInFront
from tests.unit.clones.conftest import World

STRIDE = int(os.environ.get("LAKE_TEST_STRIDE", "3"))
"""Every so many changes of the store are tried; 1 tries all."""


class Killed(BaseException):
    """The process is gone."""


class Stepped(StoreInFront):
    """Calls `at` before the request of a number that changes the store, from 0; or after it."""

    def __init__(
        self, behind: MemoryStore, number: int = -1, at: Callable[[], None] = lambda: None, *, after: bool
    ) -> None:
        self.behind, self.number, self.at, self.after = behind, number, at, after
        self.changes = 0

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if request in ("get", "get_listed", "list", "open_input", "local_path"):
            return call()
        number, self.changes = self.changes, self.changes + 1
        if number == self.number and not self.after:
            self.at()
        answer = call()
        if number == self.number and self.after:
            self.at()
        return answer


def copied(world: World) -> World:
    """A world of its own with the same objects."""
    new = World(world.clock.__class__(world.clock.now))
    for info in list(new.store.list("")):
        new.store.delete(info.name)
    for info in world.store.list(""):
        new.store.put(info.name, world.store.get(info.name) or b"")
    new.lake = new.opened()
    new.pool = new.lake.pool("p")
    return new


@pytest.fixture(scope="module")
def loaded() -> World:
    world = World()
    world.load(1)
    world.load(2)
    return world


def steps(loaded: World, at: Callable[[World], None]) -> Iterator[tuple[World, str]]:
    """A world for each change of the store that a clone makes, with what became of the clone."""
    for after in (False, True):
        number, is_reached = len(getattr(at, "__name__", "")) % STRIDE, True
        while is_reached:
            world = copied(loaded)
            store = Stepped(world.store, number, lambda world=world: at(world), after=after)  # type: ignore[misc]
            outcome = "made"
            try:
                Lake.open_on(store, ids=world.lake.context.ids, author="maker").clone("p", "c")
            except Killed:
                outcome = "killed"
            except LakeError as error:
                outcome = type(error).__name__
            is_reached = store.changes > number
            yield world, outcome
            number += STRIDE
        assert number > 8


def kill(world: World) -> None:
    raise Killed


def clean(world: World) -> None:
    """Lets the grace time pass, and the agent retention work."""
    world.clock.now += 8 * DAY
    lake = world.opened()
    retain(lake, "p")
    delete_dropped(lake, plan_dropped(lake))


def test_a_killed_maker_leaves_a_whole_clone_or_none(loaded: World) -> None:
    seen = set()
    for world, outcome in steps(loaded, kill):
        listed = "c" in world.opened().catalog.load().state.names
        seen.add((outcome, listed))
        world.load(3)
        world.compact("p")
        vacuum(world.lake.pool("p"), grace=0.0)
        if listed:
            assert world.keys("c") == [1, 2]
        left = {one.kind for one in Fsck(world.lake.context, older_than=0.0).run()}
        assert left <= {"clone_unlisted", "clone_hold_left"}, left
        if not listed and world.pool.history.load().state.tags:
            assert "clone_hold_left" in left
        clean(world)
        assert len(clone_tags(world.opened().pool("p").history.load().state)) == listed
        left = {one.kind for one in Fsck(world.lake.context, older_than=0.0).run()}
        assert left <= {"folder_given_up"}, left
        if not listed:
            world.opened().clone("p", "c")
        assert world.keys("c") == ([1, 2] if listed else [1, 2, 3])
    assert ("killed", False) in seen


def test_a_maker_that_stands_still_is_ended_or_has_made_the_clone(loaded: World) -> None:
    seen = set()
    for world, outcome in steps(loaded, clean):
        seen.add(outcome)
        world.pool.branch().delete()
        world.compact("p")
        world.clock.now += 8 * DAY
        clean(world)
        lake = world.opened()
        if outcome == "made":
            assert world.keys("c") == [1, 2]
            continue
        if "c" not in lake.catalog.load().state.names:
            continue
        with pytest.raises(NotFound):  # it is listed and closed
            lake.pool("c").at()
        with pytest.raises(NotFound, match="does not keep its objects any more; drop it"):
            lake.restore_pool("c")
        lake.drop_pool("c")
    assert "made" in seen
    assert seen <= {"made", "NotFound"}


def test_a_source_that_is_dropped_meanwhile_stays_as_long_as_the_clone_needs_it(loaded: World) -> None:
    def drop(world: World) -> None:
        world.opened().drop_pool("p")

    for world, outcome in steps(loaded, drop):
        lake = world.opened()
        for _ in range(2):
            world.clock.now += 8 * DAY
            delete_dropped(lake, plan_dropped(lake))
        if outcome == "made":
            assert world.keys("c") == [1, 2]
            assert len(lake.dropped_pools()) == ("p" not in lake.catalog.load().state.names)
        else:
            assert "c" not in lake.catalog.load().state.names
            assert lake.dropped_pools() == []
