"""A file in the landing zone, as it was found."""

from __future__ import annotations

import msgspec

from lake_core.records.transactions import Source


class SourceFile(msgspec.Struct, frozen=True):
    """Known by name, size and etag; `modified` in seconds since 1970."""

    uri: str
    size: int
    etag: str
    modified: float

    @property
    def source(self) -> Source:
        """As a transaction records it."""
        return Source(self.uri, self.size, self.etag)
