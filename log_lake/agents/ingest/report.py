"""The words for what the ingest agent found and did: for its logs and its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lake_core.errors import without_secrets
from lake_core.phrases import counted, human_duration, human_size, listed
from log_lake.agents.ingest.parking import Parked
from log_lake.agents.ingest.plan import IngestBatch
from log_lake.agents.ingest.policy import BatchPolicy
from log_lake.agents.loads import load_line, written_by
from log_lake.agents.work import Result, Written
from log_lake.lake.results import LoadResult
from log_lake.loading.source_files import SourceFile

LATE = 3_600.0
"""Seconds beyond `ingest.batch_age` after which a waiting file means that the agent lags."""

MAX_PARKED = 100
"""The most parked files that a result names: tasks pass results to each other, and Airflow stores them."""


def plan_lines(
    pool_name: str, waiting: Sequence[SourceFile], batches: Mapping[str, IngestBatch], policy: BatchPolicy
) -> Iterator[str]:
    """Yields the decision for a pool as lines: its batches with their tokens, then the files that wait for a batch
    to fill."""
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
    """Returns words that name the files that the agent skips, and say what to do about them."""
    files = "1 file is" if len(parked) == 1 else f"{len(parked):,} files are"
    until = "it changes or is released" if len(parked) == 1 else "they change or are released"
    names = listed([without_secrets(one.file) for one in parked])
    return f"{files} parked until {until} (lake parked {pool_name}): {names}"


def changed_text(pool_name: str, changed: Sequence[SourceFile]) -> str:
    """Returns words that name the files that changed after they were ingested, and say what to do."""
    files = counted(len(changed), "file was", "files were")
    return (
        f"{pool_name}: {files} ingested before and changed since: all records are loaded again, beside those of "
        "before. Write each file once, under a name of its own: "
        f"{listed([without_secrets(one.uri) for one in changed])}"
    )


@dataclass(frozen=True)
class IngestLag:
    """How far the agent lags behind the files that arrive for a pool.

    `late` files still wait, although they are older than the policy and `LATE` allow.  The oldest has waited for
    `waited` seconds; the policy allows `age`.
    """

    late: int
    waited: float
    age: float

    def __str__(self) -> str:
        """Returns the lag in words."""
        waits = counted(self.late, "file still waits", "files still wait")
        return (
            f"the agent lags: {waits}, the oldest for {human_duration(self.waited)}; ingest.batch_age is "
            f"{human_duration(self.age)}. If this stays, run it more often, or give it more slots"
        )


def lag_of(files: Sequence[SourceFile], policy: BatchPolicy, *, now: float) -> IngestLag:
    """Returns how far the agent lags at `now` if it ingests none of these files."""
    late = sum(now - file.modified > policy.age + LATE for file in files)
    return IngestLag(late, now - min(file.modified for file in files), policy.age)


@dataclass(frozen=True)
class _OfBatch(Result):
    token: str


@dataclass(frozen=True)
class IngestResult(LoadResult, _OfBatch):
    """What came of a batch: the load, the first `parked` files with their reasons, and how many files were
    parked."""

    parked: tuple[tuple[str, str], ...] = ()
    parked_files: int = 0

    @property
    def wrote(self) -> Written:
        return written_by(self, unread=(file for file, _ in self.parked))


def batch_line(result: IngestResult) -> str:
    """Returns a line that says what came of a batch."""
    parked = f"; parked {counted(result.parked_files, 'file')}" if result.parked else ""
    return load_line(result.pool, result) + parked


def parked_lines(result: IngestResult) -> Iterator[str]:
    """Yields a line for each file that the run parked."""
    for file, why in result.parked:
        yield f"{result.pool}: parked {file}: {why}"
    if more := result.parked_files - len(result.parked):
        yield f"{result.pool}: parked {counted(more, 'more file')}: lake parked {result.pool} names them"
