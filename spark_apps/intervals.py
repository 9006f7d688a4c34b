"""An interval of a pool replaced by its files, on Spark: the intervals agent's work."""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

import msgspec

from lake_core.store import address_of
from log_lake.agents.intervals.policy import policy_of
from log_lake.agents.intervals.report import interval_line
from log_lake.agents.intervals.run import find_source_files
from log_lake.agents.request import OpenLake
from log_lake.lake import Lake
from log_lake.loading.source_files import SourceFile
from spark_apps.load import load_files
from spark_apps.session import OpenSpark, spark_session

log = logging.getLogger(__name__)


def run(
    work: dict[str, Any], *, open_lake: OpenLake = Lake.open, open_spark: OpenSpark = spark_session
) -> dict[str, Any]:
    """The agent's task `run`: one pool as `agents.intervals.run.find` gave it.

    With an interval the task replaces it; without one it appends the files, once for each run.  An interval is
    replaced as a whole or not at all, so a file that is refused fails the task.
    """
    lake = open_lake(work["lake"])
    pool = lake.pool(work["pool"])
    interval = None
    if work["begin"]:
        interval = dt.datetime.fromisoformat(work["begin"]), dt.datetime.fromisoformat(work["end"])
    message = f"replaced {work['begin']} to {work['end']}" if interval else "appended by hand"
    if work["files"] is None:  # `find` could not list them
        begin = dt.datetime.fromisoformat(work["begin"])
        files = find_source_files(policy_of(pool.settings), begin, access=address_of(lake.store))
    else:
        files = msgspec.convert(work["files"], list[SourceFile])
    with open_spark(f"lake intervals {work['pool']}", size=sum(file.size for file in files)) as spark:
        result = load_files(
            spark,
            lake,
            pool_name=work["pool"],
            files=files,
            branch=work["branch"],
            format=pool.settings["ingest.format"],
            token=work["token"],
            message=message,
            consume=False,
            interval=interval,
        )
    values = {"pool": work["pool"], "begin": work["begin"]} | vars(result)
    log.info("%s", interval_line(values))
    return values
