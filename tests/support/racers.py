"""Runs writers that race for the same names, in threads of one process or of several.

This is a module of its own, because a new process imports it by name. The processes are forked from a server
that has already loaded the libraries: sixteen imports of these would take longer than the race.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

from lake_core.store import Created, Store
from log_lake.stores import open_store

PATIENCE = 600.0

Won = dict[str, list[str]]
"""By name: the racers that were told that they had created it."""


def race_threads(
    store: Store, names: list[str], *, racers: list[str], start: Barrier | threading.Barrier
) -> Won:
    """Lets every racer try to create every name, with the racer's own name as content. All begin at the same
    moment."""
    together = threading.Barrier(len(racers))

    def run(racer: str) -> list[str]:
        if together.wait(PATIENCE) == 0:
            start.wait(PATIENCE)
        together.wait(PATIENCE)
        return [name for name in names if store.create(name, racer.encode()) is Created.YES]

    with ThreadPoolExecutor(len(racers)) as pool:
        won = dict(zip(racers, pool.map(run, racers), strict=True))
    return {name: [racer for racer in racers if name in won[racer]] for name in names}


def race_processes(
    uri: str, options: Mapping[str, Any], names: list[str], *, processes: int, threads: int
) -> Won:
    """Like `race_threads`, with some threads in each of several processes, which share nothing except the
    store."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "s3fs", "gcsfs"])
    barrier, answers = context.Barrier(processes), context.Queue()
    started = [
        context.Process(target=_race, args=(uri, options, names, f"process {p}", threads, barrier, answers))
        for p in range(processes)
    ]
    for process in started:
        process.start()
    try:
        won = [answers.get(timeout=PATIENCE) for _ in started]
    finally:
        for process in started:
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
    return {name: [racer for one in won for racer in one[name]] for name in names}


def _race(
    uri: str,
    options: Mapping[str, Any],
    names: list[str],
    process: str,
    threads: int,
    barrier: Barrier,
    answers: Queue[Won],
) -> None:
    racers = [f"{process}, thread {t}" for t in range(threads)]
    store = open_store(uri, options)
    store.get("nothing")  # connected before the start
    answers.put(race_threads(store, names, racers=racers, start=barrier))
