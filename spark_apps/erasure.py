"""Erasures, objects searched, rewritten and deleted by Spark tasks: the erasure agent's application.

    spark-submit spark_apps/erasure.py --lake URI [POOL...]                          goes on with pending ones
    spark-submit spark_apps/erasure.py --lake URI --where "email = 'a@b.org'" POOL   begins one, too

The driver decides and commits.  A task searches some objects, or reads them for their checksums, or writes one
object again.  At most `erasure.search.CHUNK` objects are searched by one Spark job, and at most
`erasure.run.REWRITES` are written before they are committed.  A task that fails is tried again; an application that
is killed resumes when it is run again.  Spark starts only if there is more than the driver does in less time than
Spark takes to start.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lake_core import errors
from log_lake.agents.erasure.report import report
from log_lake.agents.erasure.run import begin_handed_out, erase_pending, find
from log_lake.agents.jobs import recorded_if_kept
from log_lake.agents.reporting import newest_version
from log_lake.agents.request import OpenLake
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from spark_apps.session import OpenSpark, session_when_needed, spark_session
from spark_apps.workers import OnSpark

log = logging.getLogger(__name__)


def erase_pool(
    session: Callable[[], Any],
    lake: Lake,
    pool_name: str,
    ids: Sequence[str] | None = None,
    *,
    grace: str | None = None,
    keeps_history: bool = False,
) -> dict[str, Any]:
    """Go on with erasures of a pool; `ids` None: with all that are pending.

    Raises what `erase_pending` raises.
    """
    workers = OnSpark(session, lake.context)
    results = erase_pending(lake, pool_name, ids, grace=grace, keeps_history=keeps_history, workers=workers)
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
