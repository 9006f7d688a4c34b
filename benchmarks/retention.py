"""Vacuum and orphans in a pool of a million objects, branches, old revisions, and what a pool holds after a day.

The large pool's references are made by the project's own code. Each data object is one byte, because nothing
reads it. Floors: the files of the removed objects deleted one after the other; a file made durable.  `records`
are objects, except in the reads and in the day.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Measure, run, timed

if TYPE_CHECKING:
    from lake_core.records import AddObject
    from log_lake.lake import Lake
    from log_lake.lake.pool import Pool

OBJECTS, REMOVED, ORPHANS, MERGED = 1_000_000, 100_000, 1_000, 1_000
BATCH = 10_000
REVISIONS_BACK = 100
LOADS, LOADED = 96, 100_000
"""The loads of a day, one every quarter of an hour, and the records of each."""
_SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64())])


def _reference(lake: Lake, number: int) -> AddObject:
    from lake_core.keys.encoding import encode_value
    from lake_core.records import AddObject
    from lake_core.schemas.schema import schema_id

    low, high = encode_value(number * 1000), encode_value(number * 1000 + 999)
    id = lake.context.ids.new()
    return AddObject(id, 1000, 1, schema_id(_SCHEMA), low, high + b"\0", ordinal=number % BATCH)


def _add(lake: Lake, pool: Pool, numbers: range, *, branch: str = "main") -> list[AddObject]:
    """Commits one transaction of new references, after their objects were written."""
    from lake_core.history import Draft

    actions = [_reference(lake, number) for number in numbers]
    _write(pool, [action.object for action in actions])
    read_version = pool.history.load_open().version
    context = lake.context
    draft = Draft(context.ids.new(), branch, read_version, context.author, tuple(actions), (_SCHEMA,))
    pool.history.commit(draft)
    return actions


def _write(pool: Pool, objects: list[str]) -> None:
    from lake_core import naming

    folder = Path(pool.store.uri, naming.data(pool.config.id))
    folder.mkdir(parents=True, exist_ok=True)
    for id in objects:
        Path(pool.store.uri, naming.data_object(pool.config.id, id)).write_bytes(b"x")


def build(path: str) -> dict[str, Any]:
    """Makes a pool of `OBJECTS` objects, of which `REMOVED` were removed, with a checkpoint; it has been searched
    for orphans."""
    from lake_core.history import Draft
    from lake_core.records import RemoveReference
    from log_lake.agents.checkpoint.run import write_checkpoint
    from log_lake.lake import Lake
    from log_lake.vacuum.orphans import scan_orphans

    lake = Lake.create(path)
    pool = lake.create_pool("p", key="k")
    scan_orphans(pool, grace=0)
    for start in range(0, OBJECTS, BATCH):
        added = _add(lake, pool, range(start, start + BATCH))
        if start < REMOVED:
            context, read_version = lake.context, pool.history.load_open().version
            actions = tuple(RemoveReference(a.object, a.low) for a in added)
            pool.history.commit(Draft(context.ids.new(), "main", read_version, context.author, actions))
    scan_orphans(pool, grace=0)
    write_checkpoint(lake, "p", now=time.time())
    return {"seconds": 1.0, "records": OBJECTS}


def unlink_floor(path: str) -> dict[str, Any]:
    """Deletes as many files of one byte one after another, in a folder that has as many others."""
    folder = Path(path)
    folder.mkdir(parents=True)
    for number in range(OBJECTS):
        Path(folder, f"{number:07d}").write_bytes(b"x")
    os.sync()  # otherwise most files were never on the disk
    with timed() as answer:
        for number in range(REMOVED):
            os.unlink(Path(folder, f"{number:07d}"))
    return answer | {"records": REMOVED}


def vacuum_removed(path: str) -> dict[str, Any]:
    """Opens the pool, plans a vacuum, and deletes the removed objects, in a new process."""
    from log_lake.lake import Lake
    from log_lake.vacuum.execute import vacuum

    with timed() as answer:
        done = vacuum(Lake.open(path).pool("p"), grace=0)
    assert done.objects == REMOVED
    return answer | {"records": done.objects}


def find_orphans(path: str) -> dict[str, Any]:
    """Searches for orphans in a new process, after `ORPHANS` objects were written and not committed."""
    from log_lake.lake import Lake
    from log_lake.vacuum.orphans import scan_orphans

    lake = Lake.open(path)
    _write(lake.pool("p"), [lake.context.ids.new() for _ in range(ORPHANS)])
    time.sleep(1.1)  # ids have whole seconds, and the scan looks only at those that are over
    # What is newer than the newest write waits.
    _add(lake, lake.pool("p"), range(OBJECTS + MERGED, OBJECTS + MERGED + 1))
    time.sleep(1.1)
    pool = Lake.open(path).pool("p")
    with timed() as answer:
        scanned = scan_orphans(pool, grace=0)
    assert scanned.orphans == ORPHANS
    return answer | {"records": ORPHANS, "note": f"listed {scanned.listed:,} names"}


def durable_file(path: str) -> dict[str, Any]:
    """Measures the floor of a small transaction: makes a file and its folder durable."""
    folder = Path(path)
    folder.mkdir(parents=True)
    times = 50
    with timed() as answer:
        for number in range(times):
            with Path(folder, str(number)).open("xb") as file:
                file.write(b"x" * 200)
                file.flush()
                os.fsync(file.fileno())
            fd = os.open(folder, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
    return {"seconds": answer["seconds"] / times, "records": 1}


def create_branches(path: str) -> dict[str, Any]:
    """Creates a branch of a pool of `OBJECTS` objects, whose state is loaded."""
    from log_lake.lake import Lake

    pool = Lake.open(path).pool("p")
    pool.create_branch("warm")
    times = 20
    with timed() as answer:
        for number in range(times):
            pool.create_branch(f"b{number}")
    return {"seconds": answer["seconds"] / times, "records": 1}


def merge_objects(path: str) -> dict[str, Any]:
    """Merges `MERGED` new objects of a branch into `main`."""
    from log_lake.lake import Lake

    lake = Lake.open(path)
    pool = lake.pool("p")
    pool.create_branch("side")
    _add(lake, pool, range(OBJECTS, OBJECTS + MERGED), branch="side")
    target = pool.branch()
    with timed() as answer:
        target.merge("side")
    return answer | {"records": MERGED}


def build_history(path: str) -> dict[str, Any]:
    """Loads a million records, and then makes `REVISIONS_BACK` small loads. The checkpoint is of the newest
    revision."""
    from log_lake.agents.checkpoint.run import write_checkpoint
    from log_lake.lake import Lake

    lake = Lake.create(path)
    branch = lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": range(1_000_000), "v": [0.5] * 1_000_000}, schema=_SCHEMA))
    write_checkpoint(lake, "p", now=time.time())
    for number in range(REVISIONS_BACK):
        branch.append(pa.table({"k": [number], "v": [1.5]}, schema=_SCHEMA))
    write_checkpoint(lake, "p", now=time.time())
    return {"seconds": 1.0, "records": 1_000_000}


def read_back(path: str, back: str) -> dict[str, Any]:
    """Reads all records of the revision that is `back` versions old, in a new process that has opened the
    lake."""
    from log_lake.lake import Lake

    pool = Lake.open(path).pool("p")
    newest = pool.at().version
    pool = Lake.open(path).pool("p")  # nothing of the pool is read yet
    with timed() as answer:
        view = pool.at(str(newest - int(back)))
        records = sum(table.num_rows for table in view.scan())
    return answer | {"records": records}


def a_day(path: str) -> dict[str, Any]:
    """Makes loads that overlap each other, and does the upkeep that is due after each. At the end, the note
    compares the bytes held with those of live objects."""
    from log_lake.agents.checkpoint.run import purge_until, write_checkpoint
    from log_lake.agents.compact.run import compact_pool, plan_pool
    from log_lake.lake import Lake
    from log_lake.vacuum.execute import vacuum
    from log_lake.vacuum.orphans import scan_orphans

    lake = Lake.create(path)
    pool = lake.create_pool("p", key="k", kind="upsert")
    with timed() as answer:
        for number in range(LOADS):
            keys = range(number * LOADED // 2, number * LOADED // 2 + LOADED)
            pool.branch().append(pa.table({"k": keys, "v": [float(number)] * LOADED}, schema=_SCHEMA))
            if number % 4 == 3:
                compact_pool(lake, "p", plan_pool(lake, "p", now=lake.context.now()))
                write_checkpoint(lake, "p", now=lake.context.now())
                purge_until(lake, "p", keep=0, now=lake.context.now())
                scan_orphans(pool, grace=0)
                vacuum(pool, grace=0)
    view = pool.at()
    live = sum(reference.size for reference in view.references)
    files = [file for file in Path(path).rglob("*") if file.is_file()]
    held = sum(file.stat().st_size for file in files)
    objects = {file.name.split(".")[0] for file in files if "data" in file.parts}
    unreachable = len(objects - {reference.object for reference in view.references})
    note = f"held/live {held / live:.3f}, {unreachable} unreachable objects, {len(files)} files"
    return answer | {"records": LOADS * LOADED, "note": note}


def measures() -> Iterator[Measure]:
    """Yields the lines; the first is the floor of the vacuum."""
    here = "benchmarks.retention"
    yield run("floor: delete the files", f"{here}:unlink_floor", data.fresh("unlink"))
    big = data.fresh("million")
    run("build", f"{here}:build", big)
    yield run(f"vacuum {REMOVED:,} of {OBJECTS:,}", f"{here}:vacuum_removed", big)
    yield run(f"find {ORPHANS:,} orphans", f"{here}:find_orphans", big)
    yield run("floor: a durable file", f"{here}:durable_file", data.fresh("durable"))
    yield run("create a branch", f"{here}:create_branches", big)
    yield run(f"merge {MERGED:,} objects", f"{here}:merge_objects", big)
    history = data.fresh("history")
    run("build", f"{here}:build_history", history)
    for back in (0, REVISIONS_BACK):
        yield run(f"read {back} revisions back", f"{here}:read_back", history, str(back), times=3)
    yield run("a day of loads and upkeep", f"{here}:a_day", data.fresh("day"))
