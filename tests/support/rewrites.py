"""Rewrites records step by step: all of a pool into one object, or none of them."""

from __future__ import annotations

from collections.abc import Iterable

from lake_core.errors import Conflict
from lake_core.history import Committed, Draft
from lake_core.records import RemoveReference
from log_lake.lake.branch import Branch
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.objects.write import WrittenObject
from log_lake.rewriting.exchange import LostRace, commit
from log_lake.rewriting.rewriting import Rewriting


def committed(branch: Branch, work: Rewriting, written: Iterable[WrittenObject | None]) -> Committed:
    """Commits the work. No other writer may have been faster."""
    outcome = commit(branch, work, written, does="merges")
    assert isinstance(outcome, Committed)
    return outcome


def lost(branch: Branch, work: Rewriting, written: Iterable[WrittenObject | None]) -> Conflict:
    """Commits the work, which must lose its race. Returns the error."""
    outcome = commit(branch, work, written, does="merges")
    assert isinstance(outcome, LostRace)
    return outcome.error


def rewrite(pool: Pool) -> None:
    """Commits one transaction that removes all references and adds one."""
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
    """Commits one transaction that removes all references, as if their records had expired."""
    view = pool.at()
    removed = tuple(RemoveReference(r.object, r.low) for r in view.references)
    pool.history.commit(Draft(pool.context.ids.new(), "main", view.version, "test", removed))
