"""Workers for tests: something is done before or after a call, and every call is recorded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from log_lake.workers import Divide, Shuffle, SortedPiece, Worker, Workers

U = TypeVar("U")
R = TypeVar("R")


def name_of(do: Callable[..., object]) -> str:
    """Returns the name of the function that does a unit, also if some of its arguments are already bound."""
    return name_of(do.func) if isinstance(do, partial) else getattr(do, "__name__", "")


@dataclass
class Watched:
    """Passes calls on to other workers, after it called `before` with the name of the function and the number of
    its units.

    It does the units in reverse order, as tasks may; `calls` records the calls.
    """

    workers: Workers
    before: Callable[[str, int], None] = lambda name, count: None
    calls: list[tuple[str, int]] = field(default_factory=list)
    after: Callable[[str, int], None] = lambda name, count: None
    size: int = 1
    at_once: int = 1

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        name = name_of(do)
        self.calls.append((name, len(units)))
        self.before(name, len(units))
        done = self.workers.map(do, units[::-1], each=each, alone=alone)[::-1]
        self.after(name, len(units))
        return done


@dataclass
class Shuffling:
    """Workers of this process that give each other pieces, as Spark tasks do.

    Pieces with equal unit and number come in any order, as in Spark's sort; no part may have two such pieces.
    """

    worker: Worker
    size: int = 3
    at_once: int = 1

    def map(
        self, do: Callable[[Worker, U], R], units: Sequence[U], *, each: int = 1, alone: int = 0
    ) -> list[R]:
        return [do(self.worker, unit) for unit in units]

    def exchange(
        self,
        work: Shuffle[U, R],
        units: Sequence[U],
        *,
        divide: Divide,
        bounds: tuple[bytes, ...] | None,
    ) -> list[R]:
        rows: list[tuple[int, SortedPiece]] = []
        results: list[R] = []
        for number, unit in enumerate(units):
            for one in work.give(self.worker, number, unit, bounds or ()):
                if isinstance(one, SortedPiece):
                    rows.append((number, one))
                else:
                    results.append(one)
        if bounds is None:
            bounds = divide([replace(piece, data=b"") for _, piece in rows])
            rows = [(unit, cut) for unit, piece in rows for cut in work.cut_again(piece, bounds)]
        for part in range(len(bounds) + 1):
            mine = [row for row in rows if row[1].part == part]
            random.Random(part).shuffle(mine)
            mine.sort(key=lambda row: (row[0], row[1].number))
            places = [(unit, piece.number) for unit, piece in mine]
            assert len(set(places)) == len(places), "pieces without an order"
            results.append(work.take(self.worker, iter([piece.data for _, piece in mine])))
        return results
