"""Commands about the ranges of a pool: split, unsplit, ranges."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from lake_core.phrases import counted, human_time
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, say
from log_lake.lake.pool import Pool
from log_lake.lake.ranges import SplitResult
from log_lake.texts.keytext import parts_of


def split(args: Namespace) -> None:
    """Add split points."""
    pool = open_lake(args).pool(args.pool)
    _print(args, pool.split(at=_keys(pool, args.at), into=args.into), "added", "the pool has these already")


def unsplit(args: Namespace) -> None:
    """Remove split points."""
    pool = open_lake(args).pool(args.pool)
    _print(args, pool.unsplit(at=_keys(pool, args.at) or None), "removed", "the pool does not have these")


def _keys(pool: Pool, texts: Sequence[str]) -> list[list[object]]:
    return [parts_of(text, pool.config.key) for text in texts]


def _print(args: Namespace, done: SplitResult, verb: str, nothing: str) -> None:
    if args.json:
        print_json(vars(done))
    elif done.version is None:
        say(f"{args.pool}: nothing to do: {nothing}; {counted(done.ranges, 'range')}")
    else:
        say(
            f"{args.pool}: {verb} {counted(done.points, 'split point')}; {counted(done.ranges, 'range')} now; "
            f"version {done.version}, transaction {done.transaction_id}"
        )


def ranges(args: Namespace) -> None:
    """List the ranges."""
    rows = [
        vars(one) | {"compacted": None if one.compacted is None else human_time(one.compacted.timestamp())}
        for one in open_lake(args).pool(args.pool).ranges(args.at)
    ]
    print_rows(rows, as_json=args.json, empty="no ranges")
