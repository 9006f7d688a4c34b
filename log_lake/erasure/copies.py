"""Copies of objects beside published tables (`publish.types=text`), which readers of Iceberg read.

A copy has the records that its object had when it was published.  If the erasure has searched that object and
found no matching record, the copy has none.  Otherwise the copy may have some.  It is deleted after the pool
was published again and `vacuum.grace` is over.  A table outside the pool's folder is not looked at
(docs/erasure.md).

Called by the run of an erasure, before it says that it is done, and by the check of its receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lake_core import naming
from lake_core.ids import without_home
from lake_core.store import ObjectInfo
from log_lake.erasure.holders import copy_words
from log_lake.erasure.receipt import Held, Receipt
from log_lake.lake.cloned_state import objects_elsewhere
from log_lake.lake.pool import Pool
from log_lake.objects.copied import copied_id, tables_folder


def copies_of(pool: Pool) -> Iterator[tuple[str, str]]:
    """Lists the copies beside the pool: yields the id of each copied object, and the copy's name on the store.

    Sends one listing.
    """
    for info in pool.store.list(tables_folder(pool.config.id)):
        if (id := copied_id(info.name)) is not None:
            yield id, info.name


def held_copies(
    pool: Pool, receipt: Receipt, on_store: Callable[[], Iterable[ObjectInfo]]
) -> tuple[Held, ...]:
    """Returns the copies that may have matching records.  The object of such a copy is gone, so it cannot be
    searched any more, or the receipt names the object as erased.

    `on_store` lists the pool's objects; it is called only if there are copies.
    """
    copies = list(copies_of(pool))
    if not copies:
        return ()
    searched = {naming.data_id(info.name) for info in on_store()}
    searched |= {without_home(id) for id in objects_elsewhere(pool.history.load_open().state)}
    searched -= {one.object for one in receipt.erased}
    return tuple(Held(id, copy_words(name)) for id, name in copies if id not in searched)
