"""Covered intervals: ranges of keys that a branch has completely, because a replace brought them; pure.

A replace of a bounded range names the range in its transaction, as a source: `interval:<low>-<high>`, in hex.
So coverage is stored with the source files: checkpoints keep it, branches inherit it, and merges bring it
(decision 386).  The `etag` is the id of the transaction, so each replace of a range is another version of the
source.  Its `size` is 1 if the branch has the range, and 0 if it gave the range up, so that it is not covered
any more.

- A delete without a condition gives up the intervals that lie wholly in its range; `rebase` adds this to the
  draft.  So does a replace of a range that lacks one of its bounds: such a range is not an interval itself.
- A delete of a part leaves an interval covered: those records were removed on purpose.
- A revert restores the coverage from before the reverted transaction.
- A merge brings the coverage of the branch, and gives up intervals of the parent that its deletes remove
  completely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lake_core.history.known_sources import known_between
from lake_core.history.state import PoolState
from lake_core.history.tombstone import Tombstone
from lake_core.keys.ranges import EVERYTHING, KeyRange
from lake_core.records import Action, AddObject, AddTombstone, Consume, Source

PREFIX = "interval:"

MAX_BOUND = 512
"""The most bytes of a bound.  A range with a longer bound is not an interval, so that names stay short."""


@dataclass(frozen=True)
class CoveredInterval:
    """A range of keys that a branch has completely, the version that brought it, and the id of that transaction.

    After a merge the version is that of the merge, but the id is still that of the first transaction.
    """

    key_range: KeyRange
    version: int
    transaction_id: str


def interval_source(key_range: KeyRange, *, id: str, holds: bool = True) -> Source | None:
    """Returns the source that says that a transaction brings the range, or gives it up; None if the range is not
    an interval."""
    low, high = key_range.low, key_range.high
    if not low or high is None or max(len(low), len(high)) > MAX_BOUND:
        return None
    return Source(f"{PREFIX}{low.hex()}-{high.hex()}", size=int(holds), etag=id)


def interval_of(uri: str) -> KeyRange | None:
    """Returns the range that the name of a source spells; None if the name is that of a file."""
    if not uri.startswith(PREFIX):
        return None
    try:
        low, high = (bytes.fromhex(text) for text in uri.removeprefix(PREFIX).split("-"))
    except ValueError:
        return None
    return KeyRange(low, high) if low < high else None


def is_interval(source: Source) -> bool:
    """Whether the source is an interval, and not a file."""
    return source.uri.startswith(PREFIX)


def covered_intervals(
    state: PoolState, branch: str, *, beginning: KeyRange = EVERYTHING
) -> list[CoveredInterval]:
    """Returns the intervals that the branch covers, by their low bound; only those whose low bound lies in
    `beginning`.  They may overlap; equal ranges are returned once.  Raises CheckpointDamaged, Unavailable."""
    high = beginning.high
    first, end = PREFIX + beginning.low.hex(), PREFIX + ("~" if high is None else high.hex())
    sources = known_between(state, branch, first, end)  # names sort as their low bounds
    spans = ((interval_of(uri), one) for uri, one in sources.items() if one.source.size)
    intervals = [CoveredInterval(span, one.version, one.source.etag) for span, one in spans if span]
    return sorted(intervals, key=lambda one: (one.key_range.low, one.key_range.high or b""))


def giving_up(state: PoolState, actions: Iterable[Action], *, branch: str, id: str) -> tuple[Action, ...]:
    """Returns the action by which the branch gives up every interval that the draft's deletes remove completely;
    nothing if there are none."""
    actions = tuple(actions)
    deletes = not any(isinstance(action, AddObject) for action in actions)
    spans = [
        a.range
        for a in actions
        if isinstance(a, AddTombstone) and (deletes or a.replaces) and _is_whole(a, a.range)
    ]
    sources = tuple(_given_up(state, spans, branch=branch, id=id))
    return (Consume(sources),) if sources else ()


def given_up_by_merge(
    state: PoolState, tombstones: Iterable[Tombstone], brought: Iterable[Source], *, into: str, id: str
) -> list[Source]:
    """Returns the intervals that a branch gives up because a merge brings these tombstones, except those in
    `brought`."""
    spans = [t.key_range for t in tombstones if _is_whole(t, t.key_range)]
    names = {source.uri for source in brought}
    return [source for source in _given_up(state, spans, branch=into, id=id) if source.uri not in names]


def _given_up(state: PoolState, spans: Sequence[KeyRange], *, branch: str, id: str) -> Iterator[Source]:
    if not spans:
        return
    highs = [span.high for span in spans if span.high is not None]
    high = max(highs) if len(highs) == len(spans) else None
    for one in covered_intervals(state, branch, beginning=KeyRange(min(span.low for span in spans), high)):
        if any(_contains(span, one.key_range) for span in spans):
            source = interval_source(one.key_range, id=id, holds=False)
            if source is not None:
                yield source


def _is_whole(hidden: AddTombstone | Tombstone, span: KeyRange) -> bool:
    """Whether the action or tombstone hides every record of its range. A replace of an interval does not count,
    because it covers the interval anew.

    A tombstone of an erasure has `only`, so intervals stay covered after an erasure: otherwise agents would
    load the records again.
    """
    if hidden.condition is not None or hidden.self_only or hidden.sub_pool or hidden.only is not None:
        return False
    return not hidden.replaces or interval_source(span, id="") is None


def _contains(span: KeyRange, other: KeyRange) -> bool:
    return span.low <= other.low and (
        span.high is None or (other.high is not None and other.high <= span.high)
    )


def covered_as_before(
    consume: Consume, *, before: PoolState, newest: PoolState, branch: str, id: str
) -> tuple[Action, ...]:
    """Returns the action by which a revert restores the coverage from before a transaction; nothing if there is
    nothing to restore.  Intervals that a later transaction brought or gave up stay as they are."""
    sources = []
    for source in consume.sources:
        if is_interval(source) and newest.ingested(branch, source.uri) == source:
            then = before.ingested(branch, source.uri)
            sources.append(Source(source.uri, size=0, etag=id) if then is None else then)
    return (Consume(tuple(sources)),) if sources else ()
