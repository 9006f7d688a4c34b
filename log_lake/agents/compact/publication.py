"""Publishes a pool after a compaction, if its setting `publish.iceberg` asks for it.

A published table needs objects that overlap little, and after a compaction they do.  If Iceberg cannot express
the pool, the run does not fail: the table keeps its version, and the report says why.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from lake_core.errors import InvalidInput, PublishedElsewhere
from lake_core.naming import MAIN
from log_lake.agents.compact.plan import jobs_of_inlined
from log_lake.agents.compact.policy import policy_of
from log_lake.lake.pool import Pool
from log_lake.publish.lag import publication
from log_lake.publish.place import BESIDE
from log_lake.publish.report import result_line
from log_lake.publish.run import PublishResult, publish_iceberg
from log_lake.rewriting.compaction import run_jobs
from log_lake.workers import Here

log = logging.getLogger(__name__)

TRIES = 3
"""How often inlined objects are written to files before a publication: meanwhile, loads may add more."""


def publication_due(pool: Pool, *, branch: str) -> str:
    """Returns why the pool must be published; "" if it has no place to publish to, or if its table shows the
    newest version.

    Raises Corrupt, Unavailable, and InvalidInput if publish.iceberg is not a valid location.
    """
    place = pool.settings["publish.iceberg"]
    if not place or branch != MAIN or not pool.at(branch).held.tip:
        return ""
    try:
        lag = publication(pool, branch=branch, to=place)
    except PublishedElsewhere:
        return "the published table is of another place, where the lake was before"
    if lag is None:
        return "not published yet"
    if lag.published.types != pool.settings["publish.types"]:
        return "publish.types was changed"
    if lag.edited:
        return "its fields were edited since"
    return "the published table is behind" if lag.transactions else ""


def publish(
    pool: Pool, *, branch: str, to: str = BESIDE, without: Sequence[str] | None = None
) -> PublishResult:
    """Publishes a branch or a tag as a table.  A table has only files, so the inlined objects of a branch are
    written to files first; those of a tag stay as they are.

    Raises what `publish_iceberg` raises.
    """
    is_branch = branch in pool.at_branch().state.branches
    for _ in range(TRIES if is_branch else 0):  # a load may bring an inlined object meanwhile
        write_out(pool, branch=branch)
        try:
            return publish_iceberg(pool, branch=branch, to=to, without=without)
        except InvalidInput:
            if not any(reference.data for reference in pool.at_branch(branch).references):
                raise
    return publish_iceberg(pool, branch=branch, to=to, without=without)


def write_out(pool: Pool, *, branch: str) -> None:
    """Writes the inlined objects of the pool's branch as objects on the store; sub-pools stay as they are.

    Raises NotFound, Corrupt, OutcomeUnknown, Unavailable.
    """
    view = pool.at_branch(branch)
    if not view.snapshot.inlined:
        return
    policy, config, now = policy_of(view.settings), view.config, pool.context.now()
    jobs = jobs_of_inlined(
        view.held, "", policy, key=config.key, kind=config.kind, now=now, points=view.points
    )
    run_jobs(pool.branch(branch), jobs, Here.of(pool.context))


def published(pool: Pool, *, branch: str) -> dict[str, Any]:
    """Publishes the pool if its setting `publish.iceberg` names a place.  Returns the values of the fields
    `published` and `publication` of a CompactResult.  Returns nothing without the setting, or for another
    branch than main.

    Raises Corrupt, OutcomeUnknown, Unavailable.
    """
    place = pool.settings["publish.iceberg"]
    if not place or branch != MAIN:
        return {}
    try:
        done = publish(pool, branch=branch, to=place)
    except InvalidInput as refusal:
        log.warning("not published: %s", refusal)
        return {"published": None, "publication": f"not published: {refusal}"}
    return {"published": done.version, "publication": result_line(done).removeprefix(f"{pool.name}: ")}
