"""Files loaded into a pool by Spark tasks (`log_lake.agents.load_files`)."""

from __future__ import annotations

from typing import Any

from log_lake.agents import load_files as loading
from log_lake.lake import Lake
from log_lake.lake.results import LoadResult
from spark_apps.workers import workers_of


def load_files(spark: Any, lake: Lake, **how: Any) -> LoadResult:
    """Loads files as `log_lake.agents.load_files.load_files` does, by the tasks of a Spark session."""
    return loading.load_files(workers_of(spark, lake.context), lake, **how)
