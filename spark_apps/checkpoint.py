"""Checkpoints and purges, pools spread over Spark tasks: the checkpoint agent's application.

    spark-submit spark_apps/checkpoint.py --lake URI [POOL...]

A task takes one journal: it writes a checkpoint if there is something new, and purges by the pool's policy.  A
journal that fails leaves the others standing, and is named at the end.  The application may be stopped and run
again at any point; nothing is done twice.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from lake_core import errors
from log_lake.agents.checkpoint.report import journal_line
from log_lake.agents.checkpoint.run import all_journals, checkpoint_and_purge, journal_of, look
from log_lake.agents.jobs import keeps_jobs, recorded_each
from log_lake.agents.request import OpenLake
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from log_lake.workers import Worker
from spark_apps.session import OpenSpark, spark_session
from spark_apps.workers import workers_of

log = logging.getLogger(__name__)

JOURNAL = 1 << 20
"""Bytes that a journal counts as, where it is asked whether the work is small."""


def checkpoint_pools(spark: Any, lake: Lake, pools: list[str]) -> list[dict[str, Any]]:
    """A `CheckpointResult` as values for each journal; for one that failed: `pool`, `failed`, `kind` of error."""
    done = workers_of(spark, lake.context).map(_done, pools)
    return sorted(done, key=lambda one: str(one["pool"]))


def _done(worker: Worker, pool_name: str) -> dict[str, Any]:
    """What was done to one journal, otherwise its error, which holds no other journal back."""
    try:
        lake = Lake.open_on(worker.store)
        return vars(checkpoint_and_purge(lake, pool_name, now=lake.context.now()))
    except errors.LakeError as error:
        return {"pool": pool_name, "failed": str(error), "kind": type(error).__name__}


def run(
    all_work: list[dict[str, Any]], *, open_lake: OpenLake = Lake.open, open_spark: OpenSpark = spark_session
) -> list[dict[str, Any]]:
    """The agent's task: all journals that `agents.checkpoint.run.find` gave, in one session.

    `agents.checkpoint.report.check_answered` says whether the task is to be tried again.
    """
    lake = open_lake(all_work[0]["lake"])
    with open_spark("lake checkpoint", size=len(all_work) * JOURNAL) as spark:
        results = checkpoint_pools(spark, lake, [work["pool"] for work in all_work])
    for one in results:
        if one.get("failed"):
            log.error("%s: %s", one["pool"], one["failed"])
        else:
            log.info("%s", journal_line(one))
    return results


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: a JSON line a journal on standard output."""
    parser = Parser(description="Write checkpoints and purge journals, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: those that want it")
    args = parser.parse_args(argv)
    try:
        lake = Lake.open(args.lake)
        for pool in args.pools:
            journal_of(lake, pool)  # raises NotFound
        pools = args.pools or [
            name for name in all_journals(lake) if look(lake, name, now=lake.context.now())
        ]
        if pools:
            kept = pools if keeps_jobs(lake) else []
            with (
                recorded_each(lake, agent="checkpoint", pool_names=kept) as jobs,
                spark_session("lake checkpoint", remote=args.remote) as spark,
            ):
                results = checkpoint_pools(spark, lake, pools)
                jobs.update((done["pool"], done) for done in results)
            for done in results:
                print(json.dumps(done))
            if any(done.get("failed") for done in results):
                return errors.Incomplete.exit_status
    except errors.LakeError as error:
        sys.stderr.write(f"checkpoint: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
