"""Retention of pools, with listing and deleting spread over Spark tasks: the retention agent's application.

    spark-submit spark_apps/retention.py --lake URI [POOL...]

The driver plans and commits.  A task deletes up to `BATCH` objects: on S3 one request.  A task lists the names of
one span of time, if the store lists from any name on; other stores would list everything in each task.  A task that
fails is tried again, and a run that is killed goes on when it is run again: deleting an object twice does no harm.
Spark starts only if there are more than `ALONE` names to list or to delete.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from lake_core import errors, naming
from lake_core.store import Address, ObjectInfo, Store, address_of, guarded, open_store
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.request import OpenLake
from log_lake.agents.retention.report import RetentionResult
from log_lake.agents.retention.run import DROPPED, plan, retain, retain_dropped
from log_lake.cli.parser import Parser
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.vacuum.dropped import plan_dropped
from log_lake.vacuum.orphans import iter_names, object_id
from spark_apps.session import OpenSpark, session_when_needed, spark_session
from spark_apps.spread import Pair, gather, parallelism

log = logging.getLogger(__name__)

BATCH = 1_000
"""Names that one task deletes: as many as one request of S3."""

SPANS = 4
"""Spans of time to list, for each core: some hold more names than others."""

ALONE = 5_000
"""Names that the driver lists or deletes itself: that takes it less time than Spark takes to start."""


@dataclass(frozen=True)
class Limits:
    """The sizes above; a test passes smaller ones."""

    batch: int = BATCH
    alone: int = ALONE


def retain_pool(
    session: Callable[[], Any], lake: Lake, pool_name: str, *, branch: str = "main", limits: Limits = Limits()
) -> RetentionResult:
    """Do what there is to do in a pool; `session` opens Spark when it is needed.

    Raises NotFound, Conflict, Corrupt, ObjectMissing, OutcomeUnknown, Unavailable.
    """
    return retain(
        lake,
        pool_name,
        branch=branch,
        delete=partial(delete_objects, session, lake.store, limits=limits),
        lister=partial(list_objects, session, limits=limits),
    )


def delete_objects(
    session: Callable[[], Any], store: Store, names: Sequence[str], *, limits: Limits = Limits()
) -> None:
    """Delete objects of a store, a batch in each task.  Raises Unavailable if some may remain."""
    if len(names) <= limits.alone:
        store.delete_all(names)
        return
    batches = [tuple(names[at : at + limits.batch]) for at in range(0, len(names), limits.batch)]
    gather(session(), partial(_delete, address_of(store), batches), len(batches))


def _delete(store: Address, batches: Sequence[Sequence[str]], unit: int) -> list[Pair]:
    """In a worker."""
    guarded(open_store(store)).delete_all(batches[unit])
    return [(b"", b"")]


def list_objects(
    session: Callable[[], Any], pool: Pool, since: str, upto: str, *, limits: Limits = Limits()
) -> list[ObjectInfo]:
    """The names in the folder of data objects from the id `since` (inclusive) to `upto` (exclusive), by name: a
    span of time in each task, after the first names.

    Raises Unavailable.
    """
    rest = iter_names(pool.store, pool.config.id, since, upto)
    if not pool.store.lists_from_name:
        return list(rest)
    first = list(islice(rest, limits.alone))
    if len(first) < limits.alone:
        return first
    spark = session()
    after = max((id for info in first if (id := object_id(info)) is not None), default=since)
    bounds = spans(after, upto, parallelism(spark) * SPANS)
    pairs = gather(spark, partial(_list, address_of(pool.store), pool.config.id, bounds), len(bounds) - 1)
    listed = [info for part, _ in pairs for info in msgspec.msgpack.decode(part, type=list[ObjectInfo])]
    return first + [info for info in listed if info.name > first[-1].name]


def spans(since: str, upto: str, count: int) -> list[str]:
    """Bounds that cut the ids from `since` to `upto` into about `count` spans of time; at least the two."""
    begin, end = naming.id_seconds(since), naming.id_seconds(upto)
    inner = (naming.first_id(begin + (end - begin) * number / count) for number in range(1, count))
    return [since, *sorted({bound for bound in inner if since < bound < upto}), upto]


def _list(store: Address, pool_id: str, bounds: Sequence[str], unit: int) -> list[Pair]:
    """In a worker."""
    infos = list(iter_names(guarded(open_store(store)), pool_id, bounds[unit], bounds[unit + 1]))
    return [(msgspec.msgpack.encode(infos), b"")]


def run(
    work: dict[str, Any], *, open_lake: OpenLake = Lake.open, open_spark: OpenSpark = spark_session
) -> dict[str, Any]:
    """The agent's task `run`: one pool as `agents.retention.run.find` gave it."""
    lake = open_lake(work["lake"])
    if work["pool"] == DROPPED:
        return vars(retain_dropped(lake))
    with session_when_needed(f"lake retention {work['pool']}", open_spark=open_spark) as session:
        return vars(retain_pool(session, lake, work["pool"], branch=work["branch"]))


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: a JSON line a pool on standard output."""
    parser = Parser(description="Expire old records and delete what is not needed any more, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--branch", default="main", help="the branch whose records expire")
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: those that have work")
    args = parser.parse_args(argv)
    logging.basicConfig(format="%(message)s")  # to standard error
    logging.getLogger("log_lake.agents").setLevel(logging.INFO)
    status = 0
    try:
        lake = Lake.open(args.lake)
        for pool in args.pools:
            lake.pool(pool)  # raises NotFound
        names = args.pools or [pool.name for pool in lake.pools()]
        with session_when_needed(
            "lake retention", open_spark=partial(spark_session, remote=args.remote)
        ) as session:
            for name in names:
                try:
                    if args.pools or not plan(lake, name, branch=args.branch).idle:
                        how = {"pool_name": name, "branch": args.branch}
                        with recorded_if_kept(lake, agent="retention", **how) as job:
                            done = vars(retain_pool(session, lake, name, branch=args.branch))
                            job.update(done)
                        print(json.dumps(done))
                except errors.LakeError as error:  # the other pools are not held back
                    sys.stderr.write(f"retention: {name}: {error}\n")
                    status = errors.Incomplete.exit_status
        if not args.pools and any(one.held is None for one in plan_dropped(lake)):
            print(json.dumps(vars(retain_dropped(lake))))
    except errors.LakeError as error:
        sys.stderr.write(f"retention: {error}\n")
        return error.exit_status
    return status


if __name__ == "__main__":
    sys.exit(main())
