"""Finds the sources of a branch by a range of names; intervals and offsets are found by a prefix."""

from __future__ import annotations

from collections.abc import Iterator

from lake_core.history.below import SourcesBelow
from lake_core.history.state import Ingested, PoolState
from lake_core.history.tombstone import NEVER


def known_between(state: PoolState, branch: str, first: str, end: str) -> dict[str, Ingested]:
    """Returns the sources that the branch or its ancestors have ingested, by name, as `state.ingested_as` gives
    each: those with names from `first` (inclusive) to `end` (exclusive).  Raises CheckpointDamaged,
    Unavailable."""
    kept: dict[str, Ingested] = {}
    hidden: set[str] = set()
    until, there = NEVER, state.branches.get(branch)
    while there is not None:  # bounded: a parent is older than its children
        began = there.fork.created if there.fork else -1
        for uri, one in _own(state, branch, first, end):
            if uri in hidden or one.version <= began:
                continue
            hidden.add(uri)
            if one.is_known_at(until):
                kept[uri] = one
        if there.fork is None:
            break
        branch, until = there.fork.parent, min(until, there.fork.at)
        there = state.branches.get(branch)
    return kept


def _own(state: PoolState, branch: str, first: str, end: str) -> Iterator[tuple[str, Ingested]]:
    """Yields the sources that the branch's own transactions ingested or gave back, each once."""
    added = state.sources.added
    for (name, uri), one in added.items():
        if name == branch and first <= uri < end:
            yield uri, one
    if isinstance(state.sources.below, SourcesBelow):
        for uri, one in state.sources.below.between(first, end, branch=branch):
            if (branch, uri) not in added:
                yield uri, one
