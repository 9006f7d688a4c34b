"""Actions of transactions over several pools (format version 3; docs/transactions.md).

A transaction writes on a branch of its own in each pool.  At its commit each pool gets an entry with `prepare`:
a promise to merge that branch, called the *pending part*.  Then the decision is made, for all pools at once,
outside of their journals.  An entry with `settle` copies the decision into a journal: a committed part is
merged in the same transaction, an aborted one is forgotten.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt
from lake_core.ids import check_id
from lake_core.records.decoding import check_counts


class Prepare(msgspec.Struct, frozen=True, tag="prepare", omit_defaults=True):
    """Promises that the transaction `over` will merge `branch` into `into`, up to its version `upto`, if it is
    committed.

    `settle_id` is the id of the transaction that settles the part, the same in every process.  `token` will be
    its token.  A draft leaves out `upto`, which means the newest version.
    """

    over: str
    branch: str
    into: str
    settle_id: str
    upto: int = 0
    token: str = ""

    def __post_init__(self) -> None:
        check_id(self.over, what="prepare: the transaction")
        check_id(self.settle_id, what="prepare: its end")
        check_counts("prepare", upto=self.upto)
        if not self.branch or not self.into:
            raise Corrupt("prepare: needs a branch, and one to merge it into")


class Settle(msgspec.Struct, frozen=True, tag="settle", omit_defaults=True):
    """Ends the pending part of the transaction `over`.  If `over` is committed, this transaction merges the
    part.  `prepared` are the versions of its pending entries, by the ids of the pools."""

    over: str
    committed: bool = False
    prepared: dict[str, int] = {}

    def __post_init__(self) -> None:
        check_id(self.over, what="settle: the transaction")
        for pool_id, version in self.prepared.items():
            check_id(pool_id, what="settle: the pool")
            check_counts("settle", version=version)
