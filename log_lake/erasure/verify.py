"""Checks a receipt against the store, at any time after the erasure; changes nothing.

Objects that the receipt names as erased must be gone.  Then every object of the pool that is on the store is
searched, as the erasure itself does: by statistics first if a branch or a live tag refers to it, otherwise by
reading.  A record that was loaded again after the erasure is found too; the finding says in which object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lake_core.errors import ObjectMissing
from log_lake.erasure import receipt as receipts
from log_lake.erasure.copies import held_copies
from log_lake.erasure.holders import file_words
from log_lake.erasure.in_journal import inlined_objects
from log_lake.erasure.receipt import DONE, Receipt
from log_lake.erasure.search import Search, foreign, known_id
from log_lake.erasure.target import Target, target_of
from log_lake.lake.pool import Pool
from log_lake.objects.located import Located
from log_lake.presence.absence import planning_again
from log_lake.workers import Here


def verify(pool: Pool, receipt: Receipt) -> Iterator[str]:
    """Yields a line for each fact that contradicts the receipt.

    Writes a lease for a moment, to get the store's time.  Raises InvalidInput (the receipt of another pool),
    NotFound (the pool was dropped), Corrupt, Unavailable.
    """
    receipts.check_pool(receipt, pool)
    pool = replace(pool, sub_pool=receipt.sub_pool)
    if receipt.status != DONE:
        yield f"erasure {receipt.id} is pending; go on with: lake erase {pool.name} --resume {receipt.id}"
    for one in receipt.erased:
        if receipts.exists(pool.store, pool.config.id, one.object):
            yield f"object {one.object}, which holds such a record, is still on the store"
    for one in receipt.written:
        try:
            summed = receipts.summed(pool.store, pool.config.id, Located(one.object))
        except ObjectMissing:  # a compaction took it, and the vacuum
            continue
        if summed != one:
            yield f"object {one.object} has the SHA-256 {summed.sha256}, and was written with {one.sha256}"
    here = Here.of(pool.context)
    names = Search(pool, Target(pool.config), here).on_store()  # the state, read later, knows them all
    loaded = pool.history.load_open()
    state = loaded.state
    target = target_of(
        pool.config,
        state,
        sub_pool=receipt.sub_pool,
        key_range=receipt.key_range,
        where=receipt.where,
    )
    search = Search(pool, target, here)
    with planning_again(pool.history):
        by_branch = search.in_branches(state)
    for name, references in by_branch.items():
        for reference in references:
            yield f"object {reference.object} of branch {name} at version {loaded.version} holds such a record"
    now = pool.leases().now
    for name, reference in search.in_tags(state, names, now=now):
        yield f"object {reference.object} of tag {name} holds such a record"
    for id in search.removed(state, now=now):
        yield f"object {id}, which waits for the vacuum, holds such a record"
    for id in search.begun(state):
        yield (
            f"object {id}, of a vacuum that has begun and not ended, holds such a record; run: lake vacuum "
            f"{pool.config.name}"
        )
    for info in search.uncommitted(state, names):
        yield f"object {known_id(info)}, which was never committed, holds such a record"
    for inlined in search.inlined(inlined_objects(pool, target, until=loaded.version + 1)):
        yield f"object {inlined.located.object} in {inlined.place} holds such a record"
    for copy in held_copies(pool, receipt, lambda: names):
        yield f"{copy.by}, of object {copy.object}, may hold such a record"
    for name in foreign(names):
        yield f"{file_words(name)}, may hold such a record"
