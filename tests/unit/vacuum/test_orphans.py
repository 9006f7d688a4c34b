"""Objects that were never committed are found by looking at new names only, and deleted by the vacuum."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, Corrupt, JournalLost
from lake_core.ids import ID_LENGTH, IdSource, first_id
from lake_core.naming import FORMATS, begun, entry, pool_journal
from log_lake.agents.checkpoint.run import checkpoint_and_purge, purge_pool, write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.leases import HeldLease, LeaseNote
from log_lake.loading.block import Block
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import WRITE, scan_orphans
from tests.support.stores import ScriptedStore
from tests.unit.vacuum.conftest import GRACE, World


def test_an_object_that_was_never_committed_is_deleted_after_the_grace_time(world: World) -> None:
    world.load(1)
    orphan = world.orphan()
    assert scan_orphans(world.pool).orphans == 0
    world.clock.now += 1
    world.load(2)
    world.wait()
    found = scan_orphans(world.pool)
    assert (found.listed, found.orphans, found.size) == (3, 1, 6)
    world.wait()  # the first scan of a pool cannot tell an orphan from what was removed before there was a list
    assert vacuum(world.pool).objects == 1
    assert orphan not in world.objects
    assert world.objects == world.held()


def test_orphans_of_later_scans_are_deleted_at_once(world: World) -> None:
    world.load(1)
    scan_orphans(world.pool)
    world.clock.now += 10
    orphan = world.orphan()
    world.clock.now += 1
    world.load(2)
    world.wait()
    assert scan_orphans(world.pool).orphans == 1
    assert vacuum(world.pool).objects == 1
    assert orphan not in world.objects


def test_a_scan_lists_only_names_that_no_scan_has_seen(world: World) -> None:
    for key in range(5):
        world.load(key)
    world.wait()
    assert scan_orphans(world.pool).listed == 5
    world.orphan()
    world.clock.now += 1
    world.load(9)
    world.wait()
    found = scan_orphans(world.pool)
    assert (found.listed, found.orphans) == (2, 1)
    assert scan_orphans(world.pool).listed == 0


def pending(world: World) -> tuple[PendingLoad, list[object], list[pa.Schema]]:
    branch = world.pool.branch()
    begun = branch.begin_load()
    assert isinstance(begun, PendingLoad)
    builder = branch.builder(begun)
    builder.add(Block(pa.table({"k": [5]})))
    written = builder.finish()
    return begun, [w.action for w in written], [w.schema for w in written]


def test_what_a_refused_writer_wrote_below_the_last_scan_is_deleted(world: World) -> None:
    """No scan looks at its object: the scan passed the id before the object was there."""
    world.load(1)
    behind = IdSource(clock=lambda: world.clock.now - 3 * GRACE)
    branch = Lake.open_on(world.store, ids=behind, author="behind").pool("p").branch()
    begun = branch.begin_load()
    assert isinstance(begun, PendingLoad)
    builder = branch.builder(begun)
    builder.add(Block(pa.table({"k": [5]})))
    world.wait()
    world.load(2)
    scan_orphans(world.pool)
    written = builder.finish()
    with pytest.raises(Conflict, match="a scan for orphans has passed it"):
        branch.commit(begun, objects=[w.action for w in written], schemas=[w.schema for w in written])
    assert len(world.objects - world.held()) == 1
    world.wait()
    vacuum(world.pool)
    assert world.objects == world.held()


def test_what_a_writer_left_below_the_last_scan_before_it_died_is_found_among_every_name(
    world: World,
) -> None:
    world.load(1)
    id = world.lake.context.ids.new()
    world.wait()
    world.load(2)
    scan_orphans(world.pool)
    world.wait()
    world.load(3)
    world.store.put(f"{world.pool.config.id}/data/{id}.parquet", b"orphan")
    world.wait()
    world.load(4)
    assert scan_orphans(world.pool).orphans == 0
    assert scan_orphans(world.pool, every_name=True).orphans == 1
    world.wait()
    assert vacuum(world.pool).objects == 1
    assert world.objects == world.held()


def test_a_stalled_writer_that_comes_back_is_refused(world: World) -> None:
    """Its objects may have been taken for orphans."""
    world.load(1)
    begun, objects, schemas = pending(world)
    world.clock.now += 1
    world.load(2)
    world.wait()
    assert scan_orphans(world.pool).orphans == 1
    with pytest.raises(Conflict, match="start again"):
        world.pool.branch().commit(begun, objects=objects, schemas=schemas)  # type: ignore[arg-type]
    assert world.load(6) > 0


def test_a_writer_that_commits_while_the_scan_begins_keeps_its_objects(world: World) -> None:
    world.load(1)
    begun, objects, schemas = pending(world)
    world.wait()
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=world.lake.context.ids).pool("p")

    def finish() -> None:
        world.pool.branch().commit(begun, objects=objects, schemas=schemas)  # type: ignore[arg-type]

    store.on("create", f"{2:020d}.txn", before=finish)
    assert scan_orphans(pool).orphans == 0
    world.wait()
    assert vacuum(pool).objects == 0
    assert world.pool.at().to_table()["k"].to_pylist() == [1, 5]


def test_a_scan_stays_below_a_writer_that_holds_a_lease(world: World) -> None:
    first = first_id(world.clock.now)
    begun, objects, schemas = pending(world)
    world.wait()
    note = LeaseNote("write", 0, "loader", 600.0, first=first)
    pool = world.pool
    with HeldLease(pool.store, pool.config.id, pool.context.ids.new(), note, renewing=False):
        assert scan_orphans(pool).orphans == 0
        pool.branch().commit(begun, objects=objects, schemas=schemas)  # type: ignore[arg-type]
    assert scan_orphans(pool).orphans == 0
    assert pool.at().to_table()["k"].to_pylist() == [5]


@pytest.mark.parametrize("format", FORMATS)
def test_the_object_at_which_a_scan_stopped_is_the_first_of_the_next(world: World, format: str) -> None:
    """The scan stops at an object that is newer than the newest write: the entry of its load may be lost."""
    world.load(1)
    orphan = world.orphan(format=format)
    world.wait()
    first = scan_orphans(world.pool)
    assert (first.orphans, first.upto[:ID_LENGTH], first.waits_for) == (0, orphan, WRITE)
    world.load(2)
    assert scan_orphans(world.pool).orphans == 1
    world.wait()
    assert vacuum(world.pool).objects == 1
    assert orphan not in world.objects


def test_an_object_of_a_writer_whose_clock_is_behind_is_young_by_the_clock_of_the_store(world: World) -> None:
    world.load(1)
    world.wait()
    late = world.orphan(seconds=world.clock.now - GRACE - 5)
    assert scan_orphans(world.pool).orphans == 0
    assert world.pool.history.load().state.removed.floor <= late


def test_a_deleted_branch_is_no_orphan(world: World) -> None:
    world.load(1)
    world.pool.create_branch("dev")
    world.pool.branch("dev").append(pa.table({"k": [7]}))
    world.pool.delete_branch("dev")
    world.wait()
    assert scan_orphans(world.pool).orphans == 0


def test_what_was_removed_is_no_orphan(world: World) -> None:
    world.replaced()
    world.wait()
    assert scan_orphans(world.pool).orphans == 0


def test_a_scan_that_is_killed_leaves_its_names_to_the_next(world: World) -> None:
    world.load(1)
    orphan = world.orphan()
    world.clock.now += 1
    world.load(2)
    world.wait()
    store = ScriptedStore(world.store)

    def kill() -> None:
        raise KeyboardInterrupt

    store.on("create", f"{4:020d}.txn", instead=kill)
    pool = Lake.open_on(store, ids=IdSource(clock=world.clock)).pool("p")
    with pytest.raises(KeyboardInterrupt):
        scan_orphans(pool)
    assert world.pool.history.load().state.removed.floor > orphan
    assert scan_orphans(world.pool).orphans == 1


def test_a_dry_run_changes_nothing(world: World) -> None:
    world.load(1)
    world.orphan()
    world.clock.now += 1
    world.load(2)
    world.wait()
    assert scan_orphans(world.pool, dry_run=True).orphans == 1
    assert world.pool.history.load().version == 2


def lose(world: World, *versions: int) -> Pool:
    """Delete entries, as a broken disk does, and the sign that there were any; returns the pool as a later process
    sees it."""
    world.store.delete(begun(pool_journal(world.pool.config.id)))
    for version in versions:
        world.store.delete(entry(pool_journal(world.pool.config.id), version))
    return world.reopened()


def test_a_pool_that_had_entries_and_has_none_has_no_orphans_but_damage(world: World) -> None:
    world.load(1)
    world.wait()
    world.store.delete(entry(pool_journal(world.pool.config.id), 1))
    for grace in (None, 0.0):
        with pytest.raises(JournalLost, match=r"all of it is gone.*lake rebuild"):
            scan_orphans(world.reopened(), grace=grace)
    assert len(world.objects) == 1


def test_a_pool_without_a_journal_has_no_orphans_but_damage(world: World) -> None:
    world.load(1)
    world.load(2)
    world.wait()
    pool = lose(world, 1, 2)
    for dry_run in (True, False):
        with pytest.raises(Corrupt, match=r"there is no entry, but 2 data objects.*lake rebuild p"):
            scan_orphans(pool, dry_run=dry_run)
    assert pool.history.load().version == 0


def test_a_scan_writes_no_first_entry(world: World) -> None:
    """It would hide that the journal is lost, and `lake rebuild` would refuse to make it anew in its place."""
    world.load(1)
    world.clock.now -= 1
    pool = lose(world, 1)
    assert scan_orphans(pool, grace=0.0).listed == 0, "the object is of this second"
    assert pool.history.load().version == 0


def test_objects_that_are_older_than_a_journal_that_began_anew_stay(world: World) -> None:
    world.load(1)
    world.load(2)
    before = world.objects
    pool = lose(world, 1, 2)
    pool.branch().append(pa.table({"k": [3]}))
    for _ in range(2):
        world.clock.now += 1
        pool.branch().append(pa.table({"k": [4]}))
        world.wait()
        assert scan_orphans(pool).orphans == 0
        assert vacuum(pool).objects == 0
    assert before < world.objects


def test_objects_of_entries_that_were_lost_at_the_end_stay_until_the_journal_goes_on(world: World) -> None:
    world.load(1)
    world.wait()
    scan_orphans(world.pool)
    version = world.load(2)
    world.load(3)
    world.wait()
    before = world.objects
    pool = lose(world, version, version + 1)
    for _ in range(3):  # entries of the scan itself do not show that the journal goes on
        assert scan_orphans(pool).orphans == 0
        assert vacuum(pool).objects == 0
        world.wait()
    assert world.objects == before


def test_a_scan_refuses_a_journal_that_ends_before_its_hint(world: World) -> None:
    for key in range(17):  # the sixteenth entry writes HEAD
        world.load(key)
    world.wait()
    pool = lose(world, 15, 16, 17)
    pool.branch().append(pa.table({"k": [0]}))
    with pytest.raises(Corrupt, match="names version 16, and the newest is 15: entries are lost"):
        scan_orphans(pool)


def test_an_expired_tag_whose_version_is_purged_does_not_stop_a_scan(world: World) -> None:
    world.load(1)
    world.pool.tag("old", expires=world.clock.now + 10)
    orphan = world.orphan()
    world.wait()
    world.load(2)
    world.wait()
    world.load(3)
    world.wait(10 * GRACE)
    assert checkpoint_and_purge(world.lake, "p", now=world.clock.now).checkpoints == 1
    world.load(4)
    assert scan_orphans(world.pool).orphans == 1
    world.wait()
    vacuum(world.pool)
    assert orphan not in world.objects


def test_a_checkpoint_of_a_writer_whose_clock_is_behind_makes_no_expired_tag_live_for_a_scan(
    world: World,
) -> None:
    world.load(1)
    world.pool.tag("old", expires=world.clock.now + 10)
    world.wait()
    world.load(2)
    behind = Lake.open_on(
        world.store, ids=IdSource(clock=lambda: world.clock.now - 3 * GRACE), author="behind"
    )
    write_checkpoint(behind, "p", now=world.clock.now)
    assert purge_pool(world.lake, "p", keep=0.0, now=world.clock.now + 1).checkpoints == 1
    world.wait()
    assert scan_orphans(world.reopened()).listed == 2
