"""The retention agent: all steps of a pool in their order, what it plans, hands out and reports."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Incomplete, InvalidInput, NotFound, Unavailable
from lake_core.ids import IdSource
from log_lake.agents.retention.run import DROPPED, TRANSACTIONS, plan, retain
from log_lake.indexes.names import index_folder
from log_lake.lake import Lake
from log_lake.lake.open_transactions import transactions
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here
from tests.support.agents import finder, reporter, run
from tests.support.clocks import DAY
from tests.support.stores import ScriptedStore, StoreInFront, unavailable
from tests.support.workers import Watched
from tests.unit.vacuum.conftest import GRACE, World

report = reporter("retention")
find = finder("retention")

DONE: dict[str, Any] = {
    "pool": "p",
    "branch": "main",
    "version": 9,
    "expired": 2,
    "records": 10,
    "expired_size": 1_000,
    "deletes": 1,
    "orphans": 1,
    "vacuumed": 3,
    "freed": 3_000,
    "spared": 0,
    "purged": 4,
    "ended": 0,
    "forgotten": 0,
}


def expiring() -> World:
    """A pool whose loads expire after five days, are vacuumed after seven more, and leave the journal then."""
    world = World()
    world.lake.catalog.configure("p", {"expire.age": "5d", "history.keep": "7d"})
    world.pool = world.lake.pool("p")
    for key in range(3):
        world.load(key)
    world.orphan()
    return world


def test_a_look_at_a_pool_looks_for_news_three_times_and_lists_four_folders() -> None:
    store = ScriptedStore()
    lake = Lake.create_on(store)
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    plan(lake, "p")
    store.requests.clear()
    assert plan(lake, "p").idle
    journal = naming.pool_journal(pool.config.id)
    next_of_the_list = [naming.entry(naming.POOLS_JOURNAL, version) for version in (2, 3)]
    next_of_the_pool = [naming.entry(journal, version) for version in (2, 3)]
    read = [*next_of_the_list, naming.gate(naming.POOLS_JOURNAL, 1)]
    read += [*next_of_the_pool, naming.gate(journal, 1)] * 3
    listed = [journal, naming.marks(journal), naming.data(pool.config.id), index_folder(pool.config.id)]
    asked = [*(("get", name) for name in read), *(("list", name) for name in listed)]
    assert sorted(store.requests) == sorted(asked)


def test_the_result_names_the_newest_version_that_each_step_committed() -> None:
    """Six days on loads expire, a day later orphans are found, after the grace time both are vacuumed."""
    world = expiring()
    world.wait(6 * DAY)
    versions = []
    for _ in range(3):
        before = world.pool.history.load().version
        done = retain(world.lake, "p")
        versions.append((done.version, world.pool.history.load().version))
        assert done.version is not None
        assert done.version > before
        world.load(9)  # another writer
        world.wait(8 * DAY)
    assert [own for own, _ in versions] == [newest for _, newest in versions]
    idle = Lake.create_on(MemoryStore())
    idle.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    assert retain(idle, "p").version is None


def test_what_expires_is_deleted_once_the_grace_time_is_over_and_leaves_the_journal() -> None:
    world = expiring()
    world.wait(6 * DAY)
    world.load(9)
    first = retain(world.lake, "p")
    assert (first.expired, first.records, first.vacuumed, first.orphans) == (3, 3, 0, 0)
    assert len(world.objects) == 5
    world.wait(2 * DAY)
    scanned = retain(world.lake, "p")
    assert (scanned.expired, scanned.orphans, scanned.vacuumed) == (0, 1, 0)
    world.wait(3 * DAY)
    assert retain(world.lake, "p").expired == 1
    world.wait(GRACE + DAY)
    last = retain(world.lake, "p")
    assert last.vacuumed == 5
    assert last.freed > 0
    assert world.objects == world.held() == set()
    assert not dict(world.pool.history.load().state.removed.items())
    newest = world.pool.history.load().version
    world.wait(GRACE + DAY)
    retain(world.lake, "p")
    assert world.pool.history.journal.marks().fence == newest
    assert plan(world.lake, "p").idle


def test_a_pool_without_work_is_idle_and_stays_as_it_is() -> None:
    world = World()
    world.load(1)
    work = plan(world.lake, "p")
    assert work.idle
    assert world.pool.history.load().version == 1


def test_the_plan_of_a_pool_names_every_step() -> None:
    world = expiring()
    world.compact()
    world.wait(GRACE + DAY)
    work = plan(world.lake, "p")
    assert (work.expiry.idle, work.deletable, work.has_new_names, work.unfinished) == (False, 3, True, 0)
    assert work.entries == 4
    assert work.size > 0
    assert world.pool.history.load().version == 4


def test_a_run_that_is_killed_in_the_vacuum_is_gone_on_with() -> None:
    world = World()
    world.load(1)
    world.load(2)
    world.compact()
    world.wait(GRACE + DAY)

    def fail(name: str, count: int) -> None:
        raise unavailable("deleting")

    with pytest.raises(Unavailable):
        retain(world.lake, "p", workers=Watched(Here.of(world.lake.context), fail))
    assert plan(world.lake, "p").unfinished == 1
    assert len(world.objects) == 3
    assert retain(world.lake, "p").vacuumed == 2
    assert world.objects == world.held()


class Killing(StoreInFront):
    """A store that ends the process before its request of this number."""

    def __init__(self, behind: MemoryStore, request: int) -> None:
        self.behind = behind
        self.left = request

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return call()


def test_killed_before_any_request_the_next_runs_end_with_the_same() -> None:
    for request in count():
        world = expiring()
        world.compact()
        world.wait(GRACE + DAY)
        store = Killing(world.store, request)
        with suppress(KeyboardInterrupt):
            retain(Lake.open_on(store, ids=IdSource(clock=world.clock)), "p")
        for _ in range(3):
            retain(world.lake, "p")
            world.wait(GRACE + DAY)
        assert world.objects == set(), f"killed before request {request}"
        assert world.reopened().at().to_table().num_rows == 0
        if store.left >= 0:  # there is no such request any more
            break
    assert request > 20


def lake_with_work(folder: Path) -> Lake:
    """Pools of two loads: one of them must go, the other pool has no policy."""
    lake = Lake.create(str(folder / "lake"))
    for name, settings in (("expiring", {"expire.records": "1"}), ("plain", {})):
        lake.create_pool(name, key="k", settings=settings)
        for key in (1, 2):
            lake.pool(name).branch().append(pa.table({"k": [key]}))
    return lake


def test_find_hands_out_the_pools_with_work_and_logs_their_plans(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_with_work(tmp_path)
    caplog.set_level(logging.INFO)
    params = {"lake": lake.store.uri}
    assert find(params | {"dry_run": True}) == []
    assert re.search(r"expiring: remove 1 whole object \(1 by expire\.records\): 1 record, ", caplog.text)
    assert "dry run: nothing is changed" in caplog.text
    (work,) = find(params)
    assert (work["pool"], work["branch"], work["title"]) == ("expiring", "main", "expiring: retention")
    assert lake.pool("expiring").at().records == 2
    retain(lake, work["pool"], branch=work["branch"])
    assert find(params) == []
    with pytest.raises(NotFound):
        find(params | {"pools": ["nobody"]})
    with pytest.raises(InvalidInput, match="unknown parameter 'branches'"):
        find(params | {"branches": ["main"]})


def test_a_run_for_all_pools_deletes_dropped_ones_once_their_grace_time_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lake = Lake.create(str(tmp_path / "lake"))
    ids = {}
    for name, grace in (("kept", "7d"), ("gone", "0s")):
        pool = lake.create_pool(name, key="k", settings={"vacuum.grace": grace})
        pool.branch().append(pa.table({"k": [1]}))
        ids[name] = pool.config.id
        lake.drop_pool(name)
    params = {"lake": lake.store.uri}
    assert find(params | {"dry_run": True}) == []
    assert "dropped pools: delete gone" in caplog.messages
    (work,) = find(params)
    assert (work["pool"], work["title"]) == (DROPPED, "dropped pools: delete")
    assert run("retention", work)["vacuumed"] > 0
    assert not list(lake.store.list(ids["gone"]))
    assert [dropped.pool.name for dropped in lake.dropped_pools()] == ["kept"]
    assert find(params) == []


def test_a_run_for_all_pools_ends_transactions_that_were_open_for_too_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    params = {"lake": lake.store.uri}
    open_still = lake.transaction()
    assert find(params) == []
    over = lake.transaction(open_for=0.001)
    over.pool("p").append(pa.table({"k": [2]}))
    assert find(params | {"dry_run": True}) == []
    assert f"transactions over pools: end {over.id}, open for too long" in caplog.messages
    assert set(lake.pool("p").history.load().state.branches.keys()) == {"main", over.branch}
    assert find(params | {"pools": ["p"]}) == []
    (work,) = find(params)
    assert (work["pool"], work["title"]) == (TRANSACTIONS, "transactions over pools: end")
    done = run("retention", work)
    assert (done["ended"], done["forgotten"]) == (1, 0)
    assert "transactions over pools: ended 1 transaction, open for too long" in caplog.messages
    assert [row.id for row in transactions(lake)] == [open_still.id]
    assert set(lake.pool("p").history.load().state.branches.keys()) == {"main"}
    assert find(params) == []


def test_a_decision_goes_when_its_grace_time_is_over(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    with lake.transaction() as tx:
        tx.pool("p").append(pa.table({"k": [2]}))
    params = {"lake": lake.store.uri}
    assert find(params) == []
    for path in (tmp_path / "lake" / "transactions" / tx.id).iterdir():
        os.utime(path, (path.stat().st_mtime - 2 * 3_600,) * 2)
    (work,) = find(params)
    assert run("retention", work)["forgotten"] == 1
    assert list(lake.store.list("transactions")) == []
    assert find(params) == []


def test_a_pool_that_cannot_be_read_is_handed_out_and_holds_back_no_other(tmp_path: Path) -> None:
    lake = lake_with_work(tmp_path)
    journal = lake.pool("plain").history.journal.name
    lake.store.put(f"{journal}/{1:020d}.txn", b"garbage")
    found = find({"lake": lake.store.uri})
    assert sorted(work["title"] for work in found) == ["expiring: retention", "plain: cannot be read"]


def test_a_report_says_what_was_done_also_if_a_pool_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = [{"pool": "p"}, {"pool": "q"}]
    idle = dict.fromkeys(DONE, 0) | {"pool": "q", "branch": "main"}
    assert report(found, [DONE, idle])["freed"] == 3_000
    assert caplog.messages == [
        "p: expired 2 whole objects, 10 records; hid old records beside newer ones; found 1 orphan; "
        "deleted 3 objects, 3.0 kB; purged 4 entries",
        "q: nothing to do",
        "2 pools: expired 2 whole objects, 10 records; hid old records beside newer ones; found 1 orphan; "
        "deleted 3 objects, 3.0 kB; purged 4 entries",
    ]
    with pytest.raises(Incomplete, match=r"^1 failure: q: run\[1\] failed; its log says why"):
        report(found, [DONE])
    with pytest.raises(Incomplete, match="the task `find` failed"):
        report(None, [])
