"""Checkpoints and purges, with pools spread over Spark tasks: the checkpoint agent's application.

    spark-submit spark_apps/checkpoint.py --lake URI [POOL...]

A task takes one journal: it writes a checkpoint if there are new entries, and purges by the pool's policy.  If a
journal fails, the others are still done, and the failure is reported at the end.  The application may be stopped
and run again at any point; nothing is done twice.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from lake_core.errors import Incomplete
from log_lake.agents.checkpoint.report import CheckpointFailed
from log_lake.agents.checkpoint.run import all_journals, checkpoint_pools, journal_of, look
from log_lake.agents.jobs import keeps_jobs, recorded_each
from log_lake.agents.work import encoded
from log_lake.lake import Lake
from spark_apps import application
from spark_apps.session import spark_session
from spark_apps.workers import workers_of


def _act(args: Namespace, lake: Lake) -> int:
    for pool in args.pools:
        journal_of(lake, pool)  # raises NotFound
    pools = args.pools or [name for name in all_journals(lake) if look(lake, name, now=lake.context.now())]
    if not pools:
        return 0
    with (
        recorded_each(lake, agent="checkpoint", pool_names=pools if keeps_jobs(lake) else []) as jobs,
        spark_session("lake checkpoint", remote=args.remote) as spark,
    ):
        results = checkpoint_pools(workers_of(spark, lake.context), pools)
        jobs.update((done.pool, encoded(done)) for done in results)
    for done in results:
        print(json.dumps(encoded(done)))
    return Incomplete.exit_status if any(isinstance(one, CheckpointFailed) for one in results) else 0


def main(argv: list[str] | None = None) -> int:
    """Runs the submitted application; prints a JSON line for each journal to standard output."""
    return application.main(
        _act,
        argv,
        name="checkpoint",
        description="Write checkpoints and purge journals, on Spark.",
        arguments=lambda parser: None,
        pools="default: those that want it",
    )


if __name__ == "__main__":
    sys.exit(main())
