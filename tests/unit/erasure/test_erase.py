"""An erasure removes records from the bytes of every object, and says what it may not remove yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput, NotFound, ObjectVacuumed
from lake_core.ids import IdSource
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER, encode_key
from lake_core.naming import FORMATS
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.agents.tombstones import run as tombstones
from log_lake.erasure.begin import begin
from log_lake.erasure.holders import ANOTHER_RUN, release
from log_lake.erasure.noting import Notes
from log_lake.erasure.receipt import DONE, PENDING, read, read_all
from log_lake.erasure.run import erase, go_on
from log_lake.erasure.sighting import look
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.leases import HeldLease, LeaseNote
from log_lake.objects.read import DataObject
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.rewriting.compaction import begin_compaction
from log_lake.rewriting.work import write_whole
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import WRITE, scan_orphans
from log_lake.workers import Here
from tests.support.rewrites import lost
from tests.support.stores import ALWAYS, ScriptedStore
from tests.support.workers import Watched
from tests.unit.erasure.conftest import World, is_ann

ANN = "who = 'ann'"


def key(pool: Pool, value: object) -> KeyRange:
    prefix = pool.at().bound(value)
    return KeyRange(prefix, prefix + AFTER)


def another(world: World) -> tuple[ScriptedStore, Pool]:
    """The pool as another process has it, and what happens at its requests."""
    store = ScriptedStore(world.store)
    return store, Lake.open_on(store, ids=IdSource(clock=world.clock)).pool(world.pool.name)


def test_a_run_that_meets_such_records_after_another_has_finished_goes_on_with_the_erasure(
    world: World,
) -> None:
    """Otherwise a kill would leave a receipt that says done, and an object that nobody looks for."""
    world.people("ann", "bob")
    pending = begin(world.pool, where=ANN)
    store, pool = another(world)
    receipt = naming.erasure(pool.config.id, pending.id)
    store.on("get", receipt, before=lambda: go_on(world.pool, pending))
    store.on("put", receipt, before=lambda: world.people("ann", first=10))
    store.on("delete_all", "", instead=killed, times=ALWAYS)
    with pytest.raises(KeyboardInterrupt):
        go_on(pool, pending)
    left = read(world.pool, pending.id)
    assert left.status == PENDING
    assert go_on(world.pool, left).status == DONE
    assert not world.holding(is_ann)


def test_a_run_does_not_say_that_it_is_done_while_another_one_has_named_an_object_that_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.people("ann", "bob")
    pending = begin(world.pool, where=ANN)
    _, pool = another(world)

    def tagged() -> None:  # when the run has looked at everything
        world.people("ann", first=10)
        world.pool.tag("keep")
        assert go_on(world.pool, pending).status == PENDING

    def gather(self: Notes, target: Any) -> None:
        if self.pool.context is pool.context and not calls:
            calls.append(1)
            tagged()
        looked(self, target)

    calls: list[int] = []
    looked = Notes.gather
    monkeypatch.setattr(Notes, "gather", gather)
    done = go_on(pool, pending)
    assert calls
    assert done.status == PENDING
    assert {one.by for one in done.held} == {ANOTHER_RUN}
    advice = release(ANOTHER_RUN, pool_name="p", erasure_id=done.id)
    assert advice == f"let it end, then: lake erase p --resume {done.id} --yes"
    world.pool.delete_tag("keep")
    assert go_on(world.pool, done).status == DONE
    assert not world.holding(is_ann)


def test_an_erasure_that_ends_while_another_asks_to_keep_history_is_looked_at_again(world: World) -> None:
    world.people("ann", "bob")
    pending = begin(world.pool, where=ANN)
    store, pool = another(world)

    def ends() -> None:  # the other process has seen it as pending
        go_on(world.pool, pending)
        world.people("ann", first=10)

    receipt = naming.erasure(pool.config.id, pending.id)
    store.on("get", receipt, before=lambda: None)
    store.on("get", receipt, before=ends)
    assert erase(pool, where=ANN, keeps_history=True).status == DONE
    assert not world.holding(is_ann)


def killed() -> None:
    raise KeyboardInterrupt


def test_no_object_holds_the_record_afterwards_and_the_others_stay(world: World) -> None:
    world.people("ann", "bob")
    world.people("cid", first=10)
    untouched = set(world.objects) - world.holding(is_ann)
    done = erase(world.pool, where=ANN)
    assert done.status == DONE
    assert world.names() == ["bob", "cid"]
    assert not world.holding(is_ann)
    assert untouched <= set(world.objects)  # only what holds such a record is rewritten
    assert len(done.erased) == len(done.written) == 1
    assert not list(verify(world.reopened(), done))


def test_records_that_were_deleted_before_are_erased_too(world: World) -> None:
    world.people("ann", "bob")
    world.pool.branch().delete(where=ANN)
    assert world.holding(is_ann)
    assert erase(world.pool, where=ANN).status == DONE
    assert not world.holding(is_ann)


def test_removed_objects_that_hold_such_records_do_not_wait_for_the_grace_time(world: World) -> None:
    world.people("ann", "bob")
    world.people("cid", first=1)
    before = set(world.objects)
    world.compact()
    others = {"dan"}
    world.people(*others, first=50)
    done = erase(world.pool, where=ANN)
    assert done.status == DONE
    assert not world.holding(is_ann)
    removed = {one.object for one in done.erased}
    assert len(removed & before) == 1  # the object of cid still waits for its grace time
    assert world.names() == ["bob", "cid", "dan"]


def test_every_branch_is_erased(world: World) -> None:
    world.people("ann", "bob")
    world.pool.create_branch("dev")
    world.people("ann", "eve", first=20, branch="dev")
    done = erase(world.pool, where=ANN)
    assert done.status == DONE
    assert not world.holding(is_ann)
    assert world.names("dev") == ["bob", "eve"]
    world.pool.branch().merge("dev")
    assert world.names() == ["bob", "eve"]


def test_a_tag_holds_its_objects_until_it_is_deleted(world: World) -> None:
    world.people("ann", "bob")
    world.pool.tag("yearly")
    pending = erase(world.pool, where=ANN)
    assert pending.status == PENDING
    assert world.names() == ["bob"]
    assert {one.object for one in pending.held} == world.holding(is_ann)
    assert {one.by for one in pending.held} == {"tag yearly"}
    assert list(verify(world.pool, pending))
    world.pool.delete_tag("yearly")
    done = erase(world.reopened(), where=ANN)  # the same command goes on
    assert (done.id, done.status, done.held) == (pending.id, DONE, ())
    assert not world.holding(is_ann)
    assert [one.id for one in read_all(world.pool)] == [done.id]
    assert not list(verify(world.pool, done))


def test_a_deleted_branch_holds_its_objects_until_its_tag_is_deleted(world: World) -> None:
    world.people("bob")
    world.pool.create_branch("dev")
    world.people("ann", first=20, branch="dev")
    root = world.pool.delete_branch("dev").root
    pending = erase(world.pool, where=ANN)
    assert pending.status == PENDING
    assert {one.by for one in pending.held} == {f"deleted branch {root}"}
    world.pool.delete_tag(root)
    assert erase(world.pool, where=ANN).status == DONE
    assert not world.holding(is_ann)


def test_a_branch_that_is_restored_meanwhile_is_erased(world: World) -> None:
    world.people("bob")
    world.pool.create_branch("dev")
    world.people("ann", "eve", first=20, branch="dev")
    root = world.pool.delete_branch("dev").root
    assert erase(world.pool, where=ANN).status == PENDING
    world.pool.create_branch("dev", at=root)
    assert world.names("dev") == ["bob", "ann", "eve"]
    world.pool.delete_tag(root)
    assert erase(world.pool, where=ANN).status == DONE
    assert world.names("dev") == ["bob", "eve"]
    assert not world.holding(is_ann)


def test_a_live_lease_holds_its_objects_and_a_dead_one_nothing(world: World) -> None:
    world.people("ann", "bob")
    note = LeaseNote("read", world.pool.history.load().version, "reader", 600.0, "report")
    lease = HeldLease(
        world.pool.store, world.pool.config.id, world.pool.context.ids.new(), note, renewing=False
    )
    with lease:
        pending = erase(world.pool, where=ANN)
        assert pending.status == PENDING
        assert {one.by for one in pending.held} == {f"lease {lease.id} of reader (report)"}
        assert world.holding(is_ann)
        world.clock.now += 601
        assert go_on(world.pool, pending).status == DONE
    assert not world.holding(is_ann)


def test_a_writer_that_began_before_may_still_write_such_records(world: World) -> None:
    world.people("ann", "bob")

    def writer() -> HeldLease:
        note = LeaseNote("write", world.pool.history.load().version, "spark", 600.0, "compaction")
        return HeldLease(
            world.pool.store, world.pool.config.id, world.pool.context.ids.new(), note, renewing=False
        )

    with writer() as lease:
        pending = erase(world.pool, where=ANN)
        assert pending.status == PENDING
        assert f"lease {lease.id} of spark (compaction), which may still write such records" in {
            one.by for one in pending.held if not one.object
        }
    with writer():  # it began later, so it has not read any
        assert go_on(world.pool, pending).status == DONE


def test_an_orphan_is_held_while_it_may_be_that_of_a_load(world: World) -> None:
    world.people("ann", "bob")
    branch = world.pool.branch()
    work = begin_compaction(branch, world.pool.at().references, outputs=1, message="")
    written = write_whole(Here.of(world.pool.context).worker, work)
    assert written is not None
    world.clock.now += 1  # the write of the erasure shows that the journal goes on
    held = erase(world.pool, where=ANN)
    assert {one.by for one in held.held} == {"a load that has not committed"}
    world.clock.now += 10
    assert erase(world.pool, where=ANN, grace=5.0).status == DONE
    assert not world.holding(is_ann)
    lost(branch, work, [written])  # the compaction that wrote it comes too late


def test_nothing_of_the_record_is_left_in_bounds_statistics_and_conditions() -> None:
    world = World()
    world.pool = world.lake.create_pool("q", key="who")
    world.load({"who": "aaron"}, {"who": "secret"}, {"who": "zoe"})
    world.load({"who": "secret"}, {"who": "tom"})
    done = erase(world.pool, key_range=key(world.pool, "secret"))
    assert done.status == DONE
    assert world.names() == ["aaron", "tom", "zoe"]
    for id, data in world.objects.items():
        assert b"secret" not in data  # the statistics of the file
        with DataObject(world.pool.store, pool_id=world.pool.config.id, object_id=id) as opened:
            assert "secret" not in repr(opened.metadata)
    state = world.reopened().history.load().state
    held = repr([*state.branches["main"].snapshot.all(), *state.branches["main"].tombstones.values()])
    assert "secret" not in held
    entries = [version for version, _ in world.reopened().log()]
    assert entries == []  # purged


def test_the_history_can_be_kept(world: World) -> None:
    world.people("bob")
    world.people("ann", first=5)
    done = erase(world.pool, where=ANN, keeps_history=True)
    assert (done.status, done.purged) == (DONE, 0)
    assert world.names("1") == ["bob"]
    with pytest.raises(ObjectVacuumed):
        world.pool.at("2").to_table()


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_a_key_is_erased_with_all_its_versions(kind: str) -> None:
    world = World(kind)
    world.load({"k": 1, "who": "ann", "n": 1}, {"k": 2, "who": "bob", "n": 1})
    world.load({"k": 1, "who": "anna", "n": 1})
    world.load({"k": 1, "who": "anne", "n": 1}, {"k": 3, "who": "cid", "n": 1})
    assert erase(world.pool, key_range=key(world.pool, 1)).status == DONE
    assert world.names() == ["bob", "cid"]
    assert not world.holding(lambda row: row["k"] == 1)


@pytest.mark.parametrize("where", ["k = 1", "k in (1)", "k = 1 and k < 5"])
def test_a_condition_on_the_key_leaves_no_delete_marker(where: str) -> None:
    world = World("upsert")
    world.load({"k": 1, "who": "ann"}, {"k": 2, "who": "bob"})
    world.load({"k": 1, "who": None, "_deleted": True})
    assert erase(world.pool, where=where).status == DONE
    assert world.names() == ["bob"]
    assert not world.holding(lambda row: row["k"] == 1)


def test_an_older_version_that_is_hidden_is_erased_and_the_newest_stays() -> None:
    world = World("upsert")
    world.load({"k": 1, "who": "ann"})
    world.load({"k": 1, "who": "bob"})
    assert erase(world.pool, where=ANN).status == DONE
    assert world.names() == ["bob"]
    assert not world.holding(is_ann)


def test_an_older_version_does_not_come_back_when_the_newest_is_erased() -> None:
    world = World("upsert")
    world.load({"k": 1, "who": "bob", "more": 1})
    world.load({"k": 1, "who": "ann", "more": 2})
    done = erase(world.pool, where=ANN)
    assert done.status == DONE
    assert world.names() == []
    assert not world.holding(is_ann)
    assert not world.holding(lambda row: row.get("more") == 2)  # the marker holds the key alone
    assert not list(verify(world.pool, done))


def test_a_delete_marker_that_was_loaded_with_fields_is_emptied() -> None:
    world = World("upsert")
    world.load({"k": 1, "who": "bob", "_deleted": False})
    world.load({"k": 1, "who": "ann", "_deleted": True})
    assert world.names() == []
    assert erase(world.pool, where=ANN).status == DONE
    assert not world.holding(is_ann)
    assert world.names() == []


def test_delete_markers_that_hold_nothing_but_their_key_are_no_such_records() -> None:
    world = World("upsert")
    world.load({"k": 1, "who": "bob"}, {"k": 2, "who": None, "n": 5})
    world.load({"k": 1, "_deleted": True, "who": None}, {"k": 9, "who": "eve"})
    done = erase(world.pool, where="who is null")
    assert done.status == DONE
    assert world.names() == ["eve"]
    assert not list(verify(world.pool, done))


def test_an_aggregate_that_cannot_be_separated_is_refused_and_nothing_is_changed() -> None:
    world = World("aggregate")
    world.people("ann", "bob")
    version = world.pool.history.load().version
    with pytest.raises(InvalidInput, match="combined from many records"):
        erase(world.pool, where="n = 1")
    assert world.pool.history.load().version == version
    assert not list(read_all(world.pool))


def test_records_without_the_key_are_erased_by_a_condition(world: World) -> None:
    world.load({"k": 1, "who": "bob"}, {"who": "ann", "k": None, "n": 3})
    nokey = world.lake.pool("p.$nokey")
    world.pool.branch().append(pa.table({"who": ["ann", "tim"]}))
    assert "ann" in nokey.at().to_table()["who"].to_pylist()
    done = erase(world.pool, where=ANN)
    assert done.status == DONE
    assert nokey.at().to_table()["who"].to_pylist() == ["tim"]
    assert not world.holding(is_ann)


def test_sub_pools_that_were_not_searched_are_named_and_can_be_erased(world: World) -> None:
    world.people("bob", "ann")
    world.pool.branch().append(pa.table({"who": ["ann", "tim"]}))
    done = erase(world.pool, key_range=key(world.pool, 1))
    assert done.not_searched == {"$nokey": 2}
    more = erase(world.lake.pool("p.$nokey"), where=ANN)
    assert (more.status, more.sub_pool) == (DONE, "$nokey")
    assert not world.holding(is_ann)
    assert not list(verify(world.pool, more))


def test_a_record_that_is_loaded_again_is_found_by_the_check(world: World) -> None:
    world.people("ann", "bob")
    done = erase(world.pool, where=ANN)
    assert not list(verify(world.pool, done))
    world.people("ann", first=7)
    (found,) = verify(world.pool, done)
    assert "branch main" in found


def test_a_field_that_became_another_class_is_compared_as_before(world: World) -> None:
    world.load({"k": 1, "who": "ann"})
    world.pool.create_branch("dev")
    world.load({"k": 2, "who": 5}, branch="dev")
    assert erase(world.pool, where="who = 5").status == DONE
    assert world.names("dev") == ['"ann"'] or world.names("dev") == ["ann"]
    assert not world.holding(lambda row: row.get("who") in (5, "5"))


def test_what_names_no_records_or_no_erasure_is_refused(world: World) -> None:
    world.people("ann")
    with pytest.raises(InvalidInput, match="say which records"):
        erase(world.pool)
    with pytest.raises(InvalidInput, match="no such field"):
        erase(world.pool, where="whom = 'ann'")
    with pytest.raises(NotFound, match="no erasure"):
        read(world.pool, "nothing")
    other = World().pool
    done = erase(world.pool, where=ANN)
    with pytest.raises(InvalidInput, match="open that lake"):
        list(verify(other, done))


def test_nothing_such_is_done_at_once(world: World) -> None:
    world.people("bob")
    done = erase(world.pool, where=ANN)
    assert (done.status, done.erased, done.written) == (DONE, (), ())


def test_the_receipt_names_transactions_and_checksums(world: World) -> None:
    world.people("ann", "bob")
    before = world.holding(is_ann)
    done = read(world.pool, erase(world.pool, where=ANN).id)
    assert {one.object for one in done.erased} == before
    assert set(world.objects) == {one.object for one in done.written}
    said = [one.what.partition(": ")[2] or one.what for one in done.transactions]
    assert said == ["hide the records", "rewrite", "vacuum 1 object", "forget the tombstones"]
    assert "no object in reach" in done.statement
    assert "Names of fields are no records: they stay" in done.statement


def test_what_was_erased_cannot_be_undone(world: World) -> None:
    world.people("ann", "bob")
    done = erase(world.pool, where=ANN, keeps_history=True)
    version = next(one.version for one in done.transactions if one.added)
    with pytest.raises(ObjectVacuumed):
        world.pool.branch().undo(str(version))


def test_other_removed_objects_stay_for_their_grace_time(world: World) -> None:
    world.people("bob")
    world.people("cid", first=0)
    world.compact()
    kept = set(world.objects)
    world.people("ann", first=30)
    assert erase(world.pool, where=ANN).status == DONE
    assert kept <= set(world.objects)
    assert vacuum(world.pool, grace=0.0).objects == 2


def test_ids_of_a_lake_come_from_its_clock(world: World) -> None:
    world.people("ann")
    done = erase(world.pool, where=ANN)
    assert done.begun == int(world.clock.now * 1_000_000)
    assert IdSource(clock=world.clock).new()[:4] == done.id[:4]


def test_without_such_a_record_the_history_stays(world: World) -> None:
    world.people("ada", "bob", "zoe")
    done = erase(world.pool, where=ANN)  # statistics alone cannot tell
    assert (done.status, done.purged, done.erased) == (DONE, 0, ())
    assert [one.what.partition(": ")[2] for one in done.transactions] == [
        "hide the records",
        "forget the tombstones",
    ]
    assert world.names("1") == ["ada", "bob", "zoe"]


def test_a_lake_of_format_version_1_is_upgraded_first(world: World) -> None:
    world.people("ann")
    old = replace(world.pool, context=replace(world.pool.context, format_version=1))
    with pytest.raises(InvalidInput, match="lake upgrade"):
        erase(old, where=ANN)


def test_what_the_agent_of_tombstones_does_meanwhile_is_no_conflict(world: World) -> None:
    world.people("ann", "bob")
    world.people("cid", first=1)
    world.pool.tag("keep")
    pending = erase(world.pool, where=ANN)
    tombstones.apply(world.pool.branch(), now=world.clock.now, at_once=True)
    assert not world.pool.history.load().state.branches["main"].tombstones
    world.pool.delete_tag("keep")
    done = go_on(world.pool, pending)
    assert done.status == DONE
    assert not world.holding(is_ann)


def test_a_removed_object_that_cannot_be_read_is_deleted_too(world: World) -> None:
    world.people("ann", "bob")
    world.people("cid", first=0)
    old = set(world.objects)
    world.compact()
    damaged = min(old)
    world.store.put(f"{world.pool.config.id}/data/{damaged}.parquet", b"PAR1 ann")
    done = erase(world.reopened(), where=ANN)
    assert done.status == DONE
    assert damaged not in world.objects


def test_a_damaged_object_of_a_branch_stops_the_erasure_which_goes_on_once_it_is_repaired(
    world: World,
) -> None:
    world.people("ann", "bob")
    name = world.pool.at().object_name(world.pool.at().references[0])
    sound = world.store.get(name) or b""
    world.store.put(name, sound[:-9])
    with pytest.raises(Corrupt):
        erase(world.reopened(), where=ANN)
    assert world.store.get(name) == sound[:-9]
    world.store.put(name, sound)
    assert erase(world.reopened(), where=ANN).status == DONE
    assert len(list(read_all(world.pool))) == 1


def test_two_processes_that_go_on_with_one_erasure_name_what_both_did(world: World) -> None:
    world.people("ann", "bob")
    world.pool.create_branch("dev")
    world.people("ann", first=9, branch="dev")
    world.pool.tag("keep")
    pending = erase(world.pool, where=ANN)
    world.pool.delete_tag("keep")
    done = go_on(world.reopened(), pending)
    again = go_on(world.pool, pending)  # what it was given is old
    assert (done.status, again.status) == (DONE, DONE)
    assert {one.object for one in again.erased} >= {one.object for one in done.erased}
    assert read(world.pool, done.id).transactions == again.transactions


@pytest.mark.parametrize("format", FORMATS)
def test_statistics_are_true_where_a_delete_marker_took_the_place_of_a_record(format: str) -> None:
    world = World("upsert", settings={"format": format})
    world.people("ann", "bob", "cid", "dan")
    world.pool.branch().delete(where="who = 'cid'")
    tombstones.apply(world.pool.branch(), now=world.clock.now, at_once=True)
    erase(world.pool, where=ANN)
    assert world.names() == ["bob", "dan"]
    assert not [one for one in Fsck(world.pool.context, data=True).run() if one.severity == DAMAGE]


@pytest.mark.parametrize("where", [ANN, "k = 0"])
@pytest.mark.parametrize("format", FORMATS)
def test_what_a_delete_hides_does_not_come_back_when_another_record_is_erased(
    format: str, where: str
) -> None:
    world = World("upsert", settings={"format": format})
    world.people("ann", "bob", "cid")
    world.pool.branch().delete(where="who = 'bob'")
    assert erase(world.pool, where=where).status == DONE
    assert world.names() == ["cid"]
    world.compact()
    assert world.names() == ["cid"]


def test_fsck_finds_nothing_after_an_erasure(world: World) -> None:
    world.people("ann", "bob")
    assert erase(world.pool, where=ANN).status == DONE
    assert not list(Fsck(world.lake.context, [], data=True, older_than=0.0).run())


# ---------------------------------------------------------------- pools that are no longer written to


def test_an_orphan_that_is_newer_than_the_newest_write_does_not_hold_the_erasure_in_an_idle_pool(
    world: World,
) -> None:
    """A loader is killed before its commit; then no writer comes any more, and no branch holds such a record."""
    world.people("bob", "cid")
    orphan = world.orphan({"k": 9, "who": "zoe"})
    world.clock.now += 10
    assert world.pool.settings["vacuum.grace"] > 10
    young = erase(world.pool, where="who = 'zoe'")
    assert {one.by for one in young.held} == {"a load that has not committed"}
    assert not [
        one.what for one in young.transactions
    ]  # it may still be committed: nothing is written for it
    done = erase(world.reopened(), where="who = 'zoe'", grace=5.0)
    assert (done.status, orphan in world.objects) == (DONE, False)
    assert f"erasure {done.id}: show that the journal goes on" in {one.what for one in done.transactions}
    assert world.names() == ["bob", "cid"]
    assert not list(verify(world.reopened(), done))


@pytest.mark.parametrize("format", FORMATS)
def test_an_orphan_at_which_an_earlier_scan_stopped_is_erased(format: str) -> None:
    world = World(settings={"format": format})
    world.people("bob", "cid")
    orphan = world.orphan({"k": 9, "who": "ann"})
    world.clock.now += 10
    assert scan_orphans(world.pool, grace=5.0).waits_for == WRITE
    done = erase(world.reopened(), where=ANN, grace=5.0)
    assert (done.status, orphan in world.objects) == (DONE, False)


def test_an_orphan_that_is_newer_than_the_transaction_that_hides_the_records_is_erased_by_the_next_run(
    world: World,
) -> None:
    world.people("ann", "bob")
    world.pool.tag("keep")
    pending = erase(world.pool, where=ANN)
    world.clock.now += 10
    orphan = world.orphan({"k": 9, "who": "ann"})
    world.clock.now += 10
    world.pool.delete_tag("keep")
    done = erase(world.reopened(), where=ANN, grace=5.0)
    assert (done.id, done.status) == (pending.id, DONE)
    assert orphan not in world.objects
    assert not world.holding(is_ann)


def test_an_orphan_behind_another_one_that_is_newer_than_the_newest_write_is_erased(world: World) -> None:
    """The other one has an older id, because its upload took long; it holds no such record."""
    world.people("bob", "cid")
    other = world.orphan({"k": 8, "who": "eve"})
    world.clock.now += 5
    orphan = world.orphan({"k": 9, "who": "ann"})
    world.clock.now += 5
    world.people("dan", first=5)
    world.clock.now += 5
    world.store.put(f"{world.pool.config.id}/data/{other}.parquet", world.objects[other])
    world.clock.now += 10
    done = erase(world.reopened(), where=ANN, grace=5.0)
    assert (done.status, orphan in world.objects, other in world.objects) == (DONE, False, True)
    assert not world.holding(is_ann)


def test_an_orphan_of_a_purged_and_idle_pool_is_erased(world: World) -> None:
    world.people("bob", "ann")
    assert erase(world.pool, where=ANN).purged  # no entry is left
    world.clock.now += 10
    world.orphan({"k": 9, "who": "ann"})
    world.clock.now += 10
    assert erase(world.reopened(), where=ANN, grace=5.0).status == DONE
    assert not world.holding(is_ann)


def test_a_journal_whose_end_is_lost_is_not_written_on(world: World) -> None:
    for n in range(17):  # the sixteenth entry writes HEAD
        world.people("bob", first=n)
    journal = world.pool.history.journal.name
    for version in range(15, 18):
        world.store.delete_all([f"{journal}/{version:020d}.txn"])
    world.orphan({"k": 99, "who": "zoe"})
    world.clock.now += 10
    entries = [info.name for info in world.store.list(journal)]
    with pytest.raises(Corrupt, match="entries are lost"):
        erase(world.reopened(), where="who = 'zoe'", grace=5.0)
    assert [info.name for info in world.store.list(journal)] == entries


def test_an_orphan_that_is_older_than_the_journal_is_held_until_its_first_entries_are_purged(
    world: World,
) -> None:
    """The first load of the pool was killed: what it wrote may be that of a journal that was lost."""
    orphan = world.orphan({"k": 9, "who": "ann"})
    world.clock.now += 10
    world.people("bob", "cid")
    world.clock.now += 10
    pending = erase(world.pool, where=ANN, grace=5.0)
    assert pending.status == PENDING
    (by,) = {one.by for one in pending.held}
    assert by.startswith("the first entries of the journal")
    assert "lake purge p --keep 0s" in release(by, pool_name="p", erasure_id=pending.id)
    write_checkpoint(world.lake, "p", now=world.clock.now)
    world.clock.now += 1
    purge_pool(world.lake, "p", keep=0.0, now=world.clock.now)
    world.clock.now += 1
    assert erase(world.reopened(), where=ANN, grace=5.0).status == DONE
    assert orphan not in world.objects


# ---------------------------------------------------------------- ranges, and how the erasure works


@pytest.mark.parametrize("text", ["7", "seven"])
def test_a_range_before_the_first_record_is_refused(world: World, text: str) -> None:
    """Nothing tells whether the key is a number or a text: the range would not find what a killed load left."""
    world.orphan({"k": 7, "who": "ann"})
    with pytest.raises(InvalidInput, match="no record tells the type of the key field 'k' yet"):
        erase(world.pool, key_range=key(world.pool, text))
    assert not list(read_all(world.pool))


def test_a_range_is_read_by_the_records_of_all_branches(world: World) -> None:
    world.pool.branch().append(pa.table({"k": pa.array([None], pa.int64()), "who": ["nobody"]}))
    world.pool.create_branch("dev")
    world.people("ann", first=7, branch="dev")
    assert erase(world.pool, key_range=key(world.pool, "7")).status == DONE
    assert not world.holding(is_ann)


def test_a_range_of_another_type_than_the_key_is_refused(world: World) -> None:
    world.people("ann")
    bound = encode_key(["seven"], world.pool.config.key)
    with pytest.raises(InvalidInput, match="the key field 'k' is a number"):
        erase(world.pool, key_range=KeyRange(bound, bound + AFTER))
    assert not list(read_all(world.pool))


def test_a_dry_run_names_what_would_be_held(world: World) -> None:
    world.people("ann", "bob")
    world.people("cid", first=1)
    world.compact()
    world.pool.tag("keep")
    orphan = world.orphan({"k": 9, "who": "ann"})
    note = LeaseNote("read", world.pool.history.load().version, "reader", 600.0, "report")
    lease = HeldLease(
        world.pool.store, world.pool.config.id, world.pool.context.ids.new(), note, renewing=False
    )
    with lease:
        sighting = look(world.pool, where=ANN)
        (referred,), (removed,) = sighting.referred, sighting.removed
        assert sighting.uncommitted == (orphan,)
        assert {(one.object, one.by) for one in sighting.held} == {
            (referred, "tag keep"),
            (orphan, "a load that has not committed"),
        }
        world.pool.delete_tag("keep")
        sighting = look(world.pool, where=ANN, grace=0.0)
        assert {(one.object, one.by) for one in sighting.held} == {
            (referred, f"lease {lease.id} of reader (report)")
        }
    assert not look(world.pool, where=ANN, grace=0.0).held
    world.clock.now += 1
    done = erase(world.pool, where=ANN, grace=0.0)
    assert {one.object for one in done.erased} == {referred, removed, orphan}


def test_the_history_is_kept_by_every_run_once_it_was_asked_for(world: World) -> None:
    world.people("ann", "bob")
    world.pool.tag("keep")
    assert erase(world.pool, where=ANN).status == PENDING
    assert erase(world.pool, where=ANN, keeps_history=True).keeps_history
    world.pool.delete_tag("keep")
    done = erase(world.reopened(), where=ANN)
    assert (done.status, done.purged, done.keeps_history) == (DONE, 0, True)


def test_objects_are_searched_and_summed_by_chunks_and_rewritten_side_by_side(world: World) -> None:
    """As Spark is given them: many at once, and each answer belongs to its object."""
    for n in range(5):
        world.people("ann", "bob", first=10 * n)
    world.load({"k": 99, "who": "ann"})  # nothing is left of it
    workers = Watched(Here.of(world.pool.context))
    done = erase(world.pool, where=ANN, workers=workers)
    assert (done.status, len(done.erased), len(done.written)) == (DONE, 6, 5)
    answers, sums = "answer_of", "summed_if_there"
    deleted = ("delete_batch", 1)
    assert workers.calls == [(answers, 6), (sums, 6), ("write_whole", 6), deleted, (sums, 5)]
    assert world.names() == ["bob"] * 5
    assert not list(verify(world.reopened(), done))


def test_an_erasure_whose_clock_is_behind_the_last_scan_for_orphans_is_done(world: World) -> None:
    world.people("ann", "bob")
    world.clock.now += 30 * 86_400
    world.people("cid", first=10)
    scan_orphans(world.pool)
    behind = IdSource(clock=lambda: world.clock.now - 20 * 86_400)
    pool = Lake.open_on(world.store, ids=behind, author="behind").pool("p")
    assert erase(pool, where=ANN).status == DONE
    assert not world.holding(is_ann)
    assert set(world.objects) == {r.object for r in world.pool.at().references}


def test_split_points_that_may_be_erased_keys_go_with_the_records(world: World) -> None:
    world.people("ann", "bob", "cid", "dan")
    world.pool.split(at=[0, 1, 2, 3])
    erase(world.pool, key_range=key(world.pool, 9))
    assert len(world.pool.ranges()) == 5, "nothing was erased"
    assert erase(world.pool, key_range=key(world.pool, 1)).status == DONE
    assert [one.low for one in world.pool.ranges()] == [None, 0, 2, 3]
    assert erase(world.pool, where="k >= 2 and who = 'cid'").status == DONE
    assert [one.low for one in world.pool.ranges()] == [None, 0]
    world.people("ann", first=10)
    assert erase(world.pool, where=ANN).status == DONE
    assert world.pool.at().points == ()
    stored = b"".join(world.store.get(info.name) or b"" for info in world.store.list(world.pool.config.id))
    assert encode_key((1,), world.pool.config.key) not in stored
