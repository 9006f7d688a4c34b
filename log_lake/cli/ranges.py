"""Commands about the ranges of a pool: split, unsplit, ranges."""

from __future__ import annotations

import json
import tempfile
from argparse import Namespace
from collections.abc import Sequence

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import decode_key
from lake_core.phrases import counted, human_time
from lake_core.store import address_of
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, say
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.ranges import SplitResult, points_into
from log_lake.texts.keytext import parts_of

BOUNDS = ("low", "high")


def split(args: Namespace) -> None:
    """Add split points."""
    pool = open_lake(args).pool(args.pool)
    if not args.sample:
        done = pool.split(at=_keys(pool, args.at), into=args.into)
    elif args.into is None:
        raise InvalidInput("split --sample: say into how many ranges with --into N")
    else:
        done = pool.split(at=_cuts_of_files(pool, args.sample, into=args.into))
    _print(args, done, "added", "the pool has these already")


def _cuts_of_files(pool: Pool, names: list[str], *, into: int) -> list[list[object]]:
    """Returns the keys that cut the records of files into ranges of about equal bytes.

    The files are loaded into a pool of a lake in a temporary folder, so they are read as a load reads them, and
    the folder needs about as much room as the pool would.
    """
    from log_lake.loading.sources import files_to_read  # loads slowly

    files = files_to_read(names, pool.config.settings, {}, access=address_of(pool.store))
    with tempfile.TemporaryDirectory(prefix="lake-split-") as folder:
        sample = Lake.create(folder).create_pool("sample", key=pool.config.key, settings=pool.config.settings)
        sample.branch().load([file.uri for file in files])
        points = points_into(sample.at(), into)
    return [list(decode_key(point, pool.config.key)) for point in points]


def unsplit(args: Namespace) -> None:
    """Remove split points."""
    pool = open_lake(args).pool(args.pool)
    nothing = "the pool does not have these" if args.at else "the pool has no split points"
    _print(args, pool.unsplit(at=_keys(pool, args.at) or None), "removed", nothing)


def _keys(pool: Pool, texts: Sequence[str]) -> list[list[object]]:
    if "" in texts:
        raise InvalidInput("--at '': it is empty; name a key")
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
    for row in () if args.json else rows:
        row |= {
            name: json.dumps(row[name], ensure_ascii=False) for name in BOUNDS if isinstance(row[name], list)
        }
    print_rows(rows, as_json=args.json, empty="no ranges")
