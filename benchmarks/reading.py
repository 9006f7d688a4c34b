"""Point reads and narrow ranges of a compacted pool of 12 million lineitem records, all 16 columns, warm.

Each reader opens its table once; then it looks up keys that were drawn beforehand. The column `seconds` is the
median time of one read.  Peers read the same records from files of their own, sorted alike.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.compacted import delta_table, files, lance_table
from benchmarks.measure import Measure, run
from benchmarks.peers import FOLDER, install

LOOKUPS = 60
SHARES = {"52 records": 52 / 12e6, "0.01%": 0.0001, "0.1%": 0.001, "0.5%": 0.005}


def _ranges(path: str, share: float) -> list[tuple[int, int]]:
    """Returns ranges of the first key field, from low to before high, that hold about this share of the
    records."""
    import random

    from log_lake.lake import Lake

    parts = 400_000  # TPC-H: 200,000 parts a scale, each in 30 records
    assert Lake.open(path).pool("lineitem").at().records > 11e6
    width = max(1, round(parts * share))
    chance = random.Random(7)
    return [(low, low + width) for low in (chance.randrange(1, parts - width) for _ in range(LOOKUPS))]


def read(reader: str, path: str, share: str) -> dict[str, Any]:
    """Returns the median seconds of one reader's lookups."""
    sys.path.append(str(FOLDER))
    ranges = _ranges(path, float(share))
    look = READERS[reader](path)
    for low, high in ranges[:5]:
        look(low, high)
    taken, counts = [], []
    for low, high in ranges:
        begun = time.perf_counter()
        counts.append(look(low, high))
        taken.append(time.perf_counter() - begun)
    one = statistics.median(taken)
    return {
        "seconds": one,
        "records": round(statistics.median(counts)),
        "note": f"{one * 1000:.2f} ms, {sum(counts)} records in all",
    }


Look = Callable[[int, int], int]


def _lake(path: str) -> Look:
    from log_lake.lake import Lake

    view = Lake.open(path).pool("lineitem").at()

    def look(low: int, high: int) -> int:
        return int(view.to_table(key_range=view.key_range(low=low, high=high)).num_rows)

    return look


def _duckdb(path: str) -> Look:
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    names = ", ".join(f"'{name}'" for name in files(path))
    query = f"select * from read_parquet([{names}]) where l_partkey >= ? and l_partkey < ?"

    def look(low: int, high: int) -> int:
        table: Any = connection.execute(query, [low, high]).to_arrow_table()
        return int(table.num_rows)

    return look


def _datafusion(path: str) -> Look:
    import datafusion

    config = datafusion.SessionConfig().with_target_partitions(2)
    config = config.set("datafusion.execution.parquet.pushdown_filters", "true")
    context = datafusion.SessionContext(config)
    folder = data.fresh("reading-datafusion")
    Path(folder).mkdir(parents=True)
    for file in files(path):
        (Path(folder) / Path(file).name).symlink_to(file)
    context.register_parquet("t", folder)

    def look(low: int, high: int) -> int:
        found = context.sql(f"select * from t where l_partkey >= {low} and l_partkey < {high}")
        return int(found.to_arrow_table().num_rows)

    return look


def _polars(path: str) -> Look:
    import polars

    frame = polars.scan_parquet(files(path))

    def look(low: int, high: int) -> int:
        wanted = (polars.col("l_partkey") >= low) & (polars.col("l_partkey") < high)
        return int(frame.filter(wanted).collect().height)

    return look


def _deltalake(path: str) -> Look:
    import deltalake

    table = delta_table(path, "reading-delta")

    def look(low: int, high: int) -> int:
        builder = deltalake.QueryBuilder().register("t", table)
        found = builder.execute(f"select * from t where l_partkey >= {low} and l_partkey < {high}")
        return sum(batch.num_rows for batch in found)

    return look


def _lance(path: str) -> Look:
    dataset = lance_table(path, "reading-lance")
    dataset.create_scalar_index("l_partkey", "BTREE")

    def look(low: int, high: int) -> int:
        return int(dataset.to_table(filter=f"l_partkey >= {low} and l_partkey < {high}").num_rows)

    return look


READERS: dict[str, Callable[[str], Look]] = {
    "lake": _lake,
    "lance with a B-tree": _lance,
    "polars": _polars,
    "deltalake": _deltalake,
    "duckdb": _duckdb,
    "DataFusion": _datafusion,
}


def measures(readers: Iterable[str] = READERS) -> Iterator[Measure]:
    """Yields a line for each reader and each share of the records."""
    install()
    path = data.fresh("reading")
    run("make", "benchmarks.compacted:make", path)
    for share, part in SHARES.items():
        for number, reader in enumerate(readers):
            line = run(f"{reader}, {share}", "benchmarks.reading:read", reader, path, str(part))
            yield replace(line, begins=number == 0)
