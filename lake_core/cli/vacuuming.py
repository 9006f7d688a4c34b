"""Commands about objects that are not needed any more: vacuum, leases."""

from __future__ import annotations

import datetime as dt
from argparse import Namespace

from lake_core.cli.options import open_lake
from lake_core.cli.output import print_json, print_table, say
from lake_core.cli.progress import shown_deleting
from lake_core.errors import InvalidInput
from lake_core.lake import Lake
from lake_core.leases.lease import VACUUM
from lake_core.naming import id_time
from lake_core.phrases import counted, human_duration, human_size
from lake_core.vacuum.execute import make_plan, read_plan, vacuum, vacuum_lease, write_plan
from lake_core.vacuum.orphans import scan_orphans


def vacuum_pool(args: Namespace) -> None:
    """Scan for orphans, then delete; or write the plan."""
    pool = open_lake(args).pool(args.pool)
    if args.dry_run:
        if args.plan is not None:
            raise InvalidInput("lake vacuum: --dry-run writes a plan, --plan does one; give one of them")
        scan = scan_orphans(pool, grace=args.grace, dry_run=True)
        with vacuum_lease(pool, "plan a vacuum") as lease:
            plan = make_plan(pool, lease, grace=args.grace)
        write_plan(pool, plan)
        if args.json:
            print_json(
                {
                    "pool": args.pool,
                    "plan": plan.id,
                    "objects": len(plan.objects),
                    "size": plan.size,
                    "held": plan.held,
                    "orphans": scan.orphans,
                    "orphan_size": scan.size,
                }
            )
            return
        kept = "".join(f"; {counted(count, 'object')} kept by {why}" for why, count in plan.held.items())
        say(
            f"{args.pool}: plan {plan.id} deletes {counted(len(plan.objects), 'object')}, "
            f"{human_size(plan.size)}{kept}; do it with: lake vacuum {args.pool} --plan {plan.id}"
        )
        if scan.orphans:
            say(
                f"{args.pool}: {counted(scan.orphans, 'object')}, {human_size(scan.size)}, were never committed; "
                "lake vacuum without --plan puts them into the next plan"
            )
        return
    planned = None if args.plan is None else read_plan(pool, args.plan)
    scanned = None if planned is not None else scan_orphans(pool, grace=args.grace)
    begun = pool.context.now()
    total = None if planned is None else planned.size
    with shown_deleting(f"vacuuming {args.pool}", total=total) as progress:
        done = vacuum(pool, plan=planned, grace=args.grace, progress=progress)
    seconds = pool.context.now() - begun
    if args.json:
        orphans = 0 if scanned is None else scanned.orphans
        print_json(vars(done) | {"orphans": orphans, "seconds": round(seconds, 3)})
        return
    spared = f"; spared {counted(done.spared, 'object')} for a lease" if done.spared else ""
    rate = f", in {human_duration(seconds)} ({done.objects / seconds:,.0f} a second)" if seconds >= 1 else ""
    say(f"{args.pool}: deleted {counted(done.objects, 'object')}, {human_size(done.size)}{rate}{spared}")


def leases(args: Namespace) -> None:
    """Leases of a pool, or of all."""
    lake = Lake.open(args.lake)
    rows = []
    for name in [args.pool] if args.pool else [pool.name for pool in lake.pools()]:
        listed = lake.pool(name).leases()
        for lease in listed.all:
            rows.append(
                {
                    "pool": name,
                    "lease": lease.id,
                    "kind": lease.note.kind,
                    "version": None if lease.note.kind == VACUUM else lease.note.version,
                    "holder": lease.note.holder,
                    "why": lease.note.why,
                    "since": _shown(id_time(lease.id).timestamp()),
                    "until": _shown(lease.until()),
                    "state": "live" if lease.is_live(listed.now) else "dead",
                }
            )
    if args.json:
        for row in rows:
            print_json(row)
    else:
        print_table(rows, empty="no leases")


def _shown(seconds: float) -> str:
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
