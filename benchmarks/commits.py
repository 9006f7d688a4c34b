"""Appends of 1,000 records: one writer, then 8 and 64 processes on one pool, the latter on Ceph too.

For one writer, the lines show appends per second, and compare the first 50 with the last 50.  For many writers
they show appends per second, how many failed, and the slowest writer compared with the median one.  To compare
runs, leave some minutes between them (`_place`).
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure, run
from benchmarks.peers import FOLDER, PEERS, install

APPENDS = 500
SECONDS = 20.0
SECONDS_ON_CEPH = 90.0
"""The seconds of a run on Ceph. A transaction takes some tenths of a second there, and starting many processes
takes long."""
ALONE = ("lake", "lake, no syncs", "lance", "deltalake", "floor: files, no table")
"""The tables that are measured with one writer. lance and deltalake do not sync what they write (strace shows no
fsync), so compare them with the lake without syncs."""
TOGETHER = ("lake", "lance", "deltalake")
CROWD = ("lake", "lake, one at a time")
READY = 600.0
"""How many seconds the processes wait until the slowest of them has started."""


def records(seed: int) -> pa.Table:
    """Returns a table of 1,000 records."""
    chance = np.random.default_rng(seed)
    names = [f"name {i}" for i in range(1000)]
    return pa.table({"k": chance.integers(0, 10**9, 1000), "v": chance.random(1000), "s": names})


def _place() -> str:
    """Returns a new folder for each table.

    For minutes after files were deleted, ext4 skips their inodes one by one. So in a folder from which a table
    was removed, files are made at half the speed.
    """
    return data.fresh(f"append-{time.time_ns()}")


def alone(peer: str, appends: str) -> dict[str, Any]:
    """Measures one writer that holds one open table."""
    sys.path.append(str(FOLDER))
    tables = [records(seed) for seed in range(10)]
    table = PEERS[peer]()
    path = _place()
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
    """Runs many processes, each as fast as it can. They begin together, when all are ready."""
    sys.path.append(str(FOLDER))
    path = f"{uri}-{time.time_ns()}" if uri else _place()
    seconds = SECONDS_ON_CEPH if uri else SECONDS
    PEERS[peer]().create(path, records(0))
    context = multiprocessing.get_context("spawn")
    answers: Queue[tuple[int, int]] = context.Queue()
    ready = context.Barrier(int(processes))
    workers = [
        context.Process(target=_append, args=(peer, path, i, seconds, ready, answers), daemon=True)
        for i in range(int(processes))
    ]
    for worker in workers:
        worker.start()
    done = [answers.get(timeout=2 * READY) for _ in workers]
    for worker in workers:
        worker.join()
    counts = sorted(count for count, _ in done)
    table = PEERS[peer]()
    table.open(path)
    assert table.count() >= 1000 * sum(counts), "acknowledged appends are missing"
    failed = sum(fail for _, fail in done)
    fair = counts[0] / max(1, counts[len(counts) // 2])
    return {
        "seconds": seconds,
        "records": sum(counts),
        "note": f"{failed} failed, slowest / median {fair:.2f}",
    }


def _append(
    peer: str, path: str, seed: int, seconds: float, ready: Barrier, answers: Queue[tuple[int, int]]
) -> None:
    """Appends for `seconds`. An append that is acknowledged after that does not count."""
    table = PEERS[peer]()
    table.open(path)
    mine = records(seed)
    done = failed = 0
    ready.wait(timeout=READY)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            table.append(mine)
            done += time.monotonic() < end
        except Exception:  # peers have errors of their own, and a failure of ours is to be counted
            failed += 1
            table.open(path)
    answers.put((done, failed))


def measures() -> Iterator[Measure]:
    """Yields the lines of both parts. The column `records` counts appends here."""
    import pytest  # these two here: each of the many processes imports this module

    from tests.support.servers.on_ceph import lake_on_ceph

    install()
    here = "benchmarks.commits"
    for peer in ALONE:
        yield run(f"{peer}, one writer", f"{here}:alone", peer, str(APPENDS))
    yield run("lake, one writer, 10,000", f"{here}:alone", "lake", "10000")
    for peer in TOGETHER:
        yield run(f"{peer}, 8 processes", f"{here}:together", peer, "8")
    for peer in CROWD:
        yield run(f"{peer}, 64 processes", f"{here}:together", peer, "64")
    try:
        with lake_on_ceph() as uri:
            for peer in CROWD:
                yield run(f"{peer}, 64, Ceph", f"{here}:together", peer, "64", uri)
    except pytest.skip.Exception as reason:
        print(f"no Ceph: {reason}", file=sys.stderr)
