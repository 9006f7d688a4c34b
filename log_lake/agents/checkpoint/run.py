"""The checkpoint agent without Spark: finds the journals that need a checkpoint, and does the work.

A look at a journal without work costs one listing and one read.  The journal of the list of pools is included,
under the name `lake:pools`.  Callers: the DAG, the Spark application, `lake checkpoint` and `lake purge`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lake_core.errors import CheckpointDamaged, CheckpointGone, LakeError, NotFound
from lake_core.journal import Journal, LoadedState, Purged, purge
from lake_core.journal.ages import oldest_safe
from lake_core.journal.marks import Marks
from lake_core.journal.purge import choose, taken_back, write_newest, write_state
from lake_core.journal.store_time import surely_past
from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook, decoded
from log_lake.agents.checkpoint.plan import CheckpointPolicy, JournalTail, due_at, policy_of, why_due
from log_lake.agents.checkpoint.report import CheckpointFailed, CheckpointResult, check_answered, journal_line
from log_lake.agents.request import Request
from log_lake.agents.work import Found, Work
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.settings import Settings
from log_lake.workers import Worker, Workers

log = logging.getLogger(__name__)

POOLS = "lake:pools"

JOURNAL = 1 << 20
"""The size in bytes that a journal counts as, when `OpenWorkers` must decide whether the work is small."""

LEAST_BETWEEN = 500
"""The least number of entries between two checkpoints that are written after a long tail.  Reading and folding so
many takes about 0.1 s (decision 298)."""

MOST_BETWEEN = 64
"""The most intermediate checkpoints that one run writes."""

Done = CheckpointResult | CheckpointFailed


def settings_of(lake: Lake, pool_name: str) -> Settings:
    """Returns the settings of a pool; the journal of the list of pools has the defaults.  Raises NotFound."""
    return Settings({}) if pool_name == POOLS else lake.pool(pool_name).settings


def all_journals(lake: Lake) -> list[str]:
    """Returns the names of all journals: that of the list of pools, and that of each pool."""
    return [POOLS, *(pool.name for pool in lake.pools())]


def journal_of(lake: Lake, pool_name: str) -> Journal[Any, Any]:
    """Returns the journal of a pool; the name `lake:pools` stands for the list of pools.  Raises NotFound."""
    if pool_name == POOLS:
        return lake.catalog.journal
    return lake.pool(pool_name).history.journal


def look(lake: Lake, pool_name: str, *, now: float) -> str | None:
    """Returns why the journal needs a checkpoint now; None if it does not.  Raises NotFound."""
    return _look(lake, pool_name, now=now).why


@dataclass(frozen=True)
class _Looked:
    """Why the journal needs a checkpoint (None if it does not), and when it will need one if nothing is written.

    `pool` is the journal's pool, None for the journal of pools.
    """

    pool: PoolConfig | None
    why: str | None
    due_at: float


def _look(lake: Lake, pool_name: str, *, now: float) -> _Looked:
    pool, journal, policy = _found(lake, pool_name)
    tail = _tail(journal, journal.marks(), policy)
    config = None if pool is None else pool.config
    return _Looked(config, why_due(tail, policy, now=now), due_at(tail, policy))


def _found(lake: Lake, pool_name: str) -> tuple[Pool | None, Journal[Any, Any], CheckpointPolicy]:
    """Returns the pool, None for the list of pools, with its journal and its policy.

    It looks up the name once: each look is a request, and a rename may give another pool the name.  Raises
    NotFound.
    """
    if pool_name == POOLS:
        return None, lake.catalog.journal, policy_of(settings_of(lake, pool_name))
    pool = lake.pool(pool_name)
    return pool, pool.history.journal, policy_of(pool.settings)


def _tail(journal: Journal[Any, Any], marks: Marks, policy: CheckpointPolicy) -> JournalTail:
    last = marks.checkpoints[0].version if marks.checkpoints else 0
    first = journal.read(last + 1)
    if first is None:
        return JournalTail(None, is_full=False)
    # versions have no holes: if this entry is there, so are all before it
    return JournalTail(first.written_at, is_full=journal.read(last + policy.entries) is not None)


def checkpoint_and_purge(lake: Lake, pool_name: str, *, now: float, purging: bool = True) -> CheckpointResult:
    """Writes a checkpoint if there are new entries, and purges by the pool's policy.

    Raises InvalidInput if the clock is far from the store's, and Unavailable.
    """
    marks = journal_of(lake, pool_name).marks()
    newest = marks.checkpoints[0].version if marks.checkpoints else 0
    written, at = write_checkpoint(lake, pool_name, now=now)
    purged = purge_pool(lake, pool_name, now=now) if purging else Purged(0)
    return CheckpointResult(
        pool_name,
        at,
        written,
        purged.fence,
        purged.entries,
        purged.checkpoints,
        tail_before=max(0, at - newest),
        tail_after=0,
    )


def write_checkpoint(lake: Lake, pool_name: str, *, now: float) -> tuple[bool, int]:
    """Writes a checkpoint if there are new entries.  Returns whether it wrote one, and the version of the newest
    checkpoint.

    After a long tail it also writes intermediate checkpoints.  It reads an existing checkpoint first: a damaged
    one does not count.  Raises Unavailable.
    """
    _, journal, policy = _found(lake, pool_name)
    loaded, new_id = journal.load(), lake.context.ids.new
    every = max(LEAST_BETWEEN, policy.entries)
    if write_between(journal, loaded, every=every, new_id=new_id, now=now):
        loaded = journal.load()
    return write_newest(journal, new_id=new_id, now=now, loaded=loaded)


def write_between(
    journal: Journal[Any, Any],
    newest: LoadedState[Any],
    *,
    every: int,
    new_id: Callable[[], str],
    now: float,
    most: int = MOST_BETWEEN,
) -> int:
    """Writes checkpoints of versions between the last checkpoint and the newest state.  Returns how many it wrote.

    They are `every` entries apart, or more if there would be more than `most`.  A reader of an earlier version
    begins with the checkpoint before it; a purge deletes them together with their entries.  Each is made from
    the one before, so the entries are folded once.  Raises Unavailable.
    """
    rests_on = 0 if newest.checkpoint is None else newest.checkpoint.version
    if newest.version - rests_on < 2 * every:  # the last checkpoint is no older: no marks need be listed
        return 0
    marks = journal.marks()
    last = max(marks.fence, *(mark.version for mark in marks.checkpoints), 0)
    step = max(every, -(-(newest.version - last) // (most + 1)))
    versions = range(last + step, newest.version - step + 1, step)
    for number, version in enumerate(versions):
        try:
            loaded = journal.load_version(version)
            if loaded is not None:
                mark = write_state(journal, loaded, id=new_id(), now=now)
                if taken_back(journal, mark, now=now):
                    return number
        except (NotFound, CheckpointGone, CheckpointDamaged) as error:  # readers do without
            log.info("%s: no checkpoint of version %d: %s", journal.name, version, error)
            return number
    return len(versions)


def purge_until(lake: Lake, pool_name: str, *, keep: float | None = None, now: float) -> int:
    """Returns the newest entry that may be purged, by the policy or because it is older than `keep` seconds; 0 if
    no entry may be purged.

    `now` is by the store's clock.
    """
    _, journal, policy = _found(lake, pool_name)
    duration = policy.keep_seconds if keep is None else keep
    if duration <= 0:
        return journal.load().version  # there is no age to prove
    return _older(journal, duration, now=now)


def _older(journal: Journal[Any, Any], age: float, *, now: float) -> int:
    """Returns the newest version that is older than `age` seconds at `now`, by the store's clock; 0 if none
    is."""
    return oldest_safe(journal, before=math.nextafter(now - age, -math.inf), now=now)


def purgeable(pool: Pool, *, newest: int, now: float) -> int:
    """Returns how many entries, up to `newest`, a purge may delete: entries that are older than the policy keeps,
    and covered by a checkpoint that is old enough too.

    If there is no such checkpoint but all entries are old, it counts the entries that a checkpoint of the
    newest state would cover.
    """
    journal = pool.history.journal
    marks = journal.marks()
    until = _older(journal, policy_of(pool.settings).keep_seconds, now=now)
    chosen = choose(journal, marks, until=until)
    if chosen is not None and chosen.version > marks.fence:
        return chosen.version - marks.fence
    return until - marks.fence if until == newest else 0


def plan_purge(lake: Lake, pool_name: str, *, keep: float | None = None, now: float) -> tuple[int, int]:
    """Returns the version of the fence that a purge would write, and how many entries it would delete."""
    journal = journal_of(lake, pool_name)
    until, marks = purge_until(lake, pool_name, keep=keep, now=now), journal.marks()
    chosen = choose(journal, marks, until=until)
    return (chosen.version, chosen.version - marks.fence) if chosen else (marks.fence, 0)


def purge_pool(lake: Lake, pool_name: str, *, keep: float | None = None, now: float) -> Purged:
    """Deletes the entries that the policy gives up, or those older than `keep` seconds by the store's clock.

    Raises InvalidInput if the clock is far from the store's, and Unavailable.
    """
    journal = journal_of(lake, pool_name)
    past = now if keep is not None and keep <= 0 else surely_past(journal, own=now)
    return purge(journal, until=purge_until(lake, pool_name, keep=keep, now=past))


def checkpoint_pools(workers: Workers, pools: Sequence[str]) -> list[Done]:
    """Returns, for each journal, its result or its error.  A journal that fails does not stop the others."""
    return sorted(workers.map(_done, pools), key=lambda one: one.pool)


def _done(worker: Worker, pool_name: str) -> Done:
    try:
        lake = Lake.open_on(worker.store)
        return checkpoint_and_purge(lake, pool_name, now=lake.context.now())
    except LakeError as error:
        return CheckpointFailed(pool_name, str(error), type(error).__name__)


class CheckpointAgent(Agent[Work, Done]):
    """The agent for journals that need a checkpoint.  One task handles all of them, because a Spark session for
    each would cost more than the work."""

    work = Work
    nothing = "no checkpoint is due"
    not_done = "nothing is written"
    none_done = "nothing was written"
    to_do = "What was written stays; the next run tries the others again"
    counted_as = "journals"
    sums = ("entries",)

    def pools(self, lake: Lake, asked: Request) -> list[str]:
        """Returns the names of the journals that the run looks at; the list of pools comes first."""
        for name in asked.pools:
            journal_of(lake, name)  # raises NotFound
        return list(dict.fromkeys(asked.pools)) or all_journals(lake)

    def look(self, run: AgentRun, name: str) -> PoolLook[Work]:
        """Returns work if a checkpoint is due.  Every run looks at the journal of the list of pools."""
        seen = _look(run.lake, name, now=run.lake.context.now())
        if not seen.why:
            return PoolLook(rests=seen.pool, until=seen.due_at)
        line = f"{name}: a checkpoint is due: {seen.why}"
        return PoolLook(lines=[line], work=[run.asked.work(Work, name, seen.why)])

    def nothing_in(self, names: Sequence[str]) -> str:
        """Says how many journals need no checkpoint."""
        return f"{self.nothing} in {counted(len(names), 'journal')}"

    def run_together(self, lake: Lake, all_work: Sequence[Work], open_workers: OpenWorkers) -> list[Done]:
        """Writes checkpoints for all these journals, and purges the entries that they cover."""
        with open_workers(lake.context, "lake checkpoint", size=len(all_work) * JOURNAL) as workers:
            results = checkpoint_pools(workers, [work.pool for work in all_work])
        for one in results:
            if isinstance(one, CheckpointFailed):
                log.error("%s: %s", one.pool, one.failed)
            else:
                log.info("%s", journal_line(one))
        return results

    def check_answered(self, results: Sequence[Done]) -> None:
        check_answered(results)

    def lines(self, result: Done) -> Sequence[str]:
        return [journal_line(result)] if isinstance(result, CheckpointResult) else []

    def totals(self, handed: Found[Work], results: Sequence[Done]) -> dict[str, int]:
        return super().totals(handed, [one for one in results if isinstance(one, CheckpointResult)])

    def total(self, totals: Mapping[str, int]) -> str:
        if not totals["journals"]:
            return self.none_done
        entries = counted(totals["entries"], "entry", "entries")
        return f"{counted(totals['journals'], 'journal')}: purged {entries}"

    def failures(self, handed: Found[Work], results: Sequence[Done]) -> list[str]:
        """Returns a line for each journal that failed, and for each that no task handled."""
        tried = {one.pool for one in results}
        return [f"{one.pool}: {one.failed}" for one in results if isinstance(one, CheckpointFailed)] + [
            f"{one.pool}: run failed; its log says why" for one in handed.work if one.pool not in tried
        ]

    def decoded_result(self, values: Any) -> Done:
        has_failed = isinstance(values, Mapping) and "failed" in values
        kind: type[Done] = CheckpointFailed if has_failed else CheckpointResult
        return decoded(values, kind, "a result")


AGENT = CheckpointAgent()
