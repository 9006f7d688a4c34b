"""What a state keeps of branches, source files and references, to the version; mutants of these lines lived."""

from __future__ import annotations

import decimal
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from rpds import HashTrieMap, List

from lake_core import naming
from lake_core.errors import Conflict, Corrupt, InvalidInput, PlanAgain
from lake_core.history import Draft
from lake_core.history.branch_state import BranchState, Fork
from lake_core.history.branching import deleted, split_writes
from lake_core.history.merge import _tombstones
from lake_core.history.rebase import rebase
from lake_core.history.repeated import holds
from lake_core.history.snapshot.snapshot import Snapshot
from lake_core.history.state import PoolState, Remembered
from lake_core.history.tombstone import Tombstone
from lake_core.journal import write_state
from lake_core.journal.ages import FUTURE, proven
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.records import AddTombstone, Consume, DeleteTag, Merge, RemoveReference, Source
from lake_core.records.decoding import FIRST_TIME, LAST_TIME
from lake_core.records.pools import DroppedPool, PoolConfig
from lake_core.records.transactions import sequence
from lake_core.schemas.rule import ROOM_DIGITS, SUM_DIGITS
from lake_core.store import ObjectInfo
from log_lake.lake import Lake
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.histories import KEY, history
from tests.support.records import KNOWN, add, an_id, draft, entry, transaction

FILE = Source("landing/a", 7, "etag")


def test_a_checkpoint_keeps_the_version_that_consumed_a_source_file() -> None:
    store = MemoryStore()
    ours = history(store)
    ours.commit(draft(1, add(1)))
    ours.commit(draft(2, add(2), Consume((FILE,))))
    mark = write_state(ours.journal, ours.load(), id=an_id(9), now=0.0)
    kept = history(store).journal.restore(mark).state.sources
    found = kept.get(("main", FILE.uri))
    assert found is not None
    assert found.version == 2
    assert [ingested.version for _, ingested in kept.items()] == [2]


def test_the_tag_of_a_deleted_branch_keeps_its_parent_and_boundary() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    pool.create_branch("dev")
    pool.branch().append(pa.table({"k": [2]}))
    pool.branch("dev").append(pa.table({"k": [3]}))
    fork = pool.history.load().state.branches["dev"].fork
    assert fork is not None
    pool.delete_branch("dev")
    (tag,) = pool.history.load().state.tags.values()
    assert (tag.deleted, tag.parent, tag.boundary) == (True, "main", fork.parent_boundary)
    assert tag.boundary == 1


def snapshot() -> Snapshot:
    state = history(MemoryStore()).journal.fold(PoolState(), 1, entry(transaction(KNOWN, add(1, 0, 10))))
    two = transaction(add(2, 0, 10, sub_pool="$nokey"), add(3, 20, 30), parent=1, id=an_id(901))
    state = history(MemoryStore()).journal.fold(state, 2, entry(two))
    return state.branches["main"].snapshot


@pytest.mark.parametrize(
    ("upto", "sub_pool", "low", "high", "found"),
    [
        (sequence(2), "", 0, 40, [1, 3]),
        (sequence(1), "", 0, 40, [1]),
        (sequence(1) - 1, "", 0, 40, []),
        (sequence(2), "", 15, 40, [3]),
        (sequence(2), "", 15, 18, []),
        (sequence(2), "$nokey", 0, 40, [2]),
        (sequence(1), "$nokey", 0, 40, []),
    ],
)
def test_references_that_reach_a_sequence_are_of_the_sub_pool_and_the_range(
    upto: int, sub_pool: str, low: int, high: int, found: list[int]
) -> None:
    key_range = KeyRange(encode_value(low), encode_value(high))
    references = snapshot().reaching(upto, key_range, sub_pool=sub_pool)
    assert sorted(one.object for one in references) == [an_id(number) for number in found]


@pytest.mark.parametrize("behind", [0, 1, 2])
def test_an_exact_draft_is_planned_again_if_its_branch_has_changed_by_one_version(behind: int) -> None:
    ours = history(MemoryStore())
    for number in range(1, 4):
        ours.commit(draft(number, add(number)))
    state = ours.load().state
    exact = Draft(an_id(50), "main", 3 - behind, "test", (Consume((FILE,)),), is_exact=True)
    if not behind:
        assert rebase(state, exact, key=KEY, time=1) is not None
        return
    with pytest.raises(PlanAgain, match=f"has changed since version {3 - behind}"):
        rebase(state, exact, key=KEY, time=1)


@pytest.mark.parametrize(
    ("fields", "is_own", "needs"),
    [
        ({}, False, 1),
        ({"oldest_only": True}, True, 1),
        ({"keeps_fields": True}, True, 1),
        ({"is_exact": True}, True, 2),
        ({"actions": (DeleteTag("t"),)}, True, 2),
        ({"actions": (AddTombstone(an_id(3), only=(1, 2)),)}, True, 2),
        ({"actions": (AddTombstone(an_id(3)),)}, False, 1),
    ],
    ids=str,
)
def test_only_its_own_writer_commits_a_draft_that_an_older_program_may_not_know(
    fields: dict[str, Any], is_own: bool, needs: int
) -> None:
    made = Draft(
        **{"id": an_id(1), "branch": "main", "read_version": 1, "author": "", "actions": ()} | fields
    )
    assert (made.is_own, made.needs_version) == (is_own, needs)


@pytest.mark.parametrize(("beyond", "fits"), [(-1, True), (0, False), (1, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_load_brings_more_digits_if_all_values_of_the_pool_leave_them_room(
    beyond: int, fits: bool, sign: int
) -> None:
    limit = 10 ** (SUM_DIGITS - ROOM_DIGITS - 2)
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", kind="aggregate", aggregates={"x": "sum"})

    def load(value: decimal.Decimal, digits: int) -> None:
        other = pa.array([decimal.Decimal(limit * 10)], pa.decimal128(SUM_DIGITS, 0))
        x = pa.array([value], pa.decimal128(SUM_DIGITS, digits))
        pool.branch().append(pa.table({"k": [1], "other": other, "x": x}))

    load(decimal.Decimal(sign * (limit + beyond)), 0)
    if fits:
        load(decimal.Decimal("0.01"), 2)
        return
    with pytest.raises(InvalidInput, match="leaves no room for sums with 2 digits"):
        load(decimal.Decimal("0.01"), 2)


@pytest.mark.parametrize("seq", [0, -1])
def test_a_tombstone_has_a_sequence(seq: int) -> None:
    def made(seq: int) -> Tombstone:
        return Tombstone("t", 1, seq, 0, an_id(1), 1)

    assert made(1).seq == 1
    with pytest.raises(Corrupt, match="needs a sequence"):
        made(seq)


def test_a_branch_holds_what_a_token_brought_only_if_it_has_its_own_objects() -> None:
    state = PoolState()
    fold = history(MemoryStore()).journal.fold
    state = fold(state, 1, entry(transaction(KNOWN, add(1, size=100), token="t")))
    first = state.tokens.get("t")
    assert first is not None
    assert holds(state.branches["main"], first)
    second = transaction(RemoveReference(an_id(1), add(1).low), add(2, size=100), parent=1, id=an_id(901))
    state = fold(state, 2, entry(second))
    assert not holds(state.branches["main"], first), "another load of as many bytes is another load"


@pytest.mark.parametrize(("read_version", "fits"), [(3, True), (2, False), (1, False)])
def test_work_that_began_before_a_delete_was_taken_back_removes_nothing(
    read_version: int, fits: bool
) -> None:
    ours = history(MemoryStore())
    for number in range(1, 4):
        ours.commit(draft(number, add(number)))
    state = ours.load().state
    revealed = replace(state.branches["main"], revealed=3)
    state = replace(state, branches=state.branches.insert("main", revealed))
    removes = Draft(an_id(50), "main", read_version, "test", (RemoveReference(an_id(1), add(1).low),))
    if fits:
        assert rebase(state, removes, key=KEY, time=1) is not None
        return
    with pytest.raises(PlanAgain, match="version 3 took a delete back"):
        rebase(state, removes, key=KEY, time=1)


@pytest.mark.parametrize("time", [FIRST_TIME - 1, LAST_TIME + 1])
def test_a_token_was_used_in_a_year_that_can_be_shown(time: int) -> None:
    assert Remembered(1, an_id(1), LAST_TIME, 1, 1, 1, 0, 0).time == LAST_TIME
    with pytest.raises(Corrupt, match="outside of the years"):
        Remembered(1, an_id(1), time, 1, 1, 1, 0, 0)


def test_only_a_branch_of_another_one_without_children_is_deleted() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    pool.create_branch("dev")
    pool.create_branch("deep", at="dev")
    branches = pool.history.load().state.branches
    assert "deep" not in deleted(branches, "deep", roots=[])
    for name in ("main", "dev"):
        with pytest.raises(Corrupt, match="was not created from another one, or has children"):
            deleted(branches, name, roots=[])


def test_the_time_of_a_tokens_newest_use_counts() -> None:
    fold = history(MemoryStore()).journal.fold
    state = fold(PoolState(), 1, entry(transaction(KNOWN, add(1), time=100)))
    late = transaction(add(2), parent=1, id=an_id(901), time=50, token="t")
    state = fold(state, 2, entry(late))
    assert state.used.get("t") == 100, "its writer's clock is behind"
    again = transaction(add(3), parent=2, id=an_id(902), time=200, token="t")
    state = fold(state, 3, entry(again))
    assert state.used.get("t") == 200


def test_a_merge_of_plain_loads_needs_no_lift_in_the_state() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [2]}))
    pool.branch().merge("dev")
    assert len(pool.at().references) == 2
    assert not len(pool.history.load().state.lifts)
    pool.branch("dev").append(pa.table({"k": [3]}))
    pool.branch("dev").append(pa.table({"k": [4]}))
    compact(pool.branch("dev"), pool.at("dev").references[-2:])
    pool.branch().merge("dev")
    assert len(pool.history.load().state.lifts) == 1


@pytest.mark.parametrize(("ahead", "found"), [(FUTURE, 0), (FUTURE + 0.5, 2)])
def test_an_object_from_the_future_proves_nothing(ahead: float, found: int) -> None:
    infos = [ObjectInfo(naming.entry("j", 1), 1, 1_000 + ahead), ObjectInfo(naming.entry("j", 2), 1, 10.0)]
    assert proven(infos, lambda version: 10.0, before=500.0, now=1_000.0) == found


@pytest.mark.parametrize("time", [FIRST_TIME - 1, LAST_TIME + 1])
def test_a_pool_is_dropped_in_a_year_that_can_be_shown(time: int) -> None:
    pool = PoolConfig(an_id(1), "p", KEY)
    assert DroppedPool(pool, 1, LAST_TIME, "a").time == LAST_TIME
    with pytest.raises(Corrupt, match="outside of the years"):
        DroppedPool(pool, 1, time, "a")


def test_a_merge_brings_the_writes_up_to_its_version_and_leaves_the_later_ones() -> None:
    writes = [sequence(3), sequence(4, 1), sequence(5)]
    fork = Fork("main", 1, 2, writes=List(writes[::-1]))
    assert split_writes(fork, 2) == ([], writes)
    assert split_writes(fork, 4) == (writes[:2], writes[2:])
    assert split_writes(fork, 5) == (writes, [])


@pytest.mark.parametrize(("hides", "fits"), [(7, True), (5, False), (4, False)])
def test_a_merge_brings_no_tombstone_of_exactly_what_is_merged_already(hides: int, fits: bool) -> None:
    fork = Fork("main", 1, 2, merged=5, joined=6, writes=List([sequence(8), sequence(7)]))
    only = (sequence(hides), sequence(hides))
    tombstone = Tombstone("t", 8, sequence(8), 7, an_id(1), 1, only=only)
    child = BranchState(8, tombstones=HashTrieMap({"t": tombstone}), fork=fork)
    if fits:
        assert _tombstones(child, fork, Merge("dev", 8)) == [tombstone]
        return
    with pytest.raises(Conflict, match="takes back a load that is merged already"):
        _tombstones(child, fork, Merge("dev", 8))


def test_a_commit_names_the_replaces_that_overtook_it_and_not_those_of_other_loads() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    begun = [pool.branch().begin_load() for _ in range(2)]
    pool.branch().replace_with(pa.table({"k": [1]}), key_range=pool.at().key_range(low=0, high=10))
    overtaken = []
    for load, key in zip(begun, (5, 50), strict=True):
        assert isinstance(load, PendingLoad)
        builder = pool.branch().builder(load)
        builder.add(Block(pa.table({"k": [key]})))
        written = builder.finish()
        done = pool.branch().commit(
            load, objects=[w.action for w in written], schemas=[w.schema for w in written]
        )
        overtaken.append(len(done.overtaken))
    assert overtaken == [1, 0]
