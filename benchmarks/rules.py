"""Index rules: lookups by a field that is not the key, figures of a field, what a rule costs loads and compaction.

Twelve million records in 64 objects, sorted by time; the field `id` has a random text for each record, so
statistics rule nothing out; `gate` has forty values in each object, in runs.  Lance has its own index of `id`;
Delta has none.  `LAKE_BENCH_SHARE=0.25` takes a quarter of the records, for a look at a busy machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure, least, run, timed
from benchmarks.peers import FOLDER, PEERS, install

OBJECTS = 64
EACH = int(12_000_000 * float(os.environ.get("LAKE_BENCH_SHARE", "1"))) // OBJECTS
HERE = "benchmarks.rules"
RULES = {
    "": {},
    "bloom": {"index.id": "bloom(id)"},
    "values": {"index.gate": "values(gate)"},
    "sketch": {"index.fare": "sketch(fare)"},
}
SHARES = (0.01, 0.5, 0.99)


def table(number: int, step: int = 1) -> pa.Table:
    """The records of one load; with a step above 1 their keys lie between those of other loads."""
    rows = np.arange(EACH, dtype=np.int64)
    chance = np.random.default_rng(number)
    ids = chance.integers(0, 2**63, EACH, dtype=np.int64)
    return pa.table(
        {
            "ts": rows * step + (number if step > 1 else number * EACH),
            "id": pa.array([f"{one:016x}" for one in ids.tolist()]),
            "gate": pa.array([f"G{row * 40 // EACH}-{number % 8}" for row in range(EACH)]),
            "amount": chance.integers(1, 100_000, EACH) / 100,
            "dest": pa.array(np.array(["ATL", "JFK", "LAX", "ORD", "SFO"])[ids % 5]),
            "delay": (ids % 240).astype(np.int32),
            "distance": (ids % 2_589).astype(np.int32),
            "air_time": chance.integers(20, 700, EACH, dtype=np.int32),
            "scheduled": chance.integers(0, 10**9, EACH).astype("datetime64[s]"),
            "departed": chance.integers(0, 10**9, EACH).astype("datetime64[s]"),
            "fare": chance.integers(1, 10**7, EACH) / 100,
            "weight": chance.random(EACH),
            "tail": pa.array([f"N{one % 9_973}" for one in ids.tolist()]),
            "note": pa.array([f"gate {one % 97}, seat {one % 211}" for one in ids.tolist()]),
        }
    )


def known_id(number: int) -> str:
    """The id of a record of a load."""
    return str(table(number)["id"][EACH // 2])


def build(path: str, rule: str) -> dict[str, Any]:
    """Loads all objects; only the loads are timed."""
    from log_lake.lake import Lake

    pool = Lake.create(path).create_pool("p", key="ts", settings=RULES[rule])
    seconds = processor = 0.0
    for number in range(OBJECTS):
        records = table(number)
        with timed() as answer:
            pool.branch().append(records)
        seconds, processor = seconds + answer["seconds"], processor + answer["processor"]
    size, index = _bytes(path)
    note = f"{size / 1e6:,.0f} MB of objects, {index / 1e6:,.1f} MB of indexes ({100 * index / size:.1f} %)"
    return {"seconds": seconds, "processor": processor, "records": OBJECTS * EACH, "note": note}


def merge(path: str, rule: str) -> dict[str, Any]:
    """Compacts eight objects whose keys lie among each other."""
    from log_lake.lake import Lake
    from log_lake.rewriting.compaction import compact

    pool = Lake.create(path).create_pool("p", key="ts", settings=RULES[rule])
    for number in range(8):
        pool.branch().append(table(number, step=8))
    references = pool.at().references
    with timed() as answer:
        compact(pool.branch(), tuple(references))
    return answer | {"records": 8 * EACH}


def _bytes(path: str) -> tuple[int, int]:
    """The bytes of data objects and of index objects."""
    sizes = {True: 0, False: 0}
    for one in Path(path).rglob("*"):
        if one.is_file() and "/data/" in str(one):
            sizes["/data/index/" in str(one)] += one.stat().st_size
    return sizes[False], sizes[True]


def look_up(path: str, field: str, value: str) -> dict[str, Any]:
    """The records with a value, by a view that is open."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    where = f"{field} = '{value}'"
    plan = view.plan(where=where)
    answer = least(lambda: view.to_table(where=where), 3)
    note = f"{answer['seconds'] * 1000:.1f} ms, {len(plan.references)} of {OBJECTS} objects read"
    if plan.groups:
        note += f", of these {sum(map(len, plan.groups.values()))} row groups"
    return answer | {"records": OBJECTS * EACH, "note": note}


def figures(path: str) -> dict[str, Any]:
    """Distinct values and quantiles of a field with about as many values as records."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    answer = least(lambda: view.field_summary("fare", shares=SHARES), 3)
    found = view.field_summary("fare", shares=SHARES)
    note = f"{answer['seconds'] * 1000:.1f} ms, {len(found.read)} of {OBJECTS} objects read"
    note += f"; {found.distinct:,} values, median {found.quantiles[0.5]}"
    return answer | {"records": OBJECTS * EACH, "note": note}


def duckdb_figures(path: str, exactly: str) -> dict[str, Any]:
    """The same by DuckDB on the same files, exactly or about."""
    import duckdb

    distinct, quantile = (
        ("count(DISTINCT fare)", "quantile_cont")
        if exactly
        else (
            "approx_count_distinct(fare)",
            "approx_quantile",
        )
    )
    query = f"SELECT {distinct}, {quantile}(fare, {list(SHARES)}) FROM '{path}/*/data/*.parquet'"
    with duckdb.connect() as connection:
        answer = least(lambda: connection.execute(query).fetchall(), 3)
        values, quantiles = connection.execute(query).fetchall()[0]
    note = f"{answer['seconds'] * 1000:.1f} ms; {values:,} values, median {quantiles[1]}"
    return answer | {"records": OBJECTS * EACH, "note": note}


def in_micros(number: int) -> pa.Table:
    """The records of a load with times that every peer has."""
    records, micros = table(number), pa.timestamp("us")
    kinds = [f.with_type(micros) if pa.types.is_timestamp(f.type) else f for f in records.schema]
    return records.cast(pa.schema(kinds))


def peer(path: str, name: str, id: str) -> dict[str, Any]:
    """A lookup in a table of another format, which is made first; with lance's own index if its name says so."""
    sys.path.append(str(FOLDER))
    table_path = f"{path}/{name}"
    plain = name.partition("-")[0]
    it = PEERS[plain]()
    it.create(table_path, in_micros(0))
    it.open(table_path)
    for number in range(OBJECTS):
        it.append(in_micros(number))
    where = f"id = '{id}'"
    if plain == "lance":
        import lance

        dataset = lance.dataset(table_path)
        with timed() as built:
            if name != plain:
                dataset.create_scalar_index("id", "BTREE")
        dataset = lance.dataset(table_path)
        answer = least(lambda: dataset.to_table(filter=where), 3)
        note = f", index in {built['processor']:.1f} s of processor time" if name != plain else ""
    else:
        import deltalake

        opened = deltalake.DeltaTable(table_path)
        answer = least(
            lambda: list(
                deltalake.QueryBuilder().register("t", opened).execute(f"SELECT * FROM t WHERE {where}")
            ),
            3,
        )
        note = ""
    return answer | {"records": OBJECTS * EACH, "note": f"{answer['seconds'] * 1000:.1f} ms{note}"}


def plan(path: str, id: str) -> dict[str, Any]:
    """Only the planning: asking the indexes."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("p").at()
    answer = least(lambda: view.plan(where=f"id = '{id}'"), 3)
    return answer | {"records": OBJECTS * EACH, "note": f"{answer['seconds'] * 1000:.1f} ms"}


def duckdb_look_up(path: str, id: str) -> dict[str, Any]:
    """DuckDB over the same Parquet files, which it lists itself."""
    import duckdb

    files = f"{path}/*/data/*.parquet"
    with duckdb.connect() as connection:
        answer = least(lambda: connection.execute(f"SELECT * FROM '{files}' WHERE id = '{id}'").fetchall(), 3)
    return answer | {"records": OBJECTS * EACH, "note": f"{answer['seconds'] * 1000:.1f} ms"}


def measures() -> Iterator[Measure]:
    """Loads, a compaction, lookups and figures, with rules and without."""
    install()
    folders = {rule: data.fresh(rule or "plain") for rule in RULES}
    for rule, folder in folders.items():
        yield run(f"load, {rule or 'no rule'}", f"{HERE}:build", folder, rule)
    for rule in RULES:
        folder = data.fresh(f"merged-{rule}")
        yield run(f"compaction, {rule or 'no rule'}", f"{HERE}:merge", folder, rule)
    for name, id in (("there", known_id(33)), ("not there", "4000000000000000")):
        yield run(f"lookup, {name}", f"{HERE}:look_up", folders[""], "id", id)
        yield run(f"lookup, {name}, bloom", f"{HERE}:look_up", folders["bloom"], "id", id)
        yield run(f"planning, {name}, bloom", f"{HERE}:plan", folders["bloom"], id)
        yield run(f"lookup, {name}, DuckDB, same files", f"{HERE}:duckdb_look_up", folders[""], id)
    for name in ("lance", "lance-indexed", "deltalake"):
        yield run(f"lookup, there, {name}", f"{HERE}:peer", data.fresh("peers"), name, known_id(33))
    for rule in ("", "values"):
        yield run(f"one gate, {rule or 'no rule'}", f"{HERE}:look_up", folders[rule], "gate", "G7-3")
    for rule in ("", "sketch"):
        yield run(f"figures, {rule or 'no rule'}", f"{HERE}:figures", folders[rule])
    for exactly in ("", "exactly"):
        yield run(f"figures, DuckDB, {exactly or 'about'}", f"{HERE}:duckdb_figures", folders[""], exactly)
