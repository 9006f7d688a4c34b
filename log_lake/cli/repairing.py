"""repair: take a bad transaction or a damaged object out of a pool."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from lake_core.errors import InvalidInput
from lake_core.phrases import counted, listed
from log_lake.cli.opening import open_lake
from log_lake.cli.pools import confirm
from log_lake.console.output import print_json, say
from log_lake.repair.removal import RepairPlan, plan_repair, repair, whole_objects


def repair_pool(args: Namespace) -> None:
    """Print what would be removed, ask, and remove it."""
    if not args.object and not args.transaction:
        raise InvalidInput("repair: name what to take out: --object ID or --transaction N")
    branch = open_lake(args).pool(args.pool).branch(args.branch)
    plan = plan_repair(branch, objects=args.object, transactions=args.transaction)
    whole = whole_objects(branch, plan, among=args.object)
    if args.dry_run:
        _print_plan(plan, whole, args)
        return
    if plan.references or plan.tombstones:
        confirm(args, f"remove {_described(plan)} from {args.pool}")
    if whole:
        confirm(args, f"take out {_whole(whole)}, whose records are lost then", flag="whole")
    done = repair(branch, plan, reason=args.reason)
    if args.json:
        print_json(vars(done))
    elif done.version is None:
        say(f"{args.pool}: nothing to remove; nothing was committed{_merged(plan)}")
    else:
        say(
            f"{args.pool}: removed {_described(plan)}; version {done.version}, transaction "
            f"{done.transaction_id}{_merged(plan)}"
        )


def _whole(objects: Sequence[str]) -> str:
    return f"{listed(objects)}, in which no damage was seen"


def _print_plan(plan: RepairPlan, whole: Sequence[str], args: Namespace) -> None:
    if args.json:
        print_json(
            {
                "pool": args.pool,
                "objects": sorted({r.object for r in plan.references}),
                "records": plan.records,
                "tombstones": plan.tombstones,
                "merged": plan.merged,
                "whole": whole,
            }
        )
    else:
        say(f"{args.pool}: would remove {_described(plan)}{_merged(plan)}")
        if whole:
            say(f"{args.pool}: {_whole(whole)}: no reason to take it out")


def _described(plan: RepairPlan) -> str:
    objects = counted(len({r.object for r in plan.references}), "object")
    return f"{objects} of {counted(plan.records, 'record')} and {counted(len(plan.tombstones), 'delete')}"


def _merged(plan: RepairPlan) -> str:
    if not plan.merged:
        return ""
    return f"; {counted(len(plan.merged), 'object')} had been merged into others, whose records stay"
