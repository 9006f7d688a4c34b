"""Files of a table on its store: created once; the metadata, which one publisher creates; the hint; leftovers.

Files that the metadata names are created before it, under names that no other publisher uses.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from lake_core.errors import Corrupt, InvalidInput, Unavailable
from lake_core.phrases import counted
from lake_core.store import Created
from lake_core.store.probe import is_there
from log_lake.publish.leftovers import is_ours, leftovers
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
    """A file of the table.  Raises Corrupt if it is missing."""
    data = place.store.get(place.name_of(location))
    if data is None:
        raise Corrupt(f"{location}: this file of the table is missing; publish to another folder")
    return data


def create_file(place: Place, location: str, data: bytes) -> None:
    """Create a file of the table, whose name no other publisher uses.  Raises Unavailable."""
    name = place.name_of(location)
    for _ in range(2):  # only a second attempt tells whether a create of unknown outcome acted
        if is_there(place.store, name, place.store.create(name, data)):
            return
    raise Unavailable(f"{location}: the store does not show that this file was written; publish again")


def commit_metadata(place: Place, number: int, text: bytes) -> bool:
    """Whether this publisher created the metadata of the number.  Raises Unavailable if that is not known."""
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
    """Set the hint to the newest metadata, also if another publisher sets it at the same time.

    The publisher looks again after each write, so the last write of all names the newest metadata.
    """
    while (newest := published_at(place)) is not None and newest.number != hinted(place):
        place.store.put(place.hint, str(newest.number).encode(), durable=True)


def delete_leftovers(place: Place, *, number: int, locations: Collection[str], grace: float) -> None:
    """Delete what no table needs any more; `locations` are the files of the table `number`."""
    needed = {place.hint, place.metadata(number), *map(place.name_of, locations)}
    infos = [info for part in ("metadata", "deletes") for info in place.store.list(place.name(part))]
    names = leftovers(infos, needed=needed, grace=grace)
    place.store.delete_all(names)
    if names:
        log.info("%s: deleted %s of older tables", place.location, counted(len(names), "file"))
