"""The description of one source file, as a listing gives it."""

from __future__ import annotations

import msgspec

from lake_core.errors import InvalidInput
from lake_core.records.transactions import Source


class SourceFile(msgspec.Struct, frozen=True):
    """A source file, identified by name, size (bytes) and etag; `modified` is in seconds since 1970."""

    uri: str
    size: int
    etag: str
    modified: float

    @property
    def source(self) -> Source:
        """The file as a transaction records it."""
        return Source(self.uri, self.size, self.etag)


def check_list(files: object) -> None:
    """Raises InvalidInput if `files` is one text instead of a list: each of its letters would count as a
    name."""
    if isinstance(files, str):
        raise InvalidInput(f"files={files!r}: give a list of names, as [{files!r}]")
