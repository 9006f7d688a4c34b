"""The inlined objects that the stored parts of a pool's journal contain: its entries, checkpoints and requests.

The bytes of an inlined object are in the entry of its transaction.  They stay there after a compaction has
removed the object, until the entry is purged.  Every checkpoint that was written while a branch referred to the
object has them too, and so may the request of a writer that died.  An erasure must look at all of these parts,
because a person who can read the store could read what remains in them.  Called by `run` and by `verify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lake_core import naming
from lake_core.context import INLINES_SINCE
from lake_core.errors import CheckpointGone, Corrupt
from lake_core.history.group_commit.requests import MAX_WAIT_MICROSECONDS, DraftRequest
from lake_core.ids import id_time
from lake_core.journal import windows
from lake_core.journal.marks import Mark
from lake_core.keys import KeyRange
from lake_core.records import Action, AddObject, PutReference
from lake_core.records.codec import Codec
from lake_core.records.transactions import sequence
from log_lake.erasure.target import Target
from log_lake.lake.pool import Pool
from log_lake.objects.located import Located


@dataclass(frozen=True)
class Inlined:
    """An inlined object, and the name of the stored entry, checkpoint or request that has its bytes."""

    place: str
    located: Located


def inlined_objects(pool: Pool, target: Target, *, until: int) -> Iterator[Inlined]:
    """Yields inlined objects that may hold matching records, by range, statistics and age.

    Reads all entries up to version `until`, the checkpoints below it, and all requests.  Raises Corrupt if one
    of them is damaged, Unavailable.
    """
    if pool.context.format_version < INLINES_SINCE:
        return
    if pool.history.load().state.inlines:  # otherwise it never had one
        yield from _of_entries(pool, target, until=until)
        for mark in pool.history.journal.marks().checkpoints:
            if mark.version < until:
                yield from _of_checkpoint(pool, target, mark)
    for name, request in _requests(pool):
        yield from _of_actions(name, () if request is None else request.actions, target)


def withdraw_expired(pool: Pool) -> None:
    """Deletes requests that have expired.  No writer commits these any more, and they may hold matching records.

    A request that cannot be decoded has expired if the time in its id is old enough.  Raises Unavailable.
    """
    if pool.context.format_version < INLINES_SINCE:
        return
    now = pool.history.now()
    expired = [
        name
        for name, one in _requests(pool)
        if abs(now - (_posted(name) if one is None else one.time)) > MAX_WAIT_MICROSECONDS
    ]
    if expired:
        pool.store.delete_all(expired)


def _of_entries(pool: Pool, target: Target, *, until: int) -> Iterator[Inlined]:
    journal = pool.history.journal
    for version, stored in windows.stored(journal, until=until):
        if isinstance(stored, Corrupt):
            raise stored
        name = naming.entry(journal.name, version)
        for transaction in stored.entry.transactions:
            yield from _of_actions(name, transaction.actions, target, written=sequence(version))


def _of_actions(
    name: str, actions: Iterable[Action], target: Target, *, written: int = 0
) -> Iterator[Inlined]:
    """Yields the inlined objects in these actions that may hold matching records, by range and age.

    A load's records were written at the sequence `written` or later (0: not known).  The action of a branch, a
    merge or a revert may refer to an object that is older than its entry.
    """
    for action in actions:
        if not isinstance(action, AddObject | PutReference) or not action.data:
            continue
        if isinstance(action, AddObject):
            oldest = written
        else:
            oldest = action.seq if action.oldest is None else action.oldest
        if oldest > target.last:
            continue
        if action.sub_pool in target.sub_pools and target.range_in(action.sub_pool).overlaps(
            KeyRange(action.low, action.high)
        ):
            yield Inlined(name, Located.of(action))


def _of_checkpoint(pool: Pool, target: Target, mark: Mark) -> Iterator[Inlined]:
    try:
        state = pool.history.journal.restore(mark).state
        for branch in sorted(state.branches):
            for reference in target.references(state, branch):
                if reference.data and reference.first_seq <= target.last:
                    yield Inlined(mark.name, Located.of(reference))
    except CheckpointGone:  # a purge was faster
        return


def _posted(name: str) -> int:
    """Returns when a request was posted, by the time in its id, in microseconds since 1970; 0 if its name is not
    an id."""
    try:
        return int(id_time(naming.request_id(name)).timestamp() * 1_000_000)
    except ValueError:
        return 0


def _requests(pool: Pool) -> Iterator[tuple[str, DraftRequest | None]]:
    """Yields the requests; None for one that cannot be decoded, which every writer ignores (decision 28)."""
    store, codec = pool.store, Codec(DraftRequest)
    for info in list(store.list(naming.requests(pool.history.journal.name))):
        data = store.get(info.name) if naming.is_request(info.name) else None
        if data is not None:
            try:
                yield info.name, codec.decode(data, name=info.name)
            except Corrupt:
                yield info.name, None
