"""Commands about objects that are not needed any more: vacuum, leases."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from lake_core.errors import Denied, InvalidInput
from lake_core.ids import id_seconds
from lake_core.phrases import counted, human_duration, human_size, human_time
from log_lake.agents.jobs import recorded_if_kept
from log_lake.cli.each_pool import EachPool
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, say
from log_lake.console.progress import shown_deleting
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.leases.lease import VACUUM
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from log_lake.vacuum.execute import make_plan, read_plan, vacuum, vacuum_lease, write_plan
from log_lake.vacuum.orphans import scan_before_vacuum


def vacuum_pool(args: Namespace) -> None:
    """Scan for orphans, then delete; or write the plan; or delete dropped pools."""
    if args.every_name and (args.dropped or args.plan is not None):
        raise InvalidInput(
            "vacuum: --every-name belongs to the scan for orphans; leave out --dropped and --plan"
        )
    if args.dropped == (args.pool is not None) or (args.dropped and args.plan is not None):
        raise InvalidInput("vacuum: name a pool, or say --dropped, which takes no --plan")
    if args.dropped:
        _vacuum_dropped(args)
        return
    lake = open_lake(args)
    pool = lake.pool(args.pool)
    if args.dry_run:
        if args.plan is not None:
            raise InvalidInput("vacuum: --dry-run writes a plan, --plan does one; give one of them")
        _plan(pool, args)
        return
    planned = None if args.plan is None else read_plan(pool, args.plan)
    with recorded_if_kept(lake, agent="retention", pool_name=args.pool) as job:
        scanned = None
        if planned is None:
            scanned = scan_before_vacuum(pool, grace=args.grace, every_name=args.every_name)
        begun = pool.context.now()
        total = None if planned is None else planned.size + planned.size_begun
        with shown_deleting(f"vacuuming {args.pool}", total=total) as progress:
            done = vacuum(pool, plan=planned, grace=args.grace, progress=progress)
        seconds = pool.context.now() - begun
        job.update(vars(done))
    if args.json:
        skipped = scanned is None and planned is None
        orphans = None if skipped else scanned.orphans if scanned else 0
        print_json(vars(done) | {"orphans": orphans, "seconds": round(seconds, 3)})
        return
    resumed = f", of them {done.resumed:,} of an interrupted vacuum" if done.resumed else ""
    spared = f"; spared {counted(done.spared, 'object')} for a lease" if done.spared else ""
    rate = f", in {human_duration(seconds)} ({done.objects / seconds:,.0f} a second)" if seconds >= 1 else ""
    say(
        f"{args.pool}: deleted {counted(done.objects, 'object')}, {human_size(done.size)}{resumed}{rate}{spared}"
    )


def _plan(pool: Pool, args: Namespace) -> None:
    """Print the objects that a vacuum would delete, and store them as a plan if this process may write."""
    scan = scan_before_vacuum(pool, grace=args.grace, dry_run=True, every_name=args.every_name)
    with vacuum_lease(pool, "plan a vacuum", planning=True) as lease:
        plan = make_plan(pool, lease, grace=args.grace)
    try:
        write_plan(pool, plan)
        do_it = f"do it with: lake vacuum {args.pool} --plan {plan.id}"
    except Denied:
        do_it = "the plan is not kept, because this process may not write"
    if args.json:
        print_json(
            {
                "pool": args.pool,
                "plan": plan.id if "--plan" in do_it else None,
                "objects": len(plan.objects),
                "size": plan.size,
                "held": plan.held,
                "begun": len(plan.begun),
                "begun_size": plan.size_begun,
                "orphans": None if scan is None else scan.orphans,
                "orphan_size": None if scan is None else scan.size,
            }
        )
        return
    kept = "".join(f"; {counted(count, 'object')} kept by {why}" for why, count in plan.held.items())
    objects = f"{counted(len(plan.objects), 'object')}, {human_size(plan.size)}"
    say(f"{args.pool}: plan {plan.id} deletes {objects}{kept}; {do_it}")
    if plan.begun:
        begun = f"{counted(len(plan.begun), 'object')}, {human_size(plan.size_begun)}"
        say(f"{args.pool}: deletes first {begun}, of vacuums that were interrupted")
    if scan is not None and scan.orphans:
        say(
            f"{args.pool}: {counted(scan.orphans, 'object')}, {human_size(scan.size)}, were never committed; "
            "lake vacuum without --plan puts them into the next plan"
        )


def _vacuum_dropped(args: Namespace) -> None:
    lake = open_lake(args)
    planned = plan_dropped(lake, grace=args.grace)
    if args.dry_run:
        rows = [{"pool": p.name, "id": p.dropped.pool.id, "kept_by": p.held} for p in planned]
        print_rows(rows, as_json=args.json, empty="no dropped pools")
        return
    done = delete_dropped(lake, planned)
    if args.json:
        for one in done:
            print_json(vars(one))
        return
    for one in done:
        say(
            f"{one.pool}#{one.id}: deleted the pool, {counted(one.objects, 'object')}, {human_size(one.size)}"
        )
    left = len(planned) - len(done)
    say(f"deleted {counted(len(done), 'dropped pool')}; {left:,} left (lake ls --dropped)")


def leases(args: Namespace) -> None:
    """Print the leases of a pool, or of all pools."""
    lake = Lake.open(args.lake)
    rows: list[dict[str, Any]] = []
    each = EachPool()
    if args.pool:
        rows = _leases_of(lake.pool(args.pool))
    for config in [] if args.pool else lake.pools():
        with each.attempt(config.name):
            rows += _leases_of(lake.pool(config.name))
    if rows or not each.failures:
        print_rows(rows, as_json=args.json, empty="no leases")
    each.check()


def _leases_of(pool: Pool) -> list[dict[str, Any]]:
    listed = pool.leases()
    return [
        {
            "pool": pool.name,
            "lease": lease.id,
            "kind": lease.note.kind,
            "version": None if lease.note.kind == VACUUM else lease.note.version,
            "holder": lease.note.holder,
            "why": lease.note.why,
            "since": human_time(id_seconds(lease.id)),
            "until": human_time(lease.until()),
            "state": "live" if lease.is_live(listed.now) else "dead",
        }
        for lease in listed.all
    ]
