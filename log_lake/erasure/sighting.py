"""The dry run of `lake erase` and of the erasure agent: the records that an erasure would find now.  Nothing
is changed."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from log_lake.erasure.begin import check
from log_lake.erasure.holders import LOAD, Holders, file_words, tagged_by_object
from log_lake.erasure.in_journal import inlined_objects
from log_lake.erasure.receipt import Held
from log_lake.erasure.search import Search, foreign, known_id
from log_lake.erasure.target import Target
from log_lake.lake.branches import planned
from log_lake.lake.pool import Pool
from log_lake.presence.absence import planning_again
from log_lake.vacuum.orphans import oldest_of_writers
from log_lake.workers import Here, Workers


@dataclass(frozen=True)
class Sighting:
    """What holds matching records now: objects of branches (of `size` bytes), removed objects, orphans, and tags.

    `removed` also counts inlined objects that a compaction removed, but whose bytes the journal still has.

    `held` pairs each object that an erasure may not delete now with its holders.  The object is "" if its
    holder is a writer that may still write one.
    """

    referred: tuple[str, ...]
    size: int
    removed: tuple[str, ...]
    uncommitted: tuple[str, ...]
    tags: tuple[str, ...]
    held: tuple[Held, ...] = ()


@dataclass(frozen=True)
class Bound:
    """The objects of branches that may hold matching records, by statistics: their number, records and bytes."""

    objects: int
    records: int
    size: int


def bound(pool: Pool, *, key_range: KeyRange = EVERYTHING, where: str | None = None) -> Bound:
    """Returns how many objects of branches an erasure would search; reads no object.

    Raises InvalidInput, NotFound, Corrupt, Unavailable.
    """
    target = check(pool, key_range=key_range, where=where)
    state = pool.history.load_open().state
    objects = {r.object: r for name in state.branches for r in target.references(state, name)}
    return Bound(
        len(objects), sum(r.records for r in objects.values()), sum(r.size for r in objects.values())
    )


def look(
    pool: Pool,
    *,
    key_range: KeyRange = EVERYTHING,
    where: str | None = None,
    grace: float | None = None,
    workers: Workers | None = None,
) -> Sighting:
    """Returns what an erasure would find.  `grace`: as in `run.erase`.

    Writes a lease for a moment, to get the store's time.  Raises InvalidInput, NotFound, Corrupt, Unavailable.
    """
    target = check(pool, key_range=key_range, where=where)
    return planned(lambda: _look(pool, target, workers or Here.of(pool.context), grace=grace))


def _look(pool: Pool, target: Target, workers: Workers, *, grace: float | None) -> Sighting:
    search = Search(pool, target, workers)
    names = search.on_store()
    loaded, leases = pool.history.load_open(), pool.leases()
    state = loaded.state
    with planning_again(pool.history):
        holding = search.in_branches(state)
    referred = {r.object: r.size for references in holding.values() for r in references}
    inlined = search.inlined(inlined_objects(pool, target, until=loaded.version + 1))
    in_journal = {one.located.object for one in inlined}  # of branches, or taken by a compaction since
    removed = sorted(
        {*search.removed(state, now=leases.now), *search.begun(state), *in_journal} - referred.keys()
    )
    uncommitted = search.uncommitted(state, names)
    pairs = list(search.in_tags(state, names, now=leases.now))
    before = leases.now - (pool.settings["vacuum.grace"] if grace is None else grace)
    first = oldest_of_writers(leases)
    young = {known_id(i): LOAD for i in uncommitted if i.modified > before or known_id(i) >= first}
    holders = Holders(state, leases, tagged_by_object(state, pairs), young)
    all_held = [Held(id, by) for id in sorted(referred) for by in holders.of_referred(id)]
    rest = sorted({*removed, *young, *holders.tagged} - referred.keys())
    all_held += [Held(id, by) for id in rest for by in holders.of(id)]
    if referred:
        all_held += [Held("", by) for by in holders.writers_before(loaded.version + 1)]
    all_held += [Held(name, file_words(name)) for name in foreign(names)]
    return Sighting(
        tuple(sorted(referred)),
        sum(referred.values()),
        tuple(removed),
        tuple(map(known_id, uncommitted)),
        tuple(sorted({name for name, _ in pairs})),
        tuple(all_held),
    )
