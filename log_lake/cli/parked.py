"""parked: list the source files that the ingest agent skips, or release them."""

from __future__ import annotations

from argparse import Namespace

from lake_core.errors import InvalidInput, NotFound
from lake_core.phrases import counted, did_you_mean, human_size, human_time
from log_lake.agents.ingest.parking import Parked, parked_files, release
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_table, say


def parked(args: Namespace) -> None:
    """List the parked files of a pool, or release some."""
    pool = open_lake(args).pool(args.pool)
    notes = parked_files(pool, branch=args.branch)
    if not args.release and not args.release_all:
        _print(args.pool, notes, as_json=args.json)
        return
    if args.release and args.release_all:
        raise InvalidInput("parked: give either --release FILE, or --release-all")
    by_name = {one.file: one for one in notes}
    for name in args.release:
        if name not in by_name:
            raise NotFound(f"pool {args.pool!r}: no file {name!r} is parked; {did_you_mean(name, by_name)}")
    chosen = notes if args.release_all else [by_name[name] for name in dict.fromkeys(args.release)]
    release(pool, chosen)
    if args.json:
        print_json({"pool": args.pool, "released": [one.file for one in chosen]})
    else:
        say(
            f"{args.pool}: released {counted(len(chosen), 'file')}; the ingest agent tries again at its next run"
        )


def _print(pool_name: str, notes: list[Parked], *, as_json: bool) -> None:
    if as_json:
        for one in notes:
            print_json({"file": one.file, "size": one.size, "time": _time(one), "why": one.why})
        return
    print_table(
        [
            {"file": one.file, "size": human_size(one.size), "time": _time(one), "why": one.why}
            for one in notes
        ],
        empty=f"{pool_name}: no file is parked",
        right=("size",),
        whole=("file",),
        below="why",
    )


def _time(one: Parked) -> str:
    return human_time(one.time)
