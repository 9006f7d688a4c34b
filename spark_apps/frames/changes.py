"""The changes of a part of the history as a frame: `pyspark_lake.changes(spark, "logs", since=7, lake=URI)`.

The data source reads them.  The frame names versions, so it gives the same rows however it is used again.
"""

from __future__ import annotations

from typing import Any

from spark_apps.datasource import options as opts
from spark_apps.datasource.changes_reader import SINCE, UNTIL, part_of_history


def changes(spark: Any, options: opts.Options) -> Any:
    """Returns the changes that the options name as a DataFrame.  Raises InvalidInput, NotFound, Unavailable."""
    opts.check_names(options, opts.CHANGES, what="a read of changes")
    pool = opts.open_pool(options, what="read changes of")
    since, until = part_of_history(pool, options)
    named = {**options, "changes": "true", SINCE: str(since), UNTIL: str(until), "lake": pool.store.uri}
    reader = spark.read.format("lake").options(**{k: v for k, v in named.items() if k != "path"})
    return reader.load(options["path"])
