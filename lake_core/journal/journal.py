"""Appending to a journal and loading it, with nothing but put-if-missing.

The rules (docs/protocol.md says why they suffice; the simulation tests them under every fault):

1. Entry n is written only by a create-only put, only by a writer that has folded the history up to n - 1, and
   only if the entry folds too.
2. If the answer of a put is lost, the writer repeats it with the same bytes under the same version until the
   store says which entry is there.  Only then may it try n + 1; otherwise it could win twice.
3. "Exists" with our own id inside means that an earlier try of ours won.
4. After a lost race the writer folds the entry that won and proposes again on the new state.  A proposal is a
   pure function of the state; it may find that nothing is left to do, or that it conflicts.
5. The end of the journal is the first version without an entry.  Hints only say how many to read at once.  If a
   later entry is seen, one is lost, and its version is not free.
6. Entries may be purged up to a fence.  After reading, check for a fence above the state you started from.  If
   there is one, entries may have been deleted while you read: discard the result and start again from a
   checkpoint. After writing entry n, check for a fence at or above n; a missing gate shows that there is none
   (`gates`).  If there is one, n was free only because the old entry n had been purged, or our entry has been
   purged since; the recent ids in the newest state say which.
7. A state may rest on a checkpoint and read from it later.  So a load returns no state whose checkpoint lies
   below the fence, and none whose checkpoint was found damaged.
8. `Unavailable` means that nothing was written.  Once a put has been sent, the call must end in a definite
   answer or in OutcomeUnknown, never in Unavailable.
9. Nothing here deletes; `purge` does.
10. An entry names the checksum of the previous one, and the fold checks that.  So if an entry is lost and a writer
   puts another one in its place, no reader folds the later entries onto the wrong one.

`reader` keeps rules 5 and 7, and rule 6 for readers; `put_entry` keeps 2 and 3; this module keeps the rest.

Callers: `catalog.pools` (the list of pools) and `history.history` (a pool's history).  The fold defines the
state. The journal keeps the newest state it has folded, so that checking for new entries takes one request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic

from lake_core import naming
from lake_core.errors import (
    CheckpointDamaged,
    CheckpointGone,
    Conflict,
    LakeError,
    OutcomeUnknown,
    Unavailable,
)
from lake_core.journal import hints
from lake_core.journal.link import StoredEntry, encode_linked
from lake_core.journal.loaded_state import E, LoadedState, S
from lake_core.journal.put_entry import PutOutcome, put_entry
from lake_core.journal.reader import JournalReader, T
from lake_core.journal.windows import LARGEST_WINDOW

log = logging.getLogger(__name__)

HINT_EVERY = 16
"""The writer of every sixteenth entry writes HEAD. To write HEAD in each commit would cost more than readers lose
by a stale hint."""


@dataclass(frozen=True)
class Appended(Generic[S]):
    """The result of a commit: the change is in the history, in the entry `version`.  `tries`: how many versions
    were tried."""

    version: int
    state: S
    tries: int


@dataclass(frozen=True)
class NextEntry(Generic[E]):
    """What a proposer returns if it found the next entry already on the store."""

    stored: StoredEntry[E]


def _nothing(attempt: int, loaded: object) -> None:
    return None


@dataclass
class Journal(JournalReader[E, S]):
    """One journal, for reading its entries and appending to it."""

    def append(
        self,
        propose: Callable[[LoadedState[S]], E | NextEntry[E] | None],
        *,
        id: str,
        lost: Callable[[int, LoadedState[S]], None] = _nothing,
        contended: bool = False,
    ) -> Appended[S] | None:
        """Commits the entry that `propose` makes from the newest state.  Returns None if it makes none.

        If `propose` finds another writer's next entry on the store, it may return a NextEntry; then that entry
        is folded, and `propose` is called again.

        `id` identifies the change: once it is in the history, whichever writer put it there, the change is
        committed.  `lost(times, loaded)` is called after each lost race.  `contended`: others commit too, so a
        state in memory is soon old.

        Raises the errors of `propose`, and of the fold if the proposal does not fit.  Raises Conflict after
        `retry.races` lost races.  Raises OutcomeUnknown if a put was sent and no answer shows whether it took
        effect.
        """
        self._meets_others |= contended
        loaded = self.load_recent()
        for attempt in range(self.retry.races):
            committed = loaded.recent.version_of(id)
            if committed is not None:
                return Appended(committed, loaded.state, attempt)
            version = loaded.version + 1
            entry: StoredEntry[E] | None = None
            after: LoadedState[S] | None = None
            refusal: LakeError | None = None
            try:
                proposed = propose(loaded)
                if isinstance(proposed, NextEntry):
                    self._meets_others = True
                    loaded = self._step(loaded, proposed.stored)
                    continue
                if proposed is not None:
                    entry = encode_linked(self.codec, proposed, previous=loaded.checksum)
                    # an entry that does not fit must never be written: no reader could fold past it
                    after = self.folded(loaded, entry)
            except (CheckpointGone, CheckpointDamaged) as error:
                log.info("%s: loads again, the state cannot be read: %s", self.name, error)
                self._loaded = None
                loaded = self._follow(self._start(), window=LARGEST_WINDOW)
                continue
            except LakeError as error:
                refusal = error
            if entry is None or after is None:  # doing nothing, or refusing, must rest on the newest state
                newest = self._follow(loaded, window=1)
                if newest.version > loaded.version:
                    loaded = newest
                    continue
                if refusal is not None:
                    raise refusal
                return None
            outcome = put_entry(self, entry, after=loaded)
            if outcome is PutOutcome.OTHERS:
                self._meets_others = True
                lost(attempt + 1, loaded)
                self.retry.pause(attempt)
                loaded = self._follow(loaded, window=2)
                continue
            try:
                if outcome is PutOutcome.OURS and not self._until_answered(
                    partial(self.is_purged, version, after=loaded)
                ):
                    log.debug("%s: wrote entry %d, try %d", self.name, version, attempt + 1)
                    self._remember(after)
                    self._meets_others |= self._wrote not in (0, loaded.version)
                    self._wrote = version
                    if version == 1:
                        hints.write_begun(self.store, self.name)
                    if version % HINT_EVERY == 0:
                        hints.write_head_hint(self.store, self.name, version)
                    return Appended(version, after.state, attempt + 1)
                log.info("%s: version %d is purged; loads again to learn the outcome", self.name, version)
                loaded = self._until_answered(lambda: self._follow(self._start(), window=LARGEST_WINDOW))
            except Unavailable as error:
                raise OutcomeUnknown(
                    f"{error}; entry {id} was written, but its outcome is unknown",
                    entry_id=id,
                    version=version,
                ) from error
            if loaded.recent.version_of(id) is None and not loaded.recent.reaches(version):
                raise OutcomeUnknown(
                    f"{naming.entry(self.name, version)}: purged, and older than the recent ids; whether {id} was "
                    f"committed as version {version} is unknown",
                    entry_id=id,
                    version=version,
                )
        committed = loaded.recent.version_of(id)
        if committed is not None:
            return Appended(committed, loaded.state, self.retry.races)
        raise Conflict(f"{self.name}: lost {self.retry.races} races for the next entry; try again later")

    def _until_answered(self, ask: Callable[[], T]) -> T:
        """Returns the answer of `ask`, repeated while the store is Unavailable, at most `retry.repeats` times."""
        for attempt in range(self.retry.repeats - 1):
            try:
                return ask()
            except Unavailable:
                self.retry.pause(attempt)
        return ask()
