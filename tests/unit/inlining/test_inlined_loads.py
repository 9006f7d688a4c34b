"""A small load is one PUT, its entry; everything that reads the pool finds its records there."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import InvalidInput, NotFound
from lake_core.history import Draft, History
from lake_core.history.create import putting
from lake_core.history.limits import MOST_INLINED
from lake_core.ids import IdSource
from lake_core.journal.purge import purge, write_newest
from lake_core.keys.encoding import encode_value
from lake_core.naming import FORMATS
from lake_core.records import Split
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.repair.fsck import Fsck
from log_lake.repair.removal import plan_repair, repair
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock
from tests.support.stores import ScriptedStore, raising

Row = dict[str, Any]
KINDS = ("append", "upsert", "aggregate")
SMALL = "64KiB"


def new_pool(
    store: Any,
    kind: str = "append",
    *,
    format: str = "parquet",
    inline: str = SMALL,
    clock: Clock | None = None,
) -> Pool:
    """A pool of a new lake, in which loads of up to `inline` bytes lie in the journal."""
    lake = Lake.create_on(store, ids=IdSource(clock=clock or Clock()))
    return lake.create_pool(
        "p",
        key="k",
        kind=kind,
        aggregates={"n": "sum"} if kind == "aggregate" else None,
        settings={"load.inline": inline, "format": format, "bad_records": "quarantine"},
    )


def load(pool: Pool, *rows: Row, branch: str = "main", token: str = "") -> int:
    done = pool.branch(branch).append(pa.Table.from_pylist(list(rows)), token=token)
    assert done.version is not None
    return done.version


def rows_of(pool: Pool, revision: str = "main", **how: Any) -> list[Row]:
    return list(pool.at(revision).to_table(**how).to_pylist())


def reopened(pool: Pool) -> Pool:
    """The pool as another process reads it."""
    return Lake.open_on(pool.store, ids=pool.context.ids).pool("p")


def files(pool: Pool) -> list[str]:
    return [info.name for info in pool.store.list(naming.data(pool.config.id))]


def checkpointed(pool: Pool) -> None:
    """Write a checkpoint, and purge all entries below it."""
    journal, context = pool.history.journal, pool.context
    _, at = write_newest(journal, new_id=context.ids.new, now=context.now())
    assert purge(journal, until=at).fence == at


def test_a_small_load_is_one_put_of_its_entry() -> None:
    store = ScriptedStore()
    pool = new_pool(store)
    load(pool, {"k": 1, "n": 1})  # a process writes the activity note of a pool once in a while
    store.requests.clear()
    load(pool, {"k": 2, "n": 1}, {"k": None, "n": 2})
    writes = [(request, name) for request, name in store.requests if request not in ("get", "list")]
    assert writes == [("create", naming.entry(naming.pool_journal(pool.config.id), 2))]
    assert files(pool) == []
    assert [row["k"] for row in rows_of(reopened(pool))] == [1, 2]


def test_a_load_above_the_limit_writes_a_file_and_small_ones_beside_it_do_not() -> None:
    pool = new_pool(MemoryStore(), inline="3000")
    load(pool, {"k": 1})
    assert files(pool) == []
    load(pool, *({"k": number, "text": f"{number * 7919 % 10007} and {number}"} for number in range(2_000)))
    assert len(files(pool)) == 1
    assert len(rows_of(pool)) == 2_001


def test_all_objects_of_a_load_share_one_limit() -> None:
    both = {"k": 1, "n": 1}, {"k": None, "n": 1}
    free = new_pool(MemoryStore())
    load(free, *both)
    assert files(free) == []
    pool = new_pool(MemoryStore(), inline=str(free.at().snapshot.inlined - 1))
    load(pool, *both)
    assert len(files(pool)) == 1
    assert rows_of(pool) == [{"k": 1, "n": 1}]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_records_are_the_same_with_and_without_files(kind: str, format: str) -> None:
    pools = [new_pool(MemoryStore(), kind, format=format, inline=inline) for inline in (SMALL, "0")]
    for pool in pools:
        load(pool, {"k": 1, "n": 1}, {"k": 3, "n": 1})
        load(pool, {"k": 1, "n": 2}, {"k": None, "n": 9})
        pool.branch().delete(key_range=pool.at().key_range(low=3))
        load(pool, {"k": 2, "n": 5}, {"k": 3, "n": 7})
    inlined, on_store = pools
    assert files(inlined) == [] != files(on_store)

    def same() -> None:
        for pool in (inlined, reopened(inlined)):
            for revision in ("main", "1", "2", "3", "4"):
                if int(revision if revision != "main" else 9) <= pool.history.journal.marks().fence:
                    continue
                assert rows_of(pool, revision) == rows_of(on_store, revision)
            assert rows_of(pool, where="n > 4") == rows_of(on_store, where="n > 4")
            assert pool.at().get(1).to_pylist() == on_store.at().get(1).to_pylist()
            nokey = pool.at_branch("main").of_sub_pool(naming.NOKEY)
            assert nokey.records == 1

    same()
    checkpointed(inlined)
    same()
    for pool in pools:
        plan = plan_pool(Lake.open_on(pool.store, ids=pool.context.ids), "p", strategy="full", now=0.0)
        compact_pool(Lake.open_on(pool.store, ids=pool.context.ids), "p", plan)
    assert files(inlined)
    assert not any(reference.data for reference in reopened(inlined).at().snapshot.all())
    same()


@pytest.mark.parametrize("kind", KINDS)
def test_compaction_takes_all_small_loads_and_also_a_single_one(kind: str) -> None:
    pool = new_pool(MemoryStore(), kind)
    lake = Lake.open_on(pool.store, ids=pool.context.ids)
    for number in range(200):
        load(pool, {"k": number % 7, "n": number}, {"k": None, "n": number})
    before = rows_of(pool)
    compact_pool(lake, "p", plan_pool(lake, "p", now=0.0))
    snapshot = reopened(pool).at().snapshot
    assert snapshot.inlined == 0, "many loads are written out by every strategy, those of sub-pools too"
    assert len(files(pool)) <= 4
    assert rows_of(reopened(pool)) == before
    load(pool, {"k": 1_000, "n": 0})
    compact_pool(lake, "p", plan_pool(lake, "p", strategy="full", now=0.0))
    assert reopened(pool).at().snapshot.inlined == 0


def test_a_pool_that_holds_much_in_its_journal_writes_files_until_a_compaction() -> None:
    pool = new_pool(MemoryStore(), inline="256KiB")
    noise = pa.table(
        {"k": range(20_000), "text": [f"{n * 2654435761 % 4294967291:x}" for n in range(20_000)]}
    )
    loads = 0
    while pool.at().snapshot.inlined + (200 << 10) < MOST_INLINED:
        pool.branch().append(noise)
        loads += 1
    assert pool.at().snapshot.inlined <= MOST_INLINED
    while not files(pool):
        pool.branch().append(noise)
        loads += 1
        assert loads < 200
    assert pool.at().snapshot.inlined <= MOST_INLINED
    for number in range(3):
        pool.create_branch(f"b{number}")
    with pytest.raises(InvalidInput, match="write them as files first"):
        pool.create_branch("one-too-many")
    lake = Lake.open_on(pool.store, ids=pool.context.ids)
    compact_pool(lake, "p", plan_pool(lake, "p", strategy="depth", now=0.0))
    assert pool.at().snapshot.inlined == 0
    pool.create_branch("one-more")


def test_an_old_lake_writes_files() -> None:
    store = MemoryStore()
    pool = new_pool(store)
    old = replace(pool, context=replace(pool.context, format_version=2))
    old.branch().append(pa.table({"k": [1]}))
    assert len(files(pool)) == 1


def test_a_limit_that_an_entry_has_no_room_for_is_refused() -> None:
    with pytest.raises(InvalidInput, match="262,144"):
        new_pool(MemoryStore(), inline="1MiB")


def test_branches_merges_reverts_and_restored_branches_carry_the_records() -> None:
    pool = new_pool(MemoryStore())
    load(pool, {"k": 1})
    pool.create_branch("dev")
    load(pool, {"k": 2}, branch="dev")
    load(pool, {"k": 3}, branch="dev")
    pool.branch("main").merge("dev")
    assert [row["k"] for row in rows_of(reopened(pool))] == [1, 2, 3]
    pool.branch("dev").revert(str(load(pool, {"k": 4}, branch="dev")))
    pool.create_branch("old", at="1")
    assert [row["k"] for row in rows_of(reopened(pool), "old")] == [1]
    assert [row["k"] for row in rows_of(pool, "dev")] == [1, 2, 3]
    lake = Lake.open_on(pool.store, ids=pool.context.ids)
    at = pool.history.load().version
    compact_pool(lake, "p", plan_pool(lake, "p", strategy="full", now=0.0))
    assert not any(reference.data for reference in pool.at().references)
    pool.branch("main").undo(str(at + 1))
    assert all(reference.data for reference in pool.at().references)
    root = pool.delete_branch("dev").root
    checkpointed(pool)
    pool.create_branch("dev", at=root)
    assert [row["k"] for row in rows_of(reopened(pool), "dev")] == [1, 2, 3]
    assert files(pool) != []


def test_a_token_commits_once() -> None:
    pool = new_pool(MemoryStore())
    first = load(pool, {"k": 1}, token="t")
    assert load(pool, {"k": 1}, token="t") == first
    assert rows_of(pool) == [{"k": 1}]


def test_nothing_of_a_removed_inlined_object_waits_for_a_vacuum() -> None:
    pool = new_pool(MemoryStore())
    lake = Lake.open_on(pool.store, ids=pool.context.ids)
    for number in range(3):
        load(pool, {"k": number})
    compact_pool(lake, "p", plan_pool(lake, "p", strategy="full", now=0.0))
    assert pool.history.load().state.removed.is_empty()
    assert [row["k"] for row in rows_of(pool, "3")] == [0, 1, 2], "an older version reads the entries"


def test_a_check_reads_the_bytes_in_the_journal() -> None:
    pool = new_pool(MemoryStore())
    load(pool, {"k": 1}, {"k": None})
    write_checkpoint(Lake.open_on(pool.store, ids=pool.context.ids), "p", now=pool.context.now())
    assert list(Fsck(pool.context, data=True).run()) == []


def test_a_damaged_inlined_object_is_found_and_can_be_taken_out() -> None:
    """The entry's own checksum holds: its writer put wrong bytes there."""
    pool = new_pool(MemoryStore())
    load(pool, {"k": 1})
    (reference,) = pool.at().references
    wrong = bytearray(reference.data)
    wrong[len(wrong) // 2] ^= 1
    other = IdSource(clock=Clock()).new()
    bad = msgspec.structs.replace(putting(reference), object=other, data=bytes(wrong))
    pool.history.commit(Draft(pool.context.ids.new(), "main", 1, "test", (bad,)))
    kinds = {f.kind for f in Fsck(pool.context, data=True).run()}
    assert kinds == {"object_damaged"}
    branch = pool.branch()
    repair(branch, plan_repair(branch, objects=[other], transactions=[]))
    assert list(Fsck(pool.context, data=True).run()) == []
    assert rows_of(pool) == [{"k": 1}]


def test_each_object_opens_alike_from_the_store_and_from_the_journal() -> None:
    stores = [MemoryStore(), MemoryStore()]
    for store, inline in zip(stores, (SMALL, "0"), strict=True):
        load(new_pool(store, inline=inline), {"k": 1}, {"k": 2})
    facts: list[Any] = []
    for store in stores:
        pool = Lake.open_on(store, ids=IdSource(clock=Clock())).pool("p")
        (reference,) = pool.at().references
        with DataObject.at(store, reference, pool_id=pool.config.id) as data:
            facts.append((data.size == reference.size, data.schema, data.group_rows, data.metadata.records))
    assert facts[0] == facts[1]


def test_a_pool_that_is_dropped_and_restored_has_its_records() -> None:
    pool = new_pool(MemoryStore())
    load(pool, {"k": 1})
    lake = Lake.open_on(pool.store, ids=pool.context.ids)
    lake.drop_pool("p")
    with pytest.raises(NotFound):
        lake.pool("p")
    lake.restore_pool("p")
    assert rows_of(lake.pool("p")) == [{"k": 1}]


def test_a_pool_of_an_old_lake_refuses_the_action_itself() -> None:
    pool = new_pool(MemoryStore())
    load(pool, {"k": 1})
    (reference,) = pool.at().references
    old = History(
        pool.store, pool_id=pool.config.id, key=pool.config.key, clock=pool.context.clock, format_version=2
    )
    with pytest.raises(InvalidInput, match="which has no inlined objects: run lake upgrade"):
        old.commit(Draft(pool.context.ids.new(), "main", 1, "test", (putting(reference),)))


def test_writers_at_once_commit_inlined_loads_together() -> None:
    """A draft of an inlined load is a request like any other: the writer of an entry takes it along."""
    store = ScriptedStore()
    pool = new_pool(store)
    other = reopened(pool)
    load(pool, {"k": 0})
    for number in (1, 2, 3):  # the first lost race ends what it believed (decision 482)
        entry = naming.entry(naming.pool_journal(pool.config.id), number + 1)
        store.on("create", entry, before=lambda k=number: load(reopened(pool), {"k": k}))
    load(other, {"k": 4})
    requests = [name for request, name in store.requests if request == "put" and naming.is_request(name)]
    assert requests, "the draft was posted"
    assert [row["k"] for row in rows_of(reopened(pool))] == [0, 1, 2, 3, 4]
    assert files(pool) == []


@pytest.mark.parametrize("when", ["before", "instead", "answer"])
def test_a_load_that_is_killed_at_its_only_write_is_there_or_not(when: str) -> None:
    store = ScriptedStore()
    pool = new_pool(store)
    load(pool, {"k": 1})
    entry = naming.entry(naming.pool_journal(pool.config.id), 2)
    killed = raising(KeyboardInterrupt())
    store.on("create", entry, **{when: killed})
    with pytest.raises(KeyboardInterrupt):
        load(pool, {"k": 2}, token="t")
    there = [row["k"] for row in rows_of(reopened(pool))]
    assert there == ([1, 2] if when == "answer" else [1])
    load(reopened(pool), {"k": 2}, token="t")
    assert [row["k"] for row in rows_of(reopened(pool))] == [1, 2]
    assert files(pool) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_compaction_that_is_killed_at_any_request_loses_nothing(kind: str) -> None:
    def prepared() -> tuple[ScriptedStore, Pool]:
        store = ScriptedStore()
        pool = new_pool(store, kind)
        for number in range(3):
            load(pool, {"k": number, "n": number}, {"k": 1, "n": number}, {"k": None, "n": 1})
        return store, pool

    def work(pool: Pool) -> None:
        lake = Lake.open_on(pool.store, ids=pool.context.ids)
        compact_pool(lake, "p", plan_pool(lake, "p", strategy="full", now=0.0))
        checkpointed(pool)

    store, pool = prepared()
    before, asked = rows_of(pool), len(store.requests)
    work(pool)
    for number in range(0, len(store.requests) - asked, 3):
        store, pool = prepared()
        left = number

        class Killing(ScriptedStore):
            def ask(self, request: str, name: str, call: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
                return super().ask(request, name, call)

        with contextlib.suppress(KeyboardInterrupt):
            work(Lake.open_on(Killing(store), ids=pool.context.ids).pool("p"))
        for _ in range(2):
            assert rows_of(reopened(pool)) == before
            work(reopened(pool))
        assert not any(reference.data for reference in reopened(pool).at().snapshot.all())


@pytest.mark.parametrize("count", [4, 100])
def test_compaction_by_ranges_writes_out_a_single_load_of_a_range_too(count: int) -> None:
    pool = new_pool(MemoryStore())
    lake = Lake.open_on(pool.store, ids=pool.context.ids)
    for number in range(count):
        load(pool, {"k": 10 * number, "n": number})
    points = tuple(encode_value(10 * number) for number in range(1, 4))
    pool.commit_actions((Split(points),), on=count, message="split")
    before = rows_of(pool)
    strategy = "full" if count == 4 else None  # so many are written out by each strategy
    compact_pool(lake, "p", plan_pool(lake, "p", strategy=strategy, now=0.0))
    assert not any(reference.data for reference in reopened(pool).at().references)
    assert len(files(pool)) == 4
    assert rows_of(reopened(pool)) == before
