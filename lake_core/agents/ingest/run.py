"""The ingest agent without Spark: which landed files of which pools were not ingested yet, and the report.

A look at a pool costs a listing of its landing place, one of its parked files, and a look at its journal.  A pool
takes part when its setting `ingest.source` names a place.  The agent asks here before it starts Spark, and does not
ask again: a batch that somebody else commits meanwhile is recognised by its token or refused by its sources.

One thing that is bad does not hold back the others.  A file that was refused is parked (`parking`): the agent
passes it over until it changes, and says so in every report.  A pool whose landing place or journal cannot be read
is reported, and the other pools go on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lake_core.agents.ingest import parking
from lake_core.agents.ingest.batches import Batch, BatchPolicy, plan_batches
from lake_core.agents.ingest.parking import Parked
from lake_core.agents.reporting import Found, check_found, conclude, missing
from lake_core.agents.request import Request
from lake_core.catalog import Settings
from lake_core.errors import InvalidInput, LakeError
from lake_core.history.state import MAIN
from lake_core.lake import Lake
from lake_core.lake.pool import Pool
from lake_core.loading.sources import find_files
from lake_core.phrases import counted, human_size, listed
from lake_core.records.source_files import SourceFile

log = logging.getLogger(__name__)


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
                raise InvalidInput(
                    f"pool {name!r}: ingest.source is empty; set it with: lake set {name} ingest.source=PLACE"
                )
        return sorted(set(only))
    return [p.name for p in lake.pools() if Settings(p.settings)["ingest.source"]]


@dataclass(frozen=True)
class SourceFiles:
    """What lies at a pool's landing place: `waiting` to be ingested, and `parked`.

    `forgotten` are notes of files that are gone or have changed; what is there of them waits again.
    """

    waiting: tuple[SourceFile, ...]
    parked: tuple[Parked, ...]
    forgotten: tuple[Parked, ...]


def look(pool: Pool, *, branch: str = MAIN) -> SourceFiles:
    """What has landed and was not ingested, or not in this form; files of no bytes hold nothing."""
    sources = pool.at(branch).state.sources
    settings = pool.settings
    found = find_files(
        [settings["ingest.source"]],
        include=settings["include"],
        exclude=settings["exclude"],
        may_be_empty=True,
    )
    landed = [f for f in found if f.size]
    notes = parking.parked_files(pool, branch=branch)
    kept = parking.still_parked(notes, landed, parking.reading_digest(pool.config.settings))
    names = {parked.file for parked in kept}
    return SourceFiles(
        tuple(f for f in landed if f.uri not in names and sources.get((branch, f.uri)) != f.source),
        tuple(kept),
        tuple(note for note in notes if note.file not in names),
    )


def waiting_files(lake: Lake, pool_name: str, *, branch: str = MAIN) -> list[SourceFile]:
    """The landed files of a pool that are to be ingested."""
    return list(look(lake.pool(pool_name), branch=branch).waiting)


def find_batches(
    lake: Lake, *, pools: list[str] | None = None, branch: str = MAIN, wait: bool = True, now: float
) -> list[PoolBatch]:
    """What there is to ingest, pool by pool; with `wait` a batch that is not full waits for its age."""
    found: list[PoolBatch] = []
    for name in pools_that_ingest(lake, pools):
        pool = lake.pool(name)
        found += _batches(pool, look(pool, branch=branch), branch=branch, wait=wait, now=now)
    return found


def _batches(pool: Pool, files: SourceFiles, *, branch: str, wait: bool, now: float) -> list[PoolBatch]:
    policy = BatchPolicy(
        max_files=pool.settings["ingest.batch_files"],
        max_bytes=pool.settings["ingest.batch_bytes"],
        age=pool.settings["ingest.batch_age"] if wait else 0.0,
    )
    return [PoolBatch(pool.name, branch, batch) for batch in plan_batches(files.waiting, policy, now=now)]


def find(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The agent's first task: batches as plain values, for one mapped task each.

    `params`: lake, pools (none named: all), wait, dry_run.  A dry run logs the plan and gives no batch.
    """
    asked = Request.read(params, also=("wait",))
    lake = Lake.open(asked.lake)
    batches: list[PoolBatch] = []
    for name in pools_that_ingest(lake, list(asked.pools)):
        pool = lake.pool(name)
        try:
            files = look(pool)
        except LakeError as error:  # the report says it again, and fails
            log.error("%s: %s", name, error)
            continue
        batches += _batches(pool, files, branch=MAIN, wait=asked.wait, now=lake.context.now())
        log_parked(name, files.parked)
        if not asked.dry_run:
            parking.release(pool, files.forgotten)
    for found in batches:
        count, size = counted(len(found.batch.files), "file"), human_size(found.batch.size)
        log.info("%s: %s, %s, token %s", found.pool, count, size, found.token)
    if not batches:
        log.info("no new files")
    if asked.dry_run:
        log.info("dry run: nothing is ingested")
        return []
    return [
        {
            "lake": asked.lake,
            "pool": found.pool,
            "branch": found.branch,
            "token": found.token,
            "title": f"{found.pool}: {counted(len(found.batch.files), 'file')}",
            "files": msgspec.to_builtins(list(found.batch.files)),
        }
        for found in batches
    ]


def log_parked(pool: str, parked: Sequence[Parked]) -> None:
    """Say which files are passed over, why, and what to do."""
    if parked:
        log.warning(
            "%s: %s (lake parked %s): %s",
            pool,
            "1 file is parked until it changes or is released"
            if len(parked) == 1
            else f"{len(parked):,} files are parked until they change or are released",
            pool,
            listed([one.file for one in parked]),
        )


def report(
    params: Mapping[str, Any], found: Found | None, results: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    """The agent's last task: a line a batch, what is parked, the totals.

    Raises Incomplete if a batch or a pool failed, or this run parked a file; later runs only mention that file.
    """
    for result in results:
        log.info("%s", batch_line(result))
    failed = missing(check_found(found), results, by="token")
    failed += [f"{r['pool']}: parked {file}: {why}" for r in results for file, why in r["parked"]]
    asked = Request.read(params, also=("wait",))
    lake = Lake.open(asked.lake)
    parked = 0
    for name in pools_that_ingest(lake, list(asked.pools)):
        try:
            files = look(lake.pool(name))
        except LakeError as error:
            failed.append(f"{name}: {error}")
            continue
        log_parked(name, files.parked)
        parked += len(files.parked)
    totals = totals_of(results) | {"parked": parked}
    conclude(
        totals_line(totals) if results else "nothing was ingested" if found else "no new files",
        failed=failed,
        to_do=(
            "All else was ingested. Mend or remove a parked file, or set bad_records=quarantine; the next run "
            "tries a failed batch again"
        ),
    )
    return totals


def report_intervals(found: Found | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The interval agent's last task: a line a pool, and the totals.  Raises Incomplete if a pool failed."""
    for result in results:
        log.info("%s", interval_line(result))
    totals = totals_of(results)
    conclude(
        totals_line(totals) if results else "nothing to do",
        failed=missing(check_found(found), results, by="pool"),
        to_do="What failed changed nothing. Mend what its log names, then run the interval again",
    )
    return totals


def batch_line(result: Mapping[str, Any]) -> str:
    """What became of a batch."""
    if result["version"] is None:
        return f"{result['pool']}: nothing to commit"
    again = " (had been committed before)" if result["repeated"] else ""
    return f"{result['pool']}: version {result['version']:,}, {_records(result)}{again}"


def interval_line(result: Mapping[str, Any]) -> str:
    """What became of an interval of a pool, or of files that were appended by hand."""
    if result["version"] is None and result["begin"]:
        return f"{result['pool']}: no files for {result['begin']}: nothing changed"
    return batch_line(result)


def totals_of(results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The sums over all batches."""
    summed = ("records", "objects", "nokey", "rejected")
    return {"batches": len(results)} | {name: sum(int(r[name]) for r in results) for name in summed}


def totals_line(totals: Mapping[str, int]) -> str:
    """The sums in words."""
    return f"{counted(totals['batches'], 'batch', 'batches')}: {_records(totals)}"


def _records(counts: Mapping[str, Any]) -> str:
    """Only what there is is said of sub-pools."""
    words = f"{counted(counts['records'], 'record')} in {counted(counts['objects'], 'object')}"
    if counts["nokey"]:
        words += f", {counts['nokey']:,} without the key"
    if counts["rejected"]:
        words += f", {counts['rejected']:,} rejected"
    return words
