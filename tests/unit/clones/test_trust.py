"""Who may write one pool alone reaches no other pool by the names that clones give to objects."""

from __future__ import annotations

import pytest

from lake_core.errors import Corrupt
from lake_core.history import Draft
from lake_core.history.snapshot.reference import Reference
from lake_core.ids import in_home
from lake_core.journal import write_state
from lake_core.naming import entry, pool_journal
from lake_core.records import (
    AddObject,
    BeginVacuum,
    ConfirmVacuum,
    Discard,
    Entry,
    PutReference,
    RemoveReference,
    Transaction,
)
from lake_core.records.codec import Codec
from log_lake.erasure.run import erase
from log_lake.lake.pool import Pool
from log_lake.vacuum.execute import vacuum
from tests.unit.clones.conftest import World


def forged(pool: Pool, *actions: object, branch: str = "main") -> None:
    """Puts the next entry of the pool, whatever it says, and looks at the pool in a new process."""
    loaded = pool.history.load()
    id, tip = pool.context.ids.new(), loaded.state.branches["main"].tip if branch else 0
    transaction = Transaction(id, branch, tip, loaded.version, 1, "forger", actions)  # type: ignore[arg-type]
    name = entry(pool_journal(pool.config.id), loaded.version + 1)
    pool.store.put(name, Codec(Entry).encode(Entry(id, (transaction,))))


def putting(reference: Reference, object_id: str) -> PutReference:
    schema, columns = reference.schema, reference.columns
    return PutReference(
        object_id, b"", b"\xff", reference.seq, reference.records, reference.size, schema, columns=columns
    )


def test_an_entry_of_another_pool_names_no_object_of_a_pool(world: World) -> None:
    world.load(1)
    other = world.lake.create_pool("q", key="k")
    world.load(2, pool="q")
    (reference,) = world.pool.at().references
    stolen = in_home(reference.object, world.pool.config.id)
    forged(other, putting(reference, stolen))
    with pytest.raises(Corrupt, match="no clone with objects in the folder of"):
        world.opened().pool("q").at()
    assert world.keys("p") == [1]


def test_a_new_object_lies_in_the_own_folder() -> None:
    with pytest.raises(Corrupt, match="in the folder of its own pool"):
        AddObject(in_home("0" * 27, "1" * 27), 1, 1, "s", b"\x01", b"\x02")


def test_a_checkpoint_makes_no_pool_a_clone(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    other = world.lake.create_pool("q", key="k")
    world.load(2, pool="q")
    loaded = clone.history.load()
    write_state(other.history.journal, loaded, id=world.lake.context.ids.new(), now=0.0)
    mark = other.history.journal.marks().checkpoints[0]
    with pytest.raises(Corrupt, match="does not have it as a clone"):
        world.opened().pool("q").history.journal.verify(mark)


def test_a_vacuum_of_a_clone_deletes_nothing_in_another_folder(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    (reference,) = clone.at().references
    there = world.objects(world.pool)
    forged(clone, RemoveReference(reference.object, reference.low))
    forged(clone, BeginVacuum((reference.object,)), branch="")
    seq = next(iter(clone.history.load().state.removed.vacuums))
    forged(clone, ConfirmVacuum(seq, ()), branch="")
    vacuum(world.opened().pool("c"), grace=0.0)
    assert world.objects(world.pool) == there


def test_orphans_are_names_of_the_own_folder(world: World) -> None:
    world.load(1)
    other = world.lake.create_pool("q", key="k")
    world.load(2, pool="q")
    stolen = in_home(world.pool.at().references[0].object, world.pool.config.id)
    forged(other, Discard((stolen,), (1,), never_read=True, scanned=""), branch="")
    there = world.objects(world.pool)
    vacuum(world.opened().pool("q"), grace=0.0)
    assert world.objects(world.pool) == there


def test_no_agent_copies_what_the_clone_did_not_begin_with(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    world.load(2)
    world.load(3, pool="c")
    (later,) = [r for r in world.pool.at().references if r.seq > clone.config.clone.version << 16]  # type: ignore[union-attr]
    forged(clone, putting(later, in_home(later.object, world.pool.config.id)))
    assert world.keys("c") == [1, 2, 3], "its readers may read the source"
    own = world.objects(clone)
    with pytest.raises(Corrupt, match="this clone did not begin with object"):
        world.compact("c")
    with pytest.raises(Corrupt, match="this clone did not begin with object"):
        erase(world.opened().pool("c"), where="k = 2", grace=0.0)
    assert world.objects(clone) == own


def test_a_clone_refers_to_no_object_of_a_third_pool(world: World) -> None:
    world.load(1)
    clone = world.lake.clone("p", "c")
    third = world.lake.create_pool("q", key="k")
    world.load(2, pool="q")
    (reference,) = third.at().references
    draft = Draft(
        world.lake.context.ids.new(),
        "main",
        clone.at().version,
        "forger",
        (putting(reference, in_home(reference.object, third.config.id)),),
    )
    with pytest.raises(Corrupt):
        clone.history.commit(draft)
    assert world.keys("c") == [1]
