"""Appending to a journal and loading it, with nothing but put-if-missing.

The rules (docs/protocol.md says why they suffice; the simulation holds them under every fault):

1. Entry n is written only by a create-only put, only by a writer that has folded the history up to n - 1, and
   only if it folds too.
2. A put whose answer is lost is repeated with the same bytes under the same number until the store says
   what is there.  Only then may the writer go on to n + 1: else it could win twice.
3. "Exists" with our own id inside means that an earlier try of ours won.
4. After a lost race the writer folds what won and proposes again on the new state: a proposal is a pure
   function of the state, and may find that there is nothing left to do, or that it conflicts.
5. The end of the journal is the first number that has no entry.  Hints only say how many to ask for at once.
6. Entries may be purged up to a fence.  So whoever read looks for a fence afterwards: if there is one above the
   state it began with, what it read may be anything, and it begins again from a checkpoint.  And whoever wrote
   looks for a fence at or above its entry: if there is one, its number was free only because it had been purged,
   or was purged since; the ids in the newest state tell which.
7. A state may rest on a checkpoint and read from it later.  So a load gives none whose checkpoint lies below the
   fence, and none whose checkpoint was found damaged.
8. `Unavailable` means that nothing was written.  Once a put was sent, only an answer or OutcomeUnknown will do.
9. Nothing here deletes; `purge` does.

`reader` keeps rules 5 and 7, and 6 for who has read; `placing` keeps 2 and 3; the rest stands here.

Callers: `catalog.pools` (the list of pools) and `history.history` (a pool's history).  State is whatever the
fold makes; the journal keeps the newest one it has folded, so that a look for news is one request.
"""

from __future__ import annotations

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
from lake_core.journal.loaded_state import E, LoadedState, S
from lake_core.journal.put_entry import PutOutcome, put_entry
from lake_core.journal.reader import LARGEST_WINDOW, JournalReader, T

HINT_EVERY = 16
"""HEAD is left at every so many entries: it is only a hint."""


@dataclass(frozen=True)
class Appended(Generic[S]):
    """The change stands in the history, in entry `n`; `tries` counts the numbers raced for."""

    version: int
    state: S
    tries: int


@dataclass(frozen=True)
class Overtaken(Generic[E]):
    """The answer of a proposer that has seen that the next entry is there already."""

    entry: E


def _nothing(attempt: int, loaded: object) -> None:
    return None


@dataclass
class Journal(JournalReader[E, S]):
    """One journal, to be read and appended to."""

    def append(
        self,
        propose: Callable[[LoadedState[S]], E | Overtaken[E] | None],
        *,
        id: str,
        lost: Callable[[int, LoadedState[S]], None] = _nothing,
    ) -> Appended[S] | None:
        """Commit what `propose` makes of the newest state; None where it makes nothing, Overtaken where it has seen
        the next entry.

        `id` is the change's own: once it is in the history, by whomever, it is done.  `lost(times, head)` hears
        of lost races.  Raises what `propose` raises (and the fold, for a proposal that does not fit), Conflict
        after `retry.races` lost races, OutcomeUnknown where it cannot be told what became of the change.
        """
        loaded = self._fresh() or self.load()
        for attempt in range(self.retry.races):
            done = loaded.recent.find(id)
            if done is not None:
                return Appended(done, loaded.state, attempt)
            version = loaded.version + 1
            try:
                proposed = propose(loaded)
                if isinstance(proposed, Overtaken):
                    loaded = self._step(loaded, proposed.entry)
                    continue
                entry, refusal = proposed, None
                # what does not fit must never be written: nobody could fold past it
                after = None if entry is None else self._folded(loaded, entry)
            except (CheckpointGone, CheckpointDamaged):
                self._loaded = None
                loaded = self._follow(self._start(), window=LARGEST_WINDOW)
                continue
            except LakeError as error:
                entry, refusal, after = None, error, None
            if entry is None or after is None:  # to do nothing, or to refuse, must rest on the newest state
                newest = self._follow(loaded, window=1)
                if newest.version > loaded.version:
                    loaded = newest
                    continue
                if refusal is not None:
                    raise refusal
                return None
            outcome = put_entry(self, version, entry)
            if outcome is PutOutcome.OTHERS:
                lost(attempt + 1, loaded)
                self.retry.pause(attempt)
                loaded = self._follow(loaded, window=2)
                continue
            try:
                if outcome is PutOutcome.OURS and not self._until_answered(partial(self.is_purged, version)):
                    self._remember(after)
                    if version % HINT_EVERY == 0:
                        hints.write_head_hint(self.store, self.name, version)
                    return Appended(version, after.state, attempt + 1)
                loaded = self._until_answered(lambda: self._follow(self._start(), window=LARGEST_WINDOW))
            except Unavailable as error:
                raise OutcomeUnknown(
                    f"{error}; the entry {id} was written, but its outcome is unknown",
                    entry_id=id,
                    version=version,
                ) from error
            if loaded.recent.find(id) is None and not loaded.recent.reaches(version):
                raise OutcomeUnknown(
                    f"{naming.entry(self.name, version)}: purged long ago; whether {id} was committed as "
                    f"{version} is unknown",
                    entry_id=id,
                    version=version,
                )
        done = loaded.recent.find(id)
        if done is not None:
            return Appended(done, loaded.state, self.retry.races)
        raise Conflict(f"{self.name}: lost {self.retry.races} races for the next entry; try again later")

    def _until_answered(self, ask: Callable[[], T]) -> T:
        """The answer to what must be known now; only a store that goes on refusing is Unavailable."""
        for attempt in range(self.retry.repeats - 1):
            try:
                return ask()
            except Unavailable:
                self.retry.pause(attempt)
        return ask()
