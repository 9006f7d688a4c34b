"""Which clones still need objects of other pools, and what ends such a need.

A clone needs another pool as long as its branches, its tags, or its removed objects that are not vacuumed yet
refer to an object there. Once the need is over it does not return, because nothing refers again to an object
that a vacuum took. Then the agent retention deletes the clone's tag in its source. A dropped pool is kept as
long as a clone needs it.

A clone that is not listed is being made, or its maker died. If its tag is older than the grace time, an agent
ends the clone: it makes the clone's first entry, as one that closes it. Then its maker, if it still lives,
cannot make that entry (`clones`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice

import msgspec

from lake_core import naming
from lake_core.catalog.state import PoolsState
from lake_core.context import Context
from lake_core.errors import Corrupt, Denied, NotFound, Unavailable
from lake_core.history import PoolState
from lake_core.history.state import Tag
from lake_core.journal.link import encode_linked
from lake_core.naming import MAIN
from lake_core.records import Close, Entry, Transaction
from lake_core.records.codec import Codec
from lake_core.records.pools import CloneOrigin, PoolConfig
from lake_core.store.probe import is_there
from log_lake.lake.cloned_state import homes_needed
from log_lake.lake.clones import Hold, release
from log_lake.lake.given_up import give_up, read_given_up
from log_lake.lake.histories import listed_or_dropped
from log_lake.lake.pool import Pool
from log_lake.lake.transactions import HasPools

log = logging.getLogger(__name__)

TRIES = 3
"""How often making the entry that closes a clone is tried, if the answer is lost."""


def clone_tags(state: PoolState) -> dict[str, Tag]:
    """Returns the tags by which a pool keeps objects for clones, by the ids of the clones."""
    return {id: tag for name, tag in sorted(state.tags.items()) if (id := naming.clone_of(name))}


def needs(lake: HasPools, config: PoolConfig) -> frozenset[str]:
    """Returns the ids of the pools that a clone needs: those whose objects it may read; if there are any, also its
    source.

    If the clone cannot be read, or this process may not read it, returns all pools that it could need.  Raises
    Unavailable.
    """
    if config.clone is None:
        return frozenset()
    history = lake.unlisted(config).history
    try:
        state = history.load().state
        time = min(state.time, history.now())  # a clock that is ahead ends no tag
        live = (tag for tag in state.tags.values() if tag.is_live(time))
        states = [state, *(history.load_version(tag.version).state for tag in live)]
    except (Corrupt, Denied, NotFound) as error:
        log.warning("%s: what this clone needs is unknown: %s", config.name, error)
        return config.homes | {config.clone.source}
    homes = frozenset[str]().union(*map(homes_needed, states))
    return homes | {config.clone.source} if homes else homes


def clones_of(listed: PoolsState, pool_id: str) -> list[PoolConfig]:
    """Returns the clones that may need the pool: listed ones, and dropped ones that may be restored."""
    dropped = (one.pool for one in listed.dropped.values() if not one.is_deleted)
    configs = [*listed.pools.values(), *dropped]
    return [one for one in configs if one.clone and pool_id in one.homes | {one.clone.source}]


def holding(lake: HasPools, listed: PoolsState, pool_id: str) -> list[PoolConfig]:
    """Returns those clones that need the pool now. Raises Unavailable."""
    return [config for config in clones_of(listed, pool_id) if pool_id in needs(lake, config)]


def unlisted_clones(
    context: Context, listed: PoolsState, state: PoolState, *, before: float
) -> tuple[list[str], list[str]]:
    """Returns the ids of a pool's clones that are not in the list of pools, in two lists.  The second list has the
    clones whose tag was set before `before`, the first list the younger ones.

    Clones that were ended already, and those that are being deleted, are left out.
    """
    young: list[str] = []
    old: list[str] = []
    for id, tag in clone_tags(state).items():
        if id in listed.pools or id in listed.dropped or read_given_up(context.store, id) is not None:
            continue
        (old if tag.time / 1e6 < before else young).append(id)
    return young, old


def ended(lake: HasPools, pool: Pool, state: PoolState, *, grace: float) -> Iterator[str]:
    """Yields the ids of clones for which the pool no longer needs to keep anything.

    Clones that were never listed are among them if their tags are older than `grace` seconds. Raises
    Unavailable.
    """
    tags = clone_tags(state)
    if not tags:
        return
    listed, before = lake.catalog.load().state, pool.context.now() - grace
    for id, tag in tags.items():
        config = listed.pools.get(id)
        if config is None and id in listed.dropped and not listed.dropped[id].is_deleted:
            config = listed.dropped[id].pool
        if config is not None:
            if not needs(lake, config):
                yield id
        elif id in listed.dropped or tag.time / 1e6 < before or read_given_up(pool.store, id) is not None:
            yield id


def end_holds(lake: HasPools, pool: Pool, *, grace: float) -> list[str]:
    """Deletes the tags of the clones that `ended` yields; a clone that was never listed is ended first. Returns
    their ids.

    Raises Corrupt, OutcomeUnknown, Unavailable.
    """
    state = pool.history.load_open().state
    done = []
    for id in list(ended(lake, pool, state, grace=grace)):
        listed = lake.catalog.load().state
        is_known = id in listed.pools or id in listed.dropped or read_given_up(pool.store, id) is not None
        if is_known or end_unlisted(lake, pool, state, id):
            release(pool, id)
            forget_note(pool.context, id)
            done.append(id)
            log.info("%s: keeps nothing for the clone %s any more", pool.name, id)
    return done


def end_unlisted(lake: HasPools, pool: Pool, state: PoolState, clone_id: str) -> bool:
    """Ends a clone that was never listed, so that it can never be read.  Returns whether it did; False if the
    clone was listed meanwhile.

    Raises Corrupt, Unavailable.
    """
    tag, context = clone_tags(state)[clone_id], pool.context
    kept = Hold(pool.config.id, pool.history.load_version(tag.version), tag.branch)
    id, time = context.ids.new(), int(context.now() * 1_000_000)
    message = "a clone that was never listed"
    closing = Transaction(
        id, MAIN, kept.state.tip, tag.version, time, context.author, (Close(),), message=message
    )
    codec = Codec(Entry, version=context.format_version)
    name = naming.entry(naming.pool_journal(clone_id), tag.version + 1)
    data = encode_linked(codec, Entry(id, (closing,)), previous=0).data
    if not any(is_there(context.store, name, context.store.create(name, data)) for _ in range(TRIES)):
        raise Unavailable(f"{name}: the store does not show that it has this object; run it again")
    first = codec.decode(context.store.get(name) or b"", name=name)
    if not any(isinstance(action, Close) for one in first.transactions for action in one.actions):
        # its maker was faster, and has written the checkpoint before
        origin = CloneOrigin(pool.config.id, pool.name, tag.version, tag.branch, tuple(sorted(kept.homes)))
        lake.unlisted(msgspec.structs.replace(pool.config, id=clone_id, clone=origin)).close()
    give_up(context, clone_id, why=message)
    return clone_id not in lake.catalog.load().state.pools


def check_held(lake: HasPools, config: PoolConfig) -> None:
    """Raises NotFound for a clone whose source does not keep its objects any more, because such a clone cannot be
    restored."""
    if config.clone is None or not needs(lake, config):
        return
    source = listed_or_dropped(lake.catalog.load().state, config.clone.source)
    tag = naming.clone_tag(config.id)
    if source is None or tag not in lake.unlisted(source).history.load().state.tags:
        raise NotFound(
            f"pool {config.name!r}: its source {config.clone.name!r} does not keep its objects any more; drop it"
        )


def release_dropped(lake: HasPools, config: PoolConfig) -> None:
    """Deletes a dropped clone's tag in its source, after its own objects are deleted. Raises OutcomeUnknown,
    Unavailable.

    If the source is dropped too, its tag stays, and a note in the clone's folder says that the clone needs
    nothing.
    """
    if config.clone is None:
        return
    listed = lake.catalog.load().state
    source = listed.pools.get(config.clone.source)
    if source is None:
        if config.clone.source in listed.dropped:
            give_up(lake.context, config.id, why=f"{config.name}, a clone, is deleted")
        return
    try:
        release(lake.unlisted(source), config.id)
    except (Corrupt, Denied, NotFound) as error:
        log.warning("%s: its tag for the clone %s stays: %s", source.name, config.name, error)


def forget_note(context: Context, clone_id: str) -> None:
    """Deletes the note about a clone that no longer exists, if the clone's folder has nothing else."""
    left = [info.name for info in islice(context.store.list(clone_id), 2)]
    if left == [naming.given_up(clone_id)]:
        context.store.delete(left[0])
