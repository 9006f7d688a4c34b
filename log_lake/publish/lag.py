"""The lag of a published table behind its branch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from lake_core.naming import MAIN
from log_lake.fields.names import digest_of
from log_lake.lake.pool import Pool
from log_lake.publish.place import BESIDE, place_of
from log_lake.publish.published import Published, published_at

MAX_COUNTED = 1_000
"""The most transactions that are counted.  A greater lag is shown as "at least" this many, because each may cost a
request to the store."""


@dataclass(frozen=True)
class Lag:
    """A published table, and its lag behind the branch.

    `transactions`: how many transactions of the branch the table does not show, counted up to `MAX_COUNTED`.
    `seconds`: the time from the published transaction to the newest.  `edited`: whether fields were renamed,
    dropped or added since; such an edit is a transaction of no branch.
    """

    published: Published
    newest: int
    transactions: int
    seconds: float
    edited: bool

    @property
    def uncounted(self) -> bool:
        """Whether there may be more transactions than were counted."""
        return self.transactions >= MAX_COUNTED


def publication(pool: Pool, *, branch: str = MAIN, to: str = BESIDE) -> Lag | None:
    """Returns the published table of the branch at a place, and its lag; None if nothing is published there.

    Raises NotFound, InvalidInput, Corrupt, Unavailable.
    """
    published = published_at(place_of(pool, branch=branch, to=to))
    return None if published is None else lag_of(pool, published, branch=branch)


def lag_of(pool: Pool, published: Published, *, branch: str) -> Lag:
    """Returns the lag of the branch's published table."""
    view = pool.at(branch)
    newest, edited = view.held.tip, digest_of(view.state) != published.fields
    if newest <= published.version:
        return Lag(published, newest, 0, 0.0, edited)
    transactions, time = 0, published.time
    for version, transaction in islice(pool.log(branch=branch), MAX_COUNTED):
        if version <= published.version:
            break
        transactions, time = transactions + 1, max(time, transaction.time / 1e6)
    return Lag(published, newest, transactions, time - published.time, edited)
