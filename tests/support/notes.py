"""A journal of notes, whose state is the tuple of their texts; each text is a row of its checkpoints.

The text `misfit` cannot be folded into the state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import pyarrow as pa

from lake_core.checkpoints import CheckpointFile, SectionPart
from lake_core.checkpoints.layout import rows
from lake_core.errors import Corrupt
from lake_core.journal import JOURNAL_LIMITS, Appended, Journal, JournalLimits
from lake_core.records.codec import Codec
from lake_core.store import Store
from tests.support.histories import retry

State = tuple[str, ...]


class Note(msgspec.Struct, frozen=True):
    id: str
    text: str
    previous: int = 0


CODEC = Codec(Note)


class NotesFormat:
    """Texts as rows of a checkpoint."""

    token_keep = math.inf

    def parts(self, state: State, *, now: float, forget: int) -> Iterator[SectionPart]:
        keys = [f"{i:09d}".encode() for i in range(len(state))]
        yield SectionPart(
            "note", "", "", [rows(key=keys, value=[t.encode() for t in state])] if state else []
        )

    def restore(self, file: CheckpointFile) -> State:
        return tuple(v.decode() for table in file.scan("note") for v in table["value"].to_pylist())

    def check(self, table: pa.Table, section: str, version: int) -> None:
        return None

    def verify(self, state: State) -> None:
        return None


FORMAT = NotesFormat()


def fold(state: State, n: int, note: Note) -> State:
    assert n == len(state) + 1, "entries are folded in order, each once"
    if note.text == "misfit":
        raise Corrupt("a misfit")
    return (*state, note.text)


def journal(
    store: Store,
    *,
    races: int = 50,
    repeats: int = 4,
    format: NotesFormat | None = FORMAT,
    limits: JournalLimits = JOURNAL_LIMITS,
) -> Journal[Note, State]:
    """Returns the journal `j` for a process that has read nothing yet."""
    return Journal(
        store, "j", CODEC, (), fold, retry(races=races, repeats=repeats), format=format, limits=limits
    )


def write(to: Journal[Note, State], text: str, id: str = "") -> Appended[State]:
    """Appends a note."""
    note = Note(id or f"id of {text}", text)
    appended = to.append(lambda head: note, id=note.id)
    assert appended is not None
    return appended


def texts(store: Store) -> State:
    """Returns the texts that a process finds that has read nothing yet."""
    return journal(store).load().state
