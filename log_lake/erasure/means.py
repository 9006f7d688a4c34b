"""How an erasure searches, sums and rewrites objects, lists names and deletes: here one after another.

`spark_apps.erasure` gives other means, which do the same in Spark tasks.  What decides and what commits is the same
in both.  A means is given at most `CHUNK` objects at once, which bounds the memory of an erasure, and what a kill
repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from lake_core.errors import ObjectMissing
from lake_core.store import Store
from log_lake.erasure.holding import Answer, answer_of
from log_lake.erasure.receipt import ReceiptObject, summed
from log_lake.erasure.rewrite import PendingRewrite, write
from log_lake.erasure.target import Target
from log_lake.lake.pool import Pool
from log_lake.objects.write import WrittenObject
from log_lake.vacuum.execute import Deleter
from log_lake.vacuum.orphans import Lister, list_here

CHUNK = 4_096
"""Objects that one call searches or sums: enough to keep a cluster busy, and few enough to hold in memory."""

T = TypeVar("T")

Searcher = Callable[[Target, Sequence[str]], Sequence[Answer]]
"""Whether each of these objects holds such a record, in their order.  Raises Unavailable."""

Summer = Callable[[Sequence[str]], Sequence[ReceiptObject | None]]
"""Each of these objects with its checksum, in their order; None if it is not on the store.  Raises Unavailable."""

Rewriter = Callable[[Sequence[PendingRewrite]], Sequence[WrittenObject | None]]
"""What each rewrite wrote, in their order; None if no record is left.  Raises Corrupt, Unavailable."""


@dataclass(frozen=True)
class Means:
    """How an erasure works on the objects of a pool."""

    search: Searcher
    total: Summer
    rewrite: Rewriter
    delete: Deleter
    lister: Lister


def here(pool: Pool) -> Means:
    """In this process, one object after another."""
    store, new_id = pool.store, pool.context.ids.new

    def search(target: Target, object_ids: Sequence[str]) -> list[Answer]:
        return [answer_of(store, target, id) for id in object_ids]

    def total(object_ids: Sequence[str]) -> list[ReceiptObject | None]:
        return [summed_if_there(store, pool.config.id, id) for id in object_ids]

    def rewrite(all_work: Sequence[PendingRewrite]) -> list[WrittenObject | None]:
        return [write(work, store, new_id=new_id) for work in all_work]

    return Means(search, total, rewrite, store.delete_all, list_here)


def summed_if_there(store: Store, pool_id: str, object_id: str) -> ReceiptObject | None:
    """The object with its checksum; None if it is not on the store.  Raises Unavailable."""
    try:
        return summed(store, pool_id, object_id)
    except ObjectMissing:  # another vacuum was faster
        return None


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
