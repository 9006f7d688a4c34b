"""A minute of two appenders, a deleter and a compactor on one pool, each in a process of its own.

The appenders never wait; the deleter pauses for 0.1 s, the compactor for 1 s.  The lines count appends; the
note says how many attempts of each actor failed. Acknowledged records must be there: deletes concern only a
tenth of the keys, and afterwards the records with other keys are counted.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

import pyarrow as pa

from benchmarks import data
from benchmarks.commits import READY, TOGETHER, records
from benchmarks.measure import Measure, run
from benchmarks.peers import FOLDER, PEERS, install

SECONDS = 60.0
ROLES = ("append", "append", "delete", "compact")
PAUSE = {"append": 0.0, "delete": 0.1, "compact": 1.0}
KEYS = 10**9
DELETED = KEYS // 10
"""Deletes concern only keys below this one."""


def beside(peer: str) -> dict[str, Any]:
    """Runs all actors at once on a new table."""
    sys.path.append(str(FOLDER))
    path = data.fresh("beside")
    PEERS[peer]().create(path, records(0))
    context = multiprocessing.get_context("spawn")
    answers: Queue[tuple[str, int, int, int]] = context.Queue()
    ready = context.Barrier(len(ROLES))
    actors = [
        context.Process(target=_act, args=(role, peer, path, seed, ready, answers), daemon=True)
        for seed, role in enumerate(ROLES)
    ]
    for actor in actors:
        actor.start()
    done, failed, kept = Counter[str](), Counter[str](), 0
    for _ in actors:
        role, good, bad, records_kept = answers.get(timeout=2 * READY)
        done[role] += good
        failed[role] += bad
        kept += records_kept
    for actor in actors:
        actor.join()
    table = PEERS[peer]()
    table.open(path)
    assert table.count_from(DELETED) >= kept, "acknowledged appends are missing"
    said = ", ".join(f"{failed[r]} of {done[r] + failed[r]} {r}s" for r in dict.fromkeys(ROLES))
    return {"seconds": SECONDS, "records": done["append"], "note": f"failed: {said}"}


def _act(
    role: str, peer: str, path: str, seed: int, ready: Barrier, answers: Queue[tuple[str, int, int, int]]
) -> None:
    """Runs one actor. Returns how often it succeeded and failed, and how many records it wrote that no delete may
    remove."""
    table, chance = PEERS[peer](), random.Random(seed)
    table.open(path)
    mine = records(seed)
    outside = _outside(mine)
    done = failed = 0
    ready.wait(timeout=READY)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            match role:
                case "append":
                    table.append(mine)
                case "delete":
                    low = chance.randrange(DELETED - KEYS // 1000)
                    table.delete(low, low + KEYS // 1000)
                case "compact":
                    table.compact()
            done += 1
        except Exception:  # each format has errors of its own, and ours are to be counted too
            failed += 1
            table.open(path)
        time.sleep(PAUSE[role])
    answers.put((role, done, failed, done * outside if role == "append" else 0))


def _outside(table: pa.Table) -> int:
    return sum(key >= DELETED for key in table["k"].to_pylist())


def measures() -> Iterator[Measure]:
    """Yields the lake's lines first, then those of the peers."""
    install()
    for peer in TOGETHER:
        yield run(peer, "benchmarks.beside:beside", peer)
