"""The ingest agent without Spark: it lists the pools' batches that are to be ingested.

One bad thing does not hold back the others.  A pool whose source or journal cannot be read is reported, and the
other pools go on.  The agent looks before it starts Spark, and not again: if another run commits a batch meanwhile,
the commit knows it by its token, or refuses it because of its files.  `spark_apps.ingest` commits a batch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lake_core.errors import LakeError, NotFound
from lake_core.phrases import counted
from lake_core.store import address_of
from log_lake.agents.finding import divided, handed_out, looks
from log_lake.agents.ingest import parking
from log_lake.agents.ingest.parking import Parked
from log_lake.agents.ingest.plan import plan_batches
from log_lake.agents.ingest.policy import policy_of
from log_lake.agents.ingest.report import (
    lag_of,
    lag_text,
    log_changed,
    parked_text,
    plan_lines,
    summed_lags,
)
from log_lake.agents.ingest.sources import SourceFiles, digest_of, files_there, pools_that_ingest, sort_out
from log_lake.agents.quiet import Quiet
from log_lake.agents.request import OpenLake, Request
from log_lake.agents.roster import AGENTS
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.settings import Settings

log = logging.getLogger(__name__)


def find(
    params: Mapping[str, Any], *, open_lake: OpenLake = Lake.open, recurring: bool = False
) -> list[dict[str, Any]]:
    """The agent's first task: batches as plain values, for one task `run` each.

    `params`: lake, pools (none named: all), wait, limit, dry_run.  A dry run logs the plan and hands out no batch.
    `recurring` is as of `Quiet.of`.  A pool whose source or journal cannot be read is put off, and the report
    fails: the next run looks again.  Parked files, and files that the limit leaves too long, are put off too.
    """
    asked = Request.read(params, also=AGENTS["ingest"].parameters)
    lake = open_lake(asked.lake)
    all_work: list[dict[str, Any]] = []
    parked: dict[str, Sequence[Parked]] = {}
    names, put_off = divided(pools_that_ingest(lake, asked.pools), lake, asked, agent="ingest")
    quiet = Quiet.of(lake, asked, agent="ingest", recurring=recurring)
    configs = {pool.name: pool for pool in lake.pools()}
    access = address_of(lake.store)

    def look(name: str) -> tuple[Pool, SourceFiles] | None:
        config = configs.get(name)
        there = [] if config is None else files_there(Settings(config.settings), access=access)
        seen = digest_of(there)
        if config is not None and quiet.is_as_seen(config, seen):
            return None
        try:
            pool = lake.pool(name)
        except NotFound:  # dropped since
            return None
        if pool.config != config:  # changed since, or another pool of that name
            there, config = files_there(pool.settings, access=access), None
        files = sort_out(pool, there)
        if config is not None and not (files.waiting or files.parked or files.forgotten):
            quiet.found_nothing(config, seen=seen)
        return pool, files

    for name, answer in looks(names, look):
        if isinstance(answer, LakeError):
            log.error("%s: %s", name, answer)
            why = "it cannot be read"
            put_off.append(asked.work(name, f"put off: {why}", put_off=why, failed=str(answer)))
            continue
        if answer is None:
            continue
        pool, files = answer
        policy, now = policy_of(pool.settings, wait=asked.wait), lake.context.now()
        planned = plan_batches(files.waiting, policy, now=now)
        batches = {batch.token(asked.branch): batch for batch in planned}
        for line in plan_lines(name, files.waiting, batches, policy):
            log.info("%s", line)
        log_changed(name, files.changed)
        if files.parked:
            parked[name] = files.parked
            log.warning("%s: %s", name, parked_text(name, files.parked))
        if not asked.dry_run:
            parking.release(pool, files.forgotten)
        for token, batch in batches.items():
            plain = msgspec.to_builtins(list(batch.files))
            lag = lag_of(batch.files, policy, now=now)
            all_work.append(asked.work(name, counted(len(plain), "file"), token=token, files=plain, **lag))
    quiet.write()
    handed = handed_out(
        all_work,
        put_off,
        dry_run=asked.dry_run,
        nothing="no batch is due",
        not_done="nothing is ingested",
        limit=asked.limit,
        now=lake.context.now(),
    )
    if asked.dry_run:
        return handed
    tokens = {work["token"] for work in handed if "token" in work}
    left = summed_lags(work for work in all_work if work["token"] not in tokens)
    return [
        *handed,
        *(_left_alone(asked, name, parked.get(name, ()), left.get(name)) for name in {**parked, **left}),
    ]


def _left_alone(
    asked: Request, name: str, parked: Sequence[Parked], lag: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What is handed out for the report of files that the run leaves alone, and why."""
    why, titles, figures = [], [], {}
    if parked:
        why.append(f"{counted(len(parked), 'file is', 'files are')} parked (lake parked {name})")
        titles.append(parked_text(name, parked))
        figures["parked"] = len(parked)
    if lag is not None:
        why.append("the agent lags behind what arrives")
        titles.append(lag_text(lag))
        figures["late"] = lag["late"]
    return asked.work(name, "; ".join(titles), put_off="; ".join(why), **figures)
