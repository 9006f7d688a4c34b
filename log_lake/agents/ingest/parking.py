"""Parked files: source files that cannot be loaded; the ingest agent skips them until they change.

One bad file must not block the good ones of its batch, or fail every later run.  So a file that is refused is
parked.  A small object below the pool, `<pool-id>/parked/<digest>.json`, is the note.  It names the file in the
form it had (size and etag), the reason of the refusal, and a digest of the settings about reading.  The agent
skips the file while form and settings are the same.  It tries again when the file changes, when such a setting
changes, or when a user releases the file (`lake parked POOL --release FILE`).

A note is not history (decision 48): one that is lost or damaged costs one more try of its file.
Callers: the ingest agent's tasks, `lake parked`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, without_secrets
from lake_core.naming import MAIN
from lake_core.records.decoding import decoded_json
from lake_core.store import Store
from log_lake.lake.pool import Pool
from log_lake.loading.source_files import SourceFile

log = logging.getLogger(__name__)

LONGEST_REASON = 4_000
"""The most characters of a reason that are stored."""

NOT_FOR_READING = (
    *("checkpoint.", "compact.", "history.", "intervals.", "token.", "tombstones."),
    *("age_off", "description", "ingest.batch_", "ingest.source", "keep.", "load.memory"),
)
"""Prefixes of settings that do not affect how a file is read.  A change of any other setting makes the agent try
parked files again."""


class Parked(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was refused, with the size and etag that it had then; `time` is when it was refused, in seconds
    since 1970."""

    file: str
    size: int
    etag: str
    branch: str
    why: str
    time: float
    settings: str

    def holds(self, file: SourceFile, settings: str) -> bool:
        """Whether the file and the settings are still those with which it was refused, so that the agent
        skips it."""
        return (self.file, self.size, self.etag, self.settings) == (file.uri, file.size, file.etag, settings)


def reading_digest(settings: Mapping[str, str]) -> str:
    """Returns a digest of the settings that decide how a file is read."""
    deciding = sorted((name, text) for name, text in settings.items() if not name.startswith(NOT_FOR_READING))
    return hashlib.sha256(msgspec.msgpack.encode(deciding)).hexdigest()[:32]


def park(pool: Pool, file: SourceFile, *, why: str, now: float, branch: str = MAIN) -> Parked:
    """Writes the note that the file was refused.  Raises Unavailable."""
    parked = Parked(
        file=file.uri,
        size=file.size,
        etag=file.etag,
        branch=branch,
        why=why[:LONGEST_REASON],
        time=now,
        settings=reading_digest(pool.config.settings),
    )
    pool.store.put(_name(pool, file.uri, branch), msgspec.json.encode(parked))
    log.warning("%s: parked %s: %s", pool.name, without_secrets(file.uri), without_secrets(why))
    return parked


def parked_files(pool: Pool, *, branch: str = MAIN) -> list[Parked]:
    """Returns the parked files of a branch, by name, with one listing and a read for each file.  Raises
    Unavailable."""
    notes = []
    for name, *_ in list(pool.store.list(naming.parked_folder(pool.config.id))):
        parked = _read(pool.store, name)
        if parked is not None and parked.branch == branch:
            notes.append(parked)
    return sorted(notes, key=lambda parked: parked.file)


def _read(store: Store, name: str) -> Parked | None:
    """Returns the note; None if it was released meanwhile, or cannot be read, which costs one more try of its
    file."""
    try:
        data = store.get(name)
        parked: Parked | None = None if data is None else decoded_json(data, Parked, name=name)
    except Corrupt as error:
        log.warning("the note is passed over: %s", error)
        return None
    return parked


def still_parked(parked: Iterable[Parked], files: Iterable[SourceFile], settings: str) -> list[Parked]:
    """Returns the parked files that still exist and would be read in the same way; pure."""
    there = {file.uri: file for file in files}
    return [one for one in parked if one.file in there and one.holds(there[one.file], settings)]


def release(pool: Pool, parked: Iterable[Parked]) -> None:
    """Deletes the notes, so that the agent tries these files again.  Raises Unavailable."""
    for one in parked:
        pool.store.delete(_name(pool, one.file, one.branch))
        log.info("%s: released %s", pool.name, without_secrets(one.file))


def _name(pool: Pool, file: str, branch: str) -> str:
    digest = hashlib.sha256(msgspec.msgpack.encode((branch, file))).hexdigest()[:32]
    return naming.parked(pool.config.id, digest)
