"""lake fsck and lake rebuild: look for damage; make a pool anew from its data objects."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from lake_core.cli.alignment import printable
from lake_core.cli.output import print_json, say
from lake_core.cli.sink import print_text
from lake_core.errors import Corrupt
from lake_core.lake import Lake
from lake_core.phrases import choices, counted
from lake_core.repair.finding import DAMAGE, LEFTOVER, Finding
from lake_core.repair.fsck import Fsck

SHOWN_OF_A_KIND = 20
"""Findings of one kind that are printed for people; programs get all of them."""


def fsck(args: Namespace) -> None:
    """Print what is wrong; raises Corrupt if something is damaged."""
    lake = Lake.open(args.lake)
    found: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with _counting() as progress:
        check = Fsck(lake.context, args.pools, data=args.data, older_than=args.older_than, progress=progress)
        for one in check.run():
            found[one.severity] += 1
            kinds[one.kind] += 1
            if args.json:
                print_json(msgspec.to_builtins(one))
            elif kinds[one.kind] <= SHOWN_OF_A_KIND:
                print_text(printable(_line(one)) + "\n")
    if not args.json:
        for kind, count in kinds.items():
            if count > SHOWN_OF_A_KIND:
                print_text(f"{kind}: {count - SHOWN_OF_A_KIND:,} more; --json prints all\n")
    looked = _looked_at(check.counts, data=args.data)
    leftovers = counted(found[LEFTOVER], "leftover")
    if found[DAMAGE]:
        raise Corrupt(f"fsck: {counted(found[DAMAGE], 'finding')} of damage, {leftovers}; {looked}")
    say(f"{looked}; no damage, {leftovers}")


def _line(one: Finding) -> str:
    return f"{one.severity}: {one.kind}: {one.where}: {one.what}; {one.do}"


def _looked_at(counts: Counter[str], *, data: bool) -> str:
    looked = [
        counted(counts["entries"], "entry", "entries"),
        counted(counts["checkpoints"], "checkpoint"),
        f"{'all data' if data else 'the footers'} of {counted(counts['objects'], 'object')}",
    ]
    return f"looked at {choices(looked, 'and')} in {counted(counts['pools'], 'pool')}"


@contextmanager
def _counting() -> Iterator[Callable[[str, int], None]]:
    """On a terminal: what is looked at, how much of it so far, and for how long."""
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
