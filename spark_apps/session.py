"""Opening Spark: one way for spark-submit, a local session and Spark Connect.

Under spark-submit the session is the submitted one.  `LAKE_SPARK_REMOTE` (sc://HOST:PORT) names a Connect
server: tasks of one run share its session if the URL carries a session id, and end with `close`, which
leaves the server and the shared session alone.  A session that this process runs already is used, and left running.
Otherwise a local session starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

REMOTE = "LAKE_SPARK_REMOTE"


@contextmanager
def spark_session(name: str, *, remote: str | None = None) -> Iterator[Any]:
    """A session named `name`; closed at the end of the block, a shared one only on our side."""
    from pyspark.sql import SparkSession

    remote = os.environ.get(REMOTE, "") if remote is None else remote
    if remote:
        session = SparkSession.builder.remote(remote).create()
        try:
            yield session
        finally:
            session.client.close()
        return
    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not under spark-submit, which has its own master
        # a task whose Python worker dies is tried again, up to four times
        master = os.environ.get("LAKE_SPARK_MASTER", "local[2,4]")
        builder = builder.master(master).config("spark.ui.enabled", "false")
        if master.startswith("local"):
            builder = builder.config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
