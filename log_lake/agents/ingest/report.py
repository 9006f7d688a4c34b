"""What the ingest agent found and what it did, in words: for its logs and its last task."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lake_core.errors import without_secrets
from lake_core.phrases import counted, human_duration, human_size, listed
from log_lake.agents.ingest.parking import Parked
from log_lake.agents.ingest.plan import IngestBatch
from log_lake.agents.ingest.policy import BatchPolicy
from log_lake.agents.reporting import (
    Found,
    check_found,
    conclude,
    load_line,
    load_totals,
    missing,
    put_off,
    totals_line,
)
from log_lake.loading.source_files import SourceFile

log = logging.getLogger(__name__)

LATE = 3_600.0
"""Seconds beyond `ingest.batch_age` for which a file may wait: longer, and the agent lags behind what arrives."""

MAX_PARKED = 100
"""Parked files that a result names at most: a result goes between tasks, and Airflow keeps it."""


def plan_lines(
    pool_name: str, waiting: Sequence[SourceFile], batches: Mapping[str, IngestBatch], policy: BatchPolicy
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


def parked_text(pool_name: str, parked: Sequence[Parked]) -> str:
    """Which files are passed over, and what to do."""
    files = "1 file is" if len(parked) == 1 else f"{len(parked):,} files are"
    until = "it changes or is released" if len(parked) == 1 else "they change or are released"
    names = listed([without_secrets(one.file) for one in parked])
    return f"{files} parked until {until} (lake parked {pool_name}): {names}"


def log_changed(pool_name: str, changed: Sequence[SourceFile]) -> None:
    """Log which files were ingested before and have changed since."""
    if changed:
        log.warning(
            "%s: %s ingested before and changed since: all records are loaded again, beside those of before. Write "
            "each file once, under a name of its own: %s",
            pool_name,
            counted(len(changed), "file was", "files were"),
            listed([without_secrets(one.uri) for one in changed]),
        )


def lag_of(files: Sequence[SourceFile], policy: BatchPolicy, *, now: float) -> dict[str, float]:
    """How far the agent lags behind if these files wait on: values of a piece of work.

    `late`: how many wait although they are older than the policy and `LATE` allow; `waited`: seconds that the
    oldest one has waited; `age`: seconds that it may.
    """
    late = sum(now - file.modified > policy.age + LATE for file in files)
    return {"late": late, "waited": now - min(file.modified for file in files), "age": policy.age}


def summed_lags(all_work: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By pool, how far the agent lags behind if this work is not done; without pools in which it does not."""
    lags: dict[str, dict[str, float]] = {}
    for work in all_work:
        if work.get("late"):
            lag = lags.setdefault(work["pool"], {"late": 0, "waited": 0.0, "age": work["age"]})
            lag["late"] += work["late"]
            lag["waited"] = max(lag["waited"], work["waited"])
    return lags


def lag_text(lag: Mapping[str, Any]) -> str:
    """How far the agent lags behind the files that arrive at a pool."""
    waits = counted(lag["late"], "file still waits", "files still wait")
    return (
        f"the agent lags: {waits}, the oldest for {human_duration(lag['waited'])}; ingest.batch_age is "
        f"{human_duration(lag['age'])}. If this stays, run it more often, or give it more slots"
    )


def batch_line(result: Mapping[str, Any]) -> str:
    """What became of a batch."""
    parked = f"; parked {counted(result['parked_files'], 'file')}" if result["parked"] else ""
    return load_line(result) + parked


def report(all_work: Found | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a batch, the parked files, the pools in which it lags, the totals.

    Raises Incomplete if a batch or a pool failed, or this run parked a file; later runs only mention that file.
    """
    for result in results:
        log.info("%s", batch_line(result))
    left_alone = put_off(all_work or ())
    all_work = check_found(all_work)
    done = {result["token"] for result in results}
    lags = summed_lags(work for work in all_work if work["token"] not in done)
    for name, lag in lags.items():
        log.warning("%s: %s", name, lag_text(lag))
    totals = load_totals(results)
    for figure, here in (
        ("parked", [r["parked_files"] for r in results]),
        ("late", [g["late"] for g in lags.values()]),
    ):
        totals[figure] = int(sum(here)) + sum(work.get(figure, 0) for work in left_alone)
    conclude(
        totals_line(totals) if results else "nothing was ingested",
        failed=[
            *missing(all_work, results, by="token"),
            *(line for result in results for line in _parked_lines(result)),
            *(f"{work['pool']}: {work['failed']}" for work in left_alone if work.get("failed")),
        ],
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
