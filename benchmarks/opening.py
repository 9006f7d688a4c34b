"""Opening a pool of a million references and planning a read of ten of them, in a cold process.

The references are made by the project's own code; their data objects do not exist, since nothing opens them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure, run, timed

SIZES = (10_000, 100_000, 1_000_000)
BATCH = 10_000
_SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])


def build(path: str, references: str) -> dict[str, Any]:
    """The pool, one transaction for each ten thousand references, and its checkpoint."""
    from lake_core.history import Draft
    from lake_core.keys.encoding import encode_value
    from lake_core.records import AddObject, Column
    from lake_core.schemas.schema import schema_id
    from log_lake.agents.checkpoint.run import write_checkpoint
    from log_lake.lake import Lake

    lake = Lake.create(path)
    pool = lake.create_pool("p", key="k")
    schema = schema_id(_SCHEMA)

    def reference(number: int) -> AddObject:
        low, high = encode_value(number * 1000), encode_value(number * 1000 + 999)
        names = encode_value(f"a{number:08d}"), encode_value(f"b{number:08d}")
        columns = (
            Column("k", 0, low, high),
            Column("v", 0, encode_value(0.5), encode_value(9.5)),
            Column("s", 0, *names),
        )
        return AddObject(
            lake.context.ids.new(),
            1000,
            1 << 20,
            schema,
            low,
            high + b"\0",
            ordinal=number % BATCH,
            columns=columns,
        )

    for start in range(0, int(references), BATCH):
        actions = tuple(reference(n) for n in range(start, min(start + BATCH, int(references))))
        pool.history.commit(Draft(lake.context.ids.new(), "main", 0, "benchmark", actions, (_SCHEMA,)))
    write_checkpoint(lake, "p", now=time.time())
    return {"seconds": 0.0, "records": int(references)}


def open_and_plan(path: str, references: str) -> dict[str, Any]:
    """Opens the pool and plans the read. The imports are done, and nothing was read before."""
    from log_lake.lake import Lake

    low = int(references) // 2 * 1000
    with timed() as answer:
        view = Lake.open(path).pool("p").at()
        plan = view.plan(key_range=view.key_range(low=low, high=low + 10_000))
    assert len(plan.references) == 10
    begun = time.perf_counter()
    view.plan(key_range=view.key_range(low=low // 2, high=low // 2 + 10_000))
    warm = time.perf_counter() - begun
    file = view.state.branches["main"].snapshot.checkpoint.file  # type: ignore[attr-defined]
    read = f"read {file.groups_read} of {len(file.footer.groups)} groups"
    return answer | {"records": int(references), "note": f"{read}, warm {warm * 1000:.1f} ms"}


def write_next(path: str, references: str) -> dict[str, Any]:
    """Writes the next checkpoint, from the last one and one more transaction, as an agent does: in a new
    process."""
    from log_lake.agents.checkpoint.run import write_checkpoint
    from log_lake.lake import Lake

    lake = Lake.open(path)
    lake.pool("p").branch().append(pa.table({"k": [1], "v": [0.5], "s": ["a"]}))
    with timed() as answer:
        written, _ = write_checkpoint(lake, "p", now=time.time())
    assert written
    return answer | {"records": int(references)}


def measures() -> Iterator[Measure]:
    """`records` are references here."""
    here = "benchmarks.opening"
    for size in SIZES:
        path = data.fresh(f"references-{size}")
        run("build", f"{here}:build", path, str(size))
        yield run(f"open and plan, {size:,}", f"{here}:open_and_plan", path, str(size), times=5)
        yield run(f"write the next checkpoint, {size:,}", f"{here}:write_next", path, str(size))
