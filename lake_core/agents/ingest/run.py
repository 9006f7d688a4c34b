"""The ingest agent without Spark: it lists the pools' batches that are to be ingested.

One bad thing does not hold back the others.  A pool whose source or journal cannot be read is reported, and the
other pools go on.  The agent looks before it starts Spark, and not again: if another run commits a batch meanwhile,
the commit knows it by its token, or refuses it because of its files.  `spark_apps.ingest` commits a batch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from lake_core.agents.finding import divided, handed_out, looks
from lake_core.agents.ingest import parking
from lake_core.agents.ingest.plan import plan_batches
from lake_core.agents.ingest.policy import policy_of
from lake_core.agents.ingest.report import log_changed, log_parked, plan_lines
from lake_core.agents.ingest.sources import look, pools_that_ingest
from lake_core.agents.request import OpenLake, Request
from lake_core.agents.roster import AGENTS
from lake_core.errors import LakeError
from lake_core.lake import Lake
from lake_core.phrases import counted

log = logging.getLogger(__name__)


def find(params: Mapping[str, Any], *, open_lake: OpenLake = Lake.open) -> list[dict[str, Any]]:
    """The agent's first task: batches as plain values, for one task `run` each.

    `params`: lake, pools (none named: all), wait, limit, dry_run.  A dry run logs the plan and hands out no batch.
    """
    asked = Request.read(params, also=AGENTS["ingest"].parameters)
    lake = open_lake(asked.lake)
    all_work: list[dict[str, Any]] = []
    names, put_off = divided(pools_that_ingest(lake, asked.pools), lake, asked, agent="ingest")
    for name, files in looks(names, lambda name: look(lake.pool(name))):
        if isinstance(files, LakeError):  # the report says it again, and fails
            log.error("%s: %s", name, files)
            continue
        pool = lake.pool(name)
        policy = policy_of(pool.settings, wait=asked.wait)
        planned = plan_batches(files.waiting, policy, now=lake.context.now())
        batches = {batch.token(asked.branch): batch for batch in planned}
        for line in plan_lines(name, files.waiting, batches, policy):
            log.info("%s", line)
        log_changed(name, files.changed)
        log_parked(name, files.parked)
        if not asked.dry_run:
            parking.release(pool, files.forgotten)
        for token, batch in batches.items():
            plain = msgspec.to_builtins(list(batch.files))
            all_work.append(asked.work(name, counted(len(plain), "file"), token=token, files=plain))
    return handed_out(
        all_work,
        put_off,
        dry_run=asked.dry_run,
        nothing="no batch is due",
        not_done="nothing is ingested",
        limit=asked.limit,
        now=lake.context.now(),
    )
