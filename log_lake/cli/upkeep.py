"""Commands that keep a lake in order: checkpoint, purge, tombstones, expire."""

from __future__ import annotations

from argparse import Namespace

from lake_core.errors import InvalidInput
from lake_core.phrases import counted
from log_lake.agents.checkpoint.run import look, plan_purge, purge_pool, write_checkpoint
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.retention import expire as expiry
from log_lake.agents.retention import report as retention
from log_lake.agents.retention.policy import policy_of
from log_lake.agents.tombstones.report import plan_line, pool_line
from log_lake.agents.tombstones.run import apply, plan
from log_lake.agents.work import encoded
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, say


def checkpoint(args: Namespace) -> None:
    """Write a checkpoint of the pool's history (`lake:pools`: of the list of pools)."""
    lake = open_lake(args)
    now = lake.context.now()
    if args.dry_run:
        why = look(lake, args.pool, now=now)
        if args.json:
            print_json({"pool": args.pool, "due": why})
        else:
            say(f"{args.pool}: a checkpoint is due: {why}" if why else f"{args.pool}: no checkpoint is due")
        return
    with recorded_if_kept(lake, agent="checkpoint", pool_name=args.pool):
        written, version = write_checkpoint(lake, args.pool, now=now)
    if args.json:
        print_json({"pool": args.pool, "checkpoint": version or None, "written": written})
    elif written:
        say(f"{args.pool}: wrote the checkpoint of version {version:,}")
    else:
        say(
            f"{args.pool}: "
            + (f"there is a checkpoint of version {version:,} already" if version else "is empty")
        )


def purge(args: Namespace) -> None:
    """Delete old journal entries that a checkpoint covers."""
    lake = open_lake(args)
    now = lake.context.now()
    if args.dry_run:
        fence, entries = plan_purge(lake, args.pool, keep=args.keep, now=now)
        if args.json:
            print_json({"pool": args.pool, "fence": fence, "entries": entries})
        else:
            say(
                f"{args.pool}: would purge {counted(entries, 'entry', 'entries')}, up to {fence:,}"
                if entries
                else f"{args.pool}: nothing to purge"
            )
        return
    with recorded_if_kept(lake, agent="checkpoint", pool_name=args.pool) as job:
        purged = purge_pool(lake, args.pool, keep=args.keep, now=now)
        job.update(vars(purged))
    if args.json:
        print_json({"pool": args.pool} | vars(purged))
    elif purged.entries or purged.checkpoints:
        say(
            f"{args.pool}: purged {counted(purged.entries, 'entry', 'entries')} and "
            f"{counted(purged.checkpoints, 'checkpoint')}; the history begins after {purged.fence:,}"
        )
    else:
        say(f"{args.pool}: nothing to purge")


def tombstones(args: Namespace) -> None:
    """Remove deleted records from the objects; drop deletes that are no longer needed."""
    lake = open_lake(args)
    branch = lake.pool(args.pool).branch(args.branch)
    if args.dry_run:
        work = plan(branch, now=branch.context.now(), at_once=args.at_once)
        if args.json:
            print_json(
                {
                    "pool": args.pool,
                    "due": work.due,
                    "covered": [r.object for r in work.removable],
                    "suspects": [r.object for r in work.suspects],
                    "retirable": list(work.retirable),
                    "left": work.remaining,
                }
            )
        else:
            say(plan_line(args.pool, work))
        return
    with recorded_if_kept(lake, agent="tombstones", pool_name=args.pool, branch=args.branch) as job:
        result = apply(branch, now=branch.context.now(), at_once=args.at_once)
        job.update(encoded(result))
    if args.json:
        print_json(encoded(result))
    else:
        say(
            pool_line(result, remember=f"tombstones.remember ({branch.settings.text('tombstones.remember')})")
        )


def expire(args: Namespace) -> None:
    """Remove records that expire by the pool's settings `expire.*`."""
    lake = open_lake(args)
    pool = lake.pool(args.pool)
    if not policy_of(pool.settings).expires:
        raise InvalidInput(
            f"pool {args.pool!r} has no policy: set expire.age, expire.records or expire.bytes, such as "
            f"lake set {args.pool} expire.age=30d"
        )
    if args.dry_run:
        work = expiry.plan(pool, branch=args.branch)
        condition = None if work.tombstone is None else work.tombstone.condition
        if args.json:
            print_json(
                {
                    "pool": args.pool,
                    "branch": args.branch,
                    "objects": len(work.removed),
                    "records": work.records,
                    "size": work.size,
                    "why": work.why,
                    "where": None if condition is None else pool.at().names.text_of(condition),
                    "stays": work.stays,
                    "removed": [{"object": e.reference.object, "why": e.why} for e in work.removed],
                }
            )
        else:
            say(retention.plan_line(args.pool, work))
        return
    with recorded_if_kept(lake, agent="retention", pool_name=args.pool, branch=args.branch) as job:
        done = expiry.expire(pool, branch=args.branch)
        job.update(vars(done))
    if args.json:
        print_json(vars(done))
    else:
        say(retention.expire_line(done))
