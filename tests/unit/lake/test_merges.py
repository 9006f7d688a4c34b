"""Merges: what a branch wrote comes to its parent once, in order, whatever was compacted or deleted meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, InvalidInput, NotFound, PlanAgain
from lake_core.history import Draft
from lake_core.history.branch_state import MAX_WRITES, Fork
from lake_core.history.fold import fold_entry
from lake_core.journal import write_state
from lake_core.records import AddObject, Entry, Merge, PutReference, Source
from lake_core.records.codec import Codec
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.work import write_whole
from log_lake.workers import Worker
from tests.support.rewrites import committed, lost
from tests.unit.lake.test_branches import checkpointed, ingest, keys, load, new_pool, reopened


def values(pool: Pool, revision: str = "main") -> list[tuple[int, str]]:
    return [(row["k"], row["v"]) for row in pool.at(revision).to_table().to_pylist()]


def put(pool: Pool, branch: str = "main", **records: str) -> None:
    """Load records: `put(pool, _1="a")` has the key 1."""
    rows = [{"k": int(name[1:]), "v": value} for name, value in records.items()]
    pool.branch(branch).append(pa.Table.from_pylist(rows))


def compact_all(pool: Pool, branch: str) -> None:
    """One job for each side of the branch."""
    view, target = pool.at(branch), pool.branch(branch)
    for side in (False, True):
        inputs = [r for r in view.references if view.held.is_unmerged(r) == side]
        if inputs:
            compact(target, inputs)


def test_a_merge_brings_what_the_branch_wrote_and_again_only_what_is_new() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    load(pool, 3)
    done = pool.branch().merge("dev")
    assert (done.writes, done.upto, keys(pool)) == (1, 3, [1, 2, 3])
    again = pool.branch().merge("dev")
    assert (again.version, again.writes) == (None, 0)
    load(pool, 4, branch="dev")
    load(pool, 5, branch="dev")
    assert pool.branch().merge("dev").writes == 2
    for other in (pool, reopened(pool), checkpointed(pool)):
        assert (keys(other), keys(other, "dev")) == ([1, 2, 3, 4, 5], [1, 2, 4, 5])


def test_a_branch_that_was_made_from_an_empty_pool_is_merged() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1]


def test_a_merged_delete_hides_what_the_parent_loaded_before_the_merge() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    pool.branch("dev").delete(where="k <= 2")
    load(pool, 1, 3)
    pool.branch().merge("dev")
    load(pool, 2)
    assert keys(checkpointed(pool)) == [2, 3]


def test_a_delete_of_the_parent_before_the_merge_hides_nothing_merged() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 1, 2, branch="dev")
    pool.branch().delete(where="k <= 2")
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1, 2]


@pytest.mark.parametrize("upkeep", [False, True])
def test_a_retired_delete_of_the_branch_is_merged_too(upkeep: bool) -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    load(pool, 1, 3, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    apply(pool.branch("dev"), now=pool.context.now(), at_once=True)
    dev = pool.history.load().state.branches["dev"]
    assert (len(dev.tombstones), len(dev.settled)) == (0, 1)
    if upkeep:
        pool = checkpointed(pool)
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [2, 3]
    assert len(pool.history.load().state.branches["dev"].settled) == 0


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("before", [False, True], ids=["as loaded", "compacted"])
@pytest.mark.parametrize("after", [False, True], ids=["", "compacted later"])
def test_merged_records_are_newer_than_the_parents_whatever_was_compacted(
    kind: str, before: bool, after: bool
) -> None:
    pool = new_pool(kind)
    put(pool, _1="main", _2="main")
    pool.create_branch("dev")
    put(pool, "dev", _1="dev1", _3="dev1")
    put(pool, "dev", _1="dev2")
    put(pool, _1="later")
    if before:
        compact_all(pool, "dev")
    pool.branch().merge("dev")
    put(pool, _3="last")
    if after:
        compact_all(pool, "main")
    expected = {
        "append": [
            (1, "main"),
            (1, "later"),
            (1, "dev1"),
            (1, "dev2"),
            (2, "main"),
            (3, "dev1"),
            (3, "last"),
        ],
        "upsert": [(1, "dev2"), (2, "main"), (3, "last")],
    }
    for other in (pool, checkpointed(pool)):
        assert values(other) == expected[kind]
    if after:
        assert all(not r.lifts for r in pool.at().references)


def test_a_delete_after_a_merge_hides_by_age_in_an_object_that_the_branch_compacted() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    load(pool, 1, branch="dev")
    compact_all(pool, "dev")
    pool.branch().merge("dev")
    load(pool, 1)
    assert any(r.lifts for r in pool.at().references)
    assert len(pool.at().explain(pool.at().key_range())) == 3
    pool.branch().delete(where="k = 1")
    load(pool, 1)
    assert keys(checkpointed(pool)) == [1]
    assert apply(pool.branch(), now=pool.context.now(), at_once=True).left == 0
    assert keys(checkpointed(pool)) == [1]


def test_a_merge_of_a_merge_lifts_twice() -> None:
    pool = new_pool("upsert")
    put(pool, _1="main")
    pool.create_branch("dev")
    pool.create_branch("deep", at="dev")
    put(pool, "deep", _1="deep1", _2="deep1")
    put(pool, "deep", _1="deep2")
    compact_all(pool, "deep")
    put(pool, "dev", _2="dev")
    pool.branch("dev").merge("deep")
    put(pool, "dev", _3="dev")
    assert values(pool, "dev") == [(1, "deep2"), (2, "deep1"), (3, "dev")]
    pool.branch().merge("dev")
    assert [len(r.lifts) for r in pool.at().references if r.oldest] == [2]
    assert values(checkpointed(pool)) == [(1, "deep2"), (2, "deep1"), (3, "dev")]
    compact_all(pool, "dev")
    put(pool, "dev", _2="again")
    pool.branch().merge("dev")
    assert values(checkpointed(pool)) == [(1, "deep2"), (2, "again"), (3, "dev")]


def test_delete_markers_of_an_upsert_branch_survive_its_compaction() -> None:
    pool = new_pool("upsert")
    put(pool, _1="a", _2="a")
    pool.create_branch("dev")
    # nothing on the branch is older, and overlaps
    pool.branch("dev").append(pa.table({"k": [7, 9], "v": ["", ""], "_deleted": [True, True]}))
    put(pool, "dev", _8="b")
    compact_all(pool, "dev")
    put(pool, _9="late")
    pool.branch().merge("dev")
    assert values(checkpointed(pool)) == [(1, "a"), (2, "a"), (8, "b")]


def test_a_replace_of_the_branch_replaces_on_the_parent() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    pool.branch("dev").replace_with(pa.table({"k": [1, 1]}), key_range=pool.at().key_range(high=2))
    load(pool, 1, 5)
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1, 1, 2, 5]


@pytest.mark.parametrize("retired", [False, True])
def test_replaces_of_overlapping_ranges_on_both_sides_conflict(retired: bool) -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    for branch in ("dev", "main"):
        pool.branch(branch).replace_with(pa.table({"k": [1]}), key_range=pool.at().key_range(high=2))
    if retired:
        far = pool.context.now() + 1e9
        assert apply(pool.branch(), now=far, at_once=True).retired == 1
        pool = checkpointed(pool)
    with pytest.raises(Conflict, match=r"version 3 of branch 'dev' and version 4 of 'main'"):
        pool.branch().merge("dev")
    assert keys(pool) == [1, 2]


@pytest.mark.parametrize("while_deleted", [False, True], ids=["before", "while deleted"])
def test_a_branch_that_was_deleted_and_restored_knows_of_replaces_whose_tombstones_are_retired(
    while_deleted: bool,
) -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    for branch in ("dev", "main"):
        pool.branch(branch).replace_with(pa.table({"k": [1]}), key_range=pool.at().key_range(high=2))
    far = pool.context.now() + 1e9
    if while_deleted:
        root = pool.delete_branch("dev").root
    assert apply(pool.branch(), now=far, at_once=True).retired == 1
    if not while_deleted:
        root = pool.delete_branch("dev").root
    assert len(pool.history.load().state.branches["main"].settled) == 1
    pool = checkpointed(pool)
    pool.create_branch("dev", at=root)
    with pytest.raises(Conflict, match=r"version 3 of branch 'dev' and version 4 of 'main'"):
        pool.branch().merge("dev")
    assert keys(pool) == [1, 2]


def test_the_tag_of_a_deleted_branch_keeps_retired_tombstones_as_long_as_it_is_there() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    root = pool.delete_branch("dev").root
    pool.branch().replace_with(pa.table({"k": [1]}), key_range=pool.at().key_range(high=2))
    apply(pool.branch(), now=pool.context.now() + 1e9, at_once=True)
    pool = checkpointed(pool)
    assert len(pool.history.load().state.branches["main"].settled) == 1
    pool.delete_tag(root)
    assert len(pool.history.load().state.branches["main"].settled) == 0


def test_a_branch_that_replaces_the_same_range_after_a_merge_does_not_conflict_with_itself() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    for count in (2, 3):
        replacing = pa.table({"k": [1] * count})
        pool.branch("dev").replace_with(replacing, key_range=pool.at().key_range(high=2))
        pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1, 1, 1, 2]


def test_one_source_file_on_both_sides_conflicts() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    for branch in ("dev", "main"):
        target = pool.branch(branch)
        pending = target.begin_load()
        assert isinstance(pending, PendingLoad)
        builder = target.builder(pending)
        builder.add(Block(pa.table({"k": [1]})))
        written = builder.finish()
        target.commit(
            pending,
            objects=[w.action for w in written],
            schemas=[w.schema for w in written],
            sources=[Source("f", 1)],
        )
    with pytest.raises(Conflict, match=r"source file f .*version 2.*'main'"):
        pool.branch().merge("dev")


def test_source_files_of_a_merged_branch_are_known_to_the_parent() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    ingest(pool, "dev", "f")
    load(pool, 1, branch="dev")
    pool.branch().merge("dev")
    assert checkpointed(pool).history.load().state.ingested("main", "f") is not None


def test_a_branch_is_merged_only_into_the_one_that_it_was_created_from() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    pool.create_branch("deep", at="dev")
    with pytest.raises(InvalidInput, match="merge it into 'dev'"):
        pool.branch().merge("deep")
    with pytest.raises(InvalidInput, match="was not created from"):
        pool.branch("dev").merge("main")
    with pytest.raises(NotFound, match="other"):
        pool.branch().merge("other")


def interrupted(pool: Pool, before_commit: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that happens once, after the merger has read the state and before it commits."""
    commit, pending = pool.history.commit, [before_commit]

    def first(draft):  # type: ignore[no-untyped-def]
        if pending:
            pending.pop()()
        return commit(draft)

    monkeypatch.setattr(pool.history, "commit", first)


def test_a_load_that_is_committed_while_the_merger_works_waits_for_the_next_merge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    other = reopened(pool)
    interrupted(pool, lambda: load(other, 2, branch="dev"), monkeypatch)
    assert pool.branch().merge("dev").writes == 1
    assert keys(pool) == [1]
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1, 2]


@pytest.mark.parametrize("what", ["compaction", "straddling", "delete", "merge"])
def test_a_merge_is_planned_again_if_the_branch_changes_meanwhile(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    load(pool, 2, branch="dev")
    other = reopened(pool)

    def change() -> None:
        if what == "straddling":
            load(other, 3, branch="dev")
        if what in ("compaction", "straddling"):
            compact_all(other, "dev")
        if what == "delete":
            other.branch("dev").delete(where="k = 2")
        if what == "merge":
            other.branch().merge("dev")

    interrupted(pool, change, monkeypatch)
    done = pool.branch().merge("dev")
    assert (done.version is None) == (what == "merge")
    assert keys(checkpointed(pool)) == {"straddling": [1, 2, 3], "delete": [1]}.get(what, [1, 2])


def test_a_merge_overtakes_a_load_that_began_before_it_by_the_replaces_that_it_brings() -> None:
    pool = new_pool()
    put(pool, _1="old", _2="old")
    pool.create_branch("dev")
    rows = pa.Table.from_pylist([{"k": 1, "v": "new"}])
    pool.branch("dev").replace_with(rows, key_range=pool.at().key_range(low=1, high=2))
    begun = pool.branch().begin_load()
    assert isinstance(begun, PendingLoad)
    put(pool, _3="so that the merge surely began later")
    building = pool.branch().builder(begun)
    building.add(Block(pa.Table.from_pylist([{"k": 1, "v": "late"}, {"k": 4, "v": "late"}])))
    merged = pool.branch().merge("dev")
    written = building.finish()
    done = pool.branch().commit(
        begun, objects=[w.action for w in written], schemas=[w.schema for w in written]
    )
    assert done.overtaken == (f"overtaken by the replace of version {merged.version}",)
    assert [value for value in values(pool) if value[0] in (1, 4)] == [(1, "new"), (4, "late")]
    put(pool, _1="later")
    assert [value for value in values(pool) if value[0] == 1] == [(1, "new"), (1, "later")]


def test_a_compaction_goes_on_though_a_merge_overtakes_it_unless_it_mixes_the_sides() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    load(pool, 2, branch="dev")
    dev = pool.branch("dev")
    work = begin_compaction(dev, pool.at("dev").references, outputs=1, message="")
    written = write_whole(Worker(lambda: pool.store, pool.context.ids.new), work)
    pool.branch().merge("dev")
    load(pool, 3, branch="dev")
    assert written is not None
    committed(dev, work, [written])  # both sides of it are merged by now
    assert keys(pool, "dev") == [1, 2, 3]
    assert "never both" in compact(dev, pool.at("dev").references).lost


def test_rebase_refuses_a_compaction_that_mixes_the_sides() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    other = reopened(pool)
    load(pool, 2, branch="dev")
    dev = pool.branch("dev")
    work = begin_compaction(dev, pool.at("dev").references, outputs=1, message="")
    written = write_whole(Worker(lambda: pool.store, pool.context.ids.new), work)
    assert written is not None
    # a merger that had read the branch before the second load
    other.history.commit(Draft(other.context.ids.new(), "main", 2, "", (Merge("dev", 2),)))
    error = lost(dev, work, [written])
    assert isinstance(error, PlanAgain)
    assert "would mix" in str(error)
    assert (keys(pool), keys(pool, "dev")) == ([1], [1, 2])


def test_the_planner_keeps_the_sides_apart() -> None:
    pool = new_pool()
    for _ in range(6):
        load(pool, 1)
    pool.create_branch("dev")
    for _ in range(6):
        load(pool, 1, branch="dev")
    lake = Lake.open_on(pool.store)
    plan = plan_pool(lake, "p", branch="dev", strategy="full", now=pool.context.now())
    assert (len(plan.jobs), plan.references, plan.depth, plan.depth_after) == (2, 12, 12, 2)
    compact_pool(lake, "p", plan, branch="dev")
    pool.branch().merge("dev")
    assert (keys(checkpointed(pool)), keys(pool, "dev")) == ([1] * 12, [1] * 12)


def test_the_order_of_a_merge_is_the_same_in_every_process() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    for n in range(5):
        put(pool, "dev", _1=str(n))
    pool.branch().merge("dev")
    assert [v for _, v in values(reopened(pool))] == list("01234")
    (version, merged) = next(iter(pool.log()))
    assert merged.width == 6
    codec = Codec(Entry)
    entry = pool.history.journal.read(version)
    assert entry is not None
    before = pool.history.load_version(version - 1).state
    again = fold_entry(before, version, codec.decode(codec.encode(entry), name="x"))
    assert again.branches["main"].snapshot.overlapping() == pool.at().references


def test_a_feed_delivers_what_a_merge_brought_once() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    load(pool, 3, branch="dev")
    compact_all(pool, "dev")
    load(pool, 4, branch="dev")
    pool.branch().merge("dev")
    feed = pool.feed()
    found = [action for _, action in feed.between(0, feed.newest())]
    assert [type(action) for action in found] == [AddObject, PutReference, PutReference]
    assert [action.records for action in found] == [1, 2, 1]


def test_a_branch_gives_up_its_writes_when_one_merge_could_not_bring_them() -> None:
    almost = Fork("main", 1, 1).with_writes(range(1, MAX_WRITES + 1))
    assert almost.writes is not None
    assert len(almost.writes) == MAX_WRITES
    assert almost.with_writes(range(MAX_WRITES + 1, MAX_WRITES + 2)).writes is None


def test_a_branch_with_too_many_writes_works_on_and_says_that_it_cannot_be_merged() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    loaded = pool.history.load()
    dev = loaded.state.branches["dev"]
    assert dev.fork is not None
    given_up = replace(dev, fork=replace(dev.fork, writes=None))
    state = replace(loaded.state, branches=loaded.state.branches.insert("dev", given_up))
    write_state(pool.history.journal, replace(loaded, state=state), id=pool.context.ids.new(), now=0)
    again = reopened(pool)
    load(again, 2, branch="dev")
    assert keys(checkpointed(again), "dev") == [1, 2]
    with pytest.raises(InvalidInput, match="cannot be merged any more"):
        again.branch().merge("dev")


def test_the_first_replace_of_the_parent_after_the_boundary_conflicts() -> None:
    """The branch begins on an older revision, and the parent replaced the range in the very next version."""
    pool = new_pool()
    put(pool, _1="old")
    began = pool.at().version
    pool.branch().replace_with(pa.table({"k": [1], "v": ["main"]}))
    pool.create_branch("dev", at=str(began))
    pool.branch("dev").replace_with(pa.table({"k": [1], "v": ["dev"]}))
    with pytest.raises(Conflict, match=f"version {began + 1} of 'main' replaced overlapping ranges"):
        pool.branch().merge("dev")
    assert values(pool) == [(1, "main")]
