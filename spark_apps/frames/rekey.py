"""A pool with another key, made by the tasks of a session: `pyspark_lake.rekey`.

Tasks read the records as the lake does, not as Spark does: every type stays as it is.
"""

from __future__ import annotations

from typing import Any

from lake_core.naming import MAIN
from log_lake.lake.rekey import Rekeyed
from log_lake.lake.rekey import rekey as rekey_pool
from spark_apps.datasource import options as opts
from spark_apps.workers import workers_of


def rekey(spark: Any, new: str, options: opts.Options, *, key: str, kind: str | None) -> Rekeyed:
    """Makes a pool with another key, and returns it with what was written.  Raises what
    `log_lake.lake.rekey.rekey` raises."""
    opts.check_names(options, ("at", "message", "ranges"), what="a rekey")
    lake = opts.open_lake(options)
    return rekey_pool(
        lake,
        opts.table_name(options),
        new,
        key=key,
        kind=kind,
        at=options.get("at", MAIN),
        message=options.get("message", ""),
        workers=workers_of(spark, lake.context),
        ranges=opts.count(options, "ranges"),
    )
