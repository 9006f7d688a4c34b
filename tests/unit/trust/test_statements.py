"""Statements of docs/trust.md that no test of a room holds: what each right alone allows, and what names tell."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, Denied, Incomplete, ObjectVacuumed
from lake_core.history.activity import write_note
from lake_core.records.pools import PoolConfig
from local.rights import PAGE, ROLES, Operation, Role, allows
from log_lake.agents import driver
from log_lake.agents.ingest.parking import park
from log_lake.agents.packs import write_packs
from log_lake.agents.put_off_jobs import record_put_off
from log_lake.agents.quiet import Quiet
from log_lake.agents.request import Request
from log_lake.agents.roster import AGENTS
from log_lake.agents.work import PutOff
from log_lake.erasure.run import erase
from log_lake.lake import Lake
from log_lake.leases import HeldLease, LeaseNote
from log_lake.loading.source_files import SourceFile
from log_lake.publish.run import publish_iceberg
from log_lake.repair.fsck import Fsck
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.texts.keytext import RangeText
from log_lake.vacuum.dropped import plan_dropped
from log_lake.vacuum.execute import make_plan, vacuum, vacuum_lease, write_plan
from spark_apps.command import run_agent
from tests.support.command import Command
from tests.support.crafted import craft
from tests.support.records import an_id
from tests.support.rights import RightsStore
from tests.support.roles import World

URI = "memory://statements"


def lake_of(*names: str) -> Lake:
    """A lake with these pools, of three records in two objects each."""
    lake = Lake.create_on(MemoryStore(URI))
    for name in names:
        pool = lake.create_pool(name, key="k")
        pool.branch().append(pa.table({"k": [1, 2]}))
        pool.branch().append(pa.table({"k": [3]}))
    return lake


def with_rights(lake: Lake, may: Callable[[Operation, str], bool]) -> Lake:
    """The lake for a process that may read and list all, and else only this."""
    reads = (Operation.READ, Operation.LIST)
    return Lake.open_on(RightsStore(lake.store.behind, lambda o, name: o in reads or may(o, name)))


# --- the names of objects


def test_names_of_objects_tell_published_branches_and_nothing_else_that_a_person_wrote(
    tmp_path: Path,
) -> None:
    lake = Lake.create(str(tmp_path / "lake"), author="hush-author")
    pool = lake.create_pool(
        "hush-pool", key="hush_key", settings={"description": "hush", "vacuum.grace": "0s"}
    )
    records = pa.table({"hush_key": ["hush-1", "hush-2"], "hush_field": ["hush", None]})
    for token in ("hush-token", "hush-again"):
        pool.branch().append(records, token=token, message="hush-message")
    pool.create_branch("hush-branch")
    pool.branch("hush-branch").append(records)
    pool.tag("hush-tag", at="main", reason="hush-reason")
    compact(pool.branch(), pool.at().references)
    pool.branch().delete(where="hush_key = 'hush-1'", reason="hush-reason")
    HeldLease(lake.store, pool.config.id, an_id(20), LeaseNote("read", 1, "hush", 600.0, "hush")).take()
    with vacuum_lease(pool, "hush") as lease:
        write_plan(pool, make_plan(pool, lease, grace=0.0))
    park(pool, SourceFile("s3://hush/hush.json", 3, "hush", 1.0), why="hush", now=1.0)
    write_packs(lake, [[{"pool": "hush-pool", "title": "hush"}]])
    quiet = Quiet.of(lake, Request(lake.store.uri), agent="compact")
    quiet.found_nothing(pool.config)
    quiet.write()
    record_put_off(lake, [PutOff(pool="hush-pool", title="hush", why="hush")], agent="compact")
    erase(pool, where="hush_key = 'hush-2'", grace=0.0)
    assert [info.name for info in lake.store.list("") if "hush" in info.name] == []
    publish_iceberg(pool, branch="hush-branch")
    named = {info.name for info in lake.store.list("") if "hush" in info.name}
    folder = naming.published(pool.config.id, "iceberg", "hush-branch")
    assert named
    assert all(name.startswith(folder) and "hush" not in name.removeprefix(folder) for name in named)


# --- what one right allows


def test_who_may_write_the_list_of_pools_changes_every_pool_there_and_no_record() -> None:
    lake = lake_of("p", "q")
    only = with_rights(lake, lambda operation, name: name.startswith("pools"))
    config = only.pool("p").config
    only.catalog.create(PoolConfig(an_id(7), "new", config.key))
    only.catalog.configure("p", {"description": "changed"})
    only.catalog.rename("p", "renamed")
    only.catalog.drop(only.pool("q").config)
    only.catalog.restore(lake.dropped_pools()[0].pool.id, name="q")
    seen = Lake.open_on(lake.store)
    assert [pool.name for pool in seen.pools()] == ["new", "q", "renamed"]
    assert seen.pool("renamed").config.settings == {"description": "changed"}
    with pytest.raises(Denied):
        only.pool("renamed").branch().append(pa.table({"k": [9]}))
    assert seen.pool("renamed").at().to_table()["k"].to_pylist() == [1, 2, 3]


def test_who_may_write_the_list_of_pools_chooses_what_the_ingest_agent_reads(tmp_path: Path) -> None:
    """The agent reads with its own rights, here a file to which the list of pools gives no right."""
    lake = lake_of("p")
    (tmp_path / "a.ndjson").write_text('{"k": 9}\n')
    only = with_rights(lake, lambda operation, name: name.startswith("pools"))
    only.catalog.configure("p", {"ingest.source": f"{tmp_path}/*.ndjson", "ingest.batch_age": "0s"})
    run_agent("ingest", {"pools": ["p"]}, lake=lake)
    assert lake.pool("p").at().to_table()["k"].to_pylist() == [1, 2, 3, 9]


def test_who_may_write_below_one_folder_changes_that_pool_alone() -> None:
    lake = lake_of("p", "q")
    folder = f"{lake.pool('p').config.id}/"
    writes = (Operation.CREATE, Operation.PUT)
    only = with_rights(lake, lambda operation, name: operation in writes and name.startswith(folder))
    only.pool("p").branch().append(pa.table({"k": [9]}))
    only.pool("p").branch().delete(where="k = 1")
    with pytest.raises(Denied):
        only.pool("q").branch().append(pa.table({"k": [9]}))
    for name in [info.name for info in lake.store.list(folder) if naming.entry_version(info.name)]:
        only.store.put(name, b"x")
    seen = Lake.open_on(lake.store)
    with pytest.raises(Corrupt):
        seen.pool("p").at()
    assert seen.pool("q").at().to_table()["k"].to_pylist() == [1, 2, 3]


def test_who_may_delete_below_one_folder_destroys_that_pool_alone() -> None:
    lake = lake_of("p", "q")
    folder = f"{lake.pool('p').config.id}/"
    deletes = Operation.DELETE
    only = with_rights(lake, lambda operation, name: operation is deletes and name.startswith(folder))
    only.store.delete_all([info.name for info in lake.store.list(folder)])
    with pytest.raises(Denied):
        only.store.delete_all([info.name for info in lake.store.list(lake.pool("q").config.id)])
    seen = Lake.open_on(lake.store)
    assert seen.pool("p").at().to_table().num_rows == 0
    assert seen.pool("q").at().to_table()["k"].to_pylist() == [1, 2, 3]


def test_a_reader_reads_deleted_records_until_a_vacuum() -> None:
    lake = lake_of("p")
    pool = lake.pool("p")
    reader = Lake.open_on(
        RightsStore(
            lake.store.behind, lambda o, name: allows(ROLES["reader"], o, name, {"POOL": pool.config.id})
        )
    )
    pool.branch().delete(key_range=RangeText(low="1", high="3"))
    before = reader.pool("p").at_version(2)
    assert reader.pool("p").at().to_table()["k"].to_pylist() == [3]
    assert before.to_table()["k"].to_pylist() == [1, 2, 3]
    compact(pool.branch(), pool.at().references)
    assert vacuum(pool, grace=0.0).objects > 0
    with pytest.raises(ObjectVacuumed):
        reader.pool("p").at_version(2).to_table()


# --- forgeries that the page names


def test_fsck_finds_a_checkpoint_that_leaves_records_out_while_the_entries_are_there() -> None:
    lake = lake_of("p", "q")
    craft(
        lake.pool("p").history.journal,
        lambda rows: [one for one in rows if one["section"] != "reference"],
        id=an_id(7),
    )
    seen = Lake.open_on(lake.store)
    assert seen.pool("p").at().to_table().num_rows == 0, "readers believe it: nothing is signed"
    found = [one for one in Fsck(seen.context).run() if "checkpoint" in one.kind]
    assert {one.pool for one in found} == {"p"}


def test_a_forged_memory_of_agents_hides_only_pools_to_which_nothing_is_written() -> None:
    store = MemoryStore(URI, clock=lambda: time.time() - 86_400)  # what was written is old enough to be quiet
    lake = Lake.create_on(store)
    for name in ("p", "q"):
        pool = lake.create_pool(name, key="k", settings={"compact.depth": "2"})
        for _ in range(4):
            pool.branch().append(pa.table({"k": [1]}))
    find = driver.find
    assert {one.pool for one in find("compact", {"lake": URI}, open_lake=lambda _: lake).work} == {"p", "q"}
    asked = Request.read({"lake": URI}, also=AGENTS["compact"].parameters)
    memory = Quiet.of(lake, asked, agent="compact")
    for pool in lake.pools():
        memory.found_nothing(pool)
    memory.write()
    assert list(find("compact", {"lake": URI}, open_lake=lambda _: lake).work) == []
    store._clock = time.time
    write_note(lake.store, lake.pool("q").config.id)
    assert [one.pool for one in find("compact", {"lake": URI}, open_lake=lambda _: lake).work] == ["q"]


# --- roles


@pytest.mark.parametrize("sweeps", [True, False])
def test_retention_of_all_pools_needs_the_rights_of_the_sweeper(tmp_path: Path, sweeps: bool) -> None:
    world = World(tmp_path)
    rights = (*ROLES["agent retention"].rights, *(ROLES["sweeper"].rights if sweeps else ()))
    ids = {"POOL": "*", "JOBS": "*"}
    store = world.limited(lambda operation, name: allows(Role("", rights), operation, name, ids))
    if sweeps:
        run_agent("retention", {}, lake=world.open(store))
        assert plan_dropped(world.open(world.store)) == []
        return
    with pytest.raises(Incomplete, match="dropped pools"):
        run_agent("retention", {}, lake=world.open(store))
    assert store.denied
    assert [one.name for one in plan_dropped(world.open(world.store))] == ["gone"]


def test_an_agent_without_airflow_needs_no_packs(tmp_path: Path) -> None:
    world = World(tmp_path)
    role, ids = ROLES["agent compact"], {"POOL": world.pools["p"], "JOBS": world.jobs}
    store = world.limited(
        lambda operation, name: not name.startswith("packs") and allows(role, operation, name, ids)
    )
    assert run_agent("compact", {"pools": ["p"]}, lake=world.open(store))["jobs"] > 0
    assert not any(name.startswith("packs") for _, name in store.denied)


def test_the_command_shows_the_id_that_the_tables_and_policies_need(tmp_path: Path) -> None:
    command = Command(str(tmp_path / "lake"), tmp_path)
    id = Lake.create(command.uri).create_pool("p", key="k").config.id
    assert id in command("show", "p").out
    assert "(`lake show POOL`)" in PAGE.read_text()
