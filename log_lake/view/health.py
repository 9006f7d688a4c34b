"""What is wrong with a pool, or waits for a person, in lines that a person reads first.

Each part is looked at by itself: if one cannot be read, its line says so, and the others are still shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from lake_core.errors import Denied, LakeError, without_secrets
from lake_core.naming import MAIN
from lake_core.phrases import counted
from log_lake.agents.ingest.parking import Parked, parked_files
from log_lake.agents.jobs import DIED, FAILED, Job, list_jobs
from log_lake.erasure import receipt as receipts
from log_lake.erasure.receipt import PENDING
from log_lake.lake import Lake
from log_lake.lake.pool import Pool

BAD, LATE, NOTE = "bad", "late", "note"
"""How bad a line is: something failed; something is due or waits for a person; a person asked for it."""
MAX_JOBS = 40
"""How many of the newest jobs of the pool are examined: a few of each agent."""
MAX_PARKED = 100
"""The most parked files that are shown."""


class HealthLine(msgspec.Struct, frozen=True):
    """One thing to know: how bad it is, the agent or the part of the pool that it concerns, and a sentence."""

    level: str
    part: str
    says: str


class ParkedFile(msgspec.Struct, frozen=True):
    """A file that the ingest agent skips: its size in bytes, since when it is skipped, in seconds since 1970, and
    why."""

    file: str
    size: int
    time: float
    why: str


class Health(msgspec.Struct, frozen=True):
    """What to know about a pool, in lines, worst first; none if the pool is well.  `parked` are the first parked
    files, by name."""

    lines: list[HealthLine]
    parked: list[ParkedFile]
    parked_in_all: int


def health_of(lake: Lake, pool: Pool, *, lag: dict[str, str], set_aside: int, branch: str = MAIN) -> Health:
    """Returns the health of a pool; `lag` is that of the overview, `set_aside` counts records in
    `$rejected`."""
    lines = [HealthLine(LATE, agent, text) for agent, text in lag.items()]
    parked: list[Parked] = []
    with_errors = _Parts(lines)

    def parking() -> Iterator[HealthLine]:
        parked.extend(parked_files(pool, branch=branch))
        return parked_lines(parked)

    with_errors.add("ingest", parking)
    with_errors.add("erasure", lambda: erasure_lines(pool))
    with_errors.add("jobs", lambda: job_lines(list_jobs(lake, pool_name=pool.config.name, limit=MAX_JOBS)))
    with_errors.add("settings", lambda: paused_lines(pool))
    if set_aside:
        says = f"{counted(set_aside, 'bad record')} in {pool.config.name}.$rejected, each with its reason"
        lines.append(HealthLine(LATE, "ingest", says))
    order = (BAD, LATE, NOTE)
    return Health(
        sorted(lines, key=lambda line: order.index(line.level)),
        [
            ParkedFile(without_secrets(one.file), one.size, one.time, without_secrets(one.why))
            for one in parked[:MAX_PARKED]
        ],
        len(parked),
    )


class _Parts:
    """Collects the lines of each part; if a part cannot be read, a line with the error."""

    def __init__(self, lines: list[HealthLine]) -> None:
        self._lines = lines

    def add(self, part: str, look: Callable[[], Iterable[HealthLine]]) -> None:
        try:
            self._lines += list(look())
        except Denied as error:  # a reader's rights are enough for the records
            self._lines.append(HealthLine(NOTE, part, f"not known: {error}"))
        except LakeError as error:
            self._lines.append(HealthLine(BAD, part, str(error)))


def parked_lines(parked: Sequence[Parked]) -> Iterator[HealthLine]:
    """Yields a line if files are parked."""
    if parked:
        says = f"{counted(len(parked), 'file')} cannot be loaded, and {'is' if len(parked) == 1 else 'are'} skipped"
        yield HealthLine(BAD, "ingest", says)


def erasure_lines(pool: Pool) -> Iterator[HealthLine]:
    """Yields a line if erasures are pending. It shows no condition, because a condition may be personal data
    itself."""
    pending = sum(one.status == PENDING for one in receipts.read_all(pool))
    if pending:
        says = f"{counted(pending, 'erasure is', 'erasures are')} pending: the next run of the agent resumes"
        yield HealthLine(LATE, "erasure", says)


def job_lines(jobs: Sequence[Job]) -> Iterator[HealthLine]:
    """Yields a line for each agent whose newest job failed or died; `jobs` are newest first. Pure."""
    newest: dict[str, Job] = {}
    for job in jobs:
        newest.setdefault(job.agent, job)
    for agent, job in sorted(newest.items()):
        if job.state == FAILED:
            yield HealthLine(BAD, agent, f"the newest job failed: {job.error or 'it says no reason'}")
        elif job.state == DIED:
            yield HealthLine(BAD, agent, "the newest job died: its process ended without a word")


def paused_lines(pool: Pool) -> Iterator[HealthLine]:
    """Yields a line if settings ask agents to leave the pool alone. Raises InvalidInput for a setting that cannot
    be read."""
    for name, says in (
        ("agents", "all agents leave the pool alone (agents=paused)"),
        ("upkeep", "upkeep leaves the pool alone, loads go on (upkeep=paused)"),
    ):
        if pool.settings.text(name) == "paused":
            yield HealthLine(NOTE, name, says)
