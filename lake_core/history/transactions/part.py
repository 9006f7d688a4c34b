"""The pending part of a transaction over several pools, as the state of a pool holds it."""

from __future__ import annotations

import msgspec

from lake_core.ids import check_id
from lake_core.records.decoding import check_counts


class PendingPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """The promise to merge `branch`, up to its version `upto`, into `into`; `version` is the version of the
    pending entry.  `settle_id`, `token` and `author` will be those of the transaction that settles the part."""

    branch: str
    into: str
    upto: int
    version: int = msgspec.field(name="n")
    settle_id: str = msgspec.field(name="end")
    author: str
    token: str = ""

    def __post_init__(self) -> None:
        check_counts("pending part", upto=self.upto, version=self.version)
        check_id(self.settle_id, what="pending part: its end")
