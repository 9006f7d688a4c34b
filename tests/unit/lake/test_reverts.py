"""Reverts: what a transaction did is taken back, or the message names what must be reverted first."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, InvalidInput, NotFound, PlanAgain
from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.repair.removal import plan_repair, repair
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.work import write_whole
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Worker
from tests.support.rewrites import lost
from tests.unit.lake.test_branches import checkpointed, ingest, keys, load, new_pool, reopened
from tests.unit.lake.test_merges import compact_all, put, values


def squash(pool: Pool, branch: str = "main") -> int:
    """Compact the branch into one object; its version."""
    version = compact(pool.branch(branch), pool.at(branch).references).version
    assert version is not None
    return version


def apply_all(pool: Pool, branch: str = "main") -> None:
    apply(pool.branch(branch), now=pool.context.now() + 1e9, at_once=True)


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_a_load_is_reverted_and_its_revert_too(kind: str) -> None:
    pool = new_pool(kind)
    put(pool, _1="a")
    put(pool, _1="b", _2="b")
    put(pool, _3="c")
    before = values(pool)
    done = pool.branch().revert("2")
    assert (done.version, done.removed) == (4, 1)
    assert values(checkpointed(pool)) == [(1, "a"), (3, "c")]
    pool.branch().revert("4")
    assert values(checkpointed(pool)) == before
    pool.branch().revert("5")
    assert values(checkpointed(pool)) == [(1, "a"), (3, "c")]


def test_one_transaction_is_reverted_by_its_id() -> None:
    pool = new_pool()
    load(pool, 1)
    load(pool, 2)
    id = next(t.id for version, t in pool.log() if version == 1)
    assert pool.branch().revert(id).reverted == 1
    assert keys(pool) == [2]
    for unknown in ("9", "0", "x"):
        with pytest.raises(NotFound):
            pool.branch().revert(unknown)


def test_a_load_that_was_compacted_is_hidden_by_its_sequence_in_an_append_pool() -> None:
    pool = new_pool()
    for n in (1, 2, 3):
        load(pool, n, n)
    squash(pool)
    load(pool, 2)
    assert pool.branch().revert("2").hidden == 1
    assert keys(checkpointed(pool)) == [1, 1, 2, 3, 3]
    with pytest.raises(InvalidInput, match="reverted already"):
        pool.branch().revert("2")
    pool.branch().revert("6")
    assert keys(checkpointed(pool)) == [1, 1, 2, 2, 2, 3, 3]
    pool.branch().revert("2")
    squash(pool)
    assert keys(checkpointed(pool)) == [1, 1, 2, 3, 3]
    with pytest.raises(Conflict, match=r"revert version 9 first"):
        pool.branch().revert("8")


@pytest.mark.parametrize("kind", ["upsert", "aggregate"])
def test_elsewhere_the_compaction_must_be_reverted_first(kind: str) -> None:
    pool = new_pool(kind)
    put(pool, _1="a")
    put(pool, _1="b")
    version = squash(pool)
    with pytest.raises(Conflict, match=rf"revert version {version} first"):
        pool.branch().revert("2")
    pool.branch().undo(str(version))
    pool.branch().revert("2")
    assert values(checkpointed(pool)) == [(1, "a")]


def test_a_delete_is_reverted_until_it_was_applied() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 1")
    pool.branch().revert("2")
    assert keys(pool) == [1, 2]
    pool.branch().revert("3")
    assert keys(checkpointed(pool)) == [2]
    squash(pool)
    with pytest.raises(Conflict, match="version 5 removed what version 4 deleted"):
        pool.branch().revert("4")
    pool.branch().undo("5")
    pool.branch().revert("4")
    assert keys(checkpointed(pool)) == [1, 2]


def test_a_deletion_that_came_back_hides_what_was_compacted_in_between() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    load(pool, 3)
    pool.branch().delete(where="k = 1")
    pool.branch().revert("3")
    squash(pool)  # while the delete is gone
    pool.branch().revert("4")
    assert keys(checkpointed(pool)) == [2, 3]


def test_applied_deletes_are_undone_step_by_step() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 1")
    apply_all(pool)
    log = [(version, t.message) for version, t in pool.log()]
    assert [version for version, _ in log] == [4, 3, 2, 1]
    with pytest.raises(Conflict, match=r"version 4 retired a delete .*revert version 4 first"):
        pool.branch().undo("3")
    pool.branch().undo("4")
    pool.branch().undo("3")
    assert keys(pool) == [2]
    pool.branch().revert("2")
    assert keys(checkpointed(pool)) == [1, 2]


def test_only_maintenance_can_be_undone() -> None:
    pool = new_pool()
    load(pool, 1)
    load(pool, 1)
    pool.branch().delete(where="k = 1")
    for version in ("1", "3"):
        with pytest.raises(InvalidInput, match="no maintenance"):
            pool.branch().undo(version)
    done = pool.branch().undo(str(squash(pool)))
    assert (done.removed, done.restored, keys(pool)) == (0, 2, [])


def test_a_replace_is_reverted_as_a_whole() -> None:
    pool = new_pool()
    load(pool, 1, 2, 3)
    pool.branch().replace_with(pa.table({"k": [1, 1]}), key_range=pool.at().key_range(high=3))
    assert keys(pool) == [1, 1, 3]
    pool.branch().revert("2")
    assert keys(checkpointed(pool)) == [1, 2, 3]
    pool.branch().revert("3")
    assert keys(checkpointed(pool)) == [1, 1, 3]


def test_a_merge_is_reverted_and_the_branch_merged_again() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    ingest(pool, "dev", "f")
    load(pool, 2, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    merge = pool.branch().merge("dev").version
    assert keys(pool) == [2]
    done = pool.branch().revert(str(merge))
    assert keys(checkpointed(pool)) == [1]
    assert pool.history.load().state.ingested("main", "f") is None
    load(pool, 3, branch="dev")
    again = pool.branch().merge("dev")
    assert (again.writes, keys(checkpointed(pool))) == (3, [2, 3])
    assert pool.history.load().state.ingested("main", "f") is not None
    with pytest.raises(Conflict, match=rf"version {again.version} merged 'dev' since"):
        pool.branch().revert(str(done.version))
    with pytest.raises(Conflict, match=rf"version {again.version} merged 'dev' since"):
        pool.branch().revert(str(merge))


@pytest.mark.parametrize("upkeep", [False, True])
def test_the_revert_of_a_merge_is_reverted(upkeep: bool) -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 1, 2, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    if upkeep:
        apply_all(pool, "dev")
    merge = pool.branch().merge("dev").version
    reverted = pool.branch().revert(str(merge)).version
    pool.branch().revert(str(reverted))
    assert (keys(checkpointed(pool)), keys(pool, "dev")) == ([2], [2])
    assert pool.branch().merge("dev").version is None
    load(pool, 4, branch="dev")
    assert pool.branch().merge("dev").writes == 1
    assert keys(checkpointed(pool)) == [2, 4]


def test_the_revert_of_a_merge_brings_back_tombstones_that_the_branch_had_retired() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    pool.branch("dev").delete(where="k = 1")
    apply_all(pool, "dev")
    merge = pool.branch().merge("dev").version
    pool.branch().revert(str(merge))
    assert keys(checkpointed(pool)) == [1, 2]
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [2]


def test_a_merge_that_was_compacted_on_the_parent_is_hidden_by_its_sequences() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    load(pool, 3, branch="dev")
    compact_all(pool, "dev")
    load(pool, 4, branch="dev")
    merge = pool.branch().merge("dev").version
    squash(pool)
    load(pool, 2)
    assert pool.branch().revert(str(merge)).hidden == 2
    assert keys(checkpointed(pool)) == [1, 2]
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1, 2, 2, 3, 4]


def test_a_merge_is_not_reverted_once_its_branch_was_compacted() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    merge = pool.branch().merge("dev").version
    version = squash(pool, "dev")
    with pytest.raises(Conflict, match="was compacted after version"):
        pool.branch().revert(str(merge))
    pool.branch("dev").undo(str(version))
    pool.branch().revert(str(merge))
    assert (keys(checkpointed(pool)), keys(pool, "dev")) == ([1], [1, 2])


def test_what_a_branch_reverted_is_not_merged() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    load(pool, 3, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    apply_all(pool, "dev")
    load(pool, 4, branch="dev")
    load(pool, 5, branch="dev")
    compact(
        pool.branch("dev"), [r for r in pool.at("dev").references if pool.at("dev").held.is_unmerged(r)][-2:]
    )
    log = {t.message: version for version, t in pool.log(branch="dev")}
    assert log
    pool.branch("dev").revert("3")  # a reference of its own
    pool.branch("dev").revert("8")  # one that was compacted: hidden
    assert keys(pool, "dev") == [3, 5]
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [3, 5]


def test_a_retired_delete_that_the_branch_reverted_is_not_merged() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    version = pool.history.load().version
    dev = pool.history.load().state.branches["dev"]
    assert len(dev.tombstones) == 1
    pool.branch("dev").revert(str(version))
    load(pool, 1)
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [1, 1]


def test_what_is_merged_is_not_reverted_on_the_branch() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    pool.branch().merge("dev")
    with pytest.raises(InvalidInput, match=r"version 2 of 'dev' is merged into 'main' \(version 3\)"):
        pool.branch("dev").revert("2")


def test_nothing_is_reverted_on_a_branch_that_was_deleted_meanwhile() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    branch = pool.branch("dev")
    pool.delete_branch("dev")
    with pytest.raises(NotFound, match="branch 'dev' does not exist"):
        branch.revert("3")


def test_what_has_no_inverse_says_what_to_do_instead() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    pool.tag("t")
    with pytest.raises(InvalidInput, match="delete it"):
        pool.branch("dev").revert("2")
    with pytest.raises(InvalidInput, match="did not change branch 'main'"):
        pool.branch().revert("3")
    pool.delete_branch("dev")
    pool.create_branch("dev")
    with pytest.raises(InvalidInput, match="restore it"):
        pool.branch("dev").revert("4")


def test_a_revert_is_planned_again_if_the_branch_changes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = new_pool()
    load(pool, 1)
    load(pool, 2)
    other, commit, pending = reopened(pool), pool.history.commit, [squash]

    def overtaken(draft):  # type: ignore[no-untyped-def]
        if pending:
            pending.pop()(other)
        return commit(draft)

    monkeypatch.setattr(pool.history, "commit", overtaken)
    assert pool.branch().revert("2").hidden == 1
    assert keys(checkpointed(pool)) == [1]


def test_a_feed_does_not_deliver_again_what_a_revert_brings_back() -> None:
    pool = new_pool()
    load(pool, 1)
    load(pool, 2)
    squash(pool)
    pool.branch().undo("3")
    pool.branch().revert("1")
    pool.branch().revert("5")
    feed = pool.feed()
    assert [version for version, _ in feed.between(0, feed.newest())] == [1, 2]


def test_a_reverted_load_of_one_source_file_lets_the_other_sides_load_be_merged() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    ingest(pool, "dev", "f")
    ingest(pool, "main", "f")
    load(pool, 7, branch="dev")
    pool.branch().merge("dev")
    assert keys(pool) == [7]


def test_what_came_back_once_does_not_come_back_twice() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.branch().revert("1")
    pool.branch().revert("2")
    squash(pool)
    with pytest.raises(InvalidInput, match="version 2 was taken back by version 3 already"):
        pool.branch().revert("2")
    assert keys(checkpointed(pool)) == [1]


def test_a_retired_delete_that_came_back_and_was_reverted_does_not_come_back_again() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.branch().delete(where="k = 1")
    apply_all(pool)
    pool.branch().undo("4")
    pool.branch().undo("3")
    pool.branch().revert("2")
    assert keys(pool) == [1]
    with pytest.raises(InvalidInput, match="version 4 was taken back by version 5 already"):
        pool.branch().undo("4")


def test_a_replace_that_was_retired_and_came_back_conflicts_as_before() -> None:
    pool = new_pool()
    pool.branch().replace_with(pa.table({"k": [1]}), key_range=pool.at().key_range())
    apply_all(pool)
    pool.create_branch("dev")
    pool.branch().undo("2")
    pool.branch("dev").replace_with(pa.table({"k": [2]}), key_range=pool.at().key_range())
    pool.branch().merge("dev")
    assert keys(checkpointed(pool)) == [2]


def combined(kind: str = "aggregate") -> Pool:
    """A pool that combines equal keys; of an aggregate pool `s` is summed, `first` is the first value."""
    functions = {"s": "sum", "first": "first"} if kind == "aggregate" else {}
    return Lake.create_on(MemoryStore()).create_pool("p", key="k", kind=kind, aggregates=functions)


def add(pool: Pool, key: int, value: int, *, marks: bool = False) -> None:
    columns: dict[str, list[object]] = {"k": [key], "s": [value], "first": [value]}
    pool.branch().append(pa.table(columns | ({"_deleted": [True]} if marks else {})))


def sums(pool: Pool) -> list[tuple[int, int, int]]:
    rows = pool.at().to_table(columns=["k", "s", "first"]).to_pylist()
    return [(row["k"], int(row["s"]), row["first"]) for row in rows]


def test_the_undo_of_a_compaction_is_not_reverted_once_its_inputs_were_compacted_again() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    load(pool, 1, 3)
    squash(pool)
    pool.branch().undo("3")
    again = squash(pool)
    with pytest.raises(Conflict, match=rf"revert version {again} first"):
        pool.branch().revert("4")
    pool.branch().undo(str(again))
    pool.branch().revert("4")
    assert keys(checkpointed(pool)) == [1, 1, 2, 3]


@pytest.mark.parametrize("whole", [False, True])
def test_the_undo_of_applied_deletes_is_not_reverted_once_their_records_were_compacted(whole: bool) -> None:
    pool = new_pool()
    load(pool, *([1] if whole else [1, 2]))
    load(pool, 3)
    pool.branch().delete(where="k = 1")
    apply_all(pool)
    pool.branch().undo("5")
    undo = pool.branch().undo("4").version
    again = squash(pool)
    with pytest.raises(Conflict, match=rf"revert version {again} first"):
        pool.branch().revert(str(undo))
    pool.branch().undo(str(again))
    pool.branch().revert(str(undo))
    assert keys(checkpointed(pool)) == ([3] if whole else [2, 3])


@pytest.mark.parametrize("whole", [False, True])
def test_deletes_are_not_applied_again_by_a_revert_once_they_were_reverted(whole: bool) -> None:
    pool = new_pool()
    load(pool, *([1] if whole else [1, 2]))
    pool.branch().delete(where="k = 1")
    apply_all(pool)
    pool.branch().undo("4")
    undo = pool.branch().undo("3").version
    reverted = pool.branch().revert("2").version
    with pytest.raises(
        Conflict, match=rf"version {reverted} took back a delete .*revert version {reverted} first"
    ):
        pool.branch().revert(str(undo))
    pool.branch().revert(str(reverted))
    pool.branch().revert(str(undo))
    assert keys(checkpointed(pool)) == ([] if whole else [2])


def test_a_delete_that_went_and_came_back_is_not_reverted_while_an_older_compaction_has_applied_it() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 1")
    squash(pool)
    pool.branch().undo("3")
    pool.branch().revert("2")
    pool.branch().revert("5")
    applied = pool.branch().revert("4").version
    with pytest.raises(Conflict, match=rf"version {applied} removed what version 6 deleted"):
        pool.branch().revert("6")
    pool.branch().revert(str(applied))
    pool.branch().revert("6")
    assert keys(checkpointed(pool)) == [1, 2]


def test_a_delete_is_not_retired_again_while_it_hides_records_that_came_back() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 1")
    pool.branch().revert("1")
    apply_all(pool)
    undo = pool.branch().undo("4").version
    pool.branch().revert("3")
    with pytest.raises(Conflict, match="may still cover records"):
        pool.branch().revert(str(undo))
    assert keys(checkpointed(pool)) == [2]


def test_a_delete_that_was_retired_came_back_and_was_reverted_does_not_stop_a_load_from_coming_back() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    load(pool, 1, 5)
    pool.branch().revert("1")
    pool.branch().delete(where="k = 1")
    apply_all(pool)
    pool.branch().undo("6")
    pool.branch().undo("5")
    pool.branch().revert("4")
    pool.branch().revert("3")
    assert keys(checkpointed(pool)) == [1, 1, 2, 5]


@pytest.mark.parametrize("upkeep", [False, True])
def test_a_merge_can_be_reverted_and_brought_back_any_number_of_times(upkeep: bool) -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    ingest(pool, "dev", "f")
    load(pool, 2, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    if upkeep:
        apply_all(pool, "dev")
    version = pool.branch().merge("dev").version
    for turn in range(6):
        version = pool.branch().revert(str(version)).version
        assert keys(checkpointed(pool)) == ([2] if turn % 2 else [1])
        is_ingested = pool.history.load().state.ingested("main", "f") is not None
        assert is_ingested == bool(turn % 2)


def test_what_a_merge_brought_is_merged_again_after_three_reverts() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    ingest(pool, "dev", "f")
    load(pool, 2, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    apply_all(pool, "dev")
    version = pool.branch().merge("dev").version
    for _ in range(3):
        version = pool.branch().revert(str(version)).version
    load(pool, 3, branch="dev")
    assert pool.branch().merge("dev").writes == 3
    assert keys(checkpointed(pool)) == [2, 3]
    assert pool.history.load().state.ingested("main", "f") is not None


def test_a_merge_is_not_brought_back_to_a_branch_that_compacted_it_since() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    load(pool, 3, branch="dev")
    version = pool.branch().merge("dev").version
    for _ in range(2):
        version = pool.branch().revert(str(version)).version
    compacted = squash(pool, "dev")
    with pytest.raises(Conflict, match="was compacted after version"):
        pool.branch().revert(str(version))
    pool.branch("dev").undo(str(compacted))
    pool.branch().revert(str(version))
    assert keys(checkpointed(pool)) == []


def test_a_merge_that_was_reverted_is_not_reverted_again() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    merge = pool.branch().merge("dev").version
    reverted = pool.branch().revert(str(merge)).version
    with pytest.raises(InvalidInput, match=rf"was taken back by version {reverted} already"):
        pool.branch().revert(str(merge))


def test_a_delete_does_not_come_back_between_records_that_were_combined_since() -> None:
    pool = combined()
    add(pool, 1, 1)
    pool.branch().delete(where="k = 1")
    add(pool, 1, 10)
    pool.branch().revert("2")
    version = squash(pool)
    assert sums(pool) == [(1, 11, 1)]
    with pytest.raises(Conflict, match=rf"version {version} combined .*; revert version {version} first"):
        pool.branch().revert("4")
    pool.branch().undo(str(version))
    pool.branch().revert("4")
    assert sums(checkpointed(pool)) == [(1, 10, 10)]


def test_a_load_does_not_come_back_into_the_middle_of_a_compaction() -> None:
    pool = combined()
    for value in (1, 10, 100):
        add(pool, 1, value)
    reverted = pool.branch().revert("2").version
    version = squash(pool)
    with pytest.raises(Conflict, match=rf"version {version} combined .*; revert version {version} first"):
        pool.branch().revert(str(reverted))
    pool.branch().undo(str(version))
    pool.branch().revert(str(reverted))
    assert sums(checkpointed(pool)) == [(1, 111, 1)]


@pytest.mark.parametrize("what", ["load", "delete"])
def test_a_compaction_is_planned_again_if_what_lies_between_its_inputs_came_back_meanwhile(what: str) -> None:
    pool = combined()
    add(pool, 1, 1)
    if what == "load":
        add(pool, 1, 10)
    else:
        pool.branch().delete(where="k = 1")
    add(pool, 1, 100)
    reverted = pool.branch().revert("2").version
    work = begin_compaction(pool.branch(), pool.at().references, outputs=1, message="")
    written = write_whole(Worker(lambda: pool.store, pool.context.ids.new), work)
    assert written is not None
    pool.branch().revert(str(reverted))
    expected = sums(pool)
    error = lost(pool.branch(), work, [written])
    assert isinstance(error, PlanAgain)
    assert "put back by a revert since this compaction was planned" in str(error)
    assert sums(checkpointed(pool)) == expected
    squash(pool)
    assert sums(checkpointed(pool)) == expected


def test_a_load_that_is_deleted_as_a_whole_has_no_place_that_others_could_lie_above() -> None:
    pool = combined()
    add(pool, 1, 1)
    pool.branch().delete(where="k = 1")
    add(pool, 1, 10)
    add(pool, 1, 100)
    first, _, last = sorted(pool.at().references, key=lambda r: r.seq)
    compact(pool.branch(), [first, last])
    assert sums(checkpointed(pool)) == [(1, 110, 10)]


def test_a_load_does_not_come_back_under_a_delete_marker_that_was_dropped() -> None:
    pool = combined("upsert")
    add(pool, 1, 1)
    add(pool, 1, 2)
    add(pool, 1, 3, marks=True)
    reverted = pool.branch().revert("2").version
    version = squash(pool)
    with pytest.raises(
        Conflict, match=rf"version {version} may have dropped .*; revert version {version} first"
    ):
        pool.branch().revert(str(reverted))
    pool.branch().undo(str(version))
    pool.branch().revert(str(reverted))
    assert sums(checkpointed(pool)) == []


def test_a_load_comes_back_beside_one_that_went_came_back_and_was_compacted() -> None:
    pool = new_pool("upsert")
    put(pool, _1="old", _2="old")
    pool.branch().revert("1")
    put(pool, _1="new")
    pool.branch().revert("3")
    pool.branch().revert("4")
    squash(pool)  # takes what version 4 removed and version 5 brought back
    pool.branch().revert("2")
    assert values(checkpointed(pool)) == [(1, "new"), (2, "old")]


TAKEN_BACK = {
    "a delete": lambda pool: pool.branch().delete(where="k = 2"),
    "a delete of whole objects": lambda pool: pool.branch().delete(where="k = 3"),
    "a replace": lambda pool: pool.branch().replace_with(
        pa.table({"k": [2], "n": [9]}), key_range=pool.at().key_range(low=2, high=3)
    ),
}


@pytest.mark.parametrize("by", ["revert", "repair"])
@pytest.mark.parametrize("what", TAKEN_BACK)
@pytest.mark.parametrize("through", ["entries", "a checkpoint"])
def test_a_compaction_is_planned_again_if_what_it_left_out_is_shown_again(
    what: str, by: str, through: str
) -> None:
    pool = new_pool()
    load(pool, 1, 2)
    load(pool, 3)
    older = pool.at().references
    TAKEN_BACK[what](pool)
    work = begin_compaction(pool.branch(), older, outputs=1, message="")
    written = write_whole(Worker(lambda: pool.store, pool.context.ids.new), work)
    assert written is not None
    if by == "revert":
        pool.branch().revert("3")
    else:
        repair(pool.branch(), plan_repair(pool.branch(), objects=[], transactions=["3"]))
    pool = checkpointed(pool) if through == "a checkpoint" else pool
    assert keys(pool) == [1, 2, 3]
    error = lost(pool.branch(), work, [written])
    assert isinstance(error, PlanAgain)
    assert "version 4 took a delete back since version 3" in str(error)
    assert keys(reopened(pool)) == [1, 2, 3]
    squash(pool)
    assert keys(checkpointed(pool)) == [1, 2, 3]


def test_a_compaction_that_begins_after_a_delete_was_taken_back_is_committed() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 2")
    pool.branch().revert("2")
    squash(checkpointed(pool))
    assert keys(pool) == [1, 2]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_the_revert_of_a_load_is_no_maintenance(kind: str) -> None:
    """It removes references and does nothing else, as an expiry does."""
    pool = new_pool(kind)
    put(pool, _1="a")
    put(pool, _2="b")
    pool.branch().revert("2")
    with pytest.raises(InvalidInput, match="version 3 is no maintenance"):
        pool.branch().undo("3")
    assert values(pool) == [(1, "a")]


def test_a_load_that_was_reverted_before_a_merge_does_not_come_back_on_the_branch_alone() -> None:
    """It would lie below the boundary, and no merge would ever bring it."""
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    dev = pool.branch("dev")
    loaded = dev.append(pa.table({"k": [2]})).version
    reverted = dev.revert(str(loaded)).version
    dev.append(pa.table({"k": [3]}))
    pool.branch().merge("dev")
    with pytest.raises(InvalidInput, match=f"version {reverted} of 'dev' is merged into 'main'"):
        dev.revert(str(reverted))
    assert keys(pool, "dev") == keys(pool) == [1, 3]
