"""Checks that a clone may have an object of another folder: the clone must have begun with it.

A writer of the clone may name any object of its source in a reference, also one that this writer may not read.
A reader reads it with the reader's own rights, so nothing is given away. But an agent that rewrites it would
put its records into the folder of the clone, where that writer can read them. So work that writes what it reads
asks here first (decision 452). The answer is in the source, where the clone's writer cannot change it: the tag
of the clone names the state that the clone began with.
"""

from __future__ import annotations

from collections.abc import Iterable

from lake_core import naming
from lake_core.catalog import Catalog
from lake_core.context import Context
from lake_core.errors import Corrupt, PlanAgain
from lake_core.history.vacuuming import objects_of
from lake_core.ids import home_of, without_home
from lake_core.records.pools import PoolConfig
from log_lake.lake.histories import history_of, listed_or_dropped
from log_lake.settings.settings import check_pool


def check_begun_with(context: Context, config: PoolConfig, objects: Iterable[str]) -> None:
    """Raises Corrupt if an object lies in another folder, and the pool is not a clone that began with this object.

    Raises PlanAgain if the source keeps nothing for the clone any more, because other work has rewritten the
    last of these objects.  Raises Unavailable.
    """
    elsewhere = sorted({id for id in objects if home_of(id)})
    if not elsewhere:
        return
    source = _source_of(context, config)
    if source is None:
        raise Corrupt(f"pool {config.name!r}: the source of this clone is gone, and with it {elsewhere[0]}")
    history = history_of(context, source)
    tag = history.load().state.tags.get(naming.clone_tag(config.id))
    if tag is None:
        raise PlanAgain(f"pool {config.name!r}: its source {source.name!r} keeps nothing for it; plan again")
    kept = history.load_version(tag.version).state.branches[tag.branch].snapshot
    names = {without_home(id) if home_of(id) == source.id else id: id for id in elsewhere}
    if foreign := sorted(names.keys() - set(objects_of(kept, names))):
        raise Corrupt(f"pool {config.name!r}: this clone did not begin with object {names[foreign[0]]}")


def _source_of(context: Context, config: PoolConfig) -> PoolConfig | None:
    """Returns the source of a clone, listed or dropped; None if it is gone."""
    if config.clone is None:
        return None
    return listed_or_dropped(Catalog(context, check=check_pool).load().state, config.clone.source)
