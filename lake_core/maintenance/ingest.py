"""The ingest agent without Spark: which landed files of which pools were not taken in yet, and the report.

One listing of the landing place and one look at the journal a pool.  A pool takes part when its setting
`ingest.source` names a place.  The agent asks here before it starts Spark, and asks again nothing: a batch
that somebody else commits meanwhile is recognised by its token or refused by its sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from lake_core.catalog import Settings
from lake_core.commits.state import MAIN
from lake_core.errors import InvalidInput
from lake_core.ingest.sources import find_files
from lake_core.lake import Lake
from lake_core.planning.batches import Batch, BatchPolicy, plan_batches
from lake_core.records.landed import LandedFile
from lake_core.wording import counted, human_size


@dataclass(frozen=True)
class PoolBatch:
    """A batch that a pool should take in."""

    pool: str
    branch: str
    batch: Batch

    @property
    def token(self) -> str:
        """Under which the batch is committed once."""
        return self.batch.token(self.branch)


def pools_that_ingest(lake: Lake, only: list[str] | None = None) -> list[str]:
    """Names of the pools with a landing place; of `only`, if any are named.

    Raises NotFound for an unknown pool, InvalidInput for a named pool without a landing place.
    """
    if only:
        for name in only:
            if not lake.pool(name).settings["ingest.source"]:
                raise InvalidInput(f"pool {name!r}: no landing place; lake set {name} ingest.source=PLACE")
        return sorted(set(only))
    return [p.name for p in lake.pools() if Settings(p.settings)["ingest.source"]]


def waiting_files(lake: Lake, pool_name: str, *, branch: str = MAIN) -> list[LandedFile]:
    """Landed files that the branch has not taken in, or not in this form; files of no bytes hold nothing."""
    pool = lake.pool(pool_name)
    sources = pool.at(branch).state.sources
    files = find_files([pool.settings["ingest.source"]])
    return [f for f in files if f.size and sources.get((branch, f.uri)) != f.source]


def find_batches(
    lake: Lake, *, pools: list[str] | None = None, branch: str = MAIN, wait: bool = True, now: float
) -> list[PoolBatch]:
    """What there is to take in, pool by pool; with `wait` a batch that is not full waits for its age."""
    found: list[PoolBatch] = []
    for name in pools_that_ingest(lake, pools):
        settings = lake.pool(name).settings
        policy = BatchPolicy(
            most_files=settings["ingest.batch_files"],
            most_bytes=settings["ingest.batch_bytes"],
            age=settings["ingest.batch_age"] if wait else 0.0,
        )
        batches = plan_batches(waiting_files(lake, name, branch=branch), policy, now=now)
        found += [PoolBatch(name, branch, batch) for batch in batches]
    return found


def find(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The agent's first task: batches as plain values, for one mapped task each.

    `params`: lake, pools (none named: all), wait, dry_run.  A dry run prints the plan and gives no batch.
    """
    lake = Lake.open(params["lake"])
    batches = find_batches(
        lake,
        pools=list(params.get("pools") or []),
        wait=bool(params.get("wait", True)),
        now=lake.context.now(),
    )
    for found in batches:
        files, size = counted(len(found.batch.files), "file"), human_size(found.batch.size)
        print(f"{found.pool}: {files}, {size}, token {found.token}")
    if not batches:
        print("nothing has landed that was not taken in")
    if params.get("dry_run"):
        print("dry run: nothing is taken in")
        return []
    return [
        {
            "lake": params["lake"],
            "pool": found.pool,
            "branch": found.branch,
            "token": found.token,
            "files": msgspec.to_builtins(list(found.batch.files)),
        }
        for found in batches
    ]


def report(results: list[dict[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a batch, and the totals."""
    for result in results:
        if result["transaction"] is None:  # an interval of which nothing landed, and nothing was there
            print(f"{result['pool']}: nothing to commit")
            continue
        print(
            f"{result['pool']}: transaction {result['transaction']}, {counted(result['records'], 'record')} in "
            f"{counted(result['objects'], 'object')}, {result['nokey']:,} without the key, "
            f"{result['rejected']:,} rejected"
            + (" (had been committed before)" if result["repeated"] else "")
        )
    summed = ("records", "objects", "nokey", "rejected")
    totals = {"batches": len(results)} | {name: sum(int(r[name]) for r in results) for name in summed}
    print(
        f"{counted(totals['records'], 'record')} in {counted(totals['objects'], 'object')} of "
        f"{counted(totals['batches'], 'batch', 'batches')}, "
        f"{totals['nokey']:,} without the key, {totals['rejected']:,} rejected"
    )
    return totals
