"""A copy of a pool in another lake, with copies of its objects.

Clones share objects within one lake: there the source knows what they need.  Another lake has its own list of
pools, its own rights and its own agents, so it gets objects of its own (decision 453).  The copy begins like a
clone, with a checkpoint at the version of the source: sequences, deletes, tokens and source files keep their
meaning.

The copy is listed last; until then no program sees it.  Called by `Lake.clone`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lake_core import naming
from lake_core.errors import AlreadyExists, InvalidInput
from lake_core.ids import without_home
from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.lake.clones import Hold, begin_journal, check_cloned, check_settled, settings_of_copy
from log_lake.lake.pool import Pool
from log_lake.lake.transactions import HasPools
from log_lake.objects.failures import missing

log = logging.getLogger(__name__)

_AT_ONCE = 8
"""Objects that are copied side by side."""

COPIED_AT_ONCE = 8 << 20
"""How many bytes of an object a copy holds in memory at a time."""


def copy_pool(source: Pool, new: str, *, at: str, target: HasPools) -> Pool:
    """Makes a pool in the lake `target` with copies of the objects of a revision. A lease keeps the objects
    meanwhile.

    If it fails after objects were written, their folder stays in the other lake; `lake fsck` names it. Raises
    AlreadyExists, NotFound, InvalidInput, ObjectVacuumed, ObjectMissing, OutcomeUnknown, Unavailable.
    """
    check_cloned(source)
    old, context = source.config, target.context
    if context.format_version < source.context.format_version:
        raise InvalidInput(
            f"the lake {context.store.uri} has format version {context.format_version}: run lake upgrade there"
        )
    if new in target.catalog.load().state.names:
        raise AlreadyExists(f"pool {new!r} exists already in {context.store.uri}; use another name")
    id, settings = context.ids.new(), settings_of_copy(old)
    config = PoolConfig(id, new, old.key, old.kind, settings, dict(old.aggregates))
    target.catalog.check_new(config)
    with source.leased(at, why=f"copy to {context.store.uri}") as view:
        if not view.version:
            raise InvalidInput(f"pool {source.name!r} has no transaction yet, so there is nothing to copy")
        stored = source.history.load_version(view.version)
        check_settled(source, view.state, stored.state, view.branch)
        kept = Hold("", stored, view.branch)
        names = sorted(set(_objects(kept)))
        copy = partial(_copy, source.store, old.id, context.store, id)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            size = sum(threads.map(copy, names))
        view.check_whole()
    begin_journal(source.history, context, config, kept)
    target.catalog.create(config)
    log.info("%s: a copy of %s with %s of %d bytes", new, old.name, counted(len(names), "object"), size)
    return target.pool(new)


def _objects(kept: Hold) -> Iterator[str]:
    """Yields the objects on the store to which the branch refers, perhaps more than once."""
    return (reference.object for reference in kept.state.snapshot.all() if not reference.data)


def _copy(source: Store, source_id: str, target: Store, target_id: str, object_id: str) -> int:
    """Copies one object; returns its bytes.  Raises ObjectMissing, Unavailable."""
    name = naming.data_object(source_id, object_id)
    return copy_object(source, name, target, naming.data_object(target_id, without_home(object_id)))


def copy_object(source: Store, name: str, target: Store, target_name: str) -> int:
    """Copies an object, which appears whole or not at all; returns its bytes.

    Raises ObjectMissing, Unavailable.
    """
    try:
        file = source.open_input(name)
    except FileNotFoundError as error:
        raise missing(source.uri, name) from error
    size = 0
    with file, target.open_output(target_name) as out:
        while block := file.read(COPIED_AT_ONCE):
            size += out.write(block)
    return size
