"""Stores the files of a table, each once, then the metadata, then the hint; at last deletes leftovers.

All files that the metadata names are created before the metadata, under names that no other publisher uses.
Only one publisher can create the metadata of a number.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence

from lake_core.errors import Corrupt, InvalidInput, Unavailable
from lake_core.ids import ID_LENGTH
from lake_core.phrases import counted
from lake_core.store import Created, ObjectInfo
from lake_core.store.probe import is_there
from log_lake.publish.place import Place
from log_lake.publish.published import hinted, published_at

log = logging.getLogger(__name__)


def check_free(place: Place) -> None:
    """Raises InvalidInput if the folder has files of another program."""
    other = next((i.name for i in place.store.list(place.name("metadata")) if not is_ours(i.name)), None)
    if other is not None:
        raise InvalidInput(
            f"{place.location}: {other} is of another program; publish to a folder of the table's own"
        )


def read_file(place: Place, location: str) -> bytes:
    """Returns a file of the table.  Raises Corrupt if it is missing."""
    data = place.store.get(place.name_of(location))
    if data is None:
        raise Corrupt(f"{location}: this file of the table is missing; publish to another folder")
    return data


def create_file(place: Place, location: str, data: bytes) -> None:
    """Creates a file of the table under a name that no other publisher uses.  Raises Unavailable."""
    name = place.name_of(location)
    for _ in range(2):  # only a second attempt tells whether a create of unknown outcome acted
        if is_there(place.store, name, place.store.create(name, data)):
            return
    raise Unavailable(f"{location}: the store does not show that this file was written; publish again")


def commit_metadata(place: Place, number: int, text: bytes) -> bool:
    """Creates the metadata of this number; returns whether this publisher created it.  Raises Unavailable if that
    is unknown."""
    name = place.metadata(number)
    created = place.store.create(name, text)
    if created is Created.UNKNOWN:
        created = place.store.create(name, text)
    if not is_there(place.store, name, created):
        raise Unavailable(
            f"{place.location}: the store does not show that metadata {number} was written; publish again"
        )
    return created is Created.YES or place.store.get(name) == text


def point_hint(place: Place) -> None:
    """Sets the hint to the newest metadata, even if another publisher sets it at the same time.

    Each publisher looks for newer metadata after its write, so the last write of all names the newest metadata.
    """
    while (newest := published_at(place)) is not None and newest.number != hinted(place):
        place.store.put(place.hint, str(newest.number).encode(), durable=True)


def delete_leftovers(place: Place, *, number: int, locations: Collection[str], grace: float) -> None:
    """Deletes files that no table needs any more; `locations` are the files of the table `number`."""
    needed = {place.hint, place.metadata(number), *map(place.name_of, locations)}
    infos = [info for part in ("metadata", "deletes", "data") for info in place.store.list(place.name(part))]
    names = leftovers(infos, needed=needed, grace=grace)
    place.store.delete_all(names)
    if names:
        log.info("%s: deleted %s of older tables", place.location, counted(len(names), "file"))


_ID = f"[0-9A-Za-z]{{{ID_LENGTH}}}"
_OURS = re.compile(
    r"(?:.*/)?(?:metadata/(?:v[0-9]+\.metadata\.json|version-hint\.text"
    rf"|{_ID}-m[0-9]+\.avro|snap-[0-9]+-{_ID}\.avro)|(?:deletes|data)/{_ID}-[0-9a-f]+-{_ID}\.parquet)"
)


def is_ours(name: str) -> bool:
    """Whether a publication may have made this name."""
    return _OURS.fullmatch(name) is not None


def leftovers(infos: Sequence[ObjectInfo], *, needed: Collection[str], grace: float) -> list[str]:
    """Returns the names of the files that may be deleted.  `infos` are all files of the table; `grace` is in
    seconds. Pure.

    Earlier publications left these files, and no table needs them.  But a reader of an older table may still
    open them, and a running publisher has written files that no table names yet.  So a file stays for the
    pool's `vacuum.grace`.  Its age is the time between its own write and that of the newest file, by the
    store's clock. No two publications write files of the same name, so no publication needs files of another.
    Files with other names are not the lake's, and stay.
    """
    newest = max((info.modified for info in infos), default=0.0)
    return [
        info.name
        for info in infos
        if info.name not in needed and is_ours(info.name) and newest - info.modified > grace
    ]
