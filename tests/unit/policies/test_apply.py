"""Applying a policy file while others work, and after it was killed."""

from __future__ import annotations

import pytest

from lake_core import naming
from lake_core.errors import Conflict, NotFound, OutcomeUnknown, PlanAgain, Unavailable
from log_lake.lake import Lake
from log_lake.policies.apply import carry_out
from log_lake.policies.difference import Difference, compare
from log_lake.policies.file import parse
from log_lake.stores.memory import MemoryStore
from tests.support.stores import ScriptedStore, lost, raising, unavailable

FILE = """
defaults: {key: k}
pools:
  changed: {settings: {compact.depth: 4}}
  changed-too: {settings: {compact.depth: 4}}
  made:
  made-too:
"""
WANTED = {"changed": "4", "changed-too": "4", "made": "8", "made-too": "8"}


def prepared(store: ScriptedStore | MemoryStore) -> Lake:
    """A lake with two pools to change and two to drop; it looks for news by listings, which the tests script."""
    made = Lake.create_on(store)
    lake = Lake(made.store, made.id, gated=False)
    for name in ("changed", "changed-too", "dropped", "dropped-too"):
        lake.create_pool(name, key="k")
    return lake


def difference_of(lake: Lake) -> Difference:
    file, faults = parse(FILE)
    difference, refused = compare(file, lake.catalog.load().state, prune=True)
    assert not faults + refused
    return difference


def depths(lake: Lake) -> dict[str, str]:
    return {one.name: lake.pool(one.name).settings.text("compact.depth") for one in lake.pools()}


class Killed(BaseException):
    """The process dies here."""


def test_new_pools_and_changed_settings_are_one_entry() -> None:
    lake = prepared(MemoryStore())
    applied = carry_out(lake, difference_of(lake))
    assert depths(lake) == WANTED
    assert (applied.version, applied.dropped) == (7, 2)
    entry = lake.catalog.journal.read(5)
    assert entry is not None
    assert len(entry.actions) == 4
    assert difference_of(lake).is_empty


@pytest.mark.parametrize("writes", range(5))
def test_an_apply_that_is_killed_at_any_write_is_finished_by_the_next(writes: int) -> None:
    """It writes an entry for what is new and changed, then for each drop one of the pool and one of the list."""
    store = ScriptedStore()
    lake = prepared(store)
    difference = difference_of(lake)
    store.on("create", "", times=writes)
    store.on("create", "", instead=raising(Killed()))
    with pytest.raises(Killed):
        carry_out(lake, difference)
    survivor = Lake.open_on(store.behind)
    there = set(depths(survivor))
    assert there & {"made", "made-too"} == ({"made", "made-too"} if writes else set()), "all or none"
    carry_out(survivor, difference_of(survivor))
    assert depths(survivor) == WANTED
    assert difference_of(survivor).is_empty
    assert all(not list(survivor.pool(name).log()) for name in WANTED)


def test_a_list_that_changed_since_the_difference_was_shown_is_told_and_nothing_is_done() -> None:
    lake = prepared(MemoryStore())
    difference = difference_of(lake)
    lake.configure_pool("changed-too", {"description": "meanwhile"})
    with pytest.raises(PlanAgain, match="pool 'changed-too' was changed meanwhile"):
        carry_out(lake, difference)
    assert set(depths(lake).values()) == {"8"}
    assert "made" not in depths(lake)


def test_of_two_who_apply_the_same_file_at_once_one_does_it_and_the_other_looks_again() -> None:
    store = ScriptedStore()
    lake = prepared(store)
    difference = difference_of(lake)

    def other() -> None:
        faster = Lake.open_on(store.behind)
        carry_out(faster, difference_of(faster))

    store.on("create", naming.entry("pools", 5), before=other)
    with pytest.raises(PlanAgain):
        carry_out(lake, difference)
    assert difference_of(lake).is_empty
    assert depths(lake) == WANTED


def test_a_pool_that_was_made_meanwhile_is_not_made_twice() -> None:
    lake = prepared(MemoryStore())
    difference = difference_of(lake)
    lake.create_pool("made", key="k")
    with pytest.raises(PlanAgain, match="pool 'made' was made meanwhile"):
        carry_out(lake, difference)


def test_a_pool_that_got_the_name_of_a_pruned_one_is_not_dropped() -> None:
    lake = prepared(MemoryStore())
    difference = difference_of(lake)
    lake.rename_pool("dropped", "kept")
    lake.create_pool("dropped", key="other")
    with pytest.raises(PlanAgain, match="'dropped' was renamed to 'kept' meanwhile"):
        carry_out(lake, difference)
    assert {"kept", "dropped"} <= set(depths(lake))


def test_a_pool_that_gets_the_name_just_before_the_drop_is_not_dropped() -> None:
    store = ScriptedStore()
    lake = prepared(store)
    difference = difference_of(lake)
    renamed = Lake.open_on(store.behind)

    def rename() -> None:
        renamed.rename_pool("dropped", "kept")
        renamed.create_pool("dropped", key="other")

    store.on("list", "pools", times=3)  # twice to change pools; then apply looks whether the pool is there
    store.on("list", "pools", before=rename)  # the drop looks again
    with pytest.raises(Conflict, match="pool 'dropped' is another one now"):
        carry_out(lake, difference)
    assert {"kept", "dropped"} <= set(depths(lake))


def test_a_pruned_pool_that_another_run_dropped_is_no_error() -> None:
    lake = prepared(MemoryStore())
    difference = difference_of(lake)
    lake.drop_pool("dropped")
    assert carry_out(lake, difference).dropped == 1
    assert depths(lake) == WANTED


def test_a_pool_to_change_whose_drop_was_interrupted_stops_everything() -> None:
    lake = prepared(MemoryStore())
    difference = difference_of(lake)
    lake.pool("changed").close()
    with pytest.raises(NotFound):
        carry_out(lake, difference)
    assert "made" not in depths(lake)


@pytest.mark.parametrize("is_written", [True, False])
def test_after_an_answer_that_was_lost_the_same_file_is_applied_again(is_written: bool) -> None:
    store = ScriptedStore()
    lake = prepared(store)
    difference = difference_of(lake)
    entry = naming.entry("pools", 5)
    if is_written:
        store.on("create", entry, answer=lost)
    store.on("create", entry, instead=unavailable, times=100)
    store.on("get", entry, instead=unavailable, times=100)
    with pytest.raises((OutcomeUnknown, Unavailable)):
        carry_out(lake, difference)
    survivor = Lake.open_on(store.behind)
    assert ("made" in depths(survivor)) is is_written
    carry_out(survivor, difference_of(survivor))
    assert depths(survivor) == WANTED
