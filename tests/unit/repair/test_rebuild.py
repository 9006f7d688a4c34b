"""What a rebuild chooses, and that one that dies can be run again."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Conflict, InvalidInput, Unavailable
from lake_core.ids import IdSource
from lake_core.keys import KeyRange
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.repair.fsck import Fsck
from log_lake.repair.rebuild import Wanted, plan_rebuild, rebuild
from log_lake.repair.rebuild_candidate import Candidate
from log_lake.repair.rebuild_plan import VERSIONS_APART, Piece, select, without
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.vacuum.execute import vacuum
from tests.support.clocks import Clock
from tests.support.stores import ALWAYS, ScriptedStore, unavailable


def an_output(name: str, inputs: str, *, by: str, low: bytes, high: bytes, fault: str = "") -> Candidate:
    return Candidate(
        name,
        size=1,
        created=1.0,
        fault=fault,
        transaction_id=by,
        inputs=tuple(inputs),
        low=low,
        high=high,
        partition=KeyRange(low, high),
    )


def a_load(name: str, *, fault: str = "") -> Candidate:
    return Candidate(
        name, size=1, created=1.0, transaction_id="load " + name, low=b"a", high=b"z", fault=fault
    )


def shown(pieces: tuple[Piece, ...]) -> list[tuple[str, bytes, bytes | None]]:
    return sorted((p.candidate.object, p.key_range.low, p.key_range.high or b"") for p in pieces)


def test_outputs_take_the_place_of_their_inputs() -> None:
    chosen = select([a_load("1"), a_load("2"), an_output("3", "12", by="c", low=b"a", high=b"z")])
    assert shown(chosen.pieces) == [("3", b"a", b"z")]
    assert chosen.superseded == ("1", "2")


def test_inputs_take_the_place_of_a_damaged_output_at_its_keys_alone() -> None:
    outputs = [
        an_output("3", "12", by="c", low=b"a", high=b"g"),
        an_output("4", "12", by="c", low=b"g", high=b"m", fault="damaged"),
        an_output("5", "12", by="c", low=b"m", high=b"z"),
    ]
    chosen = select([a_load("1"), a_load("2"), *outputs])
    assert shown(chosen.pieces) == [
        ("1", b"g", b"m"),
        ("2", b"g", b"m"),
        ("3", b"a", b"g"),
        ("5", b"m", b"z"),
    ]
    assert (chosen.healed, chosen.lost) == ((outputs[1],), ())


def test_a_damaged_output_whose_input_is_damaged_too_is_lost_unless_it_was_merged_again() -> None:
    bad = an_output("3", "12", by="c", low=b"a", high=b"z", fault="damaged")
    loads = [a_load("1", fault="damaged"), a_load("2")]
    assert select([*loads, bad]).lost == (loads[0], bad)
    again = an_output("4", "3", by="d", low=b"a", high=b"z")
    chosen = select([*loads, bad, again])
    assert (shown(chosen.pieces), chosen.lost) == ([("4", b"a", b"z")], ())


def test_of_two_compactions_of_one_object_the_one_that_was_merged_later_counts() -> None:
    first = an_output("3", "12", by="c", low=b"a", high=b"z")
    second = an_output("4", "1", by="d", low=b"a", high=b"z")
    assert select([a_load("1"), a_load("2"), first, second]).void == ("3",), "the newer one"
    later = an_output("5", "3", by="e", low=b"a", high=b"z")
    chosen = select([a_load("1"), a_load("2"), first, second, later])
    assert (chosen.void, shown(chosen.pieces)) == (("4",), [("5", b"a", b"z")])


def test_a_range_without_others_is_what_is_left() -> None:
    everything = KeyRange()
    assert without([everything], [KeyRange(b"c", b"f")]) == [KeyRange(b"", b"c"), KeyRange(b"f", None)]
    assert without([KeyRange(b"a", b"d")], [KeyRange(b"b", None)]) == [KeyRange(b"a", b"b")]
    assert without([KeyRange(b"a", b"d")], [everything]) == []


class Seconds:
    """A clock that goes on by a second each time it is read."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


@pytest.fixture
def lake(store: ScriptedStore) -> Lake:
    """A lake with a pool of three loads of ten keys each, two of them merged, whose journal is gone."""
    lake = Lake.create_on(store, ids=IdSource(clock=Seconds()), author="test")
    pool = lake.create_pool("p", key="k")
    for start in (0, 5, 10):
        pool.branch().append(pa.table({"k": list(range(start, start + 10))}))
    compact(pool.branch(), pool.at().references[:2])
    forget_the_journal(store, pool)
    return lake


def forget_the_journal(store: ScriptedStore, pool: Pool) -> None:
    for info in list(store.behind.list(naming.pool_journal(pool.config.id))):
        store.behind.delete(info.name)


def begin_anew(store: ScriptedStore, pool: Pool) -> None:
    """Load into the pool, as a program does that does not see that the journal is gone."""
    store.behind.delete(naming.begun(naming.pool_journal(pool.config.id)))
    reopened(store).branch().append(pa.table({"k": [1]}))


def reopened(store: ScriptedStore) -> Pool:
    return Lake.open_on(store).pool("p")


def test_the_history_begins_above_every_version_that_objects_tell(lake: Lake, store: ScriptedStore) -> None:
    assert rebuild(lake, plan_rebuild(lake, "p", Wanted())) == VERSIONS_APART
    pool = reopened(store)
    assert pool.branch().append(pa.table({"k": [99]})).version == VERSIONS_APART + 1
    forget_the_journal(store, pool)
    compact_then = plan_rebuild(lake, "p", Wanted())
    assert compact_then.version == VERSIONS_APART, "no object tells of the version of a load"


def test_an_output_names_the_keys_that_it_covers(lake: Lake) -> None:
    plan = plan_rebuild(lake, "p", Wanted())
    (merged,) = [r for r in plan.references if r.oldest is not None]
    with DataObject(lake.store, pool_id=plan.source_id, object_id=merged.object) as data:
        assert KeyRange(*data.metadata.partition) == merged.key_range


def test_a_rebuild_that_died_before_its_fence_can_be_run_again(lake: Lake, store: ScriptedStore) -> None:
    store.on("create", ".fence", instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        rebuild(lake, plan_rebuild(lake, "p", Wanted()))
    store.forget()
    rebuild(lake, plan_rebuild(lake, "p", Wanted()))
    assert reopened(store).at().records == 30
    assert list(Fsck(lake.context, data=True).run()) == []


def test_a_copy_that_died_leaves_the_source_as_it_was_and_can_be_run_again(
    lake: Lake, store: ScriptedStore
) -> None:
    plan = plan_rebuild(lake, "p", Wanted(name="q"))
    store.on("open_output", naming.data_object(plan.config.id, plan.objects[1]), instead=unavailable)
    with pytest.raises(Unavailable):
        rebuild(lake, plan)
    assert [p.name for p in lake.pools()] == ["p"]
    rebuild(lake, plan_rebuild(lake, "p", Wanted(name="q")))
    assert Lake.open_on(store).pool("q").at().records == 30
    found = list(Fsck(lake.context).run())
    assert [f.kind for f in found] == ["rebuild_interrupted", "journal_lost", "unchecked"], "that of p"
    assert f"lake drop {plan.config.id}" in found[0].do
    lake.give_up_folder(plan.config.id)
    assert [f.kind for f in Fsck(lake.context).run()] == ["folder_given_up", "journal_lost", "unchecked"]
    with pytest.raises(InvalidInput, match="drop it by its name"):
        lake.give_up_folder(plan.source_id)


def test_the_old_folder_of_a_pool_that_was_rebuilt_elsewhere_is_a_leftover(
    lake: Lake, store: ScriptedStore
) -> None:
    pool = reopened(store)
    id = pool.config.id
    begin_anew(store, pool)
    store.behind.delete(naming.entry(naming.POOLS_JOURNAL, 1))
    lake = Lake.open_on(store, ids=IdSource(clock=Seconds()))
    assert [f.kind for f in Fsck(lake.context).run()] == ["pools_lost", "pool_unlisted"]
    rebuild(lake, plan_rebuild(lake, id, Wanted(name="p")))
    (found,) = Fsck(lake.context).run()
    assert (found.kind, "rebuilt as p" in found.what) == ("folder_given_up", True)


def test_an_object_that_the_store_does_not_give_is_unseen_and_stops_the_rebuild(
    lake: Lake, store: ScriptedStore
) -> None:
    plan = plan_rebuild(lake, "p", Wanted())
    refused = next(r.object for r in plan.references if r.oldest is None)
    store.on("open_input", naming.data_object(plan.config.id, refused), instead=unavailable, times=ALWAYS)
    without = plan_rebuild(lake, "p", Wanted())
    assert (without.unseen, without.lost) == ((refused,), ())
    with pytest.raises(
        Unavailable, match=f"does not give 1 object, which may be sound: {refused}; run .* again"
    ):
        rebuild(lake, without, guess=True)
    assert not list(store.list(naming.pool_journal(plan.config.id)))
    store.forget()
    rebuild(lake, plan_rebuild(lake, "p", Wanted()))
    assert reopened(store).at().records == 30


def test_an_input_that_the_store_does_not_give_stops_no_rebuild_because_its_output_has_its_records(
    lake: Lake, store: ScriptedStore
) -> None:
    plan = plan_rebuild(lake, "p", Wanted())
    merged = plan.superseded[0]
    store.on("open_input", naming.data_object(plan.config.id, merged), instead=unavailable, times=ALWAYS)
    rebuild(lake, plan_rebuild(lake, "p", Wanted()))
    assert reopened(store).at().records == 30


def test_a_dropped_pool_whose_journal_is_damaged_is_a_leftover(lake: Lake, store: ScriptedStore) -> None:
    store.behind.put(naming.entry(naming.pool_journal(reopened(store).config.id), 1), b"x")
    lake = Lake.open_on(store, ids=IdSource(clock=Seconds()))
    lake.drop_pool("p")
    assert [f.kind for f in Fsck(lake.context).run()] == ["pool_dropped"]


def test_a_journal_that_appears_meanwhile_stops_the_rebuild(lake: Lake, store: ScriptedStore) -> None:
    plan = plan_rebuild(lake, "p", Wanted())
    begin_anew(store, reopened(store))
    with pytest.raises(Conflict):
        rebuild(lake, plan)
    with pytest.raises(InvalidInput, match="--name NEW"):
        plan_rebuild(lake, "p", Wanted())


def test_a_writer_that_still_has_the_old_journal_open_does_not_write_into_the_new_one() -> None:
    store = ScriptedStore()
    lake = Lake.create_on(store, ids=IdSource(clock=Seconds()), author="test")
    old = lake.create_pool("p", key="k")
    for k in range(3):
        old.branch().append(pa.table({"k": [k]}))
    forget_the_journal(store, old)
    other = Lake.open_on(store, ids=IdSource(clock=Seconds()))
    rebuild(other, plan_rebuild(other, "p", Wanted()))
    version = old.branch().append(pa.table({"k": [9]})).version
    assert version == VERSIONS_APART + 1, "it found the fence and began again"
    assert reopened(store).at().to_table()["k"].to_pylist() == [0, 1, 2, 9]


def test_lists_maps_and_records_are_sound_and_are_back() -> None:
    store = ScriptedStore()
    lake = Lake.create_on(store, ids=IdSource(clock=Seconds()), author="test")
    pool = lake.create_pool("p", key="k")
    nested = {"k": [1, 2], "l": [["a"], []], "r": [{"x": 1, "y": [1.5]}, None], "m": [[("a", 1)], []]}
    kinds = {"l": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int64())}
    record = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.float64()))])
    schema = pa.schema([("k", pa.int64()), ("l", kinds["l"]), ("r", record), ("m", kinds["m"])])
    pool.branch().append(pa.Table.from_pydict(nested, schema=schema))
    before = pool.at().to_table()
    assert list(Fsck(lake.context, data=True).run()) == []
    forget_the_journal(store, pool)
    rebuild(lake, plan_rebuild(lake, "p", Wanted()))
    assert reopened(store).at().to_table() == before
    assert list(Fsck(lake.context, data=True).run()) == []


def test_objects_sorted_by_a_field_with_a_colon_are_back() -> None:
    store = ScriptedStore()
    lake = Lake.create_on(store, ids=IdSource(clock=Seconds()), author="test")
    pool = lake.create_pool("p", key="meta:id:asc")
    pool.branch().append(pa.table({"meta:id": [2, 1]}))
    forget_the_journal(store, pool)
    rebuild(lake, plan_rebuild(lake, "p", Wanted()))
    assert reopened(store).at().to_table()["meta:id"].to_pylist() == [1, 2]
    assert list(Fsck(lake.context, data=True).run()) == []


@pytest.mark.parametrize("vacuumed", [True, False])
def test_a_plan_names_loads_that_it_cannot_order(vacuumed: bool) -> None:
    """Compactions left the load of 2 and 5 out, which lies between what they merged in age."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    lake = Lake.create_on(store, ids=IdSource(clock=clock))
    pool = lake.create_pool("p", key="k", kind="upsert")
    branch = pool.branch()

    def load(text: str, *keys: int) -> None:
        clock.now += 10
        branch.append(pa.table({"k": list(keys), "v": [f"{text}{key}" for key in keys]}))

    load("a", 1, 2, 3)
    load("b", 3, 4)
    load("c", 2, 5)
    left_out = max(pool.at().references, key=lambda r: r.seq).object
    for text, keys in (("d", (1, 9)), ("e", (7,))):
        clock.now += 10
        chosen = [r for r in branch.revision().references if r.object != left_out]
        compact(branch, chosen)
        load(text, *keys)
    if vacuumed:
        clock.now += 100
        vacuum(pool, grace=0.0)
    for info in list(store.list(naming.pool_journal(pool.config.id))):
        store.delete(info.name)
    lake = Lake.open_on(store, ids=IdSource(clock=clock))
    plan = plan_rebuild(lake, "p", Wanted())
    assert plan.unordered == ((left_out,) if vacuumed else ())
    assert any(left_out in note and "an older version may count" in note for note in plan.notes) == vacuumed
    if vacuumed:
        with pytest.raises(InvalidInput, match=f"1 object cannot be ordered.*{left_out}.*--guess"):
            rebuild(lake, plan)
    rebuild(lake, plan, guess=vacuumed)
    assert lake.pool("p").at().to_table().num_rows == 7


@dataclass
class Writers:
    """An upsert pool on a store with a right clock, and writers whose clocks are apart from it."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock)
        lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock))
        self.pool = lake.create_pool("p", key="k", kind="upsert")

    def load(self, text: str, *keys: int, apart: float = 0.0) -> str:
        """Loads records through a writer whose clock is so many seconds ahead. Returns the id of the object."""
        self.clock.now += 100
        lake = Lake.open_on(self.store, ids=IdSource(clock=lambda: self.clock() + apart))
        table = pa.table({"k": list(keys), "v": [text] * len(keys)})
        lake.pool("p").branch().append(table)
        return max(self.store.list(naming.data(self.pool.config.id)), key=lambda info: info.modified).name

    def lose(self, *, copied: bool = False) -> Lake:
        """Deletes the journal. Returns the lake, or a copy of it that a later backup made."""
        for info in list(self.store.list(naming.pool_journal(self.pool.config.id))):
            self.store.delete(info.name)
        store = self.store
        if copied:
            self.clock.now += 10_000
            store = MemoryStore(clock=self.clock)
            for info in reversed(list(self.store.list(""))):
                self.clock.now += 60
                store.put(info.name, self.store.get(info.name) or b"")
        return Lake.open_on(store, ids=IdSource(clock=self.clock))


def values(lake: Lake) -> dict[int, str]:
    return {one["k"]: one["v"] for one in lake.pool("p").at().to_table().to_pylist()}


@pytest.mark.parametrize("ahead", [50.0, 3_600.0, 400 * 86_400.0])
def test_a_load_of_a_clock_that_ran_ahead_is_as_old_as_the_store_says(ahead: float) -> None:
    writers = Writers()
    writers.load("first", 1, 2, 3)
    writers.load("ahead", 2, 3, apart=ahead)
    writers.load("last", 3)
    right = {1: "first", 2: "ahead", 3: "last"}
    assert values(Lake.open_on(writers.store)) == right
    lake = writers.lose()
    plan = plan_rebuild(lake, "p", Wanted())
    assert not plan.unordered
    rebuild(lake, plan)
    assert values(lake) == right


def test_a_load_after_a_compaction_is_newer_though_the_merged_loads_had_a_clock_that_ran_ahead() -> None:
    """No record of the first load is left, so the sequences of the compaction do not tell when it was."""
    writers = Writers()
    writers.load("hidden", 2, apart=3_600.0)
    writers.load("merged", 2, 3, apart=3_600.0)
    branch = writers.pool.branch()
    compact(branch, branch.revision().references)
    writers.load("later", 3)
    lake = writers.lose()
    plan = plan_rebuild(lake, "p", Wanted())
    assert not plan.unordered
    rebuild(lake, plan)
    assert values(lake) == {2: "merged", 3: "later"}


def test_a_load_of_a_clock_that_was_behind_is_refused_if_another_load_has_its_keys() -> None:
    writers = Writers()
    writers.load("first", 1, 2)
    behind = naming.data_id(writers.load("behind", 2, 3, apart=-3_600.0))
    writers.load("beside", 7, apart=-3_600.0)
    lake = writers.lose()
    plan = plan_rebuild(lake, "p", Wanted())
    assert plan.unordered == (behind,)
    assert any("the store got them later" in note for note in plan.notes)
    with pytest.raises(InvalidInput, match=f"1 object cannot be ordered.*{behind}.*--guess"):
        rebuild(lake, plan)
    rebuild(lake, plan, guess=True)
    assert values(lake) == {1: "first", 2: "first", 3: "behind", 7: "beside"}


def test_objects_that_were_copied_are_ordered_by_their_ids() -> None:
    writers = Writers()
    for number, text in enumerate(("first", "second", "third")):
        writers.load(text, *range(number, 3))
    lake = writers.lose(copied=True)
    plan = plan_rebuild(lake, "p", Wanted())
    assert not plan.unordered
    rebuild(lake, plan)
    assert values(lake) == {0: "first", 1: "second", 2: "third"}


def test_an_object_that_was_put_back_makes_a_doubt() -> None:
    writers = Writers()
    name = writers.load("first", 1, 2)
    writers.load("second", 2, 3)
    data = writers.store.get(name) or b""
    writers.clock.now += 1_000
    writers.store.put(name, data)
    writers.load("third", 3)
    plan = plan_rebuild(writers.lose(), "p", Wanted())
    assert plan.unordered == (naming.data_id(name),)
