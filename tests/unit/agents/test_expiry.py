"""What expires, by age, number and size, in each kind of pool; what stays, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, InvalidInput, PlanAgain
from lake_core.history import Draft
from lake_core.ids import IdSource
from lake_core.records import RemoveReference
from log_lake.agents.retention.expire import TRIES, expire, plan
from log_lake.agents.retention.plan import NO_FIELD, NO_TIME, OLDER_BELOW, PART_OF_KEYS, UNMERGED
from log_lake.agents.retention.report import plan_line
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.work import write
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here
from tests.support.clocks import DAY, Clock
from tests.support.rewrites import lost
from tests.support.stores import ScriptedStore


@dataclass
class World:
    """One pool, on a store whose clock a test moves."""

    kind: str = "append"
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore("memory://expiry", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock))
        self.lake.create_pool("p", key="k", kind=self.kind, settings=self.settings)

    @property
    def pool(self) -> Pool:
        return self.lake.pool("p")

    def load(self, *keys: int, branch: str = "main", **values: Any) -> int:
        """A load whose records have the values; a day passes.  Returns the version."""
        table = pa.table({"k": list(keys)} | {name: [value] * len(keys) for name, value in values.items()})
        version = self.pool.branch(branch).append(table).version
        assert version is not None
        self.clock.now += DAY
        return version

    def compact(self, *versions: int, branch: str = "main") -> None:
        """Merge the objects of some loads."""
        references = self.pool.at(branch).references
        chosen = [r for r in references if r.seq // 65536 in versions]
        assert len(chosen) == len(versions)
        compact(self.pool.branch(branch), chosen)

    def records(self, revision: str = "main") -> list[dict[str, Any]]:
        return list(self.pool.at(revision).to_table().to_pylist())

    def keys(self, revision: str = "main") -> list[int]:
        return [record["k"] for record in self.records(revision)]


def test_loads_older_than_the_age_go_whole_in_one_transaction() -> None:
    world = World(settings={"expire.age": "2.5d"})
    for key in range(5):
        world.load(key)
    work = plan(world.pool)
    assert (len(work.removed), work.records, work.why) == (3, 3, {"expire.age": 3})
    assert world.keys() == [0, 1, 2, 3, 4], "a plan changes nothing"
    done = expire(world.pool)
    assert (done.version, done.objects, done.records, done.deleted) == (6, 3, 3, False)
    assert done.size > 0
    assert world.keys() == [3, 4]
    (transaction,) = [t for n, t in world.pool.log() if n == 6]
    assert transaction.message == "expired: expire.age=2.5d"
    assert expire(world.pool).version is None


def test_a_load_counts_by_the_clock_of_the_store_not_by_that_of_its_writer() -> None:
    world = World(settings={"expire.age": "2.5d"})
    wrong = Lake.open_on(world.store, ids=IdSource(clock=lambda: world.clock.now - 300 * DAY)).pool("p")
    wrong.branch().append(pa.table({"k": [1]}))
    assert plan(world.pool).idle
    assert plan(wrong).idle


def test_the_clock_of_the_machine_that_expires_does_not_count() -> None:
    world = World(settings={"expire.age": "10d", "expire.by": "t"})
    world.load(1, t=int(world.clock.now))
    ahead = Lake.open_on(world.store, ids=IdSource(clock=lambda: world.clock.now + 300 * DAY)).pool("p")
    assert plan(ahead).idle


def test_what_a_compaction_wrote_is_as_young_as_its_youngest_input() -> None:
    world = World(settings={"expire.age": "2.5d"})
    versions = [world.load(key) for key in range(5)]
    world.compact(versions[0], versions[4])
    world.compact(versions[1], versions[2])
    assert expire(world.pool).objects == 1
    assert world.keys() == [0, 3, 4]


def test_records_that_are_old_by_a_field_go_with_their_objects_or_by_a_tombstone() -> None:
    world = World(settings={"expire.age": "10d", "expire.by": "t"})
    now, old = int(world.clock.now), int(world.clock.now - 30 * DAY)
    world.load(1, 2, t=old)
    world.load(3, t=now)
    world.pool.branch().append(pa.table({"k": [4, 5], "t": [old, now]}))
    done = expire(world.pool)
    assert (done.objects, done.records, done.deleted) == (1, 2, True)
    assert world.keys() == [3, 5]
    (tombstone,) = world.pool.at().tombstones
    assert tombstone.reason == "expired: expire.age=10d, expire.by=t"
    assert expire(world.pool).version is None, "what is hidden already is not deleted again"


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_the_field_may_be_a_time_or_a_date(unit: str) -> None:
    world = World(settings={"expire.age": "10d", "expire.by": "t"})
    seconds = int(world.clock.now)
    stamps = pa.array([seconds - 30 * 86_400, seconds], pa.int64()).cast(pa.timestamp("s"))
    world.pool.branch().append(pa.table({"k": [1, 2], "t": stamps.cast(pa.timestamp(unit, "UTC"))}))
    world.pool.branch().append(pa.table({"k": [3, 4], "t": stamps.cast(pa.date32())}))
    expire(world.pool)
    assert world.keys() == [2, 4]


def test_a_key_of_time_narrows_the_range_of_the_tombstone() -> None:
    clock = Clock()
    lake = Lake.create_on(MemoryStore(clock=clock), ids=IdSource(clock=clock))
    pool = lake.create_pool("p", key="t", settings={"expire.age": "10d", "expire.by": "t"})
    pool.branch().append(pa.table({"t": [clock.now - 30 * DAY, clock.now]}))
    expire(pool)
    (tombstone,) = pool.at().tombstones
    assert tombstone.high is not None
    assert pool.at().to_table()["t"].to_pylist() == [clock.now]


def test_a_field_that_no_record_has_removes_nothing_and_is_said() -> None:
    world = World(settings={"expire.age": "1d", "expire.by": "time"})
    world.load(1, t=0.0)
    world.clock.now += 9 * DAY
    work = plan(world.pool)
    assert (work.idle, work.stays) == (True, {NO_FIELD: 1})


@pytest.mark.parametrize("value", ["1970-01-01T00:00:00Z", True, b"0", [0], {"s": 0}])
def test_a_field_that_tells_no_time_removes_nothing_and_is_said(value: object) -> None:
    world = World(settings={"expire.age": "1d", "expire.by": "time"})
    world.pool.branch().append(pa.table({"k": [1], "time": [value]}))
    world.clock.now += 9 * DAY
    work = plan(world.pool)
    assert (work.idle, work.stays) == (True, {NO_TIME: 1})
    assert plan_line("p", work) == (
        "p: nothing expires; 1 object must stay: the field expire.by tells no time; declare its type: "
        "lake set POOL type.FIELD=timestamp"
    )


def test_the_newest_loads_that_hold_so_many_records_stay() -> None:
    world = World(settings={"expire.records": "4"})
    world.load(1, 2, 3)
    world.load(4, 5)
    world.load(6)
    world.load(7, 8)
    assert plan(world.pool).why == {"expire.records": 1}
    expire(world.pool)
    assert world.keys() == [4, 5, 6, 7, 8], "without the load of 4 and 5 only three would be left"
    world.load(9)
    expire(world.pool)
    assert world.keys() == [6, 7, 8, 9]


def test_one_large_object_is_never_removed_for_a_few_records_too_many() -> None:
    world = World(settings={"expire.records": "4"})
    world.compact(world.load(1, 2, 3), world.load(4, 5, 6))
    assert plan(world.pool).idle


def test_the_newest_loads_that_hold_so_many_bytes_stay() -> None:
    world = World()
    for key in range(4):
        world.load(key)
    newest = sum(reference.size for reference in world.pool.at().references[2:])
    world.lake.catalog.configure("p", {"expire.bytes": str(newest)})
    expire(world.pool)
    assert world.keys() == [2, 3]


def test_an_older_version_of_a_record_does_not_come_back() -> None:
    """Version 1 of the key lies in a compacted object that must stay; version 2 alone is old enough to go."""
    world = World("upsert", {"expire.age": "3d"})
    first = world.load(1, v="old")
    world.load(1, v="new")
    world.load(5, v="alone")
    world.compact(first, world.load(2, v="young"))
    world.clock.now += 1.5 * DAY
    work = plan(world.pool)
    assert (work.why, work.stays) == ({"expire.age": 1}, {OLDER_BELOW: 1})
    expire(world.pool)
    assert [(r["k"], r["v"]) for r in world.records()] == [(1, "new"), (2, "young")]
    world.clock.now += 9 * DAY
    assert expire(world.pool).objects == 2
    assert world.keys() == []


def test_a_newer_version_that_goes_by_its_field_hides_the_older_ones() -> None:
    world = World("upsert", {"expire.age": "10d", "expire.by": "t"})
    now = world.clock.now
    world.load(1, 2, t=now)
    world.load(2, t=now - 30 * DAY)
    expire(world.pool)
    assert world.keys() == [1]


def test_an_aggregate_goes_whole_or_stays_as_it_is() -> None:
    world = World("aggregate", {"expire.age": "2.5d"})
    world.load(1, n=1)
    world.load(2, n=1)
    world.load(1, n=1)
    world.load(9, n=1)
    work = plan(world.pool)
    assert (work.why, work.stays) == ({"expire.age": 1}, {PART_OF_KEYS: 1})
    expire(world.pool)
    assert world.keys() == [1, 9]


def test_an_aggregate_pool_expires_by_fields_of_its_key_only() -> None:
    with pytest.raises(InvalidInput, match=r"expire\.by=t: in an aggregate pool"):
        World("aggregate", {"expire.by": "t"})


def test_an_age_that_the_history_cannot_tell_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"expire\.age=90d: without expire\.by .* history\.keep \(30d\)"):
        World(settings={"expire.age": "90d"})
    world = World(settings={"expire.age": "90d", "expire.by": "t"})
    with pytest.raises(InvalidInput, match=r"expire\.age=90d"):
        world.lake.catalog.configure("p", {"expire.by": ""})
    world.lake.catalog.configure("p", {"expire.by": "", "history.keep": "90d"})
    with pytest.raises(InvalidInput, match=r"expire\.age=90d"):
        world.lake.catalog.configure("p", {"history.keep": "1d"})


def test_sub_pools_expire_by_their_load() -> None:
    world = World(settings={"expire.age": "2.5d", "expire.by": "t", "nokey": "accept"})
    world.pool.branch().append(pa.table({"t": [1.0, 2.0]}))
    world.clock.now += DAY
    world.load(1, t=world.clock.now)
    assert plan(world.pool).idle
    world.clock.now += 2 * DAY
    assert expire(world.pool).records == 2
    assert world.pool.at().snapshot.sub_pools() == []


def test_what_a_branch_has_not_merged_yet_stays() -> None:
    world = World(settings={"expire.age": "2.5d"})
    world.load(1)
    world.pool.create_branch("dev")
    world.load(2, branch="dev")
    world.clock.now += 9 * DAY
    assert plan(world.pool, branch="dev").stays == {UNMERGED: 1}
    assert expire(world.pool, branch="dev").objects == 1
    assert (world.keys("dev"), world.keys()) == ([2], [1])
    world.pool.branch().merge("dev")
    assert world.keys() == [1, 2]


def test_an_expiry_can_be_taken_back() -> None:
    world = World(settings={"expire.age": "2.5d"})
    for key in range(4):
        world.load(key)
    version = expire(world.pool).version
    world.pool.branch().undo(str(version))
    assert world.keys() == [0, 1, 2, 3]


def test_an_expiry_is_not_taken_back_once_what_hid_its_records_has_gone_too() -> None:
    world = World("upsert", {"expire.age": "2.5d"})
    world.load(1, v="old")
    world.clock.now += 2 * DAY
    world.load(1, v="new")
    first, second = expire(world.pool).version, None
    world.clock.now += 2 * DAY
    second = expire(world.pool).version
    assert (world.records(), second is None) == ([], False)
    with pytest.raises(Conflict, match=f"would show older ones; revert version {second} first"):
        world.pool.branch().undo(str(first))
    world.pool.branch().undo(str(second))
    world.pool.branch().undo(str(first))
    assert [r["v"] for r in world.records()] == ["new"]


def test_an_expiry_is_not_taken_back_once_a_compaction_has_dropped_the_markers_above_it() -> None:
    world = World("upsert", {"expire.age": "2.5d"})
    world.load(1, v="old")
    world.clock.now += 2 * DAY
    versions = world.load(1, _deleted=True), world.load(2, _deleted=False)
    first = expire(world.pool).version
    world.compact(*versions)
    with pytest.raises(Conflict, match="may have dropped delete markers"):
        world.pool.branch().undo(str(first))
    assert world.keys() == [2]


def test_a_compaction_that_drops_markers_is_refused_once_an_undo_brought_back_what_they_hid() -> None:
    world = World("upsert", {"expire.age": "2.5d"})
    world.load(1, v="old")
    world.clock.now += 2 * DAY
    world.load(1, _deleted=True)
    world.load(2, _deleted=False)
    expired = expire(world.pool).version
    branch = world.pool.branch()
    work = begin_compaction(branch, world.pool.at().references, outputs=1, message="")
    assert work.oldest_only
    written = write(work, Here.of(branch.context), branch.store)
    branch.undo(str(expired))
    error = lost(branch, work, written)
    assert isinstance(error, PlanAgain)
    assert "hides older records" in str(error)
    assert world.keys() == [2]


def test_an_expiry_that_a_compaction_overtakes_is_planned_again() -> None:
    world = World(settings={"expire.age": "2.5d"})
    versions = [world.load(key) for key in range(5)]
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=IdSource(clock=world.clock)).pool("p")
    store.on("create", f"{6:020d}.txn", before=lambda: world.compact(versions[0], versions[1]))
    done = expire(pool)
    assert (done.objects, done.records) == (2, 3)
    assert world.keys() == [3, 4]


def test_an_expiry_that_loses_every_race_says_what_the_last_writer_did() -> None:
    world = World(settings={"expire.age": "0.5d"})
    for key in range(2 * TRIES + 2):
        world.load(key)
    store = ScriptedStore(world.store)
    pool = Lake.open_on(store, ids=IdSource(clock=world.clock)).pool("p")

    def compact_two() -> None:
        compact(world.pool.branch(), world.pool.at().references[:2])

    for at in range(TRIES):
        store.on("create", f"{2 * TRIES + 3 + at:020d}.txn", before=compact_two)
    with pytest.raises(
        Conflict, match=f"changed each of {TRIES} times .* at last: object .* was taken by another compaction"
    ):
        expire(pool)


def test_a_commit_that_would_show_an_older_version_is_refused_on_the_newest_state() -> None:
    """An expiry of the older version is taken back after the newer one was planned to go."""
    world = World("upsert", {"expire.age": "2.5d"})
    world.load(1, v="old")
    world.load(1, v="new")
    world.clock.now += 1.5 * DAY
    old, new = world.pool.at().references
    expired = _remove(world, old.object, old.low)
    draft = _draft(world, new.object, new.low)
    world.pool.branch().undo(str(expired))
    with pytest.raises(PlanAgain, match=f"object {new.object} hides older records"):
        world.pool.history.commit(draft)
    assert [r["v"] for r in world.records()] == ["new"]


def _draft(world: World, object_id: str, low: bytes) -> Draft:
    action = RemoveReference(object_id, low)
    version = world.pool.history.load().version
    return Draft(world.lake.context.ids.new(), "main", version, "test", (action,), oldest_only=True)


def _remove(world: World, object_id: str, low: bytes) -> int:
    return world.pool.history.commit(_draft(world, object_id, low)).version
