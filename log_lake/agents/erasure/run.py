"""The erasure agent: finds the erasures that are pending or asked for, and does the work.

`find` begins an erasure when it writes the receipt.  From then on the erasure is pending until it is done.  If a
run is killed, or meets a tag or a reader, the next run resumes it.  The erasures of a pool run one after
another, because each changes the pool for the others.  Any `Workers` read and write the objects.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from lake_core.errors import LakeError
from lake_core.keys import KeyRange
from lake_core.naming import split_pool
from lake_core.phrases import counted, human_size, human_time
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook
from log_lake.agents.erasure.plan import ErasurePlan, NamedRecords, named_records, plan_erasures, policy_of
from log_lake.agents.erasure.report import (
    ErasureResult,
    ErasuresResult,
    bound_text,
    erasure_line,
    release_lines,
    result_of,
    sighting_line,
)
from log_lake.agents.finding import looks
from log_lake.agents.reporting import newest_version
from log_lake.agents.request import Request
from log_lake.agents.work import Found, PutOff, Work
from log_lake.erasure import receipt as receipts
from log_lake.erasure.begin import asked_of, begin, check
from log_lake.erasure.receipt import DONE, PENDING
from log_lake.erasure.run import go_on
from log_lake.erasure.sighting import bound
from log_lake.erasure.sighting import look as look_for
from log_lake.lake import Lake
from log_lake.lake.counting import records_met
from log_lake.lake.pool import Pool
from log_lake.settings import Settings
from log_lake.texts.keytext import RangeText
from log_lake.workers import Workers

log = logging.getLogger(__name__)


def plan(pool: Pool, named: NamedRecords | None = None) -> ErasurePlan:
    """Returns the erasures to do in a pool; lists and reads the pool's receipts.  Raises InvalidInput, Corrupt,
    Unavailable."""
    span = span_of(pool, named) if named is not None else None
    where = named.where if named is not None else None
    return plan_erasures(receipts.read_all(pool), sub_pool=pool.sub_pool, span=span, where=where)


def span_of(pool: Pool, named: NamedRecords) -> KeyRange:
    """Returns the range of keys that the run names, read by the types of the pool's key.  Raises
    InvalidInput."""
    view = pool.at()
    return named.span.read(view.key, view.key_classes)


def erase_pending(
    lake: Lake,
    pool_name: str,
    ids: Sequence[str] | None = None,
    *,
    grace: str | None = None,
    keeps_history: bool = False,
    workers: Workers | None = None,
) -> list[ErasureResult]:
    """Continues these erasures of a pool; None: all pending ones.

    If one fails, the others still run.  In the end it raises the first failure: NotFound, Conflict, Corrupt,
    OutcomeUnknown, Unavailable.  Finished steps stay, and the next run resumes.
    """
    pool = lake.pool(pool_name)
    policy = policy_of(pool.settings, grace=grace)
    results: list[ErasureResult] = []
    failures: list[LakeError] = []
    for id in [one.id for one in plan(pool).pending] if ids is None else ids:
        try:
            before = receipts.read(pool, id)
            receipt = go_on(pool, before, grace=policy.grace, keeps_history=keeps_history, workers=workers)
        except LakeError as error:
            log.error("%s: erasure %s: %s", pool_name, id, error)
            failures.append(error)
            continue
        results.append(result_of(pool_name, receipt, before=before))
        log.info("%s", erasure_line(results[-1]))
    if failures:
        raise failures[0]
    return results


class NewErasure(msgspec.Struct, frozen=True):
    """An erasure that the task `run` begins, after a person has approved it; `pool` may be a sub-pool."""

    pool: str
    span: RangeText
    where: str | None


class ErasureWork(Work, frozen=True, kw_only=True):
    """The erasures to do in a pool: the ids of pending ones, the new ones to `begin`, and the question to a person
    about each.

    `erasures` is None if the pool could not be read: then the task resumes all pending erasures.
    """

    erasures: tuple[str, ...] | None
    begin: tuple[NewErasure, ...] | msgspec.UnsetType = msgspec.UNSET
    says: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    grace: str | None = None
    keep_history: bool = False

    @property
    def weight(self) -> int:
        return max(1, len(self.erasures or ()))

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person is asked before the work is done, one line for each erasure.  For a pool that could not be
        read, it is one line that says so (`Work.title`)."""
        return self.says or (self.title,)

    @property
    def is_begun(self) -> bool:
        """Whether one of the erasures is already pending."""
        return bool(self.erasures)


class ErasureAgent(Agent[ErasureWork, ErasuresResult]):
    """The agent for pools with pending erasures, and for pools that a run names.

    Before it begins any erasure, it checks in every pool what the run names.  A dry run begins none: it logs which
    objects hold matching records.
    """

    work, result = ErasureWork, ErasuresResult
    nothing = "no erasure is pending"
    not_done = "nothing is erased"
    none_done = "nothing was erased"
    to_do = "What was done stays; release what is named, and the next run goes on"
    counted_as = "erasures"
    sums = ("deleted", "freed", "written", "size_written", "held")

    def check(self, asked: Request) -> None:
        """Raises InvalidInput for an ambiguous range, for records without a pool, or if `grace` is not a
        duration."""
        _named(asked)
        policy_of(Settings({}), grace=asked.grace)

    def begin(self, lake: Lake, asked: Request, names: Sequence[str]) -> None:
        """Begins the erasures that the run names, unless a person must approve first, or it is a dry run."""
        named = _named(asked)
        if named is None:
            return
        spans = {name: span_of(lake.pool(name), named) for name in names}
        for name, span in spans.items():
            check(lake.pool(name), key_range=span, where=named.where)
        for name, span in spans.items() if asked.begins and not asked.dry_run else ():
            receipt = begin(
                lake.pool(name), key_range=span, where=named.where, keeps_history=asked.keep_history
            )
            log.info("%s: erasure %s is pending", name, receipt.id)

    def others(self, run: AgentRun, names: Sequence[str]) -> list[str]:
        """Returns all pools, if the run names records: a pool without other work may hold such records."""
        return list(names) if _named(run.asked) is not None else super().others(run, names)

    def paused(self, run: AgentRun, put_off: Sequence[PutOff]) -> list[PutOff]:
        """Returns those deferred pools that have a pending erasure, or may hold records that the run asks to
        erase; also those that cannot be read."""
        waiting = {one.pool: one for one in put_off}
        kept = []
        for name, seen in looks(self.others(run, list(waiting)), partial(self._look, run)):
            if isinstance(seen, LakeError):
                log.error("%s: %s", name, seen)
                kept.append(waiting[name])
                continue
            pool, due = seen
            if not due.idle:
                kept.append(waiting[name])
            elif not pool.sub_pool:
                run.quiet.found_nothing(pool.config)
        return kept

    def _look(self, run: AgentRun, name: str) -> tuple[Pool, ErasurePlan]:
        pool = run.lake.pool(name)
        return pool, plan(pool, _named(run.asked))

    def look(self, run: AgentRun, name: str) -> PoolLook[ErasureWork]:
        """Returns the erasures of the pool that are pending, and the one that the run names."""
        asked, named = run.asked, _named(run.asked)
        pool, due = self._look(run, name)
        if asked.dry_run:
            _log_sightings(pool, due, named, grace=asked.grace)
        if due.idle:
            return PoolLook(rests=None if pool.sub_pool else pool.config)
        new = due.is_new and named is not None
        begins = (NewErasure(name, named.span, named.where),) if new and named is not None else ()
        ids = tuple(one.id for one in due.pending)
        says = () if asked.begins else tuple(_questions(pool, due, named))
        how = {"grace": asked.grace, "keep_history": asked.keep_history}
        pool_name, _ = split_pool(name)  # the sub-pools of a pool are worked on with it
        return PoolLook(
            work=[asked.work(ErasureWork, pool_name, "", erasures=ids, begin=begins, says=says, **how)]
        )

    def unreadable(self, asked: Request, name: str, error: LakeError) -> ErasureWork | PutOff:
        """Returns work, so that the task tries again and fails with the same error.  If a person must approve the
        work, defers the pool instead, because the person could not see what the work does."""
        if not asked.begins:
            return asked.put_off(name, "it cannot be read")
        how = {"grace": asked.grace, "keep_history": asked.keep_history}
        return asked.work(ErasureWork, split_pool(name)[0], "cannot be read", erasures=None, **how)

    def merged(self, all_work: Sequence[ErasureWork], *, now: float) -> list[ErasureWork]:
        """Returns one piece of work for each pool; a run may name several of its sub-pools."""
        by_pool: dict[str, ErasureWork] = {}
        for work in all_work:
            before = by_pool.setdefault(
                work.pool, msgspec.structs.replace(work, erasures=(), begin=(), says=())
            )
            if work.erasures is None or before.erasures is None:  # that task goes on with all
                by_pool[work.pool] = before if before.erasures is None else work
                continue
            new = [one for one in work.erasures if one not in before.erasures]
            lines = dict(zip((*work.erasures, *(work.begin or ())), work.says or (), strict=False))
            asked = [lines[one] for one in (*new, *(work.begin or ())) if one in lines]
            for line in asked:
                log.info("%s", line)
            ids, begins = (*before.erasures, *new), (*(before.begin or ()), *(work.begin or ()))
            by_pool[work.pool] = msgspec.structs.replace(
                work,
                title=f"{work.pool}: {counted(len(ids) + len(begins), 'erasure')}",
                erasures=ids,
                begin=begins,
                says=(*(before.says or ()), *asked),
            )
        return list(by_pool.values())

    def run(self, lake: Lake, work: ErasureWork, open_workers: OpenWorkers) -> ErasuresResult:
        """Begins the new erasures of a pool, and continues these and the pending ones."""
        ids = begin_handed_out(lake, work)
        with open_workers(lake.context, f"lake erasure {work.pool}") as workers:
            done = erase_pending(
                lake, work.pool, ids, grace=work.grace, keeps_history=work.keep_history, workers=workers
            )
        return ErasuresResult(work.pool, newest_version(one.version for one in done), tuple(done))

    def lines(self, result: ErasuresResult) -> Sequence[str]:
        return [erasure_line(one) for one in result.erasures]

    def totals(self, handed: Found[ErasureWork], results: Sequence[ErasuresResult]) -> dict[str, int]:
        erasures = [one for result in results for one in result.erasures]
        return self.summed(erasures) | {"done": sum(one.status == DONE for one in erasures)}

    def total(self, totals: Mapping[str, int]) -> str:
        if not totals["erasures"]:
            return self.none_done
        return (
            f"{counted(totals['erasures'], 'erasure')}, {totals['done']:,} done: deleted "
            f"{counted(totals['deleted'], 'object')} ({human_size(totals['freed'])})"
        )

    def failures(self, handed: Found[ErasureWork], results: Sequence[ErasuresResult]) -> list[str]:
        """Returns a line for each pool that failed, each holder that keeps an erasure pending, and each deferred
        pool that has a pending erasure."""
        erasures = [one for result in results for one in result.erasures if one.status == PENDING]
        return [
            *super().failures(handed, results),
            *(line for one in erasures for line in release_lines(one)),
            *(f"{one.title}: an erasure is pending" for one in handed.put_off if one.is_begun),
        ]


def _named(asked: Request) -> NamedRecords | None:
    """Returns the records that the run names."""
    return named_records(where=asked.where, key=asked.key, low=asked.low, high=asked.high, pools=asked.pools)


def _questions(pool: Pool, work: ErasurePlan, named: NamedRecords | None) -> Iterator[str]:
    """Yields the questions to a person, one line per erasure; `pool` may be a sub-pool."""
    for one in work.pending:
        of = replace(pool, sub_pool=one.sub_pool)
        searched = bound(of, key_range=one.key_range, where=asked_of(of, one))
        begun = human_time(one.begun / 1_000_000)
        what = f"go on with erasure {one.id}, which {one.author} began at {begun}"
        yield f"{pool.name}: {what}: {bound_text(searched)}"
    if work.is_new and named is not None:
        searched = bound(pool, key_range=span_of(pool, named), where=named.where)
        yield f"{pool.name}: begin an erasure of the records that this run names: {bound_text(searched)}"


def begin_handed_out(lake: Lake, work: ErasureWork) -> list[str] | None:
    """Begins the new erasures that a piece of work asks for.  Returns the ids of all its erasures, or None if the
    work is to resume all pending ones.

    If the task is retried, it finds the same erasures pending.  Raises InvalidInput, NotFound, Corrupt,
    Unavailable.
    """
    if work.erasures is None:
        return None
    ids = list(work.erasures)
    for one in work.begin or ():
        pool = lake.pool(one.pool)
        span = span_of(pool, NamedRecords(one.span, one.where))
        receipt = begin(pool, key_range=span, where=one.where, keeps_history=work.keep_history)
        log.info("%s: erasure %s is pending", one.pool, receipt.id)
        ids.append(receipt.id)
    return list(dict.fromkeys(ids))


def _log_sightings(pool: Pool, work: ErasurePlan, named: NamedRecords | None, *, grace: str | None) -> None:
    """Logs the records that each erasure would find; a pending one is named by its id."""
    policy = policy_of(pool.settings, grace=grace)
    for one in work.pending:
        searched = replace(pool, sub_pool=one.sub_pool)
        where = asked_of(searched, one)
        sighting = look_for(searched, key_range=one.key_range, where=where, grace=policy.grace)
        met = records_met(searched.at(), one.key_range, where)
        log.info("%s", sighting_line(pool.name, sighting, met=met, erasure_id=one.id))
    if work.is_new and named is not None:
        span = span_of(pool, named)
        sighting = look_for(pool, key_range=span, where=named.where, grace=policy.grace)
        met = records_met(pool.at(), span, named.where)
        log.info("%s", sighting_line(pool.name, sighting, met=met))


AGENT = ErasureAgent()
