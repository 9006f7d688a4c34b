"""lake verify: whether two views of pools hold the same records, by their content sums."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace

from lake_core.errors import InvalidInput
from lake_core.naming import MAIN, NOKEY
from lake_core.phrases import counted, printable
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json
from log_lake.console.sink import print_text
from log_lake.content.content import ContentSum
from log_lake.lake.view import View

DIFFERENT = 1
"""The exit status of two views that hold different records; an error of the lake has its own."""


@dataclass(frozen=True)
class Verified:
    """One side of a comparison: the name that the user gave, its version, and its content (number of records and
    content sum).

    `read`: its records were read; otherwise the stored sums gave the content.
    """

    name: str
    version: int
    content: ContentSum
    read: bool


def verify(args: Namespace) -> int:
    """Print what both sides hold and whether it is the same; returns 0 if it is, otherwise 1."""
    lake = open_lake(args)
    named = [(name, *_pool_and_revision(name)) for name in (args.one, args.other)]
    views = [(name, lake.pool(pool).at(revision)) for name, pool, revision in named]
    now = views[0][1].now  # filters hide the same records of both
    sides = [_verified(name, replace(view, now=now), args.jobs) for name, view in views]
    one, other = (side.content for side in sides)
    equal = one == other
    if args.json:
        print_json({"equal": equal, "sides": [_as_json(side) for side in sides]})
    else:
        for side in sides:
            how = "" if side.read else " (stored sums; no record was read)"
            print_text(printable(f"{side.name}: version {side.version:,}: {side.content}{how}") + "\n")
        print_text(f"{_outcome(one, other)}\n")
    return 0 if equal else DIFFERENT


def _verified(name: str, view: View, jobs: int) -> Verified:
    """Returns the content of a pool, with its records without the key."""
    parts = [view] if view.sub_pool else [view, replace(view, sub_pool=NOKEY)]
    stored = [part.stored_content() for part in parts]
    contents = [
        part.content(jobs=jobs) if told is None else told for part, told in zip(parts, stored, strict=True)
    ]
    return Verified(name, view.version, sum(contents, ContentSum()), None in stored)


def _pool_and_revision(name: str) -> tuple[str, str]:
    """`POOL` or `POOL@REVISION` as its parts, as in SQL.  Raises InvalidInput."""
    pool, at, revision = name.partition("@")
    if not pool or (at and not revision):
        raise InvalidInput(f"{name!r}: write POOL or POOL@REVISION, such as logs, logs@7 or logs@test")
    return pool, revision or MAIN


def _outcome(one: ContentSum, other: ContentSum) -> str:
    if one == other:
        return "equal: both hold the same records"
    more = one.records - other.records
    if not more:
        return "different: the same number of records, but not the same records"
    return f"different: the {'first' if more > 0 else 'second'} has {counted(abs(more), 'record')} more"


def _as_json(side: Verified) -> dict[str, object]:
    return {
        "name": side.name,
        "version": side.version,
        "records": side.content.records,
        "sum": side.content.sum,
        "read": side.read,
    }
