"""Erasing one key of a compacted pool of 12 million lineitem records, in 160 objects, from every object.

The first line is the physical floor: the object that holds the key is read and written once, and made durable.  The
others say, for the same pool: how long until no reader of a branch sees the records, how long until no object holds
them, and what was rewritten as a share of the pool; then how long it takes to check the receipt.  A peer deletes
the same records from a table of the same files and deletes the old files.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import data
from benchmarks.compacted import delta_table
from benchmarks.measure import Measure, run, timed
from benchmarks.peers import FOLDER, install

OBJECTS = "160"
PART = 200_000
"""Of 400,000 parts: about 30 records, in one object."""


def floor(path: str) -> dict[str, Any]:
    """The bytes of the object that holds the key, read and written once."""
    from lake_core.lake import Lake

    view = Lake.open(path).pool("lineitem").at()
    (reference,) = (r for r in view.references_in(_key(view)))
    source, target = f"{path}/{view.object_name(reference)}", data.fresh("erasure-floor")
    with timed() as answer, open(source, "rb") as old, open(target, "wb") as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())
    return answer | {"records": reference.records, "note": f"{reference.size / 1e6:.1f} MB"}


def erase_key(path: str, until: str) -> dict[str, Any]:
    """The erasure; seconds until the records are `hidden`, or until it is `done`."""
    from lake_core.erasure.run import erase
    from lake_core.lake import Lake

    pool = Lake.open(data.copied(path, "erasure-work")).pool("lineitem")
    view = pool.at()
    size = sum(r.size for r in view.references)
    steps = _Steps()
    logger = logging.getLogger("lake_core.erasure.run")
    logger.setLevel(logging.INFO)
    logger.addHandler(steps)
    begun = time.perf_counter()
    with timed() as answer:
        receipt = erase(pool, key_range=_key(view))
    assert receipt.status == "done"
    assert pool.at().get(PART).num_rows == 0
    if until == "hidden":
        answer["seconds"] = steps.times("hidden on every branch")[0] - begun
        return answer | {"records": 1, "note": f"{answer['seconds'] * 1000:.1f} ms"}
    share = receipt.size_written / size
    note = f"{len(receipt.erased)} of {len(view.references)} objects, {share:.2%} of the pool written"
    return answer | {"records": sum(r.records for r in view.references_in(_key(view))), "note": note}


def check(path: str) -> dict[str, Any]:
    """The check of the receipt of an erasure."""
    from lake_core.erasure.run import erase
    from lake_core.erasure.verify import verify
    from lake_core.lake import Lake

    path = data.copied(path, "erasure-work")
    pool = Lake.open(path).pool("lineitem")
    receipt = erase(pool, key_range=_key(pool.at()))
    again = Lake.open(path).pool("lineitem")
    with timed() as answer:
        assert not list(verify(again, receipt))
    return answer | {"records": 1, "note": f"{answer['seconds'] * 1000:.1f} ms"}


def peer(path: str) -> dict[str, Any]:
    """The same records deleted from a Delta table, and its old files deleted."""
    sys.path.append(str(FOLDER))
    table = delta_table(path, "erasure-deltalake")
    before = {file.name for file in os.scandir(table.table_uri.removeprefix("file://"))}
    with timed() as answer:
        table.delete(f"l_partkey = {PART}")
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert before
    return answer | {"records": 1}


class _Steps(logging.Handler):
    """When each step of an erasure began, by its log."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.begun: list[tuple[float, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.begun.append((time.perf_counter(), record.getMessage()))

    def times(self, word: str) -> list[float]:
        """When the steps began whose log has the word."""
        return [at for at, text in self.begun if word in text]


def _key(view: Any) -> Any:
    from lake_core.keys import KeyRange
    from lake_core.keys.encoding import AFTER

    prefix = view.bound(PART)
    return KeyRange(prefix, prefix + AFTER)


def measures() -> Iterator[Measure]:
    """The floor first, then the erasure, the check and a peer."""
    install()
    module, path = "benchmarks.erasure:", data.fresh("erasure-pool")
    run("make", "benchmarks.compacted:make", path, "append", OBJECTS)
    yield run("the object, read and written once", module + "floor", path)
    yield run("lake, until no reader sees the records", module + "erase_key", path, "hidden", times=3)
    yield run("lake, until no object holds them", module + "erase_key", path, "done", times=3)
    yield run("lake, the receipt checked", module + "check", path)
    yield run("deltalake, deleted and vacuumed", module + "peer", path)
