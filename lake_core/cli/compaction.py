"""lake compact: the compaction agent's work on one pool, without Spark."""

from __future__ import annotations

from argparse import Namespace

from lake_core.agents.compact.run import (
    PoolPlan,
    compact_pool,
    describe,
    job_line,
    plan_pool,
    pool_line,
    summary,
)
from lake_core.cli.output import print_json, say
from lake_core.lake import Lake


def compact(args: Namespace) -> None:
    """Plan by the pool's policy, run the jobs one after another; each is one transaction."""
    lake = Lake.open(args.lake)
    work = plan_pool(lake, args.pool, branch=args.branch, strategy=args.strategy, now=lake.context.now())
    if args.dry_run:
        _print_plan(work, as_json=args.json)
        return
    done = compact_pool(lake, work, progress=lambda one: None if args.json else say(job_line(one)))
    depth = lake.pool(args.pool).at(args.branch).depth
    made = summary(args.pool, done, depth_before=work.plan.depth, depth_after=depth)
    if args.json:
        committed = [d for d in done if d.version is not None]
        last = committed[-1] if committed else None
        print_json(
            {
                "version": last.version if last else None,
                "records": sum(d.records for d in committed),
                **made,
                "versions": [d.version for d in committed],
            }
        )
    elif not work.plan.jobs:
        _print_plan(work, as_json=False)
    else:
        say(pool_line(made))


def _print_plan(work: PoolPlan, *, as_json: bool) -> None:
    plan = work.plan
    if as_json:
        print_json(
            {
                "pool": work.pool,
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
    for line in describe(work):
        say(line)
