"""A part of one revision, as a native read names it to the data source: the option `part`.

A version alone does not name a revision: an entry of the journal may hold several branches.  Nor does the name
of a pool say which one it is: pools are renamed, dropped and created again while a frame is in use.  So a part
names the id of the pool, the version, the branch, and the time from which ages count.  It names key ranges to
read, and perhaps references: then only these are read, otherwise all references in the ranges.
`spark_apps.native` writes it, `reader` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.history.snapshot.snapshot import Identity
from lake_core.keys import KeyRange
from log_lake.lake.view import View


class Part(msgspec.Struct, frozen=True):
    """Key ranges of one revision, in key order.  `references`: read only these references; None: all.

    `now`, in seconds since 1970, is the time from which ages count.
    """

    pool: str
    version: int
    branch: str
    now: float
    key_ranges: tuple[KeyRange, ...]
    references: tuple[Identity, ...] | None = None

    @classmethod
    def of(
        cls, view: View, key_ranges: Iterable[KeyRange], references: Iterable[Reference] | None = None
    ) -> Part:
        """Returns these key ranges of the view's revision as a part; with `references`, only these references of
        it."""
        only = None if references is None else tuple((r.object, r.low) for r in references)
        return cls(view.config.id, view.version, view.branch, view.now, tuple(key_ranges), only)

    def pin(self, view: View) -> View:
        """Returns a view of exactly this part's revision: branch, version and time.  `view` is any view of the
        pool at the part's version."""
        return replace(view, branch=self.branch, now=self.now)

    def encode(self) -> str:
        """Returns this part as the text of the data source's option `part`."""
        return msgspec.json.encode(self).decode()


_DECODER = msgspec.json.Decoder(Part)


def decode(text: str) -> Part:
    """Returns the part that the option's text describes.  Raises InvalidInput."""
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"part={text[:60]}: not a part of a read ({error}); leave the option to pyspark_lake.read"
        ) from error
