"""Deleting 1% of a compacted pool of 12 million lineitem records, and what reading costs afterwards; upserts.

Each line begins with a copy of the same data.  Peers delete the same records from tables of the same files.  `scan`
lines read all columns; their note says how they compare with the scan before anything was deleted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import data
from benchmarks.compacted import KEY, delta_table, lance_table, tables
from benchmarks.measure import Measure, run, timed
from benchmarks.peers import FOLDER, install

RANGE = (100_000, 104_000)
"""A range of parts: 1% of the 400,000."""
CONDITION = "l_suppkey <= 200"
"""A condition on suppliers that selects 1% of the 20,000."""


def delete(path: str, what: str) -> dict[str, Any]:
    """Makes one delete in an open pool; the seconds are those of the transaction alone."""
    from log_lake.lake import Lake

    lake = Lake.open(data.copied(path, "deletes-work"))
    pool = lake.pool("lineitem")
    view = pool.at()
    before = view.records
    with timed() as answer:
        if what == "range":
            done = pool.branch().delete(key_range=view.key_range(low=RANGE[0], high=RANGE[1]))
        else:
            done = pool.branch().delete(where=CONDITION)
    assert done.version is not None
    left = sum(t.num_rows for t in pool.at().scan(columns=["l_partkey"]))
    return answer | {"records": before - left, "note": _milliseconds(answer)}


def scan(path: str, what: str) -> dict[str, Any]:
    """Scans everything. `what` names what was done to the pool before: nothing, one delete, a hundred deletes of
    about 1% together, or an upsert."""
    from log_lake.lake import Lake

    lake = Lake.open(data.copied(path, "deletes-work"))
    pool = lake.pool("lineitem")
    branch, view = pool.branch(), pool.at()
    match what:
        case "range":
            branch.delete(key_range=view.key_range(low=RANGE[0], high=RANGE[1]))
        case "condition":
            branch.delete(where=CONDITION)
        case "100 ranges":
            for n in range(100):
                branch.delete(key_range=view.key_range(low=4_000 * n, high=4_000 * n + 40))
        case "100 conditions":
            for n in range(100):
                branch.delete(where=f"l_suppkey in ({2 * n + 1}, {2 * n + 2})")
        case "upsert":
            branch.append(_upserts(path))
    view = pool.at()
    records = sum(t.num_rows for t in view.scan())  # warm, as the scan before was
    with timed() as answer:
        records = sum(t.num_rows for t in view.scan())
    return answer | {"records": records, "note": f"{len(view.tombstones)} tombstones"}


def upsert(path: str) -> dict[str, Any]:
    """Loads every hundredth record again, with another value."""
    from log_lake.lake import Lake

    pool = Lake.open(data.copied(path, "deletes-work")).pool("lineitem")
    table, before = _upserts(path), pool.at().records
    branch = pool.branch()
    with timed() as answer:
        done = branch.append(table)
    assert before
    return answer | {"records": done.records, "note": f"{done.size / 1e6:.1f} MB written"}


def apply(path: str, what: str) -> dict[str, Any]:
    """Applies a delete as the tombstones agent does; the note says how much was rewritten."""
    import time

    from log_lake.agents.tombstones import run as tombstones
    from log_lake.lake import Lake

    pool = Lake.open(data.copied(path, "deletes-work")).pool("lineitem")
    branch, view = pool.branch(), pool.at()
    if what == "range":
        branch.delete(key_range=view.key_range(low=RANGE[0], high=RANGE[1]))
    else:
        branch.delete(where=CONDITION)
    with timed() as answer:
        did = tombstones.apply(branch, now=time.time(), at_once=True)
    note = f"{did.searched} objects searched, {did.rewritten} rewritten ({did.size_out / 1e6:.0f} MB)"
    return answer | {"records": pool.at().records, "note": note}


def peer(name: str, path: str, what: str) -> dict[str, Any]:
    """Makes the same delete by another format, whose table is open."""
    sys.path.append(str(FOLDER))
    where = f"l_partkey >= {RANGE[0]} and l_partkey < {RANGE[1]}" if what == "range" else CONDITION
    table, count = _peer(name, path)
    before = count()
    with timed() as answer:
        table.delete(where)
    return answer | {"records": before - count(), "note": _milliseconds(answer)}


def _peer(name: str, path: str) -> tuple[Any, Callable[[], int]]:
    """Returns another format's table of the same records, and a function that counts its records."""
    if name == "lance":
        dataset = lance_table(path, "deletes-lance")
        return dataset, dataset.count_rows
    delta = delta_table(path, "deletes-deltalake")
    return delta, delta.count


def peer_upsert(name: str, path: str) -> dict[str, Any]:
    """Makes the same upsert by another format. The note says how long its scan takes before and after."""
    sys.path.append(str(FOLDER))
    table, _ = _peer(name, path)
    new, keys = _upserts(path), KEY.split(",")
    before = _read(_batches(name, table))
    with timed() as answer:
        if name == "lance":
            merge = table.merge_insert(keys).when_matched_update_all().when_not_matched_insert_all()
            merge.execute(new)
        else:
            matches = " and ".join(f"t.{key} = s.{key}" for key in keys)
            merge = table.merge(new, matches, source_alias="s", target_alias="t")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
    after = _read(_batches(name, table))
    return answer | {"records": new.num_rows, "note": f"scan after / before {after / before:.2f}"}


def _batches(name: str, table: Any) -> Any:
    if name == "lance":
        return table.to_batches()
    import deltalake

    return deltalake.QueryBuilder().register("t", table).execute("select * from t")


def _read(batches: Any) -> float:
    with timed() as answer:
        assert sum(batch.num_rows for batch in batches)
    return float(answer["seconds"])


def _upserts(path: str) -> Any:
    """Returns every hundredth of the pool's records, with another value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.concat_tables(t.take(pa.array(range(0, t.num_rows, 100))) for t in tables(path))
    place = table.schema.get_field_index("l_quantity")
    changed = pc.add(table.column("l_quantity"), pa.scalar(1, table.schema.field(place).type))
    return table.set_column(place, table.schema.field(place), changed.cast(table.schema.field(place).type))


def _milliseconds(answer: dict[str, Any]) -> str:
    return f"{answer['seconds'] * 1000:.1f} ms"


def measures() -> Iterator[Measure]:
    """Yields the deletes of the lake and of peers, then scans, whose ratios are to the first of them, then
    upserts."""
    install()
    module = "benchmarks.deletes:"
    append, upserts = data.fresh("deletes-append"), data.fresh("deletes-upsert")
    run("make", "benchmarks.compacted:make", append, "append")
    run("make", "benchmarks.compacted:make", upserts, "upsert")
    for what in ("range", "condition"):
        yield run(f"lake, delete 1% by {what}", module + "delete", append, what)
        for name in ("lance", "deltalake"):
            yield run(f"{name}, delete 1% by {what}", module + "peer", name, append, what)
    for what in ("nothing", "range", "condition", "100 ranges", "100 conditions"):
        yield run(f"lake, scan after: {what}", module + "scan", append, what)
    for what in ("range", "condition"):
        yield run(f"lake, applied: {what}", module + "apply", append, what)
    yield run("lake, upsert of 1%", module + "upsert", upserts)
    for name in ("lance", "deltalake"):
        yield run(f"{name}, upsert of 1%", module + "peer_upsert", name, upserts)
    for what in ("nothing", "upsert"):
        yield run(f"lake, upsert pool, scan after: {what}", module + "scan", upserts, what)
