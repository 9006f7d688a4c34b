"""What is erased from a source leaves the derived pool: first for readers, then on the store."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core import naming
from log_lake.erasure.receipt import DONE
from log_lake.erasure.run import erase
from tests.support.inlined import rows_in_journal
from tests.unit.derived.conftest import DerivedWorld


def stored(world: DerivedWorld, pool: str) -> set[str | None]:
    """The names in all objects of a pool, also in those that no version refers to any more."""
    id = world.lake.pool(pool).config.id
    found = {row.get("who") for rows in rows_in_journal(world.store, id).values() for row in rows}
    for info in world.store.list(naming.data(id)):
        table = pq.read_table(pa.BufferReader(world.store.get(info.name) or b""))
        found |= set(table.column("who").to_pylist())
    return found


def test_erased_values_leave_the_derived_pool_too(world: DerivedWorld) -> None:
    world.load(3, 25, who="bob")
    world.derive()
    world.load(26, who="bob")
    world.keep()
    assert erase(world.lake.pool("p"), where="who = 'bob'").status == DONE
    assert world.keep().groups is None  # an erasure purges the history
    world.check()
    assert "'bob'" not in repr(world.rows("SELECT * FROM d"))
    assert "bob" in stored(world, "d")
    receipt = erase(world.lake.pool("d"), where="who = 'bob'")
    assert receipt.status == DONE
    assert "bob" not in stored(world, "d") | stored(world, "p")
    world.check()
    world.load(27)
    assert world.keep().groups == 1
    world.check()
