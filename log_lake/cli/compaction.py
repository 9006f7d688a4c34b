"""lake compact: the compact agent's work on one pool, without Spark."""

from __future__ import annotations

from argparse import Namespace

from log_lake.agents.compact.report import job_line, plan_lines, pool_line
from log_lake.agents.compact.run import compact_pool, finished, plan_pool
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.work import encoded
from log_lake.cli.opening import open_lake
from log_lake.cli.processes import processes
from log_lake.compaction import CompactionPlan
from log_lake.console.output import print_json, say


def compact(args: Namespace) -> None:
    """Plan by the pool's policy, and run the jobs, one after another or in processes; each job is one
    transaction."""
    lake = open_lake(args)
    plan = plan_pool(lake, args.pool, branch=args.branch, strategy=args.strategy, now=lake.context.now())
    pool = lake.pool(args.pool)
    publishes = bool(pool.settings["publish.iceberg"])
    if args.dry_run or not (plan.jobs or publishes or args.json):
        _print_plan(args.pool, plan, as_json=args.json)
        return
    recorded = recorded_if_kept(lake, agent="compact", pool_name=args.pool, branch=args.branch)
    with recorded as job, processes(lake.context, args.processes if plan.jobs else 1) as workers:
        results = compact_pool(
            lake,
            args.pool,
            plan,
            branch=args.branch,
            progress=lambda one, result: None if args.json else say(job_line(one, result)),
            workers=workers,
        )
        done = finished(pool, results, branch=args.branch, before=plan.standing)
        job.update(encoded(done))
    if args.json:
        committed = [result for result in results if result.version is not None]
        print_json(
            {
                "version": committed[-1].version if committed else None,
                "records": sum(result.records for result in committed),
                **encoded(done),
                "versions": [result.version for result in committed],
            }
        )
    else:
        say(pool_line(done))


def _print_plan(pool_name: str, plan: CompactionPlan, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "pool": pool_name,
                "depth": plan.depth,
                "depth_after": plan.depth_after,
                "size": plan.size,
                "rewritten": plan.rewritten,
                "write_amplification": round(plan.write_amplification, 4),
                "jobs": [
                    {
                        "inputs": [r.object for r in job.inputs],
                        "size": job.size,
                        "depth": job.depth,
                        "outputs": job.outputs,
                        "why": job.why,
                    }
                    for job in plan.jobs
                ],
            }
        )
        return
    for line in plan_lines(pool_name, plan):
        say(line)
