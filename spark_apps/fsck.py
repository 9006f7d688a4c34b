"""`lake fsck` with the objects checked in Spark tasks: for pools whose data one machine does not read in time.

    spark-submit spark_apps/fsck.py --lake URI [POOL...] [--data]

The driver checks the journals and walks the references; a task opens the objects of some references.  Findings
are printed as JSON, one per line.  Nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from lake_core import errors
from lake_core.history import Reference
from lake_core.records.pools import PoolConfig
from log_lake.console.logged import log_to_stderr, say_error
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from log_lake.repair.check_objects import CheckObjects, check_objects
from log_lake.repair.finding import DAMAGE, UNSEEN, Finding
from log_lake.repair.fsck import Fsck
from log_lake.workers import Worker, Workers
from spark_apps.session import spark_session
from spark_apps.workers import workers_of

UNIT = 64
"""References whose objects one task checks: enough to be worth starting a task, and few enough to repeat
quickly."""


def on_workers(workers: Workers, *, data: bool) -> CheckObjects:
    """Returns a `CheckObjects` whose objects are read by these workers; `data`: whole, and not only the
    footers."""

    def check(config: PoolConfig, batches: Iterable[Sequence[Reference]]) -> Iterator[Finding]:
        references = [reference for batch in batches for reference in batch]  # of one table of references
        units = [references[at : at + UNIT] for at in range(0, len(references), UNIT)]
        for findings in workers.map(partial(_check, config, data), units):
            yield from findings

    return check


def _check(config: PoolConfig, data: bool, worker: Worker, references: Sequence[Reference]) -> list[Finding]:
    return check_objects(worker.store, config, references, data=data)


def fsck(spark: Any, lake: Lake, pools: Sequence[str] = (), *, data: bool = False) -> Iterator[Finding]:
    """Yields what is wrong with the lake, or with the named pools.  Raises NotFound, Corrupt, Unavailable."""
    check = on_workers(workers_of(spark, lake.context), data=data)
    return Fsck(lake.context, list(pools), data=data, check_objects=check).run()


def main(argv: list[str] | None = None) -> int:
    """Runs the submitted application; returns the exit status that `lake fsck` has."""
    parser = Parser(description="Look for damage and leftovers, on Spark; change nothing.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--data", action="store_true", help="read every record too, not only the footers")
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: everything in the lake")
    args = parser.parse_args(argv)
    log_to_stderr()
    severities: set[str] = set()
    try:
        lake = Lake.open(args.lake)
        with spark_session("lake fsck", remote=args.remote) as spark:
            for finding in fsck(spark, lake, args.pools, data=args.data):
                severities.add(finding.severity)
                print(msgspec.json.encode(finding).decode())
    except errors.LakeError as error:
        say_error("fsck", error)
        return error.exit_status
    if DAMAGE in severities:
        return errors.Corrupt.exit_status
    return errors.Unavailable.exit_status if UNSEEN in severities else 0


if __name__ == "__main__":
    sys.exit(main())
