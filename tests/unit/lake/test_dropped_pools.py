"""A pool is dropped while others hold it: what they write afterwards is refused, and nothing is lost unsaid.

A `Pool` or `Branch` is of one pool, whatever its name becomes.  Dropping closes the pool's own journal, so a writer
finds out by losing a race: no commit asks the list of pools.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import LakeError, NotFound, OutcomeUnknown, Unavailable
from lake_core.records import Close
from log_lake.agents.checkpoint import run as checkpoint
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.exchange import commit
from log_lake.rewriting.work import write
from log_lake.workers import Here
from tests.support.stores import ALWAYS, ScriptedStore, lost, unavailable

DROPPED = r"the pool(?: '\w+')? was dropped by test at 20..-..-..T..:..:..Z \(version \d+\)"
LIST = "pools/00000000000000000002.txn"

Work = Callable[[Branch], object]


@pytest.fixture
def held(lake: Lake) -> Pool:
    """A pool that somebody goes on holding; its journal has two entries."""
    pool = lake.create_pool("p", key="k")
    pool.branch().append(records(1, 2, 3))
    pool.branch().append(records(2, 3, 4), token="used")
    return pool


def records(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def elsewhere(store: ScriptedStore) -> Lake:
    """The same lake, as another process opens it."""
    return Lake.open_on(store.behind, author="test")


def keys(pool: Pool) -> list[int]:
    found: list[int] = pool.at().to_table()["k"].to_pylist()
    return found


def stored(store: ScriptedStore, pool: Pool) -> set[str]:
    return {info.name for info in store.behind.list(pool.config.id)}


def finish_load(branch: Branch) -> Work:
    job = branch.begin_load()
    assert isinstance(job, PendingLoad)
    builder = branch.builder(job)
    builder.add(Block(records(9)))
    written = builder.finish()
    return lambda branch: branch.commit(
        job, objects=[w.action for w in written], schemas=[w.schema for w in written]
    )


def finish_compaction(branch: Branch) -> Work:
    references = branch.history.load().state.branches["main"].snapshot.overlapping()
    work = begin_compaction(branch, references, outputs=1, message="")
    written = write(work, Here.of(branch.context), branch.store)
    return lambda branch: commit(branch, work, written, does="merges")


WRITES: dict[str, Work] = {
    "append": lambda branch: branch.append(records(9)),
    "append under a new token": lambda branch: branch.append(records(9), token="new"),
    "append under a token that was used": lambda branch: branch.append(records(9), token="used"),
    "append nothing": lambda branch: branch.append(records()),
    "delete": lambda branch: branch.delete(where="k = 2"),
    "delete what is not there": lambda branch: branch.delete(where="k = 77"),
    "delete under a token that was used": lambda branch: branch.delete(where="k = 77", token="used"),
    "replace": lambda branch: branch.replace_with(records(2)),
    "begin a load": lambda branch: branch.begin_load(),
    "begin a replace": lambda branch: branch.begin_replace(),
    "compact": lambda branch: compact(
        branch, branch.history.load().state.branches["main"].snapshot.overlapping()
    ),
}
UNDER_WAY = {"load": finish_load, "compaction": finish_compaction}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("again", [False, True], ids=["gone", "made anew"])
def test_a_branch_that_is_held_writes_nothing_once_its_pool_is_dropped(
    store: ScriptedStore, held: Pool, write: Work, again: bool
) -> None:
    branch = held.branch()
    elsewhere(store).drop_pool("p")
    if again:
        elsewhere(store).create_pool("p", key="k")
    before = stored(store, held)
    with pytest.raises(NotFound, match=DROPPED):
        write(branch)
    left = stored(store, held) - before  # an append that believes its memory has put its object
    assert all(naming.data_id(name) for name in left)
    if again:
        assert elsewhere(store).pool("p").at().version == 0


@pytest.mark.parametrize("begin", UNDER_WAY.values(), ids=UNDER_WAY.keys())
def test_work_that_was_under_way_is_refused_when_it_commits(
    store: ScriptedStore, held: Pool, begin: Callable[[Branch], Work]
) -> None:
    branch = held.branch()
    finish = begin(branch)
    elsewhere(store).drop_pool("p")
    for _ in range(2):  # a refusal is final
        with pytest.raises(NotFound, match=DROPPED):
            finish(branch)


def test_deletes_of_a_dropped_pool_are_not_applied(store: ScriptedStore, held: Pool) -> None:
    branch = held.branch()
    branch.delete(where="k = 2")
    elsewhere(store).drop_pool("p")
    with pytest.raises(NotFound, match=DROPPED):
        tombstones.apply(branch, now=branch.context.now(), at_once=True)


def test_a_drop_that_is_faster_by_one_request_wins(store: ScriptedStore, held: Pool) -> None:
    store.on("create", "journal/00000000000000000003.txn", before=lambda: elsewhere(store).drop_pool("p"))
    with pytest.raises(NotFound, match=DROPPED):
        held.branch().append(records(9))
    assert held.history.journal.load().version == 3


def test_a_load_that_is_faster_by_one_request_is_in_the_pool_that_is_dropped(
    store: ScriptedStore, lake: Lake, held: Pool
) -> None:
    store.on(
        "create",
        "journal/00000000000000000003.txn",
        before=lambda: elsewhere(store).pool("p").branch().append(records(9)),
    )
    lake.drop_pool("p")
    assert sorted(r.records for _, t in held.log() for r in t.actions if hasattr(r, "records")) == [1, 3, 3]


def test_a_request_that_waits_for_others_is_not_committed_after_the_drop(
    store: ScriptedStore, held: Pool
) -> None:
    branch = held.branch()
    branch.history._contended = 1  # it has met others, and asks them before it tries
    store.on("list", "journal/requests", before=lambda: elsewhere(store).drop_pool("p"))
    with pytest.raises(NotFound, match=DROPPED):
        branch.append(records(9))
    assert [info.name for info in store.behind.list(f"{held.config.id}/journal/requests")] == []


def test_the_pool_that_is_held_is_not_found_once_it_is_dropped(store: ScriptedStore, held: Pool) -> None:
    view, feed = held.at(), held.feed()
    elsewhere(store).drop_pool("p")
    for ask in (held.at, held.branch, held.feed, feed.newest, lambda: held.at("1")):
        with pytest.raises(NotFound, match=DROPPED):
            ask()
    assert view.to_table()["k"].to_pylist() == [1, 2, 2, 3, 3, 4]


def test_a_rename_changes_nothing_for_those_who_hold_the_pool(store: ScriptedStore, held: Pool) -> None:
    branch = held.branch()
    elsewhere(store).catalog.rename("p", "q")
    branch.append(records(9))
    assert keys(held) == keys(elsewhere(store).pool("q")) == [1, 2, 2, 3, 3, 4, 9]


def test_a_drop_deletes_nothing_from_the_store(store: ScriptedStore, lake: Lake, held: Pool) -> None:
    before = stored(store, held)
    lake.drop_pool("p")
    assert stored(store, held) == before | {naming.entry(f"{held.config.id}/journal", 3)}
    assert store.asked("delete", ".parquet") == store.asked("delete", ".txn") == 0


def test_a_drop_that_ended_between_its_two_writes_is_finished_by_another(
    store: ScriptedStore, lake: Lake, held: Pool
) -> None:
    store.on("create", LIST, instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        lake.drop_pool("p")
    assert [p.name for p in elsewhere(store).pools()] == ["p"]
    with pytest.raises(NotFound, match="run lake drop or lake restore again"):
        elsewhere(store).pool("p").branch()
    elsewhere(store).drop_pool("p")
    assert elsewhere(store).pools() == []
    with pytest.raises(NotFound, match="does not exist"):
        elsewhere(store).drop_pool("p")
    assert held.history.journal.load().version == 3


def test_two_drops_at_once_close_the_pool_once(store: ScriptedStore, lake: Lake, held: Pool) -> None:
    def other() -> None:
        elsewhere(store).drop_pool("p")
        elsewhere(store).create_pool("p", key="k")

    store.on("create", "journal/00000000000000000003.txn", before=other)
    with pytest.raises(NotFound, match="another command dropped it"):
        lake.drop_pool("p")
    assert [p.name for p in elsewhere(store).pools()] == ["p"]
    assert held.history.journal.load().version == 3


def test_a_drop_whose_answer_is_lost_is_run_again(store: ScriptedStore, lake: Lake, held: Pool) -> None:
    entry = "journal/00000000000000000003.txn"
    store.on("create", entry, answer=lost)
    store.on("get", entry, instead=unavailable, times=ALWAYS)
    with pytest.raises((OutcomeUnknown, Unavailable)):
        lake.drop_pool("p")
    elsewhere(store).drop_pool("p")
    assert elsewhere(store).pools() == []


def test_the_end_of_a_pool_is_kept_in_checkpoints(store: ScriptedStore, lake: Lake, held: Pool) -> None:
    store.on("create", LIST, instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        lake.drop_pool("p")
    other = elsewhere(store)
    assert checkpoint.write_checkpoint(other, "p", now=other.context.now())[0]
    assert checkpoint.purge_pool(other, "p", keep=0.0, now=other.context.now()).fence == 3
    with pytest.raises(NotFound, match=DROPPED):
        elsewhere(store).pool("p").branch()
    with pytest.raises(NotFound, match=DROPPED):
        held.branch().append(records(9))


def test_a_pool_whose_journal_cannot_be_read_can_be_dropped(
    store: ScriptedStore, lake: Lake, held: Pool
) -> None:
    store.behind.put(naming.entry(f"{held.config.id}/journal", 1), b"noise")
    elsewhere(store).drop_pool("p")
    assert elsewhere(store).pools() == []


def test_a_sub_pool_cannot_be_dropped_and_leaves_its_pool_alone(lake: Lake, held: Pool) -> None:
    with pytest.raises(NotFound):
        lake.drop_pool("p.$nokey")
    held.branch().append(records(9))


def test_a_commit_asks_nothing_of_the_list_of_pools(store: ScriptedStore, held: Pool) -> None:
    branch = held.branch()
    branch.append(records(8))
    store.requests.clear()
    branch.append(records(9))
    assert [(r, n) for r, n in store.requests if n.startswith("pools")] == []
    assert store.asked("create", ".txn") == 1


def test_what_many_threads_were_told_is_in_the_history_before_its_end(tmp_path: object) -> None:
    lake = Lake.create(str(tmp_path), author="test")
    pool = lake.create_pool("p", key="k")
    acknowledged: list[str] = []
    refused: list[LakeError] = []

    def write(branch: Branch) -> None:
        for number in range(200):
            try:
                landed = branch.append(records(number))
            except NotFound as error:
                refused.append(error)
                return
            assert landed.transaction_id is not None
            acknowledged.append(landed.transaction_id)

    branches = [Lake.open(str(tmp_path), author="test").pool("p").branch() for _ in range(4)]
    threads = [threading.Thread(target=write, args=(branch,)) for branch in branches]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 20 and any(thread.is_alive() for thread in threads):
        threading.Event().wait(0.005)
    Lake.open(str(tmp_path), author="test").drop_pool("p")
    for thread in threads:
        thread.join()
    assert len(refused) == len(threads)
    newest_first = [t for _, t in pool.log()]
    assert [type(action) for action in newest_first[0].actions] == [Close]
    assert {t.id for t in newest_first[1:]} == set(acknowledged)
    assert len(newest_first) == len(acknowledged) + 1
