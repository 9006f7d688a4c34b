"""Moving the tail forward: a durable checkpoint, then a fence, then the deletions; in this order.

A crash in between loses nothing: what was not deleted lies below the fence, where nobody looks, and the next
purge deletes it.  Any number of purgers may be at work: a fence only ever says what a durable checkpoint
covers, and each deletes only below a fence that it has put or seen.  The newest fence and the checkpoints from
there on stay.

Fences are retired late: `_KEPT_FENCES` stay.  For a listing need not show one moment: it may miss the newest fence,
put while it ran, and the one before, deleted while it ran; then a reader would believe that nothing was purged.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from lake_core import naming
from lake_core.checkpoints import CheckpointFile, CheckpointFooter, Part, write_checkpoint
from lake_core.checkpoints.layout import VERSION, rows
from lake_core.errors import CheckpointGone, Corrupt, InvalidInput, Unavailable
from lake_core.journal import hints
from lake_core.journal.journal import Journal
from lake_core.journal.loaded_state import RECENT, LoadedState
from lake_core.journal.marks import Mark, Marks
from lake_core.journal.recent import Recent
from lake_core.store import Created

log = logging.getLogger(__name__)

_KEPT_FENCES = 8


@dataclass(frozen=True)
class Purged:
    """What was deleted; `fence` is the newest one now, 0 where nothing was ever purged."""

    fence: int
    entries: int = 0
    checkpoints: int = 0


def write_state(journal: Journal[Any, Any], loaded: LoadedState[Any], *, id: str, now: float) -> Mark:
    """Keep the state in a checkpoint of its own; `now` decides what is forgotten.  Raises Unavailable."""
    if journal.format is None:
        raise InvalidInput(f"{journal.name}: this journal has no checkpoints")
    name = naming.checkpoint(journal.name, loaded.version, id)
    described = CheckpointFooter(VERSION, journal.name, loaded.version, id)
    parts = [_recent(loaded.recent), *journal.format.parts(loaded.state, now=now)]
    write_checkpoint(journal.store, name, described, parts)
    return Mark(loaded.version, name)


def _recent(recent: Recent) -> Part:
    known = sorted(recent.items())
    ids, entries = [id.encode() for id, _ in known], [version for _, version in known]
    return Part(RECENT, "", "", [rows(key=ids, seq=entries)] if known else [])


def purge(journal: Journal[Any, Any], *, until: int) -> Purged:
    """Delete entries up to the newest sound checkpoint at or before `until`, and what earlier purges left.

    Raises Unavailable; can be run again at any time.
    """
    marks = journal.marks()
    chosen = choose(journal, marks, until=until)
    fence = marks.fence
    if chosen is not None and _put_fence(journal, chosen.version):
        fence = max(fence, chosen.version)
    return _delete_below(journal, fence) if fence else Purged(0)


def choose(journal: Journal[Any, Any], marks: Marks, *, until: int) -> Mark | None:
    """The newest sound checkpoint at or before `until` that is above the fence: what a purge would go up to."""
    between = (mark for mark in marks.checkpoints if marks.fence < mark.version <= until)
    return next((mark for mark in between if is_sound(journal, mark)), None)


def is_sound(journal: Journal[Any, Any], mark: Mark) -> bool:
    """Whether the checkpoint can be read to its last page.  Raises Unavailable."""
    try:
        journal.restore(mark)
        CheckpointFile(journal.store, mark.name).verify()
    except (Corrupt, CheckpointGone) as error:
        log.warning("%s is passed over: %s", mark.name, error)
        return False
    return True


def _put_fence(journal: Journal[Any, Any], version: int) -> bool:
    """Whether the fence stands.  An answer that was lost is asked for again."""
    name = naming.fence(journal.name, version)
    for attempt in range(journal.retry.repeats):
        if journal.store.create(name, str(version).encode()) is not Created.UNKNOWN:
            return True  # to read it back is not enough: it may be there, and not be durable
        journal.retry.pause(attempt)
    raise Unavailable(f"{name}: the store does not say whether the fence stands; run the purge again")


def _delete_below(journal: Journal[Any, Any], fence: int) -> Purged:
    """Everything that the newest fence makes useless: entries up to it, and older checkpoints and fences."""
    entries = checkpoints = 0
    for info in journal.store.list(journal.name):
        version = naming.entry_version(info.name)
        if version is None:
            continue
        if version > fence:
            break  # in order of numbers
        journal.store.delete(info.name)
        entries += 1
    fences: list[tuple[int, str]] = []
    for info in journal.store.list(naming.marks(journal.name)):
        at = naming.checkpoint_version(info.name)
        if at is not None and at < fence:
            journal.store.delete(info.name)
            checkpoints += 1
        older = naming.fence_version(info.name)
        if older is not None:
            fences.append((older, info.name))
    for older, name in sorted(fences)[:-_KEPT_FENCES]:
        if older < fence:
            journal.store.delete(name)
    hints.write_tail_hint(journal.store, journal.name, fence + 1)
    return Purged(fence, entries, checkpoints)
