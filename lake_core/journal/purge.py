"""Purging a journal: a durable checkpoint, then a fence, then a gate, then the deletions; in this order.

A crash in between loses nothing: the objects that were not deleted lie below the fence, where no reader looks, and
the next purge deletes them.  Any number of purgers may run at once: a fence never lies above a durable checkpoint,
and each purger deletes only below a fence that it has put or seen, and behind a gate that came after that fence.
The newest fence and the checkpoints from there on stay.

The checkpoints of kept versions (`Journal.kept`: those that a tag holds) stay too, below the fence.  Which these
are is read after the fence was put and the checkpoints were listed.  A writer that keeps a version later finds the
fence, and writes the checkpoint once more (`keep_version`).

`KEPT_FENCES` fences stay.  A listing does not show one moment: it may miss the newest fence, put while it ran, and
the one before, deleted while it ran.  Then a reader would believe that nothing was purged.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any

from lake_core import naming
from lake_core.checkpoints import CheckpointFooter, SectionPart, write_checkpoint
from lake_core.checkpoints.layout import VERSION, rows
from lake_core.errors import CheckpointDamaged, CheckpointGone, Corrupt, InvalidInput, Unavailable
from lake_core.journal import gates, hints
from lake_core.journal.ages import oldest_safe
from lake_core.journal.journal import Journal
from lake_core.journal.loaded_state import RECENT, LoadedState
from lake_core.journal.marks import Mark, Marks
from lake_core.journal.recent import Recent
from lake_core.journal.store_time import surely_past
from lake_core.store.probe import is_there

log = logging.getLogger(__name__)

BATCH = 1_000
"""Entries deleted at once: one request on S3."""
KEPT_FENCES = 8
"""How many of the newest fences a purge keeps: a listing is wrong only if it misses all of them."""


TRIES = 4
"""How often a checkpoint is written anew, if a purge meanwhile deletes the one that the state reads from."""


@dataclass(frozen=True)
class Purged:
    """How many entries and checkpoints a purge deleted; `fence`: the newest fence now, 0 if nothing was ever
    purged."""

    fence: int
    entries: int = 0
    checkpoints: int = 0


def write_state(
    journal: Journal[Any, Any], loaded: LoadedState[Any], *, id: str, now: float, forget: int = 0
) -> Mark:
    """Writes the state as a checkpoint, and the sign that the journal has had entries.

    The checkpoint leaves out tokens of versions up to `forget`, if they are too old at `now`, in seconds since
    1970.  Raises InvalidInput if the journal has no checkpoints, Unavailable.
    """
    if journal.format is None:
        raise InvalidInput(f"{journal.name}: this journal has no checkpoints; name a pool")
    name = naming.checkpoint(journal.name, loaded.version, id)
    checksum = loaded.checksum if journal.codec.version >= 2 else 0
    footer = CheckpointFooter(VERSION, journal.name, loaded.version, id, entry_checksum=checksum)
    parts = [_recent(loaded.recent), *journal.format.parts(loaded.state, now=now, forget=forget)]
    write_checkpoint(journal.store, name, footer, parts, limits=journal.limits.checkpoints)
    if loaded.version:
        hints.write_begun(journal.store, journal.name)
    log.info("%s: wrote the checkpoint of version %d", journal.name, loaded.version)
    return Mark(loaded.version, name)


def write_newest(
    journal: Journal[Any, Any],
    *,
    new_id: Callable[[], str],
    now: float,
    forgets: bool = True,
    loaded: LoadedState[Any] | None = None,
) -> tuple[bool, int]:
    """Writes a checkpoint of the newest state if there is none.  Returns whether it wrote one, and its version.

    `loaded`: the newest state, if the caller has just loaded it.  With `forgets`, the checkpoint leaves out
    tokens that are old by the store's clock and by the machine's, which `now` gives; if the two are too far
    apart, it leaves out none.  An existing checkpoint is read first: a damaged one does not count.  Raises
    Unavailable.
    """
    for _ in range(TRIES):
        loaded = loaded or journal.load()
        if not loaded.version or is_kept(journal, loaded.version):
            return False, loaded.version
        forget = _forgettable(journal, own=now) if forgets else 0
        try:
            mark = write_state(journal, loaded, id=new_id(), now=now, forget=forget)
            return not taken_back(journal, mark, now=now), loaded.version
        except (CheckpointGone, CheckpointDamaged):  # below the state; the next load rests on another
            loaded = None
    raise Unavailable(
        f"{journal.name}: in {TRIES} tries the checkpoint below the state was purged or damaged; run it again"
    )


def taken_back(journal: Journal[Any, Any], mark: Mark, *, now: float) -> bool:
    """Deletes a checkpoint that was just written, if a purge has passed its version meanwhile. Returns whether it
    did.

    That purge listed the checkpoints before this one existed, so it did not delete it. An erasure relies on a
    purge to leave nothing below its fence except checkpoints that a tag keeps. Raises Unavailable.
    """
    if not passed(journal, mark.version) or mark.version in journal.kept(journal.load().state, now):
        return False
    journal.store.delete_all([mark.name])
    return True


def _forgettable(journal: Journal[Any, Any], *, own: float) -> int:
    """Returns the greatest version whose tokens are old enough to be forgotten; 0 if there is none, or if the
    clock `own` is far off."""
    keep = math.inf if journal.format is None else journal.format.token_keep
    if keep == math.inf:
        return 0
    try:
        now = surely_past(journal, own=own)
    except InvalidInput as error:
        log.warning("%s: this checkpoint forgets no tokens: %s", journal.name, error)
        return 0
    return oldest_safe(journal, before=now - keep, now=now)


def is_kept(journal: Journal[Any, Any], version: int) -> bool:
    """Whether the version has a checkpoint that can be read whole."""
    return _first_sound(journal, journal.marks().at(version)) is not None


def keep_version(journal: Journal[Any, Any], loaded: LoadedState[Any], *, id: str, now: float) -> None:
    """Writes the checkpoint of a state that must be kept, unless there is one.

    Call it before the transaction that keeps the version is committed. After the commit, if a purge has passed
    the version by then (`passed`), the purge may have deleted that checkpoint: then call this again.
    """
    if loaded.version and not is_kept(journal, loaded.version):
        write_state(journal, loaded, id=id, now=now)


def passed(journal: Journal[Any, Any], version: int) -> bool:
    """Whether a purge may have deleted a checkpoint of the version."""
    return journal.marks().fence > version


def _recent(recent: Recent) -> SectionPart:
    items = sorted(recent.items())
    ids, versions = [id.encode() for id, _ in items], [version for _, version in items]
    return SectionPart(RECENT, "", "", [rows(key=ids, seq=versions)] if items else [])


def purge(journal: Journal[Any, Any], *, until: int) -> Purged:
    """Deletes entries up to the newest checkpoint at or before `until` that can be read whole, and what earlier
    purges left.  Raises Unavailable; then run it again."""
    marks = journal.marks()
    chosen = choose(journal, marks, until=until)
    fence = marks.fence
    if chosen is not None and put_fence(journal, chosen.version):
        fence = max(fence, chosen.version)
    if not fence:
        log.info("%s: nothing to purge, no sound checkpoint up to version %d", journal.name, until)
        return Purged(0)
    return _delete_below(journal, fence)


def choose(journal: Journal[Any, Any], marks: Marks, *, until: int) -> Mark | None:
    """Returns the newest checkpoint above the fence and at or below `until` that can be read whole; None if
    there is none.  A purge would delete the entries up to it."""
    return _first_sound(journal, [mark for mark in marks.checkpoints if marks.fence < mark.version <= until])


def _first_sound(journal: Journal[Any, Any], marks: Sequence[Mark]) -> Mark | None:
    """Returns the first of these checkpoints that is sound; None if all that are tried are damaged."""
    tried = marks[: journal.limits.checkpoints_tried]
    return next((mark for mark in tried if is_sound(journal, mark)), None)


def is_sound(journal: Journal[Any, Any], mark: Mark) -> bool:
    """Whether the checkpoint can be read to its last page.  Raises Unavailable."""
    try:
        journal.verify(mark)
    except (Corrupt, CheckpointGone) as error:
        log.warning("checkpoint %s is passed over: %s", mark.name, error)
        return False
    return True


def put_fence(journal: Journal[Any, Any], version: int) -> bool:
    """Puts the fence, and repeats that if the answer is lost. Always returns True. Raises Unavailable."""
    _put(journal, naming.fence(journal.name, version), str(version).encode())
    log.info("%s: put the fence at version %d", journal.name, version)
    return True


def put_gate(journal: Journal[Any, Any]) -> None:
    """Makes the next gate, or finds that another purge has just made it.  Either way, each process that has the
    journal open notices it and lists again.

    Call it after the fence, and before anything is deleted.  Raises Unavailable.
    """
    _put(journal, naming.gate(journal.name, gates.count(journal.store, journal.name) + 1), b"\n")


def _put(journal: Journal[Any, Any], name: str, data: bytes) -> None:
    """Creates an object that every purger creates with the same bytes.  Raises Unavailable."""
    for attempt in range(journal.retry.repeats):
        if is_there(journal.store, name, journal.store.create(name, data)):
            return  # reading it back is not enough: it may be visible and not durable
        journal.retry.pause(attempt)
    raise Unavailable(f"{name}: the store does not show that it has this object; run the purge again")


def _delete_below(journal: Journal[Any, Any], fence: int) -> Purged:
    """Deletes the entries up to the fence, and older checkpoints and fences.  Makes a gate before the first
    deletion."""
    make_gate = cache(partial(put_gate, journal))

    def delete(names: list[str]) -> None:
        if names:
            make_gate()
            journal.store.delete_all(names)

    entries = 0
    names = _entries_up_to(journal, fence)
    while batch := list(islice(names, BATCH)):
        delete(batch)
        entries += len(batch)
    fences: list[tuple[int, str]] = []
    checkpoints: list[str] = []
    marks = list(journal.store.list(naming.marks(journal.name)))
    times = sorted(info.modified for info in marks)
    # the time of the fence, or a later one; of two marks the older one, in case the store's clock was ahead once
    now = times[-2:][0] if times else 0.0
    kept = journal.kept(journal.load().state, now)  # after the fence and the listing
    for info in marks:
        checkpoint_version = naming.checkpoint_version(info.name)
        if checkpoint_version is not None and checkpoint_version < fence and checkpoint_version not in kept:
            checkpoints.append(info.name)
        fence_version = naming.fence_version(info.name)
        if fence_version is not None:
            fences.append((fence_version, info.name))
    delete(checkpoints)
    delete([name for version, name in sorted(fences)[:-KEPT_FENCES] if version < fence])
    hints.write_tail_hint(journal.store, journal.name, fence + 1)
    log.info(
        "%s: deleted %d entries and %d checkpoints below the fence at version %d",
        journal.name,
        entries,
        len(checkpoints),
        fence,
    )
    return Purged(fence, entries, len(checkpoints))


def _entries_up_to(journal: Journal[Any, Any], fence: int) -> Iterator[str]:
    """Yields the names of the entries up to the fence, from the oldest."""
    for info in journal.store.list(journal.name):
        version = naming.entry_version(info.name)
        if version is not None and version > fence:
            return  # names sort by version
        if version is not None:
            yield info.name
