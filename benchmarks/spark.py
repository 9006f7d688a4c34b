"""Spark on pools, compared with plain Parquet, Iceberg and Delta: reads, writes, small appends, single records.

Every line is measured in a warm Spark session of its own on two cores, with the same lineitem records. Iceberg
and Delta run on Spark 4.1, because they have no jars for a newer one (`tests.support.spark.spark41`). The notes
have ratios to other lines of this run: of seconds, and in brackets of processor time, which says more if the
machine has other work.

`three` aggregates three columns; `all` sends all columns to a sink that drops them. For `newer`, a hundredth of
newer records, a delete by range and one by condition come on top of the pool; the other formats store such
deletes as deletion vectors. All formats must give the same sums.

SPARK_SCALE is the scale of TPC-H, with 6 million records per unit. SPARK_APPENDS is the number of small appends
of each format. SPARK_PARTS chooses among reads, writes, appends, gets, python. SPARK_DRIVER_MEMORY is the
memory of every session.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks import data, reading
from benchmarks.measure import Measure, run
from tests.support.spark import spark41

SCALE = float(os.environ.get("SPARK_SCALE", "2"))
APPENDS = os.environ.get("SPARK_APPENDS", "50")
PARTS = tuple(os.environ.get("SPARK_PARTS", "reads,writes,appends,gets,python").split(","))
LOADS = 10
"""How many newer loads the pool gets; together they have a hundredth of its records."""
KEYS = 10

OURS, PEERS = "benchmarks.spark_pools", "benchmarks.spark_peers"
PACKAGES = {"Iceberg": spark41.ICEBERG, "Delta": spark41.DELTA}
QUERIES = ("three", "all")
WAYS = ("native", "data source")


def measures() -> Iterator[Measure]:
    """Yields the groups of lines; in each, the peers come first."""
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "4g")
    spark = _Run()
    if "writes" in PARTS:
        yield from grouped(spark.writes())
    elif {"reads", "gets"} & {*PARTS}:
        for _ in spark.tables():
            pass
    if {"reads", "gets"} & {*PARTS}:
        run("make", f"{OURS}:make", spark.pool, spark.files)
    if "reads" in PARTS:
        for query in QUERIES:
            yield from grouped(spark.reads(query))
    if "gets" in PARTS:
        yield from grouped(spark.gets())
    if "appends" in PARTS:
        yield from grouped(spark.appends())
    if "reads" in PARTS:
        yield from grouped(spark.newer())
        yield from grouped(spark.reads("three", suffix=", newer"))
    if "python" in PARTS:
        yield from reading.measures(readers=("lake", "lance with a B-tree"))


class _Run:
    """The folders of this run, and the groups of lines."""

    def __init__(self) -> None:
        self.python = str(spark41.spark41())
        self.files = json.dumps([str(Path(file).resolve()) for file in data.lineitem(SCALE)])
        self.pool = data.fresh("spark")
        self.folders = {peer: data.fresh(f"spark-{peer}") for peer in PACKAGES}

    def _peer(self, name: str, peer: str, work: str, *arguments: str) -> Measure:
        given = (peer, PACKAGES[peer], self.folders[peer], *arguments)
        return run(name, f"{PEERS}:{work}", *given, python=self.python)

    def tables(self) -> Iterator[Measure]:
        for peer in PACKAGES:
            yield self._peer(f"{peer}, write", peer, "write", self.files)

    def writes(self) -> Iterator[Measure]:
        yield from self.tables()
        for way in ("df.write", "pyspark_lake.write", "by range"):
            path = data.fresh("spark-written")
            yield run(f"pool, write, {way}", f"{OURS}:write", way, path, self.files)

    def reads(self, query: str, suffix: str = "") -> Iterator[Measure]:
        if not suffix:
            yield run(f"Parquet, {query}", f"{OURS}:plain", query, self.files)
            given = (query, self.files, self.folders["Iceberg"])
            yield run(f"Parquet on Spark 4.1, {query}", f"{PEERS}:plain", *given, python=self.python)
        for peer in PACKAGES:
            yield self._peer(f"{peer}, {query}{suffix}", peer, "read", query)
        for way in WAYS:
            yield run(f"pool, {way}, {query}{suffix}", f"{OURS}:read", way, query, self.pool)

    def newer(self) -> Iterator[Measure]:
        folder = data.fresh("spark-newer")
        run("newer", f"{OURS}:newer", self.files, folder, str(LOADS))
        files = json.dumps([f"{folder}/{number}.parquet" for number in range(LOADS)])
        for peer in PACKAGES:
            yield self._peer(f"{peer}, newer loads, deletes", peer, "add_newer", files)
        yield run("pool, newer loads, deletes (no Spark)", f"{OURS}:add_newer", self.pool, files)

    def gets(self) -> Iterator[Measure]:
        keys = run("keys", f"{OURS}:keys", self.files, str(KEYS)).note
        for peer in PACKAGES:
            yield self._peer(f"{peer}, one record", peer, "get", keys)
        for way in ("native", "get"):
            yield run(f"pool, one record, {way}", f"{OURS}:get", way, self.pool, keys)

    def appends(self) -> Iterator[Measure]:
        for peer in PACKAGES:
            yield self._peer(f"{peer}, appends", peer, "append", self.files, APPENDS)
        for way in ("df.write", "pyspark_lake.write"):
            path = data.fresh("spark-appended")
            yield run(f"pool, appends, {way}", f"{OURS}:append", way, path, self.files, APPENDS)


def grouped(lines: Iterator[Measure]) -> Iterator[Measure]:
    """Yields the lines with their ratios to other lines. Raises an error if the answers to one query differ."""
    others: dict[str, Measure] = {}
    answer = ""
    for number, line in enumerate(lines):
        who = line.name.partition(",")[0]
        is_answer = line.note.isdecimal()
        if is_answer and answer not in ("", line.note):
            raise RuntimeError(f"{line.name}: {line.note} is not the answer of the others, {answer}")
        answer = line.note if is_answer else answer
        said = [] if is_answer else [line.note]
        if who == "pool":
            said += _ratios(line, others)
        else:
            others[who] = line
        yield replace(line, note="; ".join(filter(None, said)), begins=number == 0)


def _ratios(line: Measure, others: Mapping[str, Measure]) -> Iterator[str]:
    """Yields how many times as long as each of the others the line took."""
    for who, other in others.items():
        ratio = line.seconds / other.seconds
        processor = line.processor / other.processor if line.processor and other.processor else 0.0
        said = f" ({processor:.2f})" if processor else ""
        yield f"{ratio:.2f}{said} of {who}"
