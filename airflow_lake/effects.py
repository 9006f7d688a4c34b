"""What a task does to pools, in one shape for all tasks: lineage and links are made of it; pure.

Operators and the agents' tasks keep `effects` while they run: first what is planned, then what was done, so that a
task that fails tells what it did before.  `lineage` tells OpenLineage, `links` lead to the web view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lake_core.agents.roster import Purpose, names_of

LOADING = names_of(Purpose.LOADING)
"""Agents whose results count the records that they brought."""
OVERWRITE, TRUNCATE, CREATE, ALTER, DROP = "OVERWRITE", "TRUNCATE", "CREATE", "ALTER", "DROP"
"""Changes of a dataset's life, as OpenLineage calls them; a load and a delete of a part are none of these."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a task does, or did, to a pool of a lake, which is named as the task names it.

    `branch`: the branch; of a pool that is only read, any revision.  `version`: that of the task's transaction,
    None if it is not known.  `records`, `objects` and `size` (bytes) are what was written, None if not known.
    `files`: the URIs that were read.
    """

    lake: str
    pool: str
    branch: str = "main"
    reads: bool = False
    writes: bool = True
    version: int | None = None
    records: int | None = None
    objects: int | None = None
    size: int | None = None
    change: str = ""
    files: tuple[str, ...] = ()


def planned_work(work: Mapping[str, Any], *, agent: str) -> Effect:
    """What an agent is about to do with a piece of work."""
    loads = agent in LOADING
    return Effect(
        lake=work["lake"],
        pool=work["pool"],
        branch=work.get("branch") or "main",
        reads=not loads,  # all others rewrite, or let go, what is there
        change=OVERWRITE if work.get("begin") else "",
        files=tuple(file["uri"] for file in work.get("files") or ()),
    )


def done_work(work: Mapping[str, Any], result: Mapping[str, Any], *, agent: str) -> Effect:
    """What an agent did, by its result."""
    planned = planned_work(work, agent=agent)
    parked = {file for file, _ in result.get("parked") or ()}
    rewritten = result.get("size_out")
    return Effect(
        **{
            **vars(planned),
            "version": result.get("version"),
            "change": planned.change if result.get("version") is not None else "",
            "files": tuple(file for file in planned.files if file not in parked),
            "records": result.get("records") if agent in LOADING else None,
            "objects": result.get("objects"),
            "size": result.get("size") if rewritten is None else rewritten,
        }
    )


def only_target(effects: Iterable[Effect]) -> Effect | None:
    """The newest effect of a task that works on one pool and branch; None if there are several, or none."""
    last = {(one.lake, one.pool, one.branch): one for one in effects if one.pool}
    return next(iter(last.values())) if len(last) == 1 else None
