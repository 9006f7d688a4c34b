"""What the ingest agent found and what it did, in words: for its logs and its last task."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lake_core.agents.finding import divided, looks
from lake_core.agents.ingest.parking import Parked
from lake_core.agents.ingest.plan import Batch
from lake_core.agents.ingest.policy import BatchPolicy, policy_of
from lake_core.agents.ingest.sources import look, pools_that_ingest
from lake_core.agents.reporting import (
    Found,
    check_found,
    conclude,
    load_line,
    load_totals,
    missing,
    totals_line,
)
from lake_core.agents.request import OpenLake, Request
from lake_core.agents.roster import AGENTS
from lake_core.errors import LakeError
from lake_core.lake import Lake
from lake_core.phrases import counted, human_duration, human_size, listed
from lake_core.records.source_files import SourceFile

log = logging.getLogger(__name__)

LATE = 3_600.0
"""Seconds beyond `ingest.batch_age` for which a file may wait: longer, and the agent lags behind what arrives."""

MAX_PARKED = 100
"""Parked files that a result names at most: a result goes between tasks, and Airflow keeps it."""


def plan_lines(
    pool_name: str, waiting: Sequence[SourceFile], batches: Mapping[str, Batch], policy: BatchPolicy
) -> Iterator[str]:
    """What is decided for a pool, in lines: its batches by token, then what waits for a batch to fill."""
    size = sum(batch.size for batch in batches.values())
    gathered = sum(len(batch.files) for batch in batches.values())
    if batches:
        yield (
            f"{pool_name}: {counted(gathered, 'new file')}, {human_size(size)}, in "
            f"{counted(len(batches), 'batch', 'batches')} of at most {counted(policy.max_files, 'file')} or "
            f"{human_size(policy.max_bytes)}"
        )
    for token, batch in batches.items():
        yield f"  batch of {counted(len(batch.files), 'file')}, {human_size(batch.size)}, token {token}"
    if left := len(waiting) - gathered:
        rest = sum(file.size for file in waiting) - size
        yield (
            f"{pool_name}: {counted(left, 'file waits', 'files wait')}, {human_size(rest)}: the batch is not full, "
            f"and its oldest file is younger than ingest.batch_age ({human_duration(policy.age)})"
        )


def log_parked(pool_name: str, parked: Sequence[Parked]) -> None:
    """Log which files are passed over, why, and what to do."""
    if parked:
        log.warning(
            "%s: %s (lake parked %s): %s",
            pool_name,
            "1 file is parked until it changes or is released"
            if len(parked) == 1
            else f"{len(parked):,} files are parked until they change or are released",
            pool_name,
            listed([one.file for one in parked]),
        )


def log_changed(pool_name: str, changed: Sequence[SourceFile]) -> None:
    """Log which files were ingested before and have changed since."""
    if changed:
        log.warning(
            "%s: %s ingested before and changed since: all records are loaded again, beside those of before. Write "
            "each file once, under a name of its own: %s",
            pool_name,
            counted(len(changed), "file was", "files were"),
            listed([one.uri for one in changed]),
        )


def late_files(waiting: Sequence[SourceFile], policy: BatchPolicy, *, now: float) -> list[SourceFile]:
    """The files that wait although they are older than the policy and `LATE` allow."""
    return [file for file in waiting if now - file.modified > policy.age + LATE]


def lag_line(pool_name: str, late: Sequence[SourceFile], policy: BatchPolicy, *, now: float) -> str:
    """How far the agent lags behind the files that arrive at a pool."""
    oldest = human_duration(now - min(file.modified for file in late))
    waits = counted(len(late), "file still waits", "files still wait")
    return (
        f"{pool_name}: the agent lags: {waits}, the oldest for {oldest}; ingest.batch_age is "
        f"{human_duration(policy.age)}. If this stays, run it more often, or give it more slots"
    )


def batch_line(result: Mapping[str, Any]) -> str:
    """What became of a batch."""
    parked = f"; parked {counted(result['parked_files'], 'file')}" if result["parked"] else ""
    return load_line(result) + parked


def report(
    params: Mapping[str, Any],
    all_work: Found | None,
    results: Sequence[Mapping[str, Any]],
    *,
    open_lake: OpenLake = Lake.open,
) -> dict[str, int]:
    """The agent's last task: a line a batch, the parked files, the pools in which it lags, the totals.

    Raises Incomplete if a batch or a pool failed, or this run parked a file; later runs only mention that file.
    """
    for result in results:
        log.info("%s", batch_line(result))
    all_work = check_found(all_work)
    failed = missing(all_work, results, by="token")
    failed += [line for result in results for line in _parked_lines(result)]
    asked = Request.read(params, also=AGENTS["ingest"].parameters)
    lake = open_lake(asked.lake)
    parked = late = 0
    names, _ = divided(pools_that_ingest(lake, asked.pools), lake, asked, agent="ingest")
    for name, files in looks(names, lambda name: look(lake.pool(name))):
        if isinstance(files, LakeError):
            failed.append(f"{name}: {files}")
            continue
        log_parked(name, files.parked)
        parked += len(files.parked)
        policy, now = policy_of(lake.pool(name).settings, wait=asked.wait), lake.context.now()
        if late_here := late_files(files.waiting, policy, now=now):
            log.warning("%s", lag_line(name, late_here, policy, now=now))
            late += len(late_here)
    totals = load_totals(results) | {"parked": parked, "late": late}
    conclude(
        totals_line(totals) if results else "nothing was ingested" if all_work else "no new files",
        failed=failed,
        to_do=(
            "All else was ingested. Mend or remove a parked file, or set bad_records=quarantine; the next run "
            "tries a failed batch again"
        ),
    )
    return totals


def _parked_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The files that a run parked, a line each."""
    for file, why in result["parked"]:
        yield f"{result['pool']}: parked {file}: {why}"
    if more := result["parked_files"] - len(result["parked"]):
        yield f"{result['pool']}: parked {counted(more, 'more file')}: lake parked {result['pool']} names them"
