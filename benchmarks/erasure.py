"""Erasing one key of a compacted pool of 12 million lineitem records, in 320 objects, from every object.

The first line is the physical floor: the object that holds the key is read and written once, and made durable.  The
others say, for the same pool: how long until no reader of a branch sees the records, how long until no object holds
them, and what was rewritten as a share of the pool; then how long it takes to check the receipt.  A peer deletes
the same records from a table of the same files and deletes the old files.
"""

from __future__ import annotations

import logging
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import data
from benchmarks.compacted import KEY, delta_table
from benchmarks.measure import Measure, run, timed
from benchmarks.peers import FOLDER, install

OBJECTS = "320"
KEYS = 5
"""How many keys are erased, one after another; the line gives the median."""


def floor(path: str) -> dict[str, Any]:
    """Reads and writes once the bytes of the object that holds the key."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("lineitem").at()
    reference, _ = _chosen(view)[0]
    source, target = f"{path}/{view.object_name(reference)}", data.fresh("erasure-floor")
    with timed() as answer, open(source, "rb") as old, open(target, "wb") as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())
    return answer | {"records": reference.records, "note": f"{reference.size / 1e6:.1f} MB"}


def erase_keys(path: str, until: str) -> dict[str, Any]:
    """Erases keys one by one. The seconds are those until the record is `hidden`, or until the erasure is
    `done`."""
    from log_lake.erasure.run import erase
    from log_lake.lake import Lake

    pool = Lake.open(data.copied(path, "erasure-work")).pool("lineitem")
    view = pool.at()
    size = sum(r.size for r in view.references)
    steps = _Steps()
    logger = logging.getLogger("log_lake.erasure.run")
    logger.setLevel(logging.INFO)
    logger.addHandler(steps)
    took, shares = [], []
    chosen = _chosen(view)
    for _, key in chosen:
        steps.begun.clear()
        begun = time.perf_counter()
        receipt = erase(pool, key_range=key)
        ended = time.perf_counter()
        assert (receipt.status, len(receipt.erased)) == ("done", 1)
        assert not pool.at().to_table(key_range=key).num_rows
        took.append((steps.time("hidden on every branch") if until == "hidden" else ended) - begun)
        shares.append(receipt.size_written / size)
    seconds = statistics.median(took)
    note = f"{seconds * 1000:.1f} ms"
    if until == "done":
        note += f", {statistics.median(shares):.2%} of the pool written"
    return {"seconds": seconds, "records": chosen[0][0].records, "note": note}


def check(path: str) -> dict[str, Any]:
    """Checks the receipt of an erasure."""
    from log_lake.erasure.run import erase
    from log_lake.erasure.verify import verify
    from log_lake.lake import Lake

    path = data.copied(path, "erasure-work")
    pool = Lake.open(path).pool("lineitem")
    reference, key = _chosen(pool.at())[0]
    receipt = erase(pool, key_range=key)
    again = Lake.open(path).pool("lineitem")
    with timed() as answer:
        assert not list(verify(again, receipt))
    return answer | {"records": reference.records, "note": f"{answer['seconds'] * 1000:.1f} ms"}


def peer(path: str) -> dict[str, Any]:
    """Deletes a key of the same records from a Delta table, and deletes the table's old files."""
    from lake_core.keys import PoolKey
    from lake_core.keys.encoding import decode_key
    from log_lake.lake import Lake

    sys.path.append(str(FOLDER))
    reference, key = _chosen(Lake.open(path).pool("lineitem").at())[0]
    table = delta_table(path, "erasure-deltalake")
    values = decode_key(key.low, PoolKey.parse(KEY))
    where = " and ".join(f"{name} = {value}" for name, value in zip(KEY.split(","), values, strict=True))
    with timed() as answer:
        table.delete(where)
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    return answer | {"records": reference.records, "note": f"{answer['seconds'] * 1000:.1f} ms"}


class _Steps(logging.Handler):
    """A log handler that records when each step of an erasure began."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.begun: list[tuple[float, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.begun.append((time.perf_counter(), record.getMessage()))

    def time(self, words: str) -> float:
        """When the first step whose log line has these words began."""
        return next(at for at, text in self.begun if words in text)


def _chosen(view: Any) -> list[tuple[Any, Any]]:
    """Returns objects of about the mean size, each with the range of one key in its middle."""
    from lake_core.keys import KeyRange
    from log_lake.objects.read import DataObject

    mean = statistics.mean(r.size for r in view.references)
    found = []
    for reference in sorted(view.references, key=lambda r: abs(r.size - mean))[:KEYS]:
        with DataObject(view.store, pool_id=view.config.id, object_id=reference.object) as opened:
            sample = opened.metadata.sample
        key = sample[len(sample) // 2][1]
        found.append((reference, KeyRange(key, key + b"\0")))
    return found


def clean(path: str) -> dict[str, Any]:
    """Deletes the objects of the loads, which the compaction has replaced."""
    from log_lake.lake import Lake
    from log_lake.vacuum.execute import vacuum

    with timed() as answer:
        vacuum(Lake.open(path).pool("lineitem"), grace=0.0)
    return answer | {"records": 1}


def measures() -> Iterator[Measure]:
    """Yields the floor first, then the erasure, the check of its receipt, and a peer."""
    install()
    module, path = "benchmarks.erasure:", data.fresh("erasure-pool")
    run("make", "benchmarks.compacted:make", path, "append", OBJECTS)
    run("clean", module + "clean", path)
    yield run("the object, read and written once", module + "floor", path)
    yield run("lake, until no reader sees the record", module + "erase_keys", path, "hidden")
    yield run("lake, until no object holds it", module + "erase_keys", path, "done")
    yield run("lake, the receipt checked", module + "check", path)
    yield run("deltalake, deleted and vacuumed", module + "peer", path)
