"""Decides which references may be removed without making older records visible again; pure.

- In an append pool every reference may be removed.
- In an upsert pool a record hides the older ones of its key.  A reference must stay if another one stays that
  shares keys with it and has a record as old or older.
- In an aggregate pool a record is made of all records of its key.  A reference must stay if another one stays
  that shares keys with it; otherwise the value of a key would change, instead of disappearing.

A reference that must stay may force others to stay, so the answer is a closure.  Compaction does not change it:
it moves records between references, and changes neither their keys nor their sequences.

Called by the planner of the retention agent, and by `rebase`, which checks again on the newest state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np

from lake_core.history.snapshot.reference import Reference


def must_stay(leaving: Sequence[Reference], staying: Iterable[Reference], *, kind: str) -> list[Reference]:
    """Returns the references of `leaving` that must stay too; all belong to one pool or sub-pool of this kind."""
    if kind == "append" or not leaving:
        return []
    blocked: list[Reference] = []
    candidates = _Candidates(leaving)
    newest = max(r.seq for r in leaving)
    by_age = kind == "upsert"
    waiting = [r for r in staying if not by_age or r.first_seq <= newest]
    while waiting:  # each candidate is taken once
        taken = candidates.take(waiting.pop(), by_age=by_age)
        blocked += taken
        waiting += taken
    return blocked


class _Candidates:
    """References that may be removed, by low bound. `reach` is the greatest high bound up to each of them, so that
    a search visits few."""

    def __init__(self, references: Sequence[Reference]) -> None:
        self.references = sorted(references, key=lambda r: r.low)
        self.lows = [r.low for r in self.references]
        self.reach = list(accumulate((r.high for r in self.references), max))
        self.highs = sorted({r.high for r in self.references})
        rank = {high: number for number, high in enumerate(self.highs)}
        self.rank = np.array([rank[r.high] for r in self.references], np.int64)
        self.seq = np.array([r.seq for r in self.references], np.int64)
        self.left = np.ones(len(self.references), np.bool_)

    def take(self, stays: Reference, *, by_age: bool) -> list[Reference]:
        """Removes and returns the references that must stay because the reference `stays` shares keys with them.
        With `by_age`, only those that have a record as new as its oldest record, or newer."""
        begin, end = bisect_right(self.reach, stays.low), bisect_left(self.lows, stays.high)
        if begin >= end:
            return []
        part = slice(begin, end)
        chosen = self.left[part] & (self.rank[part] >= bisect_right(self.highs, stays.low))
        if by_age:
            chosen &= self.seq[part] >= stays.first_seq
        self.left[part] &= ~chosen
        return [self.references[begin + int(at)] for at in np.flatnonzero(chosen)]
