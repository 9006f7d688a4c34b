"""`lake fsck` finds every fault that it knows, names the object, and says nothing of a sound lake.

Each test makes one fault in a lake whose journal has entries, checkpoints, deletes, compactions and requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core import naming
from lake_core.errors import NotFound, ObjectMissing, Unavailable
from lake_core.history.group_commit.requests import DraftRequest
from lake_core.history.state import PoolState
from lake_core.ids import IdSource
from lake_core.journal import LoadedState, purge, write_state
from lake_core.keys.encoding import encode_value
from lake_core.records import AddObject, Column, Entry
from lake_core.records.codec import Codec
from lake_core.store import ObjectInfo
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.indexes.names import index_name
from log_lake.lake import Lake
from log_lake.loading.block import Block
from log_lake.objects import metadata
from log_lake.repair.finding import DAMAGE, KINDS, UNSEEN, Finding
from log_lake.repair.fsck import LAKE_POOLS, Fsck
from log_lake.repair.removal import plan_repair, repair, whole_objects
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.damage import link_again, lose_and_replace, turn_a_bit
from tests.support.records import an_id
from tests.support.stores import ScriptedStore, unavailable

DAY = 86_400.0
START = 1_800_000_000.0


class Clock:
    """The lake's clock; a test turns it forward."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class World:
    """A lake in memory with a pool `p`, and what a test does to its objects."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore("memory://fsck", clock=self.clock)
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock), author="test")
        self.pool = self.lake.create_pool("p", key="k")

    @property
    def id(self) -> str:
        return self.pool.config.id

    @property
    def journal(self) -> str:
        return naming.pool_journal(self.id)

    def names(self, *words: str) -> list[str]:
        """The objects of the pool whose names contain all the words."""
        return [i.name for i in self.store.list(self.id) if all(word in i.name for word in words)]

    def objects(self) -> list[str]:
        return self.names("/data/")

    def entry(self, version: int) -> str:
        return naming.entry(self.journal, version)

    def change_entry(self, version: int, change: Callable[[Any], Any]) -> None:
        """Write an entry anew with each `add_object` changed, as if a writer had put it so."""
        codec, name = Codec(Entry), self.entry(version)
        read = codec.decode(self.store.get(name) or b"", name=name)
        transactions = [
            msgspec.structs.replace(
                t, actions=tuple(change(a) if isinstance(a, AddObject) else a for a in t.actions)
            )
            for t in read.transactions
        ]
        self.store.put(name, codec.encode(msgspec.structs.replace(read, transactions=tuple(transactions))))
        link_again(self.store, self.journal, codec)

    def checkpoint(self) -> str:
        write_checkpoint(self.lake, "p", now=self.clock())
        return Lake.open_on(self.store).pool("p").history.journal.marks().checkpoints[0].name

    def lie(self, change: Callable[[PoolState], PoolState]) -> str:
        """A checkpoint of a changed newest state."""
        journal = self.pool.history.journal
        loaded = journal.load()
        changed = LoadedState(loaded.version, change(loaded.state), loaded.recent)
        return write_state(journal, changed, id=self.lake.context.ids.new(), now=self.clock()).name

    def fsck(self, *pools: str, data: bool = True, older_than: float = DAY) -> list[Finding]:
        lake = Lake.open_on(self.store, ids=IdSource(clock=self.clock))
        return list(Fsck(lake.context, pools, data=data, older_than=older_than).run())


def table(*keys: int) -> pa.Table:
    return pa.table({"k": list(keys), "v": [None if k % 3 == 0 else f"v{k}" for k in keys]})


@pytest.fixture
def world() -> World:
    """Four loads, a delete, a compaction of two of the loads, a token; the entries 1 to 6, the objects 5."""
    world = World()
    branch = world.pool.branch()
    for start in (0, 5, 10):
        branch.append(table(*range(start, start + 10)))
    branch.append(pa.table({"k": [None, 1], "v": ["without", "with"]}), token="t")
    branch.delete(where="k = 7")
    compact(branch, world.pool.at().references[:2])
    return world


def kinds(found: list[Finding]) -> list[str]:
    return [f.kind for f in found]


def only(found: list[Finding], kind: str) -> Finding:
    """The one finding that there is."""
    assert kinds(found) == [kind], found
    assert (found[0].severity, bool(found[0].do)) == (KINDS[kind].severity, True)
    return found[0]


def test_nothing_is_found_in_a_sound_lake_and_nothing_is_written(world: World) -> None:
    world.checkpoint()
    world.pool.branch().append(table(50))
    world.checkpoint()
    before = {i.name: world.store.get(i.name) for i in world.store.list("")}
    assert world.fsck() == []
    assert {i.name: world.store.get(i.name) for i in world.store.list("")} == before
    purge_pool(world.lake, "p", keep=0.0, now=world.clock() + 1)
    assert world.fsck() == []


def test_a_missing_object(world: World) -> None:
    gone = world.pool.at().references[-1].object
    world.store.delete(naming.data_object(world.id, gone))
    found = only(world.fsck(data=False), "object_missing")
    assert found.where == naming.data_object(world.id, gone)
    assert f"lake repair p --object {gone}" in found.do


def referenced(world: World) -> str:
    return naming.data_object(world.id, world.pool.at().references[0].object)


def test_a_turned_bit_of_the_footer_is_found_without_reading_the_data(world: World) -> None:
    name = referenced(world)
    data = bytearray(world.store.get(name) or b"")
    data[-40] ^= 1
    world.store.put(name, bytes(data))
    assert only(world.fsck(data=False), "object_damaged").where == name


def test_a_turned_bit_of_any_page_is_found_in_the_data(world: World) -> None:
    name = referenced(world)
    sound = world.store.get(name) or b""
    end = metadata.decode(
        pq.ParquetFile(pa.BufferReader(sound)).metadata.metadata[metadata.KEY], name=name
    ).data_end
    for at in range(4, end, max(1, end // 40)):
        data = bytearray(sound)
        data[at] ^= 1
        world.store.put(name, bytes(data))
        assert only(world.fsck("p"), "object_damaged").where == name
    assert world.fsck("p", data=False) == []


def test_a_cut_object(world: World) -> None:
    name = referenced(world)
    world.store.put(name, (world.store.get(name) or b"")[:100])
    assert only(world.fsck(data=False), "object_damaged").where == name


def test_an_object_that_the_store_does_not_give(world: World) -> None:
    name = referenced(world)
    scripted = ScriptedStore(world.store)
    scripted.on("open_input", name, instead=unavailable, times=1000)
    lake = Lake.open_on(scripted, ids=IdSource(clock=world.clock))
    found = list(Fsck(lake.context).run())
    one = only(found, "object_unreadable")
    assert (one.where, one.severity) == (name, UNSEEN)


def refusing(world: World, *names: str, request: str = "get") -> Iterator[Finding]:
    """The findings of a check whose store refuses these objects, always."""
    scripted = ScriptedStore(world.store)
    for name in names:
        scripted.on(request, name, instead=unavailable, times=1_000_000)
    return Fsck(Lake.open_on(scripted, ids=IdSource(clock=world.clock)).context).run()


def test_a_pool_whose_journal_the_store_refuses_does_not_hide_the_others(world: World) -> None:
    other = world.lake.create_pool("a_second", key="k")
    other.branch().append(table(1))
    third = world.lake.create_pool("z_third", key="k")
    third.branch().append(table(1))
    (data,) = world.store.list(naming.data(third.config.id))
    world.store.put(data.name, b"damaged")
    found = list(refusing(world, world.entry(5), naming.entry(naming.pool_journal(other.config.id), 1)))
    assert [(one.kind, one.pool, one.severity) for one in found] == [
        ("unread", "a_second", UNSEEN),
        ("unread", "p", UNSEEN),
        ("object_damaged", "z_third", DAMAGE),
    ]
    assert found[1].where == f"{world.id}/"
    assert "the store refuses for now" in found[1].what


@pytest.mark.parametrize("folder", [naming.leases, naming.plans])
def test_a_note_that_the_store_refuses_is_named_and_the_rest_is_looked_at(
    world: World, folder: Callable[[str], str]
) -> None:
    note = f"{folder(world.id)}/{an_id(1)}"
    world.store.put(note, b"{}")
    name = referenced(world)
    world.store.put(name, b"damaged")
    found = {one.kind: one for one in refusing(world, note)}
    assert set(found) == {"unread", "object_damaged"}
    assert (found["unread"].where, found["unread"].severity) == (note, UNSEEN)


def test_a_folder_that_the_store_refuses_is_no_pool_outside_of_the_list(world: World) -> None:
    folder = world.lake.context.ids.new()
    (data, *_) = world.objects()
    copy = naming.data_object(folder, an_id(7))
    world.store.put(copy, world.store.get(data) or b"")
    found = list(refusing(world, copy, request="open_input"))
    one = only(found, "unread")
    assert (one.where, one.pool) == (f"{folder}/", folder)


def test_a_repair_does_not_take_an_object_out_because_the_store_refuses_it(world: World) -> None:
    name = referenced(world)
    id = naming.data_id(name) or ""
    scripted = ScriptedStore(world.store)
    scripted.on("open_input", name, instead=unavailable, times=1_000_000)
    branch = Lake.open_on(scripted, ids=IdSource(clock=world.clock)).pool("p").branch()
    plan = plan_repair(branch, objects=[id], transactions=[])
    assert whole_objects(branch, plan, among=[id]) == [id]
    world.store.put(name, b"damaged")
    scripted.forget()
    assert whole_objects(branch, plan, among=[id]) == []


def test_a_store_that_gives_no_object_is_unavailable_and_not_a_thousand_findings(world: World) -> None:
    for k in range(20):
        world.pool.branch().append(table(k))
    scripted = ScriptedStore(world.store)
    scripted.on("open_input", ".parquet", instead=unavailable, times=1000)
    lake = Lake.open_on(scripted, ids=IdSource(clock=world.clock))
    with pytest.raises(Unavailable):
        list(Fsck(lake.context).run())


def test_a_gap_in_the_journal_stops_the_readers(world: World) -> None:
    world.store.delete(world.entry(2))
    world.store.delete(world.entry(3))
    found = world.fsck()
    assert kinds(found) == ["entry_missing", "no_state", "unchecked"]
    assert found[0].where == world.entry(2)
    assert (
        "the entries 2 to 3 are missing: readers stop there, or see nothing after version 1" in found[0].what
    )


def test_a_gap_below_a_checkpoint_costs_only_the_revisions_in_it(world: World) -> None:
    world.checkpoint()
    world.pool.branch().append(table(60))
    world.store.delete(world.entry(2))
    found = world.fsck()
    assert kinds(found) == ["entry_missing", "unchecked"]
    assert "entry 2 is missing: the revisions from 2 to 2 cannot be read" in found[0].what


def test_entries_that_only_a_checkpoint_remembers(world: World) -> None:
    world.checkpoint()
    world.store.delete(world.entry(6))
    assert "entry 6 is missing: the revisions" in world.fsck()[0].what


def test_an_entry_that_cannot_be_decoded_or_does_not_fit(world: World) -> None:
    sound = world.store.get(world.entry(3)) or b""
    world.store.put(world.entry(3), sound[:-5])
    found = world.fsck()
    assert kinds(found) == ["entry_damaged", "no_state", "unchecked"]


def test_an_entry_that_names_another_one_before_it_than_there_is(world: World) -> None:
    """Another entry's bytes were put under its name."""
    world.store.put(world.entry(3), world.store.get(world.entry(2)) or b"")
    found = world.fsck()
    assert kinds(found) == ["entry_replaced", "no_state", "unchecked"]
    assert found[0].where == world.entry(3)


def test_an_entry_that_follows_the_one_before_it_and_does_not_fit(world: World) -> None:
    codec, name = Codec(Entry), world.entry(3)
    second, third = (codec.decode(world.store.get(world.entry(n)) or b"", name=name) for n in (2, 3))
    copied = msgspec.structs.replace(second, previous=third.previous)
    world.store.put(name, codec.encode(copied))
    link_again(world.store, world.journal, codec)
    found = world.fsck()
    assert kinds(found) == ["entry_damaged", "no_state", "unchecked"]
    assert "does not fit" in found[0].what


def replaced(world: World, version: int) -> str:
    """The entry is lost, and another process, which sees nothing behind it, loads a record; its name."""

    def load() -> None:
        lake = Lake.open_on(world.store, ids=IdSource(clock=world.clock))
        lake.pool("p").branch().append(table(90))

    lose_and_replace(world.store, world.journal, version, load)
    return world.entry(version)


def test_an_entry_in_the_place_of_a_lost_one(world: World) -> None:
    name = replaced(world, 3)
    found = world.fsck()
    assert kinds(found) == ["entry_replaced", "no_state", "unchecked"]
    assert found[0].where == name
    assert "another entry is in its place: version 4 was committed on another one" in found[0].what
    assert "from a backup" in found[0].do
    assert "lake rebuild p --name NEW" in found[0].do


def test_an_entry_in_the_place_of_a_lost_one_below_a_checkpoint(world: World) -> None:
    world.checkpoint()
    world.pool.branch().append(table(60))
    name = replaced(world, 3)
    found = world.fsck()
    assert kinds(found) == ["entry_replaced", "unchecked"]
    assert found[0].where == name


def test_an_entry_in_the_place_of_the_one_that_a_checkpoint_rests_on(world: World) -> None:
    """The checkpoint is right, though it differs from the entries: nobody is told to delete it."""
    mark = world.checkpoint()
    for then in (lambda: None, lambda: world.pool.branch().append(table(60))):
        then()
        name = replaced(world, 6)
        found = world.fsck()
        assert kinds(found) == ["entry_replaced", "unchecked"]
        assert found[0].where == name
        assert mark in found[0].what


def test_a_checkpoint_that_names_another_entry_than_the_one_that_was_gone_on_from(world: World) -> None:
    journal = world.pool.history.journal
    lie = replace(journal.load(), checksum=1)
    name = write_state(journal, lie, id=world.lake.context.ids.new(), now=world.clock()).name
    world.pool.branch().append(table(60))
    assert world.fsck()[0].where == name
    assert world.fsck()[0].kind == "checkpoint_differs"


def test_the_first_entry_behind_a_fence_does_not_follow_the_checkpoint_there(world: World) -> None:
    journal = world.pool.history.journal
    lie = replace(journal.load(), checksum=1)
    write_state(journal, lie, id=world.lake.context.ids.new(), now=world.clock())
    purge(journal, until=6)
    for k in (60, 70):
        world.pool.branch().append(table(k))
    found = world.fsck()
    assert kinds(found) == ["entry_replaced", "no_state", "unchecked"]
    assert found[0].where == world.entry(7)


def test_the_first_entry_behind_a_fence_is_another_one(world: World) -> None:
    world.checkpoint()
    purge_pool(world.lake, "p", keep=0.0, now=world.clock() + 1)
    for k in (60, 70):
        world.pool.branch().append(table(k))
    name = replaced(world, 7)
    found = world.fsck()
    assert found[0].where == name
    assert kinds(found) == ["entry_replaced", "no_state", "unchecked"]


def test_a_checkpoint_of_which_a_page_is_damaged(world: World) -> None:
    name = world.checkpoint()
    turn_a_bit(world.store, name)
    assert only(world.fsck(), "checkpoint_damaged").where == name
    world.store.put(name, b"PAR1 but no longer")
    assert only(world.fsck(), "checkpoint_damaged").where == name


def without_a_reference(state: PoolState) -> PoolState:
    branch = state.branches["main"]
    one = branch.snapshot.overlapping()[0]
    snapshot = branch.snapshot.remove(one.object, one.low)
    return _with(state, snapshot=snapshot)


def with_another_size(state: PoolState) -> PoolState:
    snapshot = state.branches["main"].snapshot
    one = snapshot.overlapping()[-1]
    return _with(
        state,
        snapshot=snapshot.remove(one.object, one.low).add(msgspec.structs.replace(one, size=one.size + 1)),
    )


def with_another_bound(state: PoolState) -> PoolState:
    snapshot = state.branches["main"].snapshot
    one = snapshot.overlapping()[-1]
    wider = msgspec.structs.replace(one, high=one.high + b"\0")
    return _with(state, snapshot=snapshot.remove(one.object, one.low).add(wider))


def without_tombstones(state: PoolState) -> PoolState:
    tombstones = state.branches["main"].tombstones
    for name in list(tombstones):
        tombstones = tombstones.remove(name)
    return _with(state, tombstones=tombstones)


def with_another_token(state: PoolState) -> PoolState:
    known = state.tokens.get("t")
    assert known is not None
    return replace(state, tokens=state.tokens.insert("other", known))


def with_another_tip(state: PoolState) -> PoolState:
    return _with(state, tip=2)


def _with(state: PoolState, **changes: Any) -> PoolState:
    return replace(state, branches=state.branches.insert("main", replace(state.branches["main"], **changes)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_a_reference, "branch: 'main' differs"),
        (with_another_size, "branch: 'main' differs"),
        (with_another_bound, "reference of main: the reference to object"),
        (without_tombstones, "tombstone of main"),
        (with_another_token, "token: the token 'other'"),
        (with_another_tip, "branch: 'main' differs"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_checkpoint_that_differs_from_the_fold(
    world: World, change: Callable[[PoolState], PoolState], said: str
) -> None:
    name = world.lie(change)
    (found,) = [f for f in world.fsck() if f.kind == "checkpoint_differs"]
    assert found.where == name
    assert said in found.what


def test_a_checkpoint_that_forgot_tokens_is_sound(world: World) -> None:
    world.clock.now += 40 * DAY
    world.checkpoint()
    assert world.fsck() == []


def test_a_checkpoint_of_the_list_of_pools_is_sound(world: World) -> None:
    journal = world.lake.catalog.journal
    write_state(journal, journal.load(), id=world.lake.context.ids.new(), now=world.clock())
    assert world.fsck() == []


def test_a_checkpoint_of_the_list_of_pools_that_differs(world: World) -> None:
    world.lake.create_pool("q", key="k")
    journal = world.lake.catalog.journal
    old = journal.load_version(1)
    assert old is not None
    lie = LoadedState(2, old.state, journal.load().recent)
    mark = write_state(journal, lie, id=world.lake.context.ids.new(), now=world.clock())
    (found,) = [f for f in world.fsck("lake:pools") if f.kind == "checkpoint_differs"]
    assert found.where == mark.name


def test_a_checkpoint_whose_totals_are_not_those_of_its_references(world: World) -> None:
    def change(state: PoolState) -> PoolState:
        snapshot = state.branches["main"].snapshot
        shapes = snapshot.shapes
        for place, shape in snapshot.shapes.items():
            shapes = shapes.insert(place, msgspec.structs.replace(shape, records=shape.records + 1))
        return _with(state, snapshot=replace(snapshot, shapes=shapes))

    world.lie(change)
    assert set(kinds(world.fsck())) == {"checkpoint_lies", "checkpoint_differs", "totals_lie"}


def test_a_fence_without_a_checkpoint_and_a_fence_that_says_something_else(world: World) -> None:
    fence = naming.fence(world.journal, 6)
    world.store.put(fence, b"6")
    found = [f for f in world.fsck() if f.kind == "fence_lies"]
    assert [f.where for f in found] == [fence]
    world.store.delete(fence)
    world.checkpoint()
    purge_pool(world.lake, "p", keep=0.0, now=world.clock() + 1)
    world.store.put(fence, b"5")
    assert only(world.fsck(), "fence_lies").where == fence


@pytest.mark.parametrize(
    ("hint", "content", "kind"),
    [
        (naming.head, b"7", "hint_beyond_end"),
        (naming.tail, b"2", "hint_beyond_end"),
        (naming.head, b"garbage", "hint_unreadable"),
        (naming.head, b"9" * 30, "hint_unreadable"),
    ],
)
def test_a_hint_that_lies(world: World, hint: Callable[[str], str], content: bytes, kind: str) -> None:
    world.store.put(hint(world.journal), content)
    assert only(world.fsck(), kind).where == hint(world.journal)


def test_a_hint_that_lags_behind_is_sound(world: World) -> None:
    world.store.put(naming.head(world.journal), b"1")
    assert world.fsck() == []


def test_entries_and_checkpoints_that_a_purge_left(world: World) -> None:
    leftovers = {name: world.store.get(name) for name in [world.checkpoint(), world.entry(4)]}
    world.pool.branch().append(table(70))
    world.checkpoint()
    purge_pool(world.lake, "p", keep=0.0, now=world.clock() + 1)
    assert world.fsck() == []
    for name, data in leftovers.items():
        world.store.put(name, data or b"")
    found = world.fsck()
    assert {f.kind for f in found} == {"entry_leftover"}
    assert {f.where for f in found} == set(leftovers)


def changed(field: str, value: Any) -> Callable[[AddObject], AddObject]:
    return lambda action: msgspec.structs.replace(
        action, **{field: value(getattr(action, field)) if callable(value) else value}
    )


@pytest.mark.parametrize(
    ("version", "field", "value", "kind"),
    [
        (3, "records", 11, "statistics_lie"),
        (3, "size", lambda size: size + 1, "statistics_lie"),
        (3, "low", encode_value(9), "reference_outside"),
        (3, "high", encode_value(30), "reference_outside"),
        (3, "sub_pool", "$nokey", "statistics_lie"),
        (6, "seqs", (1, 2 * 65536), "statistics_lie"),
        (6, "seqs", (65536, 5 * 65536), "statistics_lie"),
        (3, "seqs", (1, 2), "statistics_lie"),
    ],
)
def test_what_a_reference_says_of_its_object_and_is_not_so_is_seen_in_the_footer(
    world: World, version: int, field: str, value: Any, kind: str
) -> None:
    world.change_entry(version, changed(field, value))
    found = world.fsck(data=False)
    assert kind in kinds(found)
    assert {f.kind for f in found} <= {kind, "object_damaged"}


@pytest.mark.parametrize(
    "column",
    [
        Column("v", nulls=1, low=encode_value("v10"), high=encode_value("v19")),
        Column("v", nulls=3, low=encode_value("v11"), high=encode_value("v19")),
        Column("v", nulls=3, low=encode_value("v10"), high=encode_value("v17")),
        Column("w"),
    ],
    ids=["nulls", "low", "high", "no such field"],
)
def test_statistics_of_a_field_that_lie_are_seen_in_the_data(world: World, column: Column) -> None:
    world.change_entry(3, lambda action: msgspec.structs.replace(action, columns=(column,)))
    assert world.fsck(data=False) == []
    assert only(world.fsck(), "statistics_lie").what.startswith(f"field '{column.name}'")


def test_statistics_that_are_wide_or_absent_are_sound(world: World) -> None:
    for columns in [(), (Column("v", nulls=3),), (Column("v", 3, encode_value("a"), encode_value("z")),)]:
        world.change_entry(3, changed("columns", lambda _, given=columns: given))
        assert world.fsck() == []


def test_a_reference_to_a_part_of_an_object_is_sound_if_it_counts_what_it_shows(world: World) -> None:
    part = {"low": encode_value(12), "high": encode_value(15), "columns": ()}
    world.change_entry(3, lambda action: msgspec.structs.replace(action, **part, records=3))
    assert world.fsck() == []
    world.change_entry(3, lambda action: msgspec.structs.replace(action, **part, records=4))
    assert world.fsck(data=False) == []
    assert "the reference says 4, it shows 3" in only(world.fsck(), "statistics_lie").what


def test_records_that_are_out_of_order_are_seen_in_the_data(world: World) -> None:
    """An object that a faulty program wrote, whose checksums are those of its bytes."""
    with patch("log_lake.objects.write.sort_order", lambda *_: None):
        world.pool.branch().append(table(92, 91, 93))
    assert world.fsck(data=False) == []
    found = world.fsck()
    assert {f.kind for f in found} == {"object_damaged"}
    assert any("out of order" in f.what for f in found)


def test_an_object_of_another_key(world: World) -> None:
    other = World.__new__(World)
    other.__dict__ |= world.__dict__
    other.pool = world.lake.create_pool("q", key="v")
    written = other.pool.branch().append(table(10, 11))
    assert written.version == 1
    (name,) = [n for n in [i.name for i in world.store.list(other.id)] if "/data/" in n]
    target = world.pool.at().references[-1]
    stolen = naming.data_object(world.id, target.object)
    world.store.put(stolen, world.store.get(name) or b"")
    found = [f for f in world.fsck("p") if f.where == stolen]
    assert kinds(found) == ["object_damaged"]
    assert "another object's" in found[0].what


def test_a_schema_that_is_not_the_one_its_id_names(world: World) -> None:
    def change(state: PoolState) -> PoolState:
        schemas = state.schemas
        for id in list(schemas):
            schemas = schemas.insert(id, pa.schema([("k", pa.int64())]).serialize().to_pybytes())
        return replace(state, schemas=schemas)

    world.lie(change)
    assert {"schema_lies", "checkpoint_differs"} <= set(kinds(world.fsck()))


def written(world: World) -> str:
    """The id of an object that is written and not committed."""
    pending = world.pool.branch().begin_load()
    building = world.pool.branch().builder(pending)  # type: ignore[arg-type]
    building.add(Block(table(1, 2)))
    (object,) = building.finish()
    return object.action.object


def test_an_object_that_nothing_refers_to_counts_from_an_age_on(world: World) -> None:
    object = written(world)
    time.sleep(0.002)
    world.pool.branch().append(table(3))
    assert world.fsck() == [], "it may belong to a load under way"
    world.clock.now += 2 * DAY
    found = only(world.fsck(), "object_unreferenced")
    assert found.where == naming.data_object(world.id, object)


def test_objects_that_are_newer_than_the_newest_write_are_in_flight_or_their_entries_are_lost(
    world: World,
) -> None:
    world.pool.branch().append(table(3))
    world.pool.branch().append(table(3))
    for version in (8, 7):
        world.store.delete(world.entry(version))
    assert "2 data objects newer than the newest write" in only(world.fsck(), "in_flight").what
    world.clock.now += 2 * DAY
    found = only(world.fsck(), "tail_may_be_lost")
    assert (found.where, "lake rebuild p --name NEW" in found.do) == (world.journal, True)
    world.pool = Lake.open_on(world.store, ids=world.lake.context.ids).pool("p")
    world.pool.branch().append(table(4))
    assert kinds(world.fsck()) == ["object_unreferenced"] * 2


def test_a_journal_that_is_gone(world: World) -> None:
    for name in world.names("/journal/"):
        world.store.delete(name)
    found = world.fsck()
    assert kinds(found) == ["journal_lost", "unchecked"]
    assert (found[0].where, "lake rebuild p;" in found[0].do) == (world.journal, True)


def test_a_list_of_pools_that_is_gone(world: World) -> None:
    for name in [info.name for info in world.store.list(naming.POOLS_JOURNAL)]:
        world.store.delete(name)
    found = world.fsck()
    assert kinds(found) == ["pools_lost", "pool_unlisted"], "the folders are named, to be rebuilt"
    assert f"lake rebuild {world.id} --name NAME" in found[1].do
    assert kinds(list(Fsck(world.lake.context, pools=[LAKE_POOLS]).run())) == ["pools_lost"]


def test_a_journal_that_is_gone_without_a_sign_that_it_had_entries(world: World) -> None:
    for name in [*world.names("/journal/"), naming.begun(world.journal)]:
        world.store.delete(name)
    assert "6 data objects of a pool whose journal has no entry" in only(world.fsck(), "in_flight").what
    world.clock.now += 2 * DAY
    assert "lake rebuild p" in only(world.fsck(), "journal_missing").do
    world.pool = Lake.open_on(world.store, ids=world.lake.context.ids).pool("p")
    world.pool.branch().append(table(4))
    assert kinds(world.fsck()) == ["object_before_journal"] * 6


def test_objects_of_older_revisions_are_referred_to_until_these_are_purged(world: World) -> None:
    world.clock.now += 2 * DAY
    assert world.fsck() == [], "the inputs of the compaction belong to versions 1 to 5"
    world.checkpoint()
    purge_pool(world.lake, "p", keep=0.0, now=world.clock() + 1)
    assert kinds(world.fsck()) == ["object_unreferenced"] * 2


def test_a_request_whose_writer_is_gone(world: World) -> None:
    context = world.lake.context
    old = DraftRequest(context.ids.new(), 5, int(world.clock() * 1e6), "main", 5, "test", ())
    name = naming.request(world.journal, old.id)
    world.store.put(name, Codec(DraftRequest).encode(old))
    assert world.fsck() == []
    world.clock.now += 700
    assert only(world.fsck(), "request_leaked").where == name
    world.store.put(name, b"")
    assert only(world.fsck(), "request_leaked").where == name


def test_folders_of_agents_and_of_published_tables_are_those_of_a_lake(world: World) -> None:
    world.store.put(naming.pack(an_id(1), 0), b"[]")
    world.store.put(f"{naming.published(world.id, 'iceberg', 'main')}/metadata/v1.json", b"{}")
    assert world.fsck() == []


def test_names_that_are_none_of_the_lake(world: World) -> None:
    names = [
        "notes.txt",
        f"{world.id}/more/x",
        f"{world.id}/data/x.parquet",
        f"{world.id}/data/{an_id(1)}.csv",
        f"{world.journal}/7.txn",
        f"{world.journal}/requests/x",
        "pools/README",
    ]
    for name in names:
        world.store.put(name, b"x")
    found = world.fsck()
    assert {f.kind for f in found} == {"object_unknown"}
    assert {f.where.rstrip("/") for f in found} == {n.replace("/more/x", "/more") for n in names}


def test_an_index_that_is_damaged_is_a_leftover(world: World) -> None:
    world.pool.branch().append(table(1))
    (name,) = world.objects()[:1]
    object_id = naming.data_id(name)
    assert object_id is not None
    world.store.put(index_name(world.id, object_id, "0123456789abcdef"), b"LKIX")
    found = only(world.fsck(), "index_damaged")
    assert (found.severity, "lake index make p" in found.do) == ("leftover", True)


def test_a_folder_of_a_pool_that_the_list_does_not_have(world: World) -> None:
    world.lake.create_pool("q", key="k").branch().append(table(1))
    (id,) = [p.id for p in world.lake.pools() if p.name == "q"]
    world.store.delete(naming.entry(naming.POOLS_JOURNAL, 2))
    found = only(world.fsck(), "pool_unlisted")
    assert (found.where, f"lake rebuild {id}" in found.do) == (f"{id}/", True)


def test_a_folder_that_a_process_fills_before_it_lists_the_pool_is_no_damage(world: World) -> None:
    config = world.lake.new_pool("q", key="k", settings={"lease.after": "0s", "type.k": "bigint"})
    filling = world.lake.unlisted(config)
    world.store.put(naming.data_object(config.id, world.lake.context.ids.new()), b"x")
    found = only(world.fsck(), "pool_in_flight")
    assert (found.where, f"lake drop {config.id}" in found.do) == (f"{config.id}/", True)
    assert only(world.fsck(older_than=0.0), "pool_unlisted").where == f"{config.id}/"
    world.clock.now += 2 * DAY
    only(world.fsck(), "pool_unlisted")
    with filling.branch().write_lease(config.id, read_version=0, first=config.id, why="rekey"):
        filling.split(at=[3])
        assert "test is at work there (rekey)" in only(world.fsck(), "pool_in_flight").what
    only(world.fsck(), "pool_unlisted")
    with filling.branch().write_lease(config.id, read_version=0, first=config.id, why="lake load"):
        only(world.fsck(), "pool_unlisted")  # a writer of a pool whose list was put back from a backup


def test_a_pool_that_is_made_during_the_check_is_no_finding() -> None:
    class Busy(MemoryStore):
        lake: Lake | None = None

        def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
            if prefix == "" and (lake := self.lake) is not None:
                self.lake = None
                lake.create_pool("q", key="k").branch().append(table(1))
            return super().list(prefix, after=after)

    store = Busy("memory://busy")
    lake = Lake.create_on(store)
    lake.create_pool("p", key="k").branch().append(table(1))
    store.lake = lake
    assert list(Fsck(Lake.open_on(store).context).run()) == []
    assert store.lake is None


def test_the_folder_of_a_dropped_pool_is_a_leftover(world: World) -> None:
    world.lake.drop_pool("p")
    assert only(world.fsck(), "pool_dropped").where == f"{world.id}/"


def test_a_drop_that_was_interrupted_is_a_leftover(world: World) -> None:
    world.pool.close()
    found = only(world.fsck(), "drop_interrupted")
    assert (found.pool, found.do) == (
        "p",
        "finish the drop: lake drop p --yes; or take the pool back: lake restore p",
    )


def test_a_gap_in_the_list_of_pools(world: World) -> None:
    world.lake.create_pool("q", key="k")
    world.store.delete(naming.entry(naming.POOLS_JOURNAL, 1))
    found = world.fsck()
    assert kinds(found) == ["entry_missing", "no_state"]


def test_only_the_pools_that_are_named_are_looked_at(world: World) -> None:
    world.lake.create_pool("q", key="k")
    world.store.delete(referenced(world))
    assert world.fsck("q") == world.fsck("lake:pools") == []
    assert kinds(world.fsck("p", "q")) == ["object_missing"]
    for name in ("nobody", "p.$nokey"):
        with pytest.raises(NotFound):
            world.fsck(name)


def test_a_damage_found_twice_is_found_again_though_the_program_has_read_the_object(world: World) -> None:
    assert world.pool.at().to_table().num_rows
    world.store.delete(referenced(world))
    assert kinds(world.fsck()) == ["object_missing"]


def test_a_writer_that_commits_while_fsck_runs_makes_no_finding(world: World) -> None:
    scripted = ScriptedStore(world.store)
    scripted.on("list", world.journal, before=lambda: world.pool.branch().append(table(80)), times=3)
    scripted.on("get", world.entry(4), before=lambda: world.pool.branch().append(table(81)))
    lake = Lake.open_on(scripted, ids=IdSource(clock=world.clock))
    assert list(Fsck(lake.context, data=True).run()) == []


def test_a_purge_while_fsck_runs_makes_no_finding(world: World) -> None:
    def purge() -> None:
        world.checkpoint()
        purge_pool(world.lake, "p", keep=0.0, now=world.clock() + 1)

    scripted = ScriptedStore(world.store)
    scripted.on("get", world.entry(3), before=purge)
    lake = Lake.open_on(scripted, ids=IdSource(clock=world.clock))
    found = list(Fsck(lake.context, data=True).run())
    assert [f for f in found if f.severity == DAMAGE] == []


def test_folders_are_found_without_listing_what_is_in_them(world: World) -> None:
    scripted = ScriptedStore(world.store)
    listed: list[ObjectInfo] = []
    whole = scripted.list

    def counting(prefix: str, *, after: str = "") -> Any:
        for info in whole(prefix, after=after):
            if prefix == "":
                listed.append(info)
            yield info

    scripted.list = counting  # type: ignore[method-assign]
    lake = Lake.open_on(scripted, ids=IdSource(clock=world.clock))
    assert list(Fsck(lake.context).run()) == []
    assert len(listed) <= 2 * 3, "lake.json, pools/, the pool"


def test_every_branch_is_looked_at_and_shared_references_once(world: World) -> None:
    def fork(state: PoolState) -> PoolState:
        return replace(state, branches=state.branches.insert("b", state.branches["main"]))

    world.lie(fork)
    lake = Lake.open_on(world.store, ids=IdSource(clock=world.clock))
    check = Fsck(lake.context, ["p"])
    assert kinds(list(check.run())) == ["checkpoint_differs"]
    assert check.counts["references"] == 2 * check.counts["objects"]


def branched(world: World) -> None:
    """A branch that was compacted, merged and deleted, one that goes on, and a tag of what is purged."""
    pool = world.pool
    pool.create_branch("dev")
    for start in (0, 5):
        pool.branch("dev").append(table(*range(start, start + 10)))
    dev = pool.at("dev").held
    compact(pool.branch("dev"), [r for r in dev.snapshot.overlapping() if dev.is_unmerged(r)])
    pool.branch().merge("dev")
    pool.create_branch("lifted")
    pool.create_branch("other", at="dev")
    pool.delete_branch("other")
    pool.tag("t", at="6")
    compact(pool.branch(), pool.at().references)
    world.checkpoint()
    purge_pool(world.lake, "p", keep=0.0, now=world.clock())


def test_branches_merges_and_tags_are_sound(world: World) -> None:
    branched(world)
    assert any(r.lifts for r in world.pool.at("lifted").references)
    assert world.pool.at("t").to_table().num_rows > 0
    assert world.fsck() == []


def test_a_missing_object_is_taken_out_of_each_branch_that_refers_to_it(world: World) -> None:
    world.pool.create_branch("b")
    world.pool.create_branch("c")
    name = referenced(world)
    id = naming.data_id(name) or ""
    world.store.delete(name)
    command = f"lake repair p --object {id}"
    assert only(world.fsck(), "object_missing").do.endswith(
        f": {command} --branch b; {command} --branch c; {command}"
    )
    for branch in ("main", "c"):
        target = world.pool.branch(branch)
        repair(target, plan_repair(target, objects=[id], transactions=[]))
    assert only(world.fsck(), "object_missing").do.endswith(f": {command} --branch b")
    target = world.pool.branch("b")
    repair(target, plan_repair(target, objects=[id], transactions=[]))
    assert world.fsck() == []


def test_a_revert_does_not_bring_an_object_back_that_is_not_there(world: World) -> None:
    name = referenced(world)
    data = world.store.get(name) or b""
    world.store.delete(name)
    branch = world.pool.branch()
    done = repair(branch, plan_repair(branch, objects=[naming.data_id(name) or ""], transactions=[]))
    with pytest.raises(ObjectMissing, match="put it back from a backup"):
        branch.revert(str(done.version))
    assert world.fsck() == []
    world.store.put(name, data)
    assert branch.revert(str(done.version)).restored == 1
    assert world.fsck() == []


def test_a_tag_whose_checkpoint_is_gone(world: World) -> None:
    branched(world)
    mark = next(m for m in world.pool.history.journal.marks().checkpoints if m.version == 6)
    world.store.delete(mark.name)
    found = world.fsck()
    assert "tag t of version 6" in next(f.what for f in found if f.kind == "tag_dangling")
    assert set(kinds(found)) <= {"tag_dangling", "object_unreferenced"}


def test_a_stored_sum_that_the_records_do_not_have() -> None:
    world = World()
    world.lake.configure_pool("p", {"content.sums": "on"})
    written = world.lake.pool("p").branch().append(pa.table({"k": [1, 2]}))
    check = Fsck(world.lake.context, content=True)
    assert (list(check.run()), check.counts["without_sum"]) == ([], 0)
    world.change_entry(written.version or 0, lambda a: msgspec.structs.replace(a, content=bytes(8)))
    again = Lake.open_on(world.store).context
    assert list(Fsck(again, data=True).run()) == []
    (found,) = Fsck(again, content=True).run()
    assert (found.kind, found.where) == ("content_lies", *world.objects())


def test_a_test_here_makes_each_kind_of_finding() -> None:
    others = (
        Path(__file__).with_name("test_rebuild.py"),
        Path(__file__).parents[2] / "cli/test_small_refusals.py",
        Path(__file__).parents[1] / "erasure/test_lost_receipts.py",
        Path(__file__).parents[1] / "clones/test_killed_clones.py",
    )
    source = "".join(path.read_text() for path in (Path(__file__), *others))
    assert [kind for kind in KINDS if f'"{kind}"' not in source] == []
