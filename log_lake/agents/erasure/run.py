"""The erasure agent without Spark: which erasures are pending or asked for, and the work itself.

`find` begins what the run names: it writes the receipt.  From then on the erasure is pending until it is done, so
a run that is killed, or that meets a tag or a reader, is gone on with by the next one.  The erasures of a pool are
worked on one after another, since each changes the pool for the others.  Objects are read and written by any
`Workers`.  Callers: the DAG, the Spark application.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lake_core.errors import LakeError
from lake_core.keys import KeyRange
from lake_core.naming import split_pool
from lake_core.phrases import counted, human_time
from log_lake.agents.erasure.plan import ErasurePlan, NamedRecords, named_records, plan_erasures, policy_of
from log_lake.agents.erasure.report import ErasureResult, bound_text, erasure_line, result_of, sighting_line
from log_lake.agents.finding import divided, handed_out, look_at_each, looks
from log_lake.agents.quiet import Quiet
from log_lake.agents.request import OpenLake, Request, named_pools
from log_lake.agents.roster import AGENTS
from log_lake.erasure import receipt as receipts
from log_lake.erasure.begin import begin, check
from log_lake.erasure.run import go_on
from log_lake.erasure.sighting import bound
from log_lake.erasure.sighting import look as look_for
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.settings import Settings
from log_lake.texts.keytext import RangeText
from log_lake.workers import Workers

log = logging.getLogger(__name__)


def plan(pool: Pool, named: NamedRecords | None = None) -> ErasurePlan:
    """What there is to do; lists and reads the receipts of the pool.  Raises InvalidInput, Corrupt, Unavailable."""
    span = span_of(pool, named) if named is not None else None
    where = named.where if named is not None else None
    return plan_erasures(receipts.read_all(pool), sub_pool=pool.sub_pool, span=span, where=where)


def span_of(pool: Pool, named: NamedRecords) -> KeyRange:
    """The range of keys that the run names, read by the types of the pool's key.  Raises InvalidInput."""
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
    """Go on with these erasures of a pool; None: with all that are pending.

    One that fails does not hold back the others.  Raises the first failure in the end: NotFound, Conflict, Corrupt,
    OutcomeUnknown, Unavailable; what was done stays, and the next run goes on.
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
        log.info("%s", erasure_line(vars(results[-1])))
    if failures:
        raise failures[0]
    return results


def find(
    params: Mapping[str, Any],
    *,
    open_lake: OpenLake = Lake.open,
    begins: bool = True,
    recurring: bool = False,
) -> list[dict[str, Any]]:
    """The agent's first task: begins what the run names, and hands out pools with pending erasures.

    Without `begins`, the task `run` of a pool begins them (`begin_handed_out`), since a person is asked first.

    `params`: lake, pools (none named: all), where, key, from, to (which records; then pools are named), grace,
    keep_history, dry_run.  What the run names is checked in all pools before it is begun in one.  A dry run logs
    what holds such records, and hands out nothing.  `recurring` is as of `Quiet.of`.

    Raises InvalidInput, NotFound, Corrupt, Unavailable.
    """
    asked = Request.read(params, also=AGENTS["erasure"].parameters)
    named = named_records(where=asked.where, key=asked.key, low=asked.low, high=asked.high, pools=asked.pools)
    lake = open_lake(asked.lake)
    names = named_pools(lake, asked.pools)
    policy_of(Settings({}), grace=asked.grace)  # raises InvalidInput
    if named is not None:
        _begin(lake, names, named, keeps_history=asked.keep_history, begins=begins and not asked.dry_run)
    how = {"grace": asked.grace, "keep_history": asked.keep_history}
    all_work: dict[str, dict[str, Any]] = {}

    def look(name: str) -> tuple[Pool, ErasurePlan]:
        pool = lake.pool(name)
        work = plan(pool, named)
        if asked.dry_run:
            _log_sightings(pool, work, named, grace=asked.grace)
        return pool, work

    open_names, put_off = divided(names, lake, asked, agent="erasure")
    quiet = Quiet.of(lake, asked, agent="erasure", recurring=recurring and named is None)
    waiting = {one["pool"]: one for one in put_off}
    put_off = _with_work(lake, [waiting[name] for name in quiet.others(list(waiting))], named, quiet)
    for name, seen in look_at_each(quiet.others(open_names), look, named=bool(asked.pools)):
        pool, work = seen or (None, None)
        if pool is not None and work is not None and work.idle and not pool.sub_pool:
            quiet.found_nothing(pool.config)
        pool_name, _ = split_pool(name)  # the sub-pools of a pool are worked on with it
        if work is None and begins:
            all_work[pool_name] = asked.work(pool_name, "cannot be read", erasures=None, **how)
        elif work is None:  # a person cannot approve what is not known
            why = "it cannot be read"
            put_off.append(asked.work(pool_name, f"put off: {why}", put_off=why))
        elif not work.idle and all_work.get(pool_name, {}).get("erasures", ()) is not None:
            before = all_work.get(pool_name, {})
            values = _handed(before, work, name, named)
            if not begins:
                new = [one for one in work.pending if one.id not in before.get("erasures", ())]
                for line in _questions(lake.pool(name), replace(work, pending=tuple(new)), named):
                    log.info("%s", line)
                    values["says"].append(line)
            what = counted(len(values["erasures"]) + len(values["begin"]), "erasure")
            all_work[pool_name] = asked.work(pool_name, what, **values, **how)
    quiet.write()
    return handed_out(
        list(all_work.values()),
        put_off,
        dry_run=asked.dry_run,
        nothing="no erasure is pending",
        not_done="nothing is erased",
    )


def _with_work(
    lake: Lake, put_off: Sequence[dict[str, Any]], named: NamedRecords | None, quiet: Quiet
) -> list[dict[str, Any]]:
    """Those in whose pool an erasure is pending or asked for; a pool that cannot be read may have one."""

    def look(name: str) -> tuple[Pool, bool]:
        pool = lake.pool(name)
        return pool, plan(pool, named).idle

    kept = []
    for one, (name, seen) in zip(put_off, looks([one["pool"] for one in put_off], look), strict=True):
        if isinstance(seen, LakeError):
            log.error("%s: %s", name, seen)
            kept.append(one)
            continue
        pool, idle = seen
        if not idle:
            kept.append(one)
        elif not pool.sub_pool:
            quiet.found_nothing(pool.config)
    return kept


def _handed(
    before: Mapping[str, Any], work: ErasurePlan, name: str, named: NamedRecords | None
) -> dict[str, Any]:
    """What is handed out for a pool: which erasures to go on with, and which to begin.

    `before` is what another of its sub-pools has; `name` is that of the pool or the sub-pool.
    """
    begin = list(before.get("begin", ()))
    if work.is_new and named is not None:
        begin.append({"pool": name, "span": vars(named.span), "where": named.where})
    ids = dict.fromkeys([*before.get("erasures", ()), *(one.id for one in work.pending)])
    return {"erasures": list(ids), "begin": begin, "says": list(before.get("says", ()))}


def _questions(pool: Pool, work: ErasurePlan, named: NamedRecords | None) -> Iterator[str]:
    """What a person is asked about, a line an erasure; `pool` may be a sub-pool."""
    for one in work.pending:
        searched = bound(replace(pool, sub_pool=one.sub_pool), key_range=one.key_range, where=one.where)
        begun = human_time(one.begun / 1_000_000)
        what = f"go on with erasure {one.id}, which {one.author} began at {begun}"
        yield f"{pool.name}: {what}: {bound_text(searched)}"
    if work.is_new and named is not None:
        searched = bound(pool, key_range=span_of(pool, named), where=named.where)
        yield f"{pool.name}: begin an erasure of the records that this run names: {bound_text(searched)}"


def begin_handed_out(lake: Lake, work: Mapping[str, Any]) -> list[str] | None:
    """The ids of the erasures of a piece of work, None for all that are pending; those that it names are begun.

    A task that is tried again finds the same ones pending.  Raises InvalidInput, NotFound, Corrupt, Unavailable.
    """
    if work["erasures"] is None:
        return None
    ids = list(work["erasures"])
    for one in work.get("begin", ()):
        pool = lake.pool(one["pool"])
        span = span_of(pool, NamedRecords(RangeText(**one["span"]), one["where"]))
        receipt = begin(pool, key_range=span, where=one["where"], keeps_history=work["keep_history"])
        log.info("%s: erasure %s is pending", one["pool"], receipt.id)
        ids.append(receipt.id)
    return list(dict.fromkeys(ids))


def _begin(
    lake: Lake, names: Sequence[str], named: NamedRecords, *, keeps_history: bool, begins: bool
) -> None:
    """Check the records that the run names in all pools; then begin their erasures, if it `begins` them."""
    spans = {name: span_of(lake.pool(name), named) for name in names}
    for name, span in spans.items():
        check(lake.pool(name), key_range=span, where=named.where)
    for name, span in spans.items() if begins else ():
        receipt = begin(lake.pool(name), key_range=span, where=named.where, keeps_history=keeps_history)
        log.info("%s: erasure %s is pending", name, receipt.id)


def _log_sightings(pool: Pool, work: ErasurePlan, named: NamedRecords | None, *, grace: str | None) -> None:
    """Log what each erasure would find; of a pending one, by its id."""
    policy = policy_of(pool.settings, grace=grace)
    for one in work.pending:
        searched = replace(pool, sub_pool=one.sub_pool)
        sighting = look_for(searched, key_range=one.key_range, where=one.where, grace=policy.grace)
        log.info("%s", sighting_line(pool.name, sighting, erasure_id=one.id))
    if work.is_new and named is not None:
        span = span_of(pool, named)
        sighting = look_for(pool, key_range=span, where=named.where, grace=policy.grace)
        log.info("%s", sighting_line(pool.name, sighting))
