"""Where a published table is, and how readers name it.

A table is a folder: beside the pool's objects, or at a URI that the user named.  Its metadata is in `metadata`,
numbered from 1 as in Hadoop's tables (`v7.metadata.json`, `version-hint.text`), so readers can open the folder
without a catalog. Readers know a bucket as `s3://` or `gs://`, and a local folder only by its path: unlike a
`file:` URI, a path has no characters with a special meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.store import Store, address_of
from log_lake.lake.pool import Pool
from log_lake.stores import open_store
from log_lake.stores.guard import guarded

ICEBERG = "iceberg"
BESIDE = "beside"
"""The word for the place beside the pool's objects: a value of the setting, and the default."""

_READERS = {"s3a": "s3", "gcs": "gs"}


@dataclass(frozen=True)
class Place:
    """A folder of a store; `folder` is "" for its root."""

    store: Store
    folder: str

    @property
    def location(self) -> str:
        """The folder, as readers name it."""
        return location_of(self.store, self.folder)

    def name(self, file: str) -> str:
        """Returns the name on the store of a file of the table."""
        return f"{self.folder}/{file}" if self.folder else file

    def location_of(self, file: str) -> str:
        """Returns the location of a file of the table, as readers name it."""
        return f"{self.location}/{file}"

    def name_of(self, location: str) -> str:
        """Returns the name on the store, from the location of a file of the table."""
        return self.name(location.removeprefix(f"{self.location}/"))

    def metadata(self, number: int) -> str:
        """Returns the name of the metadata of this number."""
        return self.name(f"metadata/v{number}.metadata.json")

    @property
    def hint(self) -> str:
        """The name of the hint: the number of the newest metadata."""
        return self.name("metadata/version-hint.text")


def place_of(pool: Pool, *, branch: str, to: str = BESIDE) -> Place:
    """Returns the place of a branch's table; `to` is a URI or `beside`.

    If the URI is of the same kind of store as the lake, it is opened with the lake's options.  Raises
    InvalidInput for a URI that names no store.
    """
    if to == BESIDE:
        return Place(pool.store, naming.published(pool.config.id, ICEBERG, branch))
    same = _kind(to) == _kind(pool.store.uri)
    return Place(guarded(open_store(to, address_of(pool.store).options if same else None)), "")


def _kind(uri: str) -> str:
    scheme, sign, _ = uri.partition("://")
    return _READERS.get(scheme, scheme) if sign else "file"


def location_of(store: Store, name: str) -> str:
    """Returns the location of an object or folder of a store, as readers name it.  Raises InvalidInput if they
    cannot reach it."""
    scheme, sign, rest = store.uri.partition("://")
    if sign and scheme == "memory":
        raise InvalidInput(
            f"{store.uri}: no other program reads the memory of this one; publish a lake in a folder or a bucket"
        )
    root = f"{_READERS.get(scheme, scheme)}{sign}{rest}"
    return f"{root}/{name}" if name else root
