"""Answers from the state: count, min and max of a pool of a million references, whose data objects do not exist.

`LAKE_BENCH_SHARE=0.01` takes a hundredth of the references, for a look at a busy machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from benchmarks import data
from benchmarks.measure import Measure, run, timed

REFERENCES = int(1_000_000 * float(os.environ.get("LAKE_BENCH_SHARE", "1")))
HERE = "benchmarks.index"


def ask(path: str, sql: str) -> dict[str, Any]:
    """Measures one statement, after another one has loaded the state."""
    from log_lake.lake import Lake
    from log_lake.system_tables import query

    lake = Lake.open(path)
    query(lake, "SELECT count(*) FROM p").read_all()
    with timed() as answer:
        row = query(lake, sql).read_all().to_pylist()[0]
    assert row["n"] > 0
    return answer | {"records": REFERENCES, "note": f"{answer['seconds'] * 1000:.1f} ms, no object opened"}


def look_up(path: str) -> dict[str, Any]:
    """Reads from the state only: the count, and both ends of the key."""
    from log_lake.lake import Lake
    from log_lake.reading.summary import key_ends

    view = Lake.open(path).pool("p").at()
    with timed() as answer:
        ends = key_ends(view, wants_values=True)
    assert ends is not None
    assert ends.records == REFERENCES * 1_000
    return answer | {"records": REFERENCES, "note": f"{answer['seconds'] * 1000:.1f} ms, without DuckDB"}


def connect() -> dict[str, Any]:
    """Makes a connection of DuckDB, which every statement needs at least."""
    from log_lake.system_tables.engine import connected

    with connected():
        pass
    with timed() as answer, connected() as connection:
        connection.sql("SELECT 1").to_arrow_table()
    return answer | {
        "records": REFERENCES,
        "note": f"{answer['seconds'] * 1000:.1f} ms, the floor of a statement",
    }


def measures() -> Iterator[Measure]:
    """Yields the lines. The column `records` counts references here."""
    path = data.fresh("answers")
    run("build", "benchmarks.opening:build", path, str(REFERENCES))
    yield run("connection of DuckDB", f"{HERE}:connect", times=5)
    yield run("ends of the key", f"{HERE}:look_up", path, times=5)
    yield run("count", f"{HERE}:ask", path, "SELECT count(*) AS n FROM p", times=5)
    yield run(
        "count, min, max of the key",
        f"{HERE}:ask",
        path,
        "SELECT count(*) AS n, min(k), max(k) FROM p",
        times=5,
    )
    yield run("min, max of another field", f"{HERE}:ask", path, "SELECT count(*) AS n, min(s), max(s) FROM p")
    yield run(
        "count of a range", f"{HERE}:ask", path, "SELECT count(*) AS n FROM p WHERE k BETWEEN 9500 AND 99500"
    )
