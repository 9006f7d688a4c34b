"""Many seeds of a simulation, in chunks that a process of its own may run."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow as pa

from tests.simulation.truth import Violation

CHUNK = 100
CHUNKS = 5
"""Chunks of a process: dead greenlets keep about half a megabyte of each seed."""

Chunk = tuple[Counter[str], dict[int, str]]
"""How often what happened; seeds that failed, and how."""


def run_chunk(simulation: Callable[[int], dict[str, int]], seeds: Sequence[int]) -> Chunk:
    logging.disable(logging.CRITICAL)
    pa.set_cpu_count(1)
    counted: Counter[str] = Counter()
    failed: dict[int, str] = {}
    for seed in seeds:
        try:
            counted.update(simulation(seed))
        except Violation as violation:
            failed[seed] = str(violation)
        except Exception as error:
            failed[seed] = f"seed {seed}: {type(error).__name__}: {error}"
    return counted, failed
