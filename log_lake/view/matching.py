"""Counts the records that an erasure would find, for the form that asks for an erasure."""

from __future__ import annotations

import msgspec

from lake_core.errors import InvalidInput
from lake_core.phrases import counted, human_size
from log_lake.agents.erasure.plan import named_records
from log_lake.erasure.begin import check
from log_lake.erasure.sighting import bound
from log_lake.lake import Lake
from log_lake.lake.counting import records_matching

MAX_READ = 1_000_000
"""The most records of objects that a count reads; this takes one of the view's threads some seconds."""


class Matching(msgspec.Struct, frozen=True):
    """The number of visible records that an erasure would remove, an upper bound unless `is_exact`; and how
    many objects and bytes it would search.

    Objects may hold more such records, which deletes hide or newer versions replace: an erasure removes these
    too.
    """

    records: int
    is_exact: bool
    objects: int
    size: int
    says: str


def matching(
    lake: Lake,
    name: str,
    *,
    where: str | None = None,
    key: str | None = None,
    low: str | None = None,
    high: str | None = None,
    max_read: int = MAX_READ,
) -> Matching:
    """Returns what an erasure with these parameters would find in the newest version of `main`, and search in all
    branches.

    An empty text counts as left out, as in a form.  Raises InvalidInput (no records are named, a bad condition
    or key), NotFound, ObjectMissing, Corrupt, Unavailable.
    """
    pool = lake.pool(name)
    named = named_records(
        where=where or None, key=key or None, low=low or None, high=high or None, pools=(name,)
    )
    if named is None:
        raise InvalidInput("name the records: a condition, a key, or a range of keys")
    view = pool.at_branch()
    span = named.span.read(view.key, view.key_classes)
    check(pool, key_range=span, where=named.where)
    live = records_matching(view, key_range=span, where=named.where, looked_at=max_read)
    searched = bound(pool, key_range=span, where=named.where)
    objects = f"{counted(searched.objects, 'object')} of {human_size(searched.size)}"
    return Matching(
        live.records,
        live.is_exact,
        searched.objects,
        searched.size,
        f"{live.text} {'record matches' if live.text == '1' else 'records match'} now; "
        f"an erasure searches {objects} in all branches",
    )
