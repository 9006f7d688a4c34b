"""The bodies of answers, with the names that Iceberg's specification of the REST catalog gives their fields; pure.

pyiceberg has such classes too.  Its module takes two seconds to import, and would read a table's metadata only to
write it again.  Here the metadata is passed on as it was published (decision 342).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Config(msgspec.Struct, frozen=True):
    """Settings of the client, and the routes that it may ask."""

    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: Sequence[str]


class ListedNamespaces(msgspec.Struct, frozen=True):
    """The body that lists namespaces, each by the names of its levels."""

    namespaces: Sequence[tuple[str, ...]]


class Namespace(msgspec.Struct, frozen=True):
    """The body that describes a namespace: its name and its properties."""

    namespace: tuple[str, ...]
    properties: dict[str, str]


class Identifier(msgspec.Struct, frozen=True):
    """A table's full name."""

    namespace: tuple[str, ...]
    name: str


class ListedTables(msgspec.Struct, frozen=True):
    """The body that lists the tables of a namespace."""

    identifiers: Sequence[Identifier]


class LoadedTable(msgspec.Struct, frozen=True):
    """The body that describes a table: where its metadata is, and the metadata itself."""

    metadata_location: str = msgspec.field(name="metadata-location")
    metadata: msgspec.Raw
    config: dict[str, str]


class ErrorModel(msgspec.Struct, frozen=True):
    """An error, as an answer describes it; the code is the status of the answer."""

    message: str
    type: str
    code: int


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of an answer that refuses."""

    error: ErrorModel


def encoded(body: msgspec.Struct) -> bytes:
    """Returns the body as JSON."""
    return msgspec.json.encode(body)
