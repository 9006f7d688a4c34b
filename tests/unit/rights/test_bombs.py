"""A data object of a few kilobytes that holds gigabytes: whoever reads it does so in bounded memory.

One text of 4 MiB in the dictionary of a column, which 400 records name, is 1.6 GiB of content in 4 kB.  The footer
says the sizes that the column had before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Corrupt
from lake_core.keys import KeyRange, PoolKey
from log_lake.lake import Lake
from log_lake.lake.view import View
from log_lake.objects.facts import read_facts
from log_lake.objects.read import DataObject
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.texts.keytext import RangeText
from tests.support.changed_objects import with_text
from tests.support.crafted import set_size

ROWS, TEXT = 400, 4 << 20
MOST = 1 << 30
"""Bytes that a reader may take: four batches, of the decoder and of those who take them."""


@contextmanager
def bounded(most: int = MOST) -> Iterator[None]:
    """Fails the block if the process grows by more, at any time."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from now on
    before = memory("VmRSS")
    yield
    grown = memory("VmHWM") - before
    assert grown < most, f"{grown:,} bytes"


def memory(what: str) -> int:
    """Bytes that the process has in memory (VmRSS), or had at its peak (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(what)).split()[1]) * 1024


@pytest.fixture
def lake() -> Lake:
    """A lake with the pool `a`, whose only object is the bomb, and a pool `b`."""
    store = MemoryStore("memory://bomb")
    made = Lake.create_on(store)
    for name in ("a", "b"):
        made.create_pool(name, key="k").branch().append(pa.table({"k": range(ROWS), "v": ["v" * 20] * ROWS}))
    pool = made.pool("a")
    name = naming.data_object(pool.config.id, pool.at().references[0].object)
    bomb = with_text(store.get(name) or b"", 1, b"v" * TEXT)
    assert len(bomb) < 8_000
    store.put(name, bomb)
    set_size(store, pool, len(bomb))
    return Lake.open_on(store)


def one_key(view: View) -> int:
    key_range = RangeText(prefix="7").read(view.key, view.key_classes)
    return sum(table.num_rows for table in view.scan(key_range=key_range))


READS: dict[str, tuple[Callable[[View], int], int]] = {
    "all records": (lambda view: sum(table.num_rows for table in view.scan()), ROWS),
    "one record": (lambda view: sum(table.num_rows for table in view.scan(limit=1)), 1),
    "one key": (one_key, 1),
    "a condition on another field": (lambda view: sum(t.num_rows for t in view.scan(where="k < 100")), 100),
    "the keys": (lambda view: sum(table.num_rows for table in view.scan(columns=["k"])), ROWS),
}


@pytest.mark.parametrize("what", READS)
def test_a_text_that_many_records_name_is_read_for_few_at_a_time(lake: Lake, what: str) -> None:
    read, records = READS[what]
    with bounded():
        assert read(lake.pool("a").at()) == records


def test_a_compaction_and_fsck_of_such_an_object_are_bounded(lake: Lake) -> None:
    pool = lake.pool("a")
    id = pool.at().references[0].object
    with bounded(), DataObject(lake.store, pool_id=pool.config.id, object_id=id) as data:
        read_facts(data)
    pool.branch().append(pa.table({"k": [5], "v": ["new"]}))
    with bounded(2 * MOST):
        compact(pool.branch(), pool.at().references)
    assert lake.pool("b").at().to_table().num_rows == ROWS


def test_keys_that_take_more_than_any_keys_are_corrupt() -> None:
    store = MemoryStore("memory://keys")
    lake = Lake.create_on(store)
    columns = {f"c{n}": [n] * ROWS for n in range(4)}
    pool = lake.create_pool("a", key="k")
    pool.branch().append(pa.table({"k": ["k" * 20] * ROWS, **columns}))
    id = pool.at().references[0].object
    name = naming.data_object(pool.config.id, id)
    bomb = with_text(store.get(name) or b"", 0, b"k" * TEXT)
    store.put(name, bomb)
    with bounded(2 * MOST), DataObject(store, pool_id=pool.config.id, object_id=id) as data:
        behind = data.metadata.low + b"\0"
        narrow = data.batches(KeyRange(behind, behind + b"\0"), key=PoolKey.parse("k"), columns=None)
        with pytest.raises(Corrupt, match="the keys of group 0 take more than"):
            list(narrow)
