"""The ingest agent: finds the batches of each pool that are due, and commits them (`batches`); for topics of
Kafka, it finds and loads their new records (`topics`).

If a pool's source or journal cannot be read, the run reports it and continues with the other pools.  The agent
looks once, before it starts Spark.  If another run commits a batch meanwhile, the commit recognizes its token,
or refuses the batch because of its files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lake_core.errors import LakeError, NotFound
from lake_core.phrases import counted, human_size
from lake_core.records.pools import PoolConfig
from lake_core.store import address_of
from log_lake.agents.agent import AgentRun, OpenWorkers, PoolLook
from log_lake.agents.ingest import parking
from log_lake.agents.ingest.batches import BatchResult, ingest_waiting
from log_lake.agents.ingest.parking import Parked
from log_lake.agents.ingest.plan import plan_batches
from log_lake.agents.ingest.policy import policy_of
from log_lake.agents.ingest.report import (
    MAX_PARKED,
    IngestLag,
    IngestResult,
    batch_line,
    changed_text,
    lag_of,
    parked_lines,
    parked_text,
    plan_lines,
)
from log_lake.agents.ingest.sources import digest_of, files_there, pools_that_ingest, sort_out
from log_lake.agents.ingest.topics import faults_text, has_topics, load_from_topics, look_at_topics
from log_lake.agents.loads import LoadingAgent
from log_lake.agents.reporting import missing
from log_lake.agents.request import Request
from log_lake.agents.work import Found, PutOff, Work
from log_lake.lake import Lake
from log_lake.lake.results import LoadResult
from log_lake.loading.source_files import SourceFile
from log_lake.settings import Settings

log = logging.getLogger(__name__)


class IngestWork(Work, frozen=True, kw_only=True):
    """A batch: its token, its files, and how far the agent lags if it is not done (`report.IngestLag`).

    `bulk`: it is imported in bulk (`lake.bulk`).  `topics`: it has the new records of these Kafka topics, and
    no files.
    """

    token: str
    files: tuple[SourceFile, ...]
    late: int = 0
    waited: float = 0.0
    age: float = 0.0
    bulk: bool = False
    topics: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        return max(1, len(self.files))

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        return self.files


@dataclass(frozen=True, kw_only=True)
class IngestLook(PoolLook[IngestWork]):
    """What the agent found in a pool's source: the batches that are due, the parked files, and the partitions of
    topics that are not read."""

    parked: Sequence[Parked] = ()
    faults: Sequence[str] = ()


class IngestAgent(LoadingAgent[IngestWork, IngestResult]):
    """The agent for pools whose setting `ingest.source` names files or topics."""

    work, result = IngestWork, IngestResult
    nothing = "no batch is due"
    not_done = "nothing is ingested"
    none_done = "nothing was ingested"
    to_do = (
        "All else was ingested. The next run tries a failed batch or pool again; a parked file waits until you "
        "mend or remove it, or set bad_records=quarantine"
    )
    skips_gone = False

    def pools(self, lake: Lake, asked: Request) -> list[str]:
        """Returns the names of the pools with `ingest.source`."""
        return pools_that_ingest(lake, asked.pools)

    def others(self, run: AgentRun, names: Sequence[str]) -> list[str]:
        """Returns all these pools: only a listing of the source shows whether there are new files."""
        return [name for name in names if name in run.configs]

    def look(self, run: AgentRun, name: str) -> IngestLook:
        """Returns the batches of the pool that are due."""
        asked, access = run.asked, address_of(run.lake.store)
        config = run.configs.get(name)
        if config is not None and has_topics(Settings(config.settings)):
            return _look_at_topics(run, config)
        there = [] if config is None else files_there(Settings(config.settings), access=access)
        seen = digest_of(there)
        if config is not None and run.quiet.is_as_seen(config, seen):
            return IngestLook()
        try:
            pool = run.lake.pool(name)
        except NotFound:  # dropped since
            return IngestLook()
        if pool.config != config:  # changed since, or another pool of that name
            there, config = files_there(pool.settings, access=access), None
        files = sort_out(pool, there)
        policy, now = policy_of(pool.settings, wait=asked.wait), run.lake.context.now()
        planned = plan_batches(files.waiting, policy, now=now)
        batches = {batch.token(asked.branch): batch for batch in planned}
        warnings = [changed_text(name, files.changed)] if files.changed else []
        warnings += [f"{name}: {parked_text(name, files.parked)}"] if files.parked else []
        if not asked.dry_run:
            parking.release(pool, files.forgotten)
        return IngestLook(
            lines=list(plan_lines(name, files.waiting, batches, policy)),
            warnings=warnings,
            work=[
                asked.work(
                    IngestWork,
                    name,
                    counted(len(batch.files), "file"),
                    token=token,
                    files=batch.files,
                    bulk=asked.bulk,
                    **vars(lag_of(batch.files, policy, now=now)),
                )
                for token, batch in batches.items()
            ],
            rests=None if files.waiting or files.parked or files.forgotten else config,
            seen=seen,
            parked=files.parked,
        )

    def unreadable(self, asked: Request, name: str, error: LakeError) -> PutOff:
        """Returns a deferral, which the report counts as a failure; the next run looks again."""
        return asked.put_off(name, "it cannot be read", failed=str(error))

    def left(
        self,
        asked: Request,
        looks: Mapping[str, PoolLook[IngestWork]],
        work: Sequence[IngestWork],
        handed: Found[IngestWork],
    ) -> Found[IngestWork]:
        """Adds the parked files, and the files that wait too long because of the run's limit, to what is
        deferred."""
        tokens = {one.token for one in handed.work}
        late = summed_lags(one for one in work if one.token not in tokens)
        parked = {
            name: seen.parked for name, seen in looks.items() if isinstance(seen, IngestLook) and seen.parked
        }
        alone = [
            _left_alone(asked, name, parked.get(name, ()), late.get(name)) for name in {**parked, **late}
        ]
        doubtful = [
            asked.put_off(name, "their offsets are in doubt", failed=faults_text(seen.faults))
            for name, seen in looks.items()
            if isinstance(seen, IngestLook) and seen.faults
        ]
        return replace(handed, put_off=[*handed.put_off, *alone, *doubtful])

    def run(self, lake: Lake, work: IngestWork, open_workers: OpenWorkers) -> IngestResult:
        """Commits a batch exactly once, and parks the files that are refused.

        Files that changed, vanished, or were ingested by another run meanwhile are left to the next run; the
        others are ingested.
        """
        pool = lake.pool(work.pool)
        if work.topics:
            loaded = IngestResult(pool=pool.name, token=work.token, **vars(load_from_topics(lake, pool)))
            log.info("%s", batch_line(loaded))
            return loaded
        files = list(work.files)
        size = sum(file.size for file in files)
        what = f"{counted(len(files), 'file')}, {human_size(size)}"
        log.info("%s: batch of %s, token %s", pool.name, what, work.token)
        first = pool.branch(work.branch).begin_load(token=work.token)
        if isinstance(first, LoadResult):  # committed before: Spark is not worth starting
            done = BatchResult(first)
        else:
            with open_workers(lake.context, f"lake ingest {pool.name}", size=size) as workers:
                done = ingest_waiting(workers, lake, pool, files, branch=work.branch, bulk=work.bulk)
        for file, why in done.refused:
            parking.park(pool, file, why=why, now=pool.context.now(), branch=work.branch)
        parked = tuple((file.uri, why) for file, why in done.refused[:MAX_PARKED])
        result = IngestResult(
            pool=pool.name,
            token=work.token,
            **vars(done.result),
            parked=parked,
            parked_files=len(done.refused),
        )
        log.info("%s", batch_line(result))
        return result

    def line(self, result: IngestResult) -> str:
        return batch_line(result)

    def lags(self, all_work: Sequence[IngestWork], results: Sequence[IngestResult]) -> dict[str, str]:
        """Returns the pools whose files wait for too long, each with a line about it."""
        return {name: str(lag) for name, lag in _lags_left(all_work, results).items()}

    def totals(self, handed: Found[IngestWork], results: Sequence[IngestResult]) -> dict[str, int]:
        parked = sum(one.parked_files for one in results) + sum(one.parked for one in handed.put_off)
        late = sum(lag.late for lag in _lags_left(handed.work, results).values())
        late += sum(one.late for one in handed.put_off)
        return super().totals(handed, results) | {"parked": parked, "late": late}

    def failures(self, handed: Found[IngestWork], results: Sequence[IngestResult]) -> list[str]:
        """Returns a line for each batch and pool that failed, and for the files that this run parked.  Later runs
        only mention these files in their logs."""
        return [
            *missing(handed.work, results, by="token"),
            *(line for result in results for line in parked_lines(result)),
            *(f"{one.pool}: {one.failed}" for one in handed.put_off if one.failed),
        ]


def _look_at_topics(run: AgentRun, config: PoolConfig) -> IngestLook:
    topics, name = look_at_topics(run.lake, run.quiet, config), config.name
    if topics is None:
        return IngestLook()
    return IngestLook(
        lines=topics.lines(name),
        work=[
            run.asked.work(
                IngestWork,
                name,
                ", ".join(topics.topics),
                token=topics.plan.token,
                files=(),
                topics=topics.topics,
            )
        ]
        if topics.plan.spans
        else [],
        rests=None if topics.plan.spans or topics.faults else config,
        seen=topics.seen,
        faults=topics.faults,
    )


def summed_lags(all_work: Iterable[IngestWork]) -> dict[str, IngestLag]:
    """Returns, by pool, how far the agent lags if this work is not done; pools without a lag are left out."""
    lags: dict[str, IngestLag] = {}
    for work in all_work:
        if work.late:
            before = lags.get(work.pool, IngestLag(0, 0.0, work.age))
            lags[work.pool] = IngestLag(before.late + work.late, max(before.waited, work.waited), before.age)
    return lags


def _lags_left(all_work: Sequence[IngestWork], results: Sequence[IngestResult]) -> dict[str, IngestLag]:
    done = {result.token for result in results}
    return summed_lags(work for work in all_work if work.token not in done)


def _left_alone(asked: Request, name: str, parked: Sequence[Parked], lag: IngestLag | None) -> PutOff:
    """Returns the files that the run leaves alone, and why."""
    why, titles = [], []
    if parked:
        why.append(f"{counted(len(parked), 'file is', 'files are')} parked (lake parked {name})")
        titles.append(parked_text(name, parked))
    if lag is not None:
        why.append("the agent lags behind what arrives")
        titles.append(str(lag))
    title = f"{name}: {'; '.join(titles)}"
    late = 0 if lag is None else lag.late
    return asked.put_off(name, "; ".join(why), title=title, parked=len(parked), late=late)


AGENT = IngestAgent()
