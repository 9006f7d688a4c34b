"""Finds the lake and the Spark for a task, when the task runs.

A lake has a name: the id of a connection of type `lake`, or a URI (with a slash or a colon, which an id does not
have).  Tasks pass each other only the name, so no credentials.  A task that names no lake uses the variable LAKE
of its worker, otherwise the connection `lake_default`.  Callers: the operators, the groups, the triggers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_lake import DEFAULT

if TYPE_CHECKING:
    from log_lake.lake import Lake
    from spark_apps.session import OpenSpark

log = logging.getLogger(__name__)


def lake_name(*names: str | None) -> str:
    """Returns the first name that is not empty; otherwise the variable LAKE; otherwise the connection
    `lake_default`."""
    if named := next((name for name in names if name), ""):
        return named
    if variable := os.environ.get("LAKE"):
        _tell(variable)
    return variable or DEFAULT


def view_lakes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the names of the lakes that the web view shows: those in LAKE_VIEW_LAKES, otherwise the one that a
    task would use."""
    return tuple(dict.fromkeys(environ.get("LAKE_VIEW_LAKES", "").split())) or (lake_name(),)


@cache
def _tell(variable: str) -> None:
    """Logs once that the variable names the lake, so that no connection gives credentials, a Spark or a
    size."""
    log.info("no lake is named: the variable LAKE says %s; the connection %s is not read", variable, DEFAULT)


def open_lake(name: str) -> Lake:
    """Opens the lake of that name.  Raises InvalidInput, NotFound, Corrupt, Unavailable."""
    from log_lake.view.addresses import is_uri

    if is_uri(name):
        from log_lake.lake import Lake

        return Lake.open(name)
    from airflow_lake.hooks.lake import LakeHook

    return LakeHook(name).get_lake()


def open_spark(name: str, spark: str = "", *, conf: Mapping[str, str] | None = None) -> OpenSpark:
    """Returns a function that opens Spark for a lake: by a connection, otherwise by the variables LAKE_SPARK_...

    The connection is `spark`, or the one that the connection of the lake names.  If the connection of the lake
    says that the work is small enough, the function returns an `InTask`.  `conf` are settings of Spark.  Until
    the function is called, nothing is opened, and no connection is read.
    """

    @contextmanager
    def opened(title: str, /, *, size: int | None = None) -> Iterator[Any]:
        from airflow_lake.hooks.lake import LakeHook, spark_of
        from log_lake.view.addresses import is_uri
        from spark_apps.in_task import InTask
        from spark_apps.session import spark_session

        address = None if is_uri(name) else LakeHook(name).address
        in_task, named = (address.in_task, address.spark) if address is not None else (0, "")
        if size is not None and size <= in_task:
            yield InTask()
            return
        conn_id = spark or named
        session = spark_of(conn_id, title, conf=conf or {}) if conn_id else spark_session(title, conf=conf)
        with session as running:
            yield running

    return opened
