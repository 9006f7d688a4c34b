"""Finds the table that is published at a place: the metadata with the greatest number.

The hint names a number that exists.  A publisher that was killed before it wrote the hint may have left a
greater number, which then counts.  If the hint is missing, a listing finds the number.  Reading needs no
package of Iceberg.

Other programs open what the metadata names, and pyiceberg takes its properties for settings of the client.  The
writers of a pool can forge the metadata.  So metadata is Corrupt if it names another place than its own, or has
a property that the lake does not write (decision 422).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from lake_core.errors import Corrupt, PublishedElsewhere
from lake_core.records.decoders import JSON
from lake_core.records.decoding import decoding
from log_lake.publish.place import Place
from log_lake.publish.settings import STRICT

VERSION, TRANSACTION, TIME = "lake.version", "lake.transaction", "lake.time"
POOL, BRANCH, TAG = "lake.pool", "lake.branch", "lake.tag"
"""Properties of a published snapshot: which revision it shows, and the tag that keeps it."""

FILES, RECORDS = "total-data-files", "total-records"
DELETE_FILES, DELETED_RECORDS = "total-delete-files", "total-position-deletes"
"""Totals of a snapshot, as Iceberg names them."""

DAMAGED, ADVICE = "damaged, or of a table that the lake did not publish", "publish to another folder"
"""The fault of a table that cannot be read, and what the user can do."""

MAX_NUMBER = 10**9
"""The greatest number of metadata that a publication may follow.  No table is published so often.  Without this
limit, a forged hint could make every later name longer."""

WITHOUT = "lake.without"
"""A property of the table: the fields that it does not have, by stored names, as JSON."""

NAME_MAPPING = "schema.name-mapping.default"

TYPES = "lake.types"
"""A property of a table whose fields are converted: the setting `publish.types`; absent if none is."""

FILTERS = "lake.filters"
"""A property of a table of a pool with filters: the filters, as a text (`reading.filters.shown_filters`)."""

FIELDS = "lake.fields"
"""A property of a table of a pool whose fields were edited: a digest of their names (`fields.names.digest_of`)."""

READ_ONLY = {"gc.enabled": "false"}
"""The property that forbids programs of Iceberg to delete files of the table, because the objects are the
lake's."""


class _Snapshot(msgspec.Struct, frozen=True):
    id: int = msgspec.field(name="snapshot-id")
    manifest_list: str = msgspec.field(name="manifest-list")
    summary: dict[str, str]


class _Earlier(msgspec.Struct, frozen=True):
    file: str = msgspec.field(name="metadata-file")


class _Metadata(msgspec.Struct, frozen=True):
    location: str
    snapshots: list[_Snapshot]
    current: int = msgspec.field(name="current-snapshot-id")
    properties: dict[str, str]
    earlier: list[_Earlier] = msgspec.field(name="metadata-log", default_factory=list)
    statistics: list[msgspec.Raw] = []
    partition_statistics: list[msgspec.Raw] = msgspec.field(name="partition-statistics", default_factory=list)


@dataclass(frozen=True)
class Published:
    """A published table: the number of its metadata, and what that says; `text` is the metadata itself.

    `version` is that of the branch's newest transaction, `time` its time in seconds since 1970.
    `records` are those that it shows; `hidden` are in its objects too, and its delete files hide them.
    """

    number: int
    version: int
    transaction_id: str
    time: float
    pool: str
    branch: str
    tag: str
    objects: int
    delete_files: int
    records: int
    hidden: int
    without: tuple[str, ...]
    types: str
    filters: str
    fields: str
    location: str
    text: bytes = field(repr=False)


def published_at(place: Place) -> Published | None:
    """Returns the table at the place; None if there is none.  Raises PublishedElsewhere, Corrupt,
    Unavailable."""
    number = hinted(place) or _listed(place)
    text = place.store.get(place.metadata(number)) if number else None
    if number and text is None:
        raise Corrupt(
            f"{place.location}: the hint names metadata {number}, which is not there; restore it, or delete "
            "metadata/version-hint.text and publish again"
        )
    while (later := place.store.get(place.metadata(number + 1))) is not None:  # bounded by what was published
        number, text = number + 1, later
    if number >= MAX_NUMBER:
        raise Corrupt(f"{place.location}: metadata {number} was published by no lake; delete it, or {ADVICE}")
    return None if text is None else described(place, number, text)


def hinted(place: Place) -> int:
    """Returns the number in the hint; 0 if there is no hint."""
    hint = (place.store.get(place.hint) or b"").strip()
    return int(hint) if hint.isdigit() and len(hint) <= 18 else 0


def _listed(place: Place) -> int:
    """Returns the greatest number of metadata that a listing shows; 0 if there is none."""
    names = (info.name.rpartition("/")[2] for info in place.store.list(place.name("metadata")))
    matches = (re.fullmatch(r"v([0-9]{1,18})\.metadata\.json", name) for name in names)
    return max((int(match[1]) for match in matches if match), default=0)


def described(place: Place, number: int, text: bytes) -> Published:
    """Returns what the metadata with this number says.  Raises PublishedElsewhere, Corrupt."""
    with decoding(f"{place.location}: metadata {number}", DAMAGED, advice=ADVICE):
        decoded = JSON.of(_Metadata).decode(text)
        (snapshot,) = (one for one in decoded.snapshots if one.id == decoded.current)
        if decoded.location != place.location:
            raise PublishedElsewhere(
                f"{place.location}: metadata {number} is of a table at {decoded.location[:200]!r}, where the lake "
                "was before; publish the pool again (lake publish POOL)",
                number=number,
                location=decoded.location,
                pool=snapshot.summary[POOL],
                branch=snapshot.summary[BRANCH],
            )
        _check_own(decoded, place)
        summary = snapshot.summary
        return Published(
            number,
            int(summary[VERSION]),
            summary[TRANSACTION],
            float(summary[TIME]),
            summary[POOL],
            summary[BRANCH],
            summary[TAG],
            objects=int(summary[FILES]),
            delete_files=int(summary[DELETE_FILES]),
            records=int(summary[RECORDS]) - int(summary[DELETED_RECORDS]),
            hidden=int(summary[DELETED_RECORDS]),
            without=tuple(JSON.of(list[str]).decode(decoded.properties[WITHOUT])),
            types=decoded.properties.get(TYPES, STRICT),
            filters=decoded.properties.get(FILTERS, ""),
            fields=decoded.properties.get(FIELDS, ""),
            location=place.location,
            text=text,
        )


def _check_own(metadata: _Metadata, place: Place) -> None:
    """Raises Corrupt if the metadata names a file of another place, or has a property that the lake does not
    write."""
    files = [*(one.manifest_list for one in metadata.snapshots), *(one.file for one in metadata.earlier)]
    check_files(files, place.location_of("metadata/"))
    if metadata.statistics or metadata.partition_statistics:
        raise Corrupt("it names files of statistics, which the lake does not publish")
    own = (NAME_MAPPING, WITHOUT, TYPES, FILTERS, FIELDS)
    others = {name: value for name, value in metadata.properties.items() if name not in own}
    if wrong := sorted(others.items() ^ READ_ONLY.items()):
        raise Corrupt(f"its property {wrong[0][0][:200]!r} is not as the lake sets it")


def check_files(files: Iterable[str], folder: str) -> None:
    """Raises Corrupt if one of the files is not in the folder, whose name ends with a slash."""
    for file in files:
        if not file.startswith(folder) or "/" in file[len(folder) :]:
            raise Corrupt(f"it names {file[:200]!r}, which is not in {folder}")
