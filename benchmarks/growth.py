"""What grows: the same work in a small pool and in one four times as large; a line that stays flat costs the same.

Each work is done several times, in turns with its peer if it has one; the least processor time counts.  The pools
are in memory, so no store is in the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Measure
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import begin_compaction
from log_lake.stores.memory import MemoryStore

TIMES = 3
ENOUGH = 0.2
"""Seconds: some kernels count processor time in hundredths."""

SMALL, LARGE = 250, 1_000
RECORDS = 2_000_000


def _pool(key: str = "k") -> Pool:
    return Lake.create_on(MemoryStore()).create_pool("p", key=key)


def _loads(count: int, records: int = 20) -> Pool:
    """A pool of small loads, each over all keys."""
    pool = _pool()
    branch, chance = pool.branch(), np.random.default_rng(count)
    for _ in range(count):
        branch.append(pa.table({"k": chance.integers(0, 1 << 30, records), "v": chance.random(records)}))
    return pool


def _jobs(count: int) -> Callable[[], object]:
    branch = _loads(count).branch()
    inputs = branch.revision().references[:10]
    return lambda: [begin_compaction(branch, inputs, outputs=1, message="") for _ in range(20)]


def _scans(count: int) -> Callable[[], object]:
    return _loads(count).at().to_table


def _deletes(count: int) -> Callable[[], object]:
    """Twenty deletes by condition after so many."""
    branch = _one_object()
    for value in range(count):
        branch.delete(where=f"v = {value}")
    values = iter(range(count, 1_000_000))
    return lambda: [branch.delete(where=f"v = {next(values)}") for _ in range(20)]


def _one_object(records: int = 200_000) -> Any:
    branch = _pool().branch()
    branch.append(pa.table({"k": np.arange(records), "v": np.arange(records)[::-1]}))
    return branch


def _deleted(count: int, *, by: str = "range") -> Callable[[], object]:
    """A scan of one object under so many deletes."""
    branch = _one_object(RECORDS)
    view = Lake.open_on(branch.store).pool("p").at()
    for low in range(0, count * 20, 20):
        if by == "range":
            branch.delete(key_range=view.key_range(low=low, high=low + 2))
        else:
            branch.delete(where=f"v = {low}")
    return Lake.open_on(branch.store).pool("p").at().to_table


def _own_fields(count: int) -> list[pa.Table]:
    chance = np.random.default_rng(count)
    return [
        pa.table(
            {"k": chance.integers(0, 1 << 30, 100)} | {f"f{n}_{i}": chance.random(100) for i in range(10)}
        )
        for n in range(count)
    ]


def _schemas(tables: list[pa.Table]) -> Callable[[], object]:
    pool = _pool()
    for table in tables:
        pool.branch().append(table)
    return pool.at().to_table


def _united(tables: list[pa.Table]) -> Callable[[], object]:
    files = []
    for table in tables:
        pq.write_table(table, sink := pa.BufferOutputStream())
        files.append(sink.getvalue())
    return lambda: pa.concat_tables(
        [pq.read_table(pa.BufferReader(file)) for file in files], promote_options="default"
    ).sort_by("k")


def _wide(columns: int) -> pa.Table:
    chance = np.random.default_rng(columns)
    fields = {f"f{n}": chance.random(1_000) for n in range(columns)}
    return pa.table({"k": chance.permutation(1_000)} | fields)


def _middle(count: int) -> Callable[[], object]:
    """Opens the middle of so many versions in a new process."""
    pool = _loads(count, 1)
    lake = Lake.open_on(pool.store)
    write_checkpoint(lake, "p", now=lake.context.now())
    return lambda: Lake.open_on(pool.store).pool("p").at(str(count // 2))


def _spent(work: Callable[[], object]) -> float:
    """Seconds of processor time; several works together, if one takes too little to be measured."""
    for times in (1, 10, 100):
        begun = time.process_time()
        for _ in range(times):
            work()
        spent = time.process_time() - begun
        if spent > ENOUGH:
            break
    return spent / times


def _in_turns(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least time of each."""
    rounds = [{name: _spent(work) for name, work in works.items()} for _ in range(TIMES)]
    return {name: min(one[name] for one in rounds) for name in works}


def _group(
    what: str, of: Callable[[int], Callable[[], object]], small: int, large: int, units: int = 0
) -> Iterator[Measure]:
    """The small one and the large one; with `units`, each does so many."""
    works = {f"{what}, {size:,}": of(size) for size in (small, large)}
    for (name, spent), size in zip(_in_turns(works).items(), (small, large), strict=True):
        done = units or size
        note = f"{spent / done * 1000:.2f} ms each"
        yield Measure(name, spent, done, 0, note=note, processor=spent, begins=size == small)


def _beside(what: str, works: dict[str, Callable[[], object]], records: int) -> Iterator[Measure]:
    """Ratios are to the first one."""
    spent = _in_turns(works)
    first = next(iter(works))
    for name, seconds in spent.items():
        note = f"{seconds / spent[first]:.2f} times {first}"
        begins = name == first
        yield Measure(f"{what}: {name}", seconds, records, 0, note=note, processor=seconds, begins=begins)


def measures() -> Iterator[Measure]:
    """A group for each row of the table of cliffs."""
    yield from _group("begin a job among references", _jobs, SMALL, LARGE, units=20)
    yield from _group("scan of small loads", _scans, SMALL, LARGE)
    yield from _group("delete by condition after", _deletes, SMALL, LARGE, units=20)
    scans = {"no delete": _deleted(0)}
    scans |= {f"{LARGE:,} deletes of a {by}": _deleted(LARGE, by=by) for by in ("range", "value")}
    yield from _beside("scan", scans, RECORDS)
    for count in (15, 60):
        tables = _own_fields(count)
        works = {"pyarrow": _united(tables), "lake": _schemas(tables)}
        yield from _beside(f"{count} schemas", works, count * 100)
    for columns in (500, 2_000):
        table = _wide(columns)
        works = {"pyarrow": _united([table]), "lake": _schemas([table])}
        yield from _beside(f"{columns:,} columns", works, 1_000)
    yield from _group("open the middle of versions", _middle, SMALL, LARGE, units=1)
