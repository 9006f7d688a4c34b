"""Which tombstones are due, and what is done about them."""

from __future__ import annotations

import pyarrow as pa

from lake_core.ids import IdSource
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore

NOW = 1_800_000_000.0


def test_where_everything_is_due_a_writer_whose_clock_is_ahead_is_no_exception() -> None:
    ahead = IdSource(clock=lambda: NOW + 3600)
    branch = Lake.create_on(MemoryStore(clock=lambda: NOW), ids=ahead).create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1, 2]}))
    branch.delete(where="k = 1")
    assert tombstones.apply(branch, now=NOW).left == 1
    done = tombstones.apply(branch, now=NOW, at_once=True)
    assert (done.rewritten, done.retired, done.left) == (1, 1, 0)
