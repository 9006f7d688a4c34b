"""What clones store, byte by byte, as in `test_golden`: references, checkpoints, and the list of pools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rpds import HashTrieMap

from lake_core.errors import Corrupt
from lake_core.history import Draft, History, PoolState, Reference, Snapshot
from lake_core.history.branch_state import BranchState
from lake_core.ids import in_home
from lake_core.journal import LoadedState, put_fence, write_state
from lake_core.journal.recent import Recent
from lake_core.keys import PoolKey
from lake_core.records import CreatePool, Entry, PoolsEntry, PutReference, RemoveReference
from lake_core.records.codec import Codec
from lake_core.records.pools import CloneOrigin, PoolConfig
from lake_core.schemas.schema import schema_id
from log_lake.lake.cloned_state import CloneFormat, state_of_clone
from log_lake.stores.memory import MemoryStore
from tests.golden.test_golden import VERSION_3, an_id, content, transaction

SOURCE, OTHER = an_id(90), an_id(91)
SCHEMA = pa.schema([("k", pa.int64())])

POOLS_ENTRY = PoolsEntry(
    an_id(1),
    1_700_000_000_123_456,
    "vera",
    (
        CreatePool(
            PoolConfig(
                an_id(2),
                "test",
                PoolKey.parse("k"),
                clone=CloneOrigin(SOURCE, "flights", 7, "main", (SOURCE, OTHER)),
            )
        ),
    ),
)
ENTRY = Entry(
    an_id(3),
    (
        transaction(
            RemoveReference(in_home(an_id(4), SOURCE), b"\x01"),
            PutReference(in_home(f"{an_id(5)}.zst", OTHER), b"\x01", b"\x02", 65_536, 3, 99, "s"),
            id=an_id(3),
        ),
    ),
)


@pytest.mark.parametrize(("name", "entry"), [("clone_pools_entry", POOLS_ENTRY), ("clone_entry", ENTRY)])
def test_an_entry_of_a_clone(name: str, entry: Any) -> None:
    codec: Codec[Any] = Codec(type(entry), version=3)
    stored = bytes.fromhex((VERSION_3 / f"{name}.hex").read_text())
    assert codec.encode(entry).hex() == stored.hex()
    assert codec.decode(stored, name="entry") == entry


def cloned(store: MemoryStore) -> History:
    """A clone whose source has an object of its own, one of another pool, and an inlined one; one is removed."""
    schema = schema_id(SCHEMA)

    def reference(n: int, object_id: str, data: bytes = b"") -> Reference:
        return Reference(object_id, b"%d" % n, b"%d~" % n, n << 16, 0, n, 9, schema, data=data)

    snapshot = Snapshot()
    for one in (
        reference(1, an_id(11)),
        reference(2, in_home(f"{an_id(12)}.zst", OTHER)),
        reference(3, an_id(13), b"123456789"),
        reference(4, an_id(14)),
    ):
        snapshot = snapshot.add(one)
    state = PoolState(
        branches=HashTrieMap({"main": BranchState(7, snapshot)}),
        schemas=HashTrieMap({schema: SCHEMA.serialize().to_pybytes()}),
    )
    homes = frozenset((SOURCE, OTHER))
    history = History(
        store, pool_id=an_id(2), key=PoolKey.parse("k"), clock=lambda: 0.0, token_keep=1e12, homes=homes
    )
    plain = history.journal.format
    history.journal.format = CloneFormat(homes=homes, source=SOURCE)
    first = LoadedState(7, state_of_clone(state, "main", pool_id=SOURCE), Recent(7))
    write_state(history.journal, first, id=an_id(76), now=0.0)
    put_fence(history.journal, 7)
    history.journal.format = plain
    gone = RemoveReference(in_home(an_id(14), SOURCE), b"4")
    history.commit(Draft(an_id(30), "main", 7, "vera", (gone,)))
    return history


def test_a_checkpoint_of_a_clone(tmp_path: Path) -> None:
    store = MemoryStore()
    journal = cloned(store).journal
    first = journal.marks().checkpoints[0]
    mark = write_state(journal, journal.load(), id=an_id(77), now=0.0)
    stored = json.loads((VERSION_3 / "clone_checkpoints.json").read_text())
    assert [content(store.get(one.name) or b"") for one in (first, mark)] == stored
    assert {one["footer"]["version"] for one in stored} == {4}


def test_a_stored_checkpoint_of_a_clone_is_read_as_what_it_was() -> None:
    store = MemoryStore()
    journal = cloned(store).journal
    folded = journal.load()
    mark = write_state(journal, folded, id=an_id(77), now=0.0)
    store.put(mark.name, bytes.fromhex((VERSION_3 / "clone_checkpoint.hex").read_text()))
    restored = journal.restore(mark).state
    ours, theirs = (one.branches["main"].snapshot.overlapping() for one in (restored, folded.state))
    assert ours == theirs
    assert restored.homes == folded.state.homes == {SOURCE, OTHER}
    assert dict(restored.removed.items()).keys() == {in_home(an_id(14), SOURCE)}


def test_a_pool_that_the_list_does_not_have_as_a_clone_refuses_it() -> None:
    store = MemoryStore()
    cloned(store)
    history = History(store, pool_id=an_id(2), key=PoolKey.parse("k"), clock=lambda: 0.0)
    with pytest.raises(Corrupt):
        history.load()
