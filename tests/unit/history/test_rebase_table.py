"""What conflicts: two pieces of work are under way and are committed one after the other, every pair, every order.

The result is as if each were done when it was committed, except in three cells: a compaction loses its input to
another, a replace loses its range to another, and a load that a replace overtook counts as committed before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest

from lake_core.errors import Conflict
from lake_core.history import Draft
from lake_core.ids import IdSource
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddTombstone, Split
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.pool import Pool
from log_lake.lake.replaces import PendingReplace
from log_lake.lake.results import PendingLoad
from log_lake.lake.view import View
from log_lake.loading.block import Block
from log_lake.rewriting.compaction import begin_compaction
from log_lake.rewriting.exchange import LostRace, commit
from log_lake.rewriting.work import write
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here
from tests.support.clocks import DAY, Clock

Records = list[tuple[int, str]]
Finish = Callable[[], object]
OLD: Records = [(k, "old") for k in range(10)]
TICK: Records = [(100, "tick")]


@dataclass(frozen=True)
class Work:
    """`begin` starts it on a branch and returns what commits it; `means` is what it does to the records."""

    begin: Callable[[Pool, Branch], Finish]
    means: Callable[[Records], Records]


def table(records: Records) -> pa.Table:
    return pa.table({"k": [k for k, _ in records], "v": [v for _, v in records]})


def load(records: Records) -> Work:
    def begin(pool: Pool, branch: Branch) -> Finish:
        pending = branch.begin_load()
        assert isinstance(pending, PendingLoad)

        def finish() -> object:
            builder = branch.builder(pending)
            builder.add(Block(table(records)))
            written = builder.finish()
            return branch.commit(
                pending, objects=[w.action for w in written], schemas=[w.schema for w in written]
            )

        return finish

    return Work(begin, lambda held: [*held, *records])


def compaction() -> Work:
    def begin(pool: Pool, branch: Branch) -> Finish:
        work = begin_compaction(branch, pool.at().references, outputs=1, message="")
        written = write(work, Here.of(branch.context), branch.store)

        def finish() -> None:
            outcome = commit(branch, work, written, does="merges")
            if isinstance(outcome, LostRace):
                raise outcome.error

        return finish

    return Work(begin, lambda held: held)


def span(view: View, low: int, high: int) -> tuple[bytes, bytes]:
    return view.bound(low), view.bound(high)


def delete(low: int, high: int) -> Work:
    def begin(pool: Pool, branch: Branch) -> Finish:
        id, loaded = branch.context.ids.new(), branch.history.load()
        action = AddTombstone(id, *span(pool.at(), low, high))
        return lambda: branch.history.commit(Draft(id, "main", loaded.version, "", (action,)))

    return Work(begin, lambda held: [r for r in held if not low <= r[0] < high])


def replace(low: int, high: int, records: Records) -> Work:
    def begin(pool: Pool, branch: Branch) -> Finish:
        begun = branch.begin_replace(key_range=pool.at().key_range(low=low, high=high))
        assert isinstance(begun, PendingReplace)

        def finish() -> object:
            builder = branch.builder(begun.load)
            builder.add(Block(table(records)))
            written = builder.finish()
            return branch.commit(
                begun.load,
                objects=[w.action for w in written],
                schemas=[w.schema for w in written],
                replaced=begun.spec,
            )

        return finish

    return Work(begin, lambda held: [*(r for r in held if not low <= r[0] < high), *records])


def split(*keys: int) -> Work:
    def begin(pool: Pool, branch: Branch) -> Finish:
        action = Split(tuple(pool.at().bound(key) for key in keys))
        version = branch.history.load().version
        return lambda: pool.commit_actions((action,), on=version, message="")

    return Work(begin, lambda held: held)


ROWS = {
    "load": load([(3, "load"), (20, "load")]),
    "compaction": compaction(),
    "delete": delete(2, 5),
    "replace": replace(2, 6, [(4, "replace")]),
    "replace elsewhere": replace(6, 8, [(7, "elsewhere")]),
    "split": split(3, 7),
}
CONFLICTS = {("compaction", "compaction"), ("replace", "replace"), ("replace elsewhere", "replace elsewhere")}


@pytest.mark.parametrize("began_first", [True, False], ids=["began first", "began second"])
@pytest.mark.parametrize("pair", list(itertools.product(ROWS, ROWS)), ids=" then ".join)
def test_what_is_committed_second_means_the_same_on_the_newer_state_or_conflicts(
    pair: tuple[str, str], began_first: bool
) -> None:
    """`pair` is committed in its order; `began_first`: the one that is committed first also began first."""
    store = MemoryStore()
    pool = Lake.create_on(store).create_pool("p", key="k")
    branch = pool.branch()
    for part in (OLD[::2], OLD[1::2]):
        branch.append(table(part))
    before = pool.at()
    begun: dict[int, Finish] = {}
    first, second = (0, 1) if began_first else (1, 0)
    begun[first] = ROWS[pair[first]].begin(pool, branch)
    branch.append(table(TICK))  # so that it is known which began first
    begun[second] = ROWS[pair[second]].begin(pool, branch)
    begun[0]()
    held = [*OLD, *TICK]
    expected = ROWS[pair[0]].means(held)
    if pair in CONFLICTS:
        with pytest.raises(Conflict):
            begun[1]()
    else:
        begun[1]()
        overtaken = pair[1] == "load" and pair[0].startswith("replace") and not began_first
        both = [ROWS[name].means for name in (reversed(pair) if overtaken else pair)]
        expected = both[1](both[0](held))
    assert records(pool.at()) == sorted(expected)
    assert records(Lake.open_on(store).pool("p").at()) == sorted(expected)
    assert records(before) == OLD


def records(view: View) -> Records:
    return sorted((r["k"], r["v"]) for r in view.to_table().to_pylist())


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("others", [[], [(20, "late")]], ids=["all of it", "some of it"])
def test_what_a_replace_overtook_takes_nothing_of_the_replace_along(kind: str, others: Records) -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", kind=kind)
    branch = pool.branch()
    late = load([(1, "late"), *others]).begin(pool, branch)
    branch.append(table(TICK))
    branch.replace_with(table([(1, "new")]), key_range=pool.at().key_range(high=3))
    late()
    assert records(pool.at()) == sorted([(1, "new"), *others, *(r for r in TICK if r[0] >= 3)])


def test_a_load_that_died_and_runs_again_is_newer_than_a_replace_committed_meanwhile() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    branch = pool.branch()
    branch.begin_load(token="once")  # its process dies here
    branch.append(table(TICK))
    branch.replace_with(table([(1, "new")]), key_range=pool.at().key_range(high=3))
    branch.append(table([(1, "late")]), token="once")
    assert records(pool.at()) == [(1, "late"), (1, "new"), *TICK]


def test_a_load_that_began_before_replaces_that_are_forgotten_begins_again() -> None:
    clock = Clock()
    lake = Lake.create_on(MemoryStore(clock=clock), ids=IdSource(clock=clock))
    pool = lake.create_pool("p", key="k")
    branch = pool.branch()
    branch.append(table(OLD))
    late = ROWS["load"].begin(pool, branch)
    also = ROWS["replace elsewhere"].begin(pool, branch)
    branch.replace([], key_range=pool.at().key_range(low=0, high=3))
    clock.now += 365 * DAY
    assert tombstones.apply(branch, now=clock.now, at_once=True).retired == 1
    for work in (late, also):
        with pytest.raises(Conflict, match="before the replace of version 2, whose tombstone is retired"):
            work()
    branch.append(table([(1, "new")]))
    assert records(pool.at()) == sorted([*OLD[3:], (1, "new")])


def test_a_load_that_began_after_a_replace_is_shown_though_the_replace_went_and_came_back() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    branch = pool.branch()
    branch.append(table(OLD))
    began_before = ROWS["load"].begin(pool, branch)
    replaced = branch.replace([], key_range=EVERYTHING).version
    began_after = ROWS["load"].begin(pool, branch)
    reverted = branch.revert(str(replaced)).version
    branch.revert(str(reverted))
    with pytest.raises(Conflict, match="before the replace of version 2"):
        began_before()
    assert records(pool.at()) == []
    began_after()
    assert records(pool.at())


def test_a_replace_whose_retirement_was_taken_back_and_made_again_is_as_old_as_it_was() -> None:
    """Only the load that began before the replace is refused: of the other one it is known that it is newer."""
    clock = Clock()
    pool = Lake.create_on(MemoryStore(), ids=IdSource(clock)).create_pool("p", key="k")
    branch = pool.branch()
    branch.append(table(OLD))
    before = ROWS["load"].begin(pool, branch)
    branch.replace([], key_range=EVERYTHING)
    after = ROWS["load"].begin(pool, branch)
    clock.now += 365 * DAY
    assert tombstones.apply(branch, now=clock.now, at_once=True).retired == 1
    branch.revert(str(pool.at().version))
    clock.now += 365 * DAY
    assert tombstones.apply(branch, now=clock.now, at_once=True).retired == 1
    with pytest.raises(Conflict, match="before the replace of version 2"):
        before()
    after()
    assert [k for k, _ in records(pool.at())] == [3, 20]


def test_a_load_between_a_replace_and_the_revert_of_its_revert_begins_again_if_that_is_reverted_too() -> None:
    """Nothing overtook it, but one version is kept for loads and for replaces."""
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    branch = pool.branch()
    branch.append(table(OLD))
    replaced = branch.replace([], key_range=EVERYTHING).version
    work = ROWS["load"].begin(pool, branch)
    reverted = branch.revert(str(replaced)).version
    again = branch.revert(str(reverted)).version
    branch.revert(str(again))
    with pytest.raises(Conflict, match="start the load again"):
        work()
    ROWS["load"].begin(pool, branch)()
    assert len(records(pool.at())) == len(OLD) + 2
