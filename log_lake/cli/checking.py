"""lake fsck and lake rebuild: look for damage; rebuild a pool from its data objects."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from lake_core.errors import Corrupt, Unavailable
from lake_core.keys import PoolKey
from lake_core.phrases import choices, counted, printable
from log_lake.cli.pools import confirm
from log_lake.combine.declared import parse_aggregates
from log_lake.console.output import print_json, say
from log_lake.console.sink import print_text
from log_lake.lake import Lake
from log_lake.repair.finding import DAMAGE, LEFTOVER, UNSEEN, Finding
from log_lake.repair.fsck import Fsck
from log_lake.repair.rebuild import RebuildPlan, Wanted, plan_rebuild, rebuild

SHOWN_OF_A_KIND = 20
"""Findings of one kind that are printed for people; programs get all of them."""


def fsck(args: Namespace) -> None:
    """Print the findings; raises Corrupt if something is damaged, otherwise Unavailable if the store did not give
    something."""
    lake = Lake.open(args.lake)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with _counting() as progress:
        check = Fsck(
            lake.context,
            args.pools,
            data=args.data,
            content=args.content,
            older_than=args.older_than,
            progress=progress,
        )
        for one in check.run():
            counts[one.severity] += 1
            kinds[one.kind] += 1
            if args.json:
                print_json(msgspec.to_builtins(one))
            elif kinds[one.kind] <= SHOWN_OF_A_KIND:
                print_text(printable(_line(one)) + "\n")
    if not args.json:
        for kind, count in kinds.items():
            if count > SHOWN_OF_A_KIND:
                print_text(f"{kind}: {count - SHOWN_OF_A_KIND:,} more; --json prints all\n")
    looked = _looked_at(check.counts, data=args.data or args.content, content=args.content)
    leftovers = counted(counts[LEFTOVER], "leftover")
    unseen = f", {counts[UNSEEN]:,} not given by the store" if counts[UNSEEN] else ""
    if counts[DAMAGE]:
        raise Corrupt(f"fsck: {counted(counts[DAMAGE], 'finding')} of damage, {leftovers}{unseen}; {looked}")
    if unseen:
        raise Unavailable(f"fsck: no damage seen, {leftovers}{unseen}; {looked}; run it again")
    say(f"{looked}; no damage, {leftovers}")


def rebuild_pool(args: Namespace) -> None:
    """Print the content and the losses of the rebuilt pool, ask, and rebuild it."""
    lake = Lake.open(args.lake)
    options = Wanted(
        args.name,
        None if args.key is None else PoolKey.parse(args.key),
        args.kind,
        parse_aggregates(args.aggregate) if args.aggregate else None,
    )
    if not (args.dry_run or args.yes or sys.stdin.isatty()):  # before all objects are read
        confirm(args, f"make the pool {args.name or args.pool} anew from its objects")
    with _counting() as progress:
        plan = plan_rebuild(lake, args.pool, options, progress=progress)
    contents = f"{counted(plan.records, 'record')} in {counted(len(plan.objects), 'object')}"
    if not args.json:
        _say_losses(plan)
    if not args.dry_run:
        confirm(args, f"make the pool {plan.config.name} anew from its objects, with {contents}")
        with _counting() as progress:
            rebuild(lake, plan, guess=args.guess, progress=progress)
    if args.json:
        print_json(_as_json(plan, done=not args.dry_run))
    else:
        where = f"a new pool {plan.config.id} with copies" if plan.copies else f"the folder {plan.config.id}"
        would = "would make" if args.dry_run else "made"
        say(f"{plan.config.name}: {would} {contents}, in {where}; the history begins after {plan.version:,}")


def _say_losses(plan: RebuildPlan) -> None:
    lost = {c.object for c in plan.lost}
    for one in plan.damaged[:SHOWN_OF_A_KIND]:
        records = counted(one.records, "record") if one.records else "an unknown number of records"
        if one.object in plan.unseen:
            say(f"unseen: {one.object}: the store does not give it: {one.fault}")
            continue
        fate = f"{records} lost" if one.object in lost else "others hold its records"
        say(f"damaged: {one.object}: {fate}: {one.fault}")
    if len(plan.damaged) > SHOWN_OF_A_KIND:
        say(f"damaged: {len(plan.damaged) - SHOWN_OF_A_KIND:,} more; --json lists all")
    for note in plan.notes:
        say(f"note: {note}")


def _as_json(plan: RebuildPlan, *, done: bool) -> dict[str, object]:
    return {
        "pool": plan.config.name,
        "id": plan.config.id,
        "source": plan.source_id,
        "done": done,
        "version": plan.version,
        "records": plan.records,
        "objects": plan.objects,
        "superseded": plan.superseded,
        "void": plan.void,
        "guessed": plan.guessed,
        "unordered": plan.unordered,
        "damaged": {c.object: c.fault for c in plan.damaged},
        "lost": [c.object for c in plan.lost],
        "unseen": plan.unseen,
        "notes": plan.notes,
    }


def _line(one: Finding) -> str:
    return f"{one.severity}: {one.kind}: {one.where}: {one.what}; {one.do}"


def _looked_at(counts: Counter[str], *, data: bool, content: bool) -> str:
    looked = [
        counted(counts["entries"], "entry", "entries"),
        counted(counts["checkpoints"], "checkpoint"),
        f"{'all data' if data else 'the footers'} of {counted(counts['objects'], 'object')}",
    ]
    if content:
        summed = counted(counts["objects"] - counts["without_sum"], "content sum")
        looked.append(f"{summed} ({counted(counts['without_sum'], 'object')} without)")
    return f"looked at {choices(looked, 'and')} in {counted(counts['pools'], 'pool')}"


@contextmanager
def _counting() -> Iterator[Callable[[str, int], None]]:
    """Shows on a terminal what is being checked, how many of it, and for how long.

    Yields the function to call with the name of the checked things and how many more were checked.
    """
    with Progress(
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        tasks: dict[str, object] = {}

        def advance(what: str, count: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=None)
            bar.advance(tasks[what], count)  # type: ignore[arg-type]

        yield advance
