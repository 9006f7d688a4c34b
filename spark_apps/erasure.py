"""Erasures, objects searched, rewritten and deleted by Spark tasks: the erasure agent's application.

    spark-submit spark_apps/erasure.py --lake URI [POOL...]                          goes on with pending ones
    spark-submit spark_apps/erasure.py --lake URI --where "email = 'a@b.org'" POOL   begins one, too

The driver decides and commits.  A task searches up to `Limits.search` objects, or reads as many for their
checksums, or writes one object again.  At most `erasure.means.CHUNK` objects are searched by one Spark job, and at
most `erasure.run.REWRITES` are written before they are committed.  A task that fails is tried again; an application
that is killed goes on when it is run again.  Spark starts only if there is more than the driver does in less time
than Spark takes to start.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from lake_core import errors
from lake_core.naming import IdSource
from lake_core.store import Address, address_of, guarded, open_store
from log_lake.agents.erasure.report import report
from log_lake.agents.erasure.run import begin_handed_out, erase_pending, find
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.reporting import newest_version
from log_lake.agents.request import OpenLake
from log_lake.cli.parser import Parser
from log_lake.erasure.holding import Answer, answer_of
from log_lake.erasure.means import Means, here, summed_if_there
from log_lake.erasure.receipt import ReceiptObject
from log_lake.erasure.rewrite import PendingRewrite, write
from log_lake.erasure.target import Target
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.write import WrittenObject
from spark_apps.retention import delete_objects, list_objects
from spark_apps.session import OpenSpark, session_when_needed, spark_session
from spark_apps.spread import Pair, gather, packed, unpacked

log = logging.getLogger(__name__)

HOLDS, FREE = b"1", b"0"


@dataclass(frozen=True)
class Limits:
    """What a task takes, and what the driver does itself; a test passes smaller ones."""

    search: int = 16
    """Objects that one task searches or sums: a failed task repeats at most these."""

    alone: int = 32
    """Objects that the driver searches or sums itself."""

    alone_bytes: int = 64 << 20
    """Bytes of objects that the driver writes again itself."""


def means_of(session: Callable[[], Any], pool: Pool, *, limits: Limits = Limits()) -> Means:
    """The means of an erasure in this pool, in Spark tasks; `session` opens Spark when it is needed."""
    address, pool_id, alone = address_of(pool.store), pool.config.id, here(pool)

    def search(target: Target, object_ids: Sequence[str]) -> Sequence[Answer]:
        if len(object_ids) <= limits.alone:
            return alone.search(target, object_ids)
        parts = _parts(object_ids, limits.search)
        pairs = gather(session(), partial(_search, address, target, parts), len(parts))
        return [_answer(pair) for pair in pairs]

    def total(object_ids: Sequence[str]) -> Sequence[ReceiptObject | None]:
        if len(object_ids) <= limits.alone:
            return alone.total(object_ids)
        parts = _parts(object_ids, limits.search)
        pairs = gather(session(), partial(_total, address, pool_id, parts), len(parts))
        return [msgspec.msgpack.decode(one, type=ReceiptObject | None) for one, _ in pairs]

    def rewrite(all_work: Sequence[PendingRewrite]) -> Sequence[WrittenObject | None]:
        if len(all_work) == 1 or sum(work.reference.size for work in all_work) <= limits.alone_bytes:
            return alone.rewrite(all_work)
        pairs = gather(session(), partial(_rewrite, address, tuple(all_work)), len(all_work))
        return [unpacked(pair) if pair[0] else None for pair in pairs]

    return Means(
        search, total, rewrite, partial(delete_objects, session, pool.store), partial(list_objects, session)
    )


def _parts(object_ids: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(object_ids[at : at + size]) for at in range(0, len(object_ids), size)]


def _search(store: Address, target: Target, parts: Sequence[Sequence[str]], unit: int) -> list[Pair]:
    """In a worker: a pair an object."""
    opened = guarded(open_store(store))
    return [_packed_answer(answer_of(opened, target, id)) for id in parts[unit]]


def _packed_answer(answer: Answer) -> Pair:
    if isinstance(answer, errors.Corrupt):
        return b"", errors.to_wire(answer).encode()
    return HOLDS if answer else FREE, b""


def _answer(pair: Pair) -> Answer:
    answer, wire = pair
    if answer:
        return answer == HOLDS
    error = errors.from_wire(wire.decode())
    assert isinstance(error, errors.Corrupt)  # `answer_of` gives no other
    return error


def _total(store: Address, pool_id: str, parts: Sequence[Sequence[str]], unit: int) -> list[Pair]:
    """In a worker: a pair an object."""
    opened = guarded(open_store(store))
    totals = (summed_if_there(opened, pool_id, id) for id in parts[unit])
    return [(msgspec.msgpack.encode(one), b"") for one in totals]


def _rewrite(store: Address, all_work: Sequence[PendingRewrite], unit: int) -> list[Pair]:
    """In a worker: one object."""
    written = write(all_work[unit], guarded(open_store(store)), new_id=IdSource().new)
    return [(b"", b"") if written is None else packed(written)]


def erase_pool(
    session: Callable[[], Any],
    lake: Lake,
    pool_name: str,
    ids: Sequence[str] | None = None,
    *,
    grace: str | None = None,
    keeps_history: bool = False,
    limits: Limits = Limits(),
) -> dict[str, Any]:
    """Go on with erasures of a pool; `ids` None: with all that are pending.

    Raises what `erase_pending` raises.
    """
    means = means_of(session, lake.pool(pool_name), limits=limits)
    results = erase_pending(lake, pool_name, ids, grace=grace, keeps_history=keeps_history, means=means)
    version = newest_version(one.version for one in results)
    return {"pool": pool_name, "version": version, "erasures": [vars(one) for one in results]}


def run(
    work: dict[str, Any], *, open_lake: OpenLake = Lake.open, open_spark: OpenSpark = spark_session
) -> dict[str, Any]:
    """The agent's task `run`: the erasures of one pool as `agents.erasure.run.find` gave them."""
    lake = open_lake(work["lake"])
    with session_when_needed(f"lake erasure {work['pool']}", open_spark=open_spark) as session:
        return _run(session, lake, work)


def _run(session: Callable[[], Any], lake: Lake, work: dict[str, Any]) -> dict[str, Any]:
    how = {"grace": work["grace"], "keeps_history": work["keep_history"]}
    return erase_pool(session, lake, work["pool"], begin_handed_out(lake, work), **how)


def main(argv: list[str] | None = None) -> int:
    """As a submitted application: a JSON line a pool on standard output."""
    parser = Parser(description="Erase records from every object, and go on with pending erasures, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--where", metavar="CONDITION", help="erase records that fulfil this")
    parser.add_argument("--key", metavar="K", help="erase records of this key")
    parser.add_argument("--from", metavar="K", help="erase records from this key on (inclusive)")
    parser.add_argument("--to", metavar="K", help="erase records up to this key (exclusive)")
    parser.add_argument("--grace", metavar="DURATION", help="as of lake erase")
    parser.add_argument("--keep-history", action="store_true", help="as of lake erase")
    parser.add_argument("--dry-run", action="store_true", help="say what holds such records; change nothing")
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: those with pending erasures")
    params = vars(parser.parse_args(argv))
    remote = params.pop("remote")
    logging.basicConfig(format="%(message)s")  # to standard error
    logging.getLogger("log_lake.agents").setLevel(logging.INFO)
    results: list[dict[str, Any]] = []
    try:
        all_work = find(params)
        lake = Lake.open(params["lake"])
        with session_when_needed("lake erasure", open_spark=partial(spark_session, remote=remote)) as session:
            for work in all_work:
                if work.get("put_off"):  # for the report alone
                    continue
                try:
                    with recorded_if_kept(lake, agent="erasure", pool_name=work["pool"]):
                        results.append(_run(session, lake, work))
                    print(json.dumps(results[-1]))
                except (
                    errors.LakeError
                ) as error:  # the other pools are not held back; `report` names this one
                    sys.stderr.write(f"erasure: {work['pool']}: {error}\n")
        report(all_work, results)
    except errors.LakeError as error:
        sys.stderr.write(f"erasure: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
