"""Deleting 1% of a compacted pool of 12 million lineitem records, and what reading costs afterwards; upserts.

Each line begins with a copy of the same data.  Peers delete the same records from tables of the same files.  `scan`
lines read all columns; their note says how they compare with the scan before anything was deleted.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import Any

from tests.benchmarks import data
from tests.benchmarks.measure import Measure, run, timed
from tests.benchmarks.peers import FOLDER, install

RANGE = (100_000, 104_000)
"""Of 400,000 parts: 1% of the records."""
CONDITION = "l_suppkey <= 200"
"""Of 20,000 suppliers."""
KEY = "l_partkey,l_orderkey,l_linenumber"


def delete(path: str, what: str) -> dict[str, Any]:
    """One delete by an open pool; seconds of the transaction alone."""
    from lake_core.lake import Lake

    lake = Lake.open(_copy(path, "work"))
    pool = lake.pool("lineitem")
    view = pool.at()
    before = view.records
    with timed(answer := {}):
        if what == "range":
            done = pool.branch().delete(span=view.span(low=RANGE[0], high=RANGE[1]))
        else:
            done = pool.branch().delete(where=CONDITION)
    assert done.transaction is not None
    left = sum(t.num_rows for t in pool.at().scan(columns=["l_partkey"]))
    return answer | {"records": before - left, "note": _milliseconds(answer)}


def scan(path: str, what: str) -> dict[str, Any]:
    """A scan of everything, after nothing, one or a hundred deletes of about 1% in all, or an upsert."""
    from lake_core.lake import Lake

    lake = Lake.open(_copy(path, "work"))
    pool = lake.pool("lineitem")
    branch, view = pool.branch(), pool.at()
    match what:
        case "range":
            branch.delete(span=view.span(low=RANGE[0], high=RANGE[1]))
        case "condition":
            branch.delete(where=CONDITION)
        case "100 ranges":
            for n in range(100):
                branch.delete(span=view.span(low=4_000 * n, high=4_000 * n + 40))
        case "100 conditions":
            for n in range(100):
                branch.delete(where=f"l_suppkey in ({2 * n + 1}, {2 * n + 2})")
        case "upsert":
            branch.append(_upserts(path))
    view = pool.at()
    records = sum(t.num_rows for t in view.scan())  # warm, as the scan before was
    with timed(answer := {}):
        records = sum(t.num_rows for t in view.scan())
    return answer | {"records": records, "note": f"{len(view.tombstones)} tombstones"}


def upsert(path: str) -> dict[str, Any]:
    """Every hundredth record again, with another value."""
    from lake_core.lake import Lake

    pool = Lake.open(_copy(path, "work")).pool("lineitem")
    table, before = _upserts(path), pool.at().records
    branch = pool.branch()
    with timed(answer := {}):
        done = branch.append(table)
    assert before
    return answer | {"records": done.records, "note": f"{done.size / 1e6:.1f} MB written"}


def peer_upsert(name: str, path: str) -> dict[str, Any]:
    """The same upsert by another format; the note says what its scan costs before and afterwards."""
    sys.path.append(str(FOLDER))
    import pyarrow.parquet as pq

    target, table = data.fresh(f"deletes-{name}"), _upserts(path)
    stored = (pq.read_table(file).drop_columns(["_seq", "_place"]) for file in _files(path))
    keys = KEY.split(",")
    if name == "lance":
        import lance

        for one in stored:
            lance.write_dataset(one, target, mode="append")
        dataset = lance.dataset(target)
        before = _read(dataset.to_batches())
        with timed(answer := {}):
            merge = dataset.merge_insert(keys).when_matched_update_all().when_not_matched_insert_all()
            merge.execute(table)
        after = _read(dataset.to_batches())
    else:
        import deltalake

        for one in stored:
            deltalake.write_deltalake(target, one, mode="append")
        delta = deltalake.DeltaTable(target)
        before = _read(_delta_batches(delta))
        matches = " and ".join(f"t.{key} = s.{key}" for key in keys)
        with timed(answer := {}):
            merge = delta.merge(table, matches, source_alias="s", target_alias="t")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        after = _read(_delta_batches(delta))
    return answer | {"records": table.num_rows, "note": f"scan after / before {after / before:.2f}"}


def _delta_batches(delta: Any) -> Any:
    import deltalake

    return deltalake.QueryBuilder().register("t", delta).execute("select * from t")


def _read(batches: Any) -> float:
    with timed(answer := {}):
        assert sum(batch.num_rows for batch in batches)
    return float(answer["seconds"])


def apply(path: str, what: str) -> dict[str, Any]:
    """The agent's work on a delete; how much is rewritten."""
    import time

    from lake_core.lake import Lake
    from lake_core.maintenance import tombstones

    pool = Lake.open(_copy(path, "work")).pool("lineitem")
    branch, view = pool.branch(), pool.at()
    if what == "range":
        branch.delete(span=view.span(low=RANGE[0], high=RANGE[1]))
    else:
        branch.delete(where=CONDITION)
    with timed(answer := {}):
        did = tombstones.apply(branch, now=time.time(), at_once=True)
    note = f"{did.searched} objects searched, {did.rewritten} rewritten ({did.size_out / 1e6:.0f} MB)"
    return answer | {"records": pool.at().records, "note": note}


def peer(name: str, path: str, what: str) -> dict[str, Any]:
    """The same delete by another format, its table open."""
    sys.path.append(str(FOLDER))
    import pyarrow.parquet as pq

    target = data.fresh(f"deletes-{name}")
    where = f"l_partkey >= {RANGE[0]} and l_partkey < {RANGE[1]}" if what == "range" else CONDITION
    records = 0
    tables = (pq.read_table(file).drop_columns(["_seq", "_place"]) for file in _files(path))
    if name == "lance":
        import lance

        for table in tables:
            records += table.num_rows
            lance.write_dataset(table, target, mode="append")
        dataset = lance.dataset(target)
        with timed(answer := {}):
            dataset.delete(where)
        left = dataset.count_rows()
    else:
        import deltalake

        for table in tables:
            records += table.num_rows
            deltalake.write_deltalake(target, table, mode="append")
        delta = deltalake.DeltaTable(target)
        with timed(answer := {}):
            delta.delete(where)
        left = int(delta.count())
    return answer | {"records": records - left, "note": _milliseconds(answer)}


def _upserts(path: str) -> Any:
    """Every hundredth of the pool's records, changed."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    parts = []
    for file in _files(path):
        table = pq.read_table(file).drop_columns(["_seq", "_place"])
        parts.append(table.take(pa.array(range(0, table.num_rows, 100))))
    table = pa.concat_tables(parts)
    place = table.schema.get_field_index("l_quantity")
    changed = pc.add(table.column("l_quantity"), pa.scalar(1, table.schema.field(place).type))
    return table.set_column(place, table.schema.field(place), changed.cast(table.schema.field(place).type))


def _files(path: str) -> list[str]:
    """The compacted pool's objects."""
    from lake_core.lake import Lake

    view = Lake.open(path).pool("lineitem").at()
    return [f"{path}/{view.object_name(r)}" for r in view.references]


def make(path: str, kind: str) -> dict[str, Any]:
    """The compacted pool, keyed by part, order and line."""
    from lake_core.lake import Lake

    pool = Lake.create(path).create_pool(
        "lineitem",
        key=KEY,
        kind=kind,
        settings={"load.memory": "2GiB"},
    )
    for file in data.lineitem(2.0):
        pool.branch().load([file])
    pool.branch().compact(pool.at().references, outputs=4)
    return {"seconds": 1.0, "records": pool.at().records}


def _copy(source: str, name: str) -> str:
    target = data.fresh(f"deletes-{name}")
    shutil.copytree(source, target)
    return target


def _milliseconds(answer: dict[str, Any]) -> str:
    return f"{answer['seconds'] * 1000:.1f} ms"


def measures() -> Iterator[Measure]:
    """Deletes beside peers, then scans (to the first of them), then upserts."""
    install()
    module = "tests.benchmarks.deletes:"
    append, upserts = data.fresh("deletes-append"), data.fresh("deletes-upsert")
    run("make", module + "make", append, "append")
    run("make", module + "make", upserts, "upsert")
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
