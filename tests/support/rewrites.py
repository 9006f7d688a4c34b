"""By hand: a compaction of all records of a pool into one object, and the removal of all."""

from __future__ import annotations

from lake_core.history import Draft
from lake_core.records import RemoveReference
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block


def rewrite(pool: Pool) -> None:
    """One transaction that removes all references and adds one."""
    view, branch = pool.at(), pool.branch()
    job = branch.begin_load()
    assert isinstance(job, PendingLoad)
    builder = branch.builder(job)
    builder.add(Block(view.to_table()))
    written = builder.finish()
    removed = [RemoveReference(r.object, r.low) for r in view.references]
    actions = (*removed, *(w.action for w in written))
    schemas = tuple(w.schema for w in written)
    pool.history.commit(Draft(pool.context.ids.new(), "main", view.version, "test", actions, schemas))


def remove(pool: Pool) -> None:
    """One transaction that removes all references, as if their records had expired."""
    view = pool.at()
    removed = tuple(RemoveReference(r.object, r.low) for r in view.references)
    pool.history.commit(Draft(pool.context.ids.new(), "main", view.version, "test", removed))
