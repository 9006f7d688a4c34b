"""Appends of 1,000 records: one writer, then 8 and 64 processes on one pool, the latter on Ceph too.

For one writer: appends a second, and the first 50 against the last 50.  For many: appends a second, how many
failed, and the slowest writer against the median one.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from multiprocessing.queues import Queue
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.benchmarks import data
from tests.benchmarks.measure import Measure, run
from tests.benchmarks.peers import FOLDER, PEERS, install
from tests.stores.on_ceph import lake_on_ceph

APPENDS = 500
SECONDS = 20.0
ALONE = ("lake", "lance", "deltalake", "floor: files, no table")
TOGETHER = ("lake", "lance", "deltalake")


def records(seed: int) -> pa.Table:
    """1,000 of them."""
    chance = np.random.default_rng(seed)
    names = [f"name {i}" for i in range(1000)]
    return pa.table({"k": chance.integers(0, 10**9, 1000), "v": chance.random(1000), "s": names})


def alone(peer: str, appends: str) -> dict[str, Any]:
    """One writer, one open table."""
    sys.path.append(str(FOLDER))
    tables = [records(seed) for seed in range(10)]
    table = PEERS[peer]()
    path = data.fresh("append")
    table.create(path, tables[0])
    table.open(path)
    taken = []
    for number in range(int(appends)):
        begun = time.perf_counter()
        table.append(tables[number % 10])
        taken.append(time.perf_counter() - begun)
    assert table.count() == 1000 * int(appends)
    slower = statistics.median(taken[-50:]) / statistics.median(taken[:50])
    return {"seconds": sum(taken), "records": int(appends), "note": f"last 50 / first 50: {slower:.2f}"}


def together(peer: str, processes: str, uri: str = "") -> dict[str, Any]:
    """Many processes, each as fast as it can."""
    sys.path.append(str(FOLDER))
    path = f"{uri}-{time.time_ns()}" if uri else data.fresh("append")
    PEERS[peer]().create(path, records(0))
    context = multiprocessing.get_context("spawn")
    answers: Queue[tuple[int, int]] = context.Queue()
    start = time.time() + 5 + int(processes) * 0.5
    workers = [
        context.Process(target=_append, args=(peer, path, i, start, answers)) for i in range(int(processes))
    ]
    for worker in workers:
        worker.start()
    done = [answers.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    counts = sorted(count for count, _ in done)
    table = PEERS[peer]()
    table.open(path)
    assert table.count() >= 1000 * sum(counts), "acknowledged appends are missing"
    failed = sum(fail for _, fail in done)
    fair = counts[0] / max(1, counts[len(counts) // 2])
    return {
        "seconds": SECONDS,
        "records": sum(counts),
        "note": f"{failed} failed, slowest / median {fair:.2f}",
    }


def _append(peer: str, path: str, seed: int, start: float, answers: Queue[tuple[int, int]]) -> None:
    table = PEERS[peer]()
    table.open(path)
    mine = records(seed)
    done = failed = 0
    while time.time() < start:
        time.sleep(0.001)
    while time.time() < start + SECONDS:
        try:
            table.append(mine)
            done += 1
        except (
            Exception
        ):  # peers have errors of their own; ours would fail the benchmark's point, so it counts
            failed += 1
            table.open(path)
    answers.put((done, failed))


def measures() -> list[Measure]:
    """`records` are appends here."""
    install()
    here = "tests.benchmarks.commits"
    found = [run(f"{peer}, one writer", f"{here}:alone", peer, str(APPENDS)) for peer in ALONE]
    found.append(run("lake, one writer, 10,000", f"{here}:alone", "lake", "10000"))
    found += [run(f"{peer}, 8 processes", f"{here}:together", peer, "8") for peer in TOGETHER]
    for peer in ("lake", "lake, one at a time"):
        found.append(run(f"{peer}, 64 processes", f"{here}:together", peer, "64"))
    return found + _on_ceph(here)


def _on_ceph(here: str) -> list[Measure]:
    """The same on a real S3 server, where it can be had."""
    try:
        with lake_on_ceph() as uri:
            return [
                run(f"{peer}, 64 processes, Ceph", f"{here}:together", peer, "64", uri)
                for peer in ("lake", "lake, one at a time")
            ]
    except pytest.skip.Exception as reason:
        print(f"no Ceph: {reason}", file=sys.stderr)
        return []
