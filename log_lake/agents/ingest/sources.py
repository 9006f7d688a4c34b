"""The source files of a pool: those that wait to be ingested, and those that are parked.

A look at a pool costs a listing of its `ingest.source`, one of its parked files, and a look at its journal.  If
an earlier look at the same files found nothing to do, only the first listing is needed (`quiet`).  The agent
ingests into pools whose setting `ingest.source` names a place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lake_core.naming import MAIN
from lake_core.store import Address, address_of
from log_lake.agents.finding import pools_with
from log_lake.agents.ingest import parking
from log_lake.agents.ingest.parking import Parked
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.loading.source_files import SourceFile
from log_lake.loading.sources import find_files
from log_lake.settings import Settings


@dataclass(frozen=True)
class SourceFiles:
    """The source files at a pool's `ingest.source`: those `waiting` to be ingested, and the `parked` ones.

    `changed` are waiting files that were ingested before with another size or etag; all their records will be
    loaded, in addition to the old ones.  `forgotten` are notes of files that are gone or have changed; a changed
    file waits again.
    """

    waiting: tuple[SourceFile, ...]
    changed: tuple[SourceFile, ...]
    parked: tuple[Parked, ...]
    forgotten: tuple[Parked, ...]


def files_there(settings: Settings, *, access: Address) -> list[SourceFile]:
    """Returns the files at a pool's `ingest.source`, without empty files; `access` is the address of the lake.

    Raises NotFound, InvalidInput, Unavailable.
    """
    files = find_files(
        [settings["ingest.source"]],
        include=settings["include"],
        exclude=settings["exclude"],
        may_be_empty=True,
        access=access,
    )
    return [file for file in files if file.size]


def digest_of(files: Sequence[SourceFile]) -> str:
    """Returns a digest of the names, sizes and etags of the files, which changes if one of the files does."""
    named = [(file.uri, file.size, file.etag) for file in files]
    return hashlib.sha256(msgspec.msgpack.encode(named)).hexdigest()[:32]


def look(pool: Pool, *, branch: str = MAIN) -> SourceFiles:
    """Lists the source files of a pool, and divides them as `sort_out` does.  Raises what `files_there` raises,
    and Corrupt."""
    return sort_out(pool, files_there(pool.settings, access=address_of(pool.store)), branch=branch)


def sort_out(pool: Pool, there: Sequence[SourceFile], *, branch: str = MAIN) -> SourceFiles:
    """Divides the files in `there` into those to ingest, because they are new or changed, and the parked
    ones."""
    state = pool.at(branch).state
    notes = parking.parked_files(pool, branch=branch)
    kept = parking.still_parked(notes, there, parking.reading_digest(pool.config.settings))
    names = {parked.file for parked in kept}
    before = {f.uri: state.ingested(branch, f.uri) for f in there if f.uri not in names}
    waiting = [f for f in there if f.uri in before and before[f.uri] != f.source]
    return SourceFiles(
        tuple(waiting),
        tuple(f for f in waiting if before[f.uri] is not None),
        tuple(kept),
        tuple(note for note in notes if note.file not in names),
    )


def pools_that_ingest(lake: Lake, only: Sequence[str] = ()) -> list[str]:
    """Returns the names of the pools with `ingest.source`; if `only` names pools, it returns only these.

    Raises NotFound, InvalidInput.
    """
    return pools_with(lake, "ingest.source", only, example="PLACE")
