"""Moving the tail forward: a durable checkpoint, then a fence, then the deletions; in this order.

A crash in between loses nothing: what was not deleted lies below the fence, where nobody looks, and the next
purge deletes it.  Any number of purgers may be at work: a fence only ever says what a durable checkpoint
covers, and each deletes only below a fence that it has put or seen.  The newest fence and the checkpoints from
there on stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lake_core import naming
from lake_core.checkpoints import CheckpointFile, CheckpointHead, Part, write_checkpoint
from lake_core.checkpoints.layout import VERSION, rows
from lake_core.errors import CheckpointGone, Corrupt, InvalidInput, Unavailable
from lake_core.journal import hints
from lake_core.journal.journal import RECENT, Head, Journal
from lake_core.journal.marks import Mark, Marks
from lake_core.journal.recent import Recent
from lake_core.store import Created


@dataclass(frozen=True)
class Purged:
    """What was deleted; `fence` is the newest one now, 0 where nothing was ever purged."""

    fence: int
    entries: int = 0
    checkpoints: int = 0


def write_state(journal: Journal[Any, Any], head: Head[Any], *, id: str, now: float) -> Mark:
    """Keep the state in a checkpoint of its own; `now` decides what is forgotten.  Raises Unavailable."""
    if journal.format is None:
        raise InvalidInput(f"{journal.name}: this journal has no checkpoints")
    name = naming.checkpoint(journal.name, head.n, id)
    described = CheckpointHead(VERSION, journal.name, head.n, id)
    parts = [_recent(head.recent), *journal.format.parts(head.state, now=now)]
    write_checkpoint(journal.store, name, described, parts)
    return Mark(head.n, name)


def _recent(recent: Recent) -> Part:
    known = sorted(recent.items())
    ids, entries = [id.encode() for id, _ in known], [n for _, n in known]
    return Part(RECENT, "", "", [rows(key=ids, seq=entries)] if known else [])


def plan_purge(marks: Marks, *, until: int) -> Mark | None:
    """The checkpoint below which entries can go, so that all after `until` stay; None where there is none new."""
    return next((c for c in marks.checkpoints if marks.fence < c.n <= until), None)


def purge(journal: Journal[Any, Any], *, until: int) -> Purged:
    """Delete entries up to the newest sound checkpoint at or before `until`, and what earlier purges left.

    Raises Unavailable; can be run again at any time.
    """
    marks = journal.marks()
    chosen = _sound(journal, marks, until=until)
    fence = marks.fence
    if chosen is not None and _put_fence(journal, chosen.n):
        fence = max(fence, chosen.n)
    return _delete_below(journal, fence) if fence else Purged(0)


def _sound(journal: Journal[Any, Any], marks: Marks, *, until: int) -> Mark | None:
    """The newest checkpoint that can be read to its last page."""
    for mark in marks.checkpoints:
        if marks.fence < mark.n <= until:
            try:
                journal.restore(mark)
                CheckpointFile(journal.store, mark.name).verify()
            except (Corrupt, CheckpointGone):
                continue
            return mark
    return None


def _put_fence(journal: Journal[Any, Any], n: int) -> bool:
    """Whether the fence stands.  An answer that was lost is asked for again."""
    name = naming.fence(journal.name, n)
    for attempt in range(journal.retry.repeats):
        if journal.store.create(name, str(n).encode()) is not Created.UNKNOWN:
            return True
        if journal.store.get(name) is not None:
            return True
        journal.retry.pause(attempt)
    raise Unavailable(f"{name}: the store does not say whether the fence stands; run the purge again")


def _delete_below(journal: Journal[Any, Any], fence: int) -> Purged:
    """Everything that the newest fence makes useless: entries up to it, and older checkpoints and fences."""
    entries = checkpoints = 0
    for info in journal.store.list(journal.name):
        n = naming.entry_number(info.name)
        if n is None or n > fence:
            break  # entries are listed first, in order
        journal.store.delete(info.name)
        entries += 1
    for info in journal.store.list(naming.marks(journal.name)):
        at = naming.checkpoint_number(info.name)
        if at is not None and at < fence:
            journal.store.delete(info.name)
            checkpoints += 1
        older = naming.fence_number(info.name)
        if older is not None and older < fence:
            journal.store.delete(info.name)
    hints.write_tail(journal.store, journal.name, fence + 1)
    return Purged(fence, entries, checkpoints)
