"""The maps of a state that read from its checkpoint: an item is read from the file only when it is needed.

Opening a pool does not read them.  A `LayeredMap` puts newer items above them (decision 11).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lake_core.checkpoints import CheckpointFile
from lake_core.history.layered_map import MapBelow
from lake_core.history.removal import Removal
from lake_core.history.state import Ingested, Remembered
from lake_core.records import Source
from lake_core.records.decoders import MSGPACK

TOKEN, SOURCE, REMOVED = "token", "source", "removed"
"""The sections of a checkpoint that hold tokens, source files, and the list of removed objects."""

_REMOVAL = ("seq", "applied", "size")


@dataclass(frozen=True)
class TokensBelow(MapBelow[str, Remembered]):
    """The tokens in a checkpoint, as a map that reads a token when it is looked up."""

    file: CheckpointFile

    def get(self, key: str) -> Remembered | None:
        return self.file.decoded(lambda: dict(_tokens(self.file.at_key(TOKEN, key.encode()))).get(key))

    def items(self) -> Iterator[tuple[str, Remembered]]:
        for table in self.file.scan(TOKEN, columns=("key", "value")):
            yield from self.file.rows_of(table, _tokens)


def _tokens(table: pa.Table) -> Iterator[tuple[str, Remembered]]:
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        yield key.decode(), MSGPACK.of(Remembered).decode(value)


@dataclass(frozen=True)
class SourcesBelow(MapBelow[tuple[str, str], Ingested]):
    """The source files in a checkpoint, as a map by branch and URI."""

    file: CheckpointFile

    def get(self, key: tuple[str, str]) -> Ingested | None:
        branch, uri = key

        def find() -> Ingested | None:
            return dict(_ingested(self.file.at_key(SOURCE, uri.encode(), branch=branch))).get(uri)

        return self.file.decoded(find)

    def between(self, first: str, end: str, *, branch: str) -> list[tuple[str, Ingested]]:
        """Returns the sources of a branch with URIs from `first` (inclusive) to `end` (exclusive); reads only the
        row groups that have them."""

        def find() -> list[tuple[str, Ingested]]:
            return list(_ingested(self.file.between(SOURCE, first.encode(), end.encode(), branch=branch)))

        return self.file.decoded(find)

    def items(self) -> Iterator[tuple[tuple[str, str], Ingested]]:
        for branch in sorted({branch for branch, _ in self.file.branches(SOURCE)}):
            for table in self.file.scan(SOURCE, branch=branch):
                for uri, ingested in self.file.rows_of(table, _ingested):
                    yield (branch, uri), ingested


def _ingested(table: pa.Table) -> Iterator[tuple[str, Ingested]]:
    """Yields the URI and the source file of each row."""
    columns = (table[name].to_pylist() for name in ("key", "value", "seq", "applied"))
    for uri, value, version, until in zip(*columns, strict=True):
        yield uri.decode(), Ingested(MSGPACK.of(Source).decode(value), version or 0, until)


@dataclass(frozen=True)
class RemovedBelow(MapBelow[str, Removal]):
    """The list of removed objects in a checkpoint, as a map by object."""

    file: CheckpointFile

    def get(self, key: str) -> Removal | None:
        return self.get_many([key]).get(key)

    def get_many(self, keys: Collection[str]) -> dict[str, Removal]:
        """Returns the removals of those objects that are on the list of removed objects."""
        sought = [key.encode() for key in keys]
        return self.file.decoded(lambda: dict(_removals(self.file.at_keys(REMOVED, sought))))

    def items(self) -> Iterator[tuple[str, Removal]]:
        for table in self.file.scan(REMOVED, columns=("key", *_REMOVAL)):
            yield from self.file.rows_of(table, _removals)


def _removals(table: pa.Table) -> Iterator[tuple[str, Removal]]:
    columns = (table[name].to_pylist() for name in ("key", *_REMOVAL))
    for key, *removal in zip(*columns, strict=True):
        yield key.decode(), Removal(*removal)
