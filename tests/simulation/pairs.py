"""Every two of those who work on a pool, against each other, on a store that fails as a seed says.

A seed names a pair of `ACTORS` (an actor may meet itself, and in two fifths of the seeds a third one joins), the
kind of the pool, and its past: loads, deletes, compactions, branches, tags, orphans and removed objects of many
ages.  The actors run as greenlets, one request at a time.  Requests are refused, acts and answers are lost or late;
processes stall beyond the grace time and the life of leases, and are killed; some clocks are behind or ahead.

`oracle` checks every entry, every deletion and every read.  In the end nobody acts any more: all grace passes,
upkeep runs, and a full listing shows not one object too many.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement
from unittest.mock import patch

from lake_core.errors import (
    LakeError,
)
from log_lake.leases.holding import HeldLease
from tests.simulation.pair_actors import ACTORS
from tests.simulation.pair_process import KINDS
from tests.simulation.pair_world import World
from tests.simulation.truth import Violation

PAIRS = list(combinations_with_replacement(ACTORS, 2))

PASTS = 6
"""Pasts of each kind of pool: they are made once, and copied for each seed."""


@contextmanager
def renewed_by_the_world() -> Iterator[None]:
    """Leases are renewed by the clock of the world (`World.after_step`), and not by their threads.

    A thread goes by the machine's clock, and does not know that its process is killed: on a slow machine a seed
    took longer than a third of a ttl, and the thread kept the lease of a process that was gone.
    """
    with patch.object(HeldLease, "_keep", lambda _: None):
        yield


@functools.cache
@renewed_by_the_world()
def past_of(kind: str, number: int) -> World:
    """A past of a kind."""
    world = World(kind, random.Random(f"{kind} {number}"), is_past=True)
    world.begin()
    return world


def make_pasts() -> None:
    """Make all pasts: a rule that is left out later is kept in them."""
    for kind in KINDS:
        for number in range(PASTS):
            past_of(kind, number)


def names_of(seed: int) -> tuple[str, str]:
    """The pair that a seed is of."""
    return PAIRS[seed % len(PAIRS)]


@renewed_by_the_world()
def simulate_pair(seed: int, names: tuple[str, ...] = ()) -> dict[str, int]:
    """Run one seed; how often what happened.  Raises Violation with the seed in its message."""
    chance = random.Random(seed)
    pair = names or names_of(seed)
    if not names and chance.random() < 0.4:
        pair = (*pair, chance.choice(list(ACTORS)))
    kind = chance.choice(KINDS)
    world = World.of_seed(kind, past_of(kind, chance.randrange(PASTS)), chance)
    try:
        world.run(pair)
    except (AssertionError, LakeError) as error:
        raise Violation(
            f"seed {seed}, {' x '.join(pair)} ({kind}): {type(error).__name__}: {error}"
        ) from error
    finally:
        world.scheduler.bury()
    return world.happened


def failing_pairs(seeds: range) -> Iterator[tuple[int, str]]:
    """Seeds that fail, and how."""
    for seed in seeds:
        try:
            simulate_pair(seed)
        except Violation as violation:
            yield seed, str(violation)
