"""The rules, how each is left out, and a seed that fails then: of the journal, of a pair, or of a history.

The seed is tried first; others where a change of the code has made it another story.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec

from lake_core.history import PoolState, rebase
from lake_core.history import checkpoint as checkpoints
from lake_core.history.transactions.decisions import Decisions
from lake_core.journal import Journal, LoadedState, gates
from lake_core.journal import listed as journal_listed
from lake_core.journal.marks import Marks
from lake_core.journal.recent import Recent
from log_lake.agents.retention import plan as retention
from log_lake.erasure.run import _Run
from log_lake.erasure.search import Search
from log_lake.lake import moment, tags
from log_lake.lake.pool import Pool
from log_lake.leases.lease import Leases
from log_lake.rewriting import compaction
from log_lake.vacuum import execute, orphans
from tests.simulation.histories.world import simulate_history
from tests.simulation.pairs import make_pasts, simulate_pair
from tests.simulation.truth import Violation
from tests.simulation.world import simulate

purge = importlib.import_module("lake_core.journal.purge")  # the package has a function of that name

ENOUGH = 1_000
"""Seeds of which one must fail."""


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _no(*_: Any, **__: Any) -> bool:
    return False


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _none(*_: Any, **__: Any) -> frozenset[str]:
    return frozenset()


def _no_list(*_: Any, **__: Any) -> list[Any]:
    return []


def _above(listed: journal_listed.Listing, version: int) -> list[Any]:
    return [info for number, info in sorted(listed.entries.items()) if number > version]


def _put(decisions: Decisions, name: str, value: msgspec.Struct) -> None:
    decisions.store.put(name, msgspec.json.encode(value), durable=True)


@dataclass(frozen=True)
class Rule:
    """`places`: what to put where, so that the rule is left out."""

    seed: int
    places: tuple[tuple[Any, str, Any], ...]
    simulation: Callable[[int], object] = simulate

    def fails(self) -> bool:
        """Whether the seed fails, or one of the first ones."""
        make_pasts()
        with self.left_out():
            return any(map(self.is_violated, (self.seed, *range(ENOUGH))))

    def is_violated(self, seed: int) -> bool:
        """Whether the seed fails."""
        try:
            self.simulation(seed)
        except Violation:
            return True
        return False

    @contextlib.contextmanager
    def left_out(self) -> Iterator[None]:
        """Without the rule."""
        with ExitStack() as stack:
            for owner, name, instead in self.places:
                stack.enter_context(patch.object(owner, name, instead))
            yield


def _of(owner: Any, name: str, instead: Any, seed: int, *pair: str) -> Rule:
    return Rule(seed, ((owner, name, instead),), _pair(*pair) if pair else simulate)


def _pair(*names: str) -> Callable[[int], object]:
    return partial(simulate_pair, names=names)


def _in_histories(owner: Any, name: str, instead: Any, seed: int) -> Rule:
    return Rule(seed, ((owner, name, instead),), simulate_history)


RULES: dict[str, Rule] = {
    "a reader looks for a fence": _of(Journal, "_is_behind", _no, 54),
    "a writer looks for a fence": _of(Journal, "is_purged", _no, 241),
    "a purge makes a gate before it deletes": _of(purge, "put_gate", _nothing, 421),
    "a writer and a look for news ask for the next gate": _of(gates, "is_there", _no, 90),
    "no gate is counted that a purge has not made": _of(
        Journal, "_count_gates", lambda self: gates.count(self.store, self.name) + 1, 402
    ),
    "a look for news looks for a fence": _of(journal_listed, "listed_marks", lambda *_: Marks(), 628),
    "a listing that misses an entry is not believed": _of(
        journal_listed.Listing, "after", lambda listed, version, *, floor: _above(listed, version), 55
    ),
    "a state's checkpoint must not lie below the fence": _of(
        LoadedState, "floor", property(lambda head: head.version), 139
    ),
    "recent ids are looked up": _of(Recent, "version_of", lambda recent, id: None, 0),
    "recent ids are kept in checkpoints": _of(
        Recent, "of", classmethod(lambda cls, n, items, limits: Recent(n, limits=limits)), 75
    ),
    "a purge goes only up to a sound checkpoint": _of(purge, "is_sound", _yes, 5048),
    "a fence comes before what is deleted": _of(purge, "put_fence", _yes, 10),
    "what was removed is left out of a checkpoint": _of(
        checkpoints, "without", lambda table, gone: table, 53
    ),
    # --- what is kept
    "a vacuum looks at the leases": _of(
        Leases, "live", property(lambda self: []), 83, "vacuum", *("reader with a lease",) * 3
    ),
    "a vacuum looks at the leases once more": _of(
        execute, "_spared", lambda *_: (), 24, *("vacuum",) * 2, *("reader with a lease",) * 3
    ),
    "a reader with a lease looks whether all is there": _of(
        Pool, "_check_whole", _nothing, 29, *("vacuum",) * 2, *("reader with a lease",) * 2
    ),
    "a vacuum waits for the grace time": _of(
        execute, "oldest_safe", lambda *_, **__: 1 << 40, 10, "vacuum", "reader without a lease", "compactor"
    ),
    "branches keep": _of(execute, "held_objects", _none, 0, "vacuum", "branch maker and merger"),
    "tags keep": _of(execute, "tagged_objects", _none, 9, "vacuum", "tagger"),
    "a purge keeps the checkpoints of tags": _of(
        PoolState, "kept_at", _none, 0, "checkpoint and purge", "tagger"
    ),
    "a branch that is let go lists what it kept": _of(
        tags, "_unkept", lambda *_: {}, 264, "branch maker and merger", "tagger"
    ),
    "a scan of orphans raises the floor": _of(
        rebase, "check_objects", _nothing, 94, "orphan scan", *("stalled writer",) * 2, "vacuum", "loader"
    ),
    "a scan of orphans knows what is referred to": _of(
        orphans, "unlisted_objects", lambda state, among: frozenset(among), 0, "orphan scan", "loader"
    ),
    # --- what is shown
    "a write that believes its memory finds out if others wrote": _of(
        rebase, "_check_unchanged", _nothing, 29, *("loader",) * 3
    ),
    "a load that was overtaken hides its own records": _of(
        rebase, "_overtaken", lambda *_: (), 55, "replacer", "stalled writer"
    ),
    "a compaction shows again what a reverted delete hid": _of(
        rebase, "_check_revealed", _nothing, 344, *("undoer",) * 2, *("stalled writer",) * 2
    ),
    "what hides older versions stays": Rule(
        5,
        ((retention, "must_stay", _no_list), (rebase, "must_stay", _no_list)),
        _pair("expirer", "undoer"),
    ),
    "delete markers that hide stay": Rule(
        12,
        ((compaction, "_hides_older", _no), (rebase, "must_stay", _no_list)),
        _pair("compactor", "loader", "loader"),
    ),
    "a split leaves out the points that are there": _of(
        rebase, "pointing", lambda points, actions: tuple(actions), 0, *("splitter",) * 3
    ),
    # --- what is erased
    "an erasure searches removed objects": _of(Search, "removed", _no_list, 0, "eraser", "compactor"),
    "an erasure searches orphans": _of(Search, "uncommitted", _no_list, 2, "eraser", "stalled writer"),
    "an erasure searches tags": _of(Search, "in_tags", lambda *_, **__: iter(()), 11, "eraser", "tagger"),
    "an erasure looks again": _of(_Run, "_is_clean", _yes, 4, "eraser", "compactor"),
    # --- transactions over pools
    "a reader of several pools reads again what is behind": _in_histories(moment, "_behind", _no_list, 14),
    "the first decision counts": _in_histories(Decisions, "_create", _put, 2),
}
"""The rules that few seeds need; tests/unit holds the others by races at one request."""
