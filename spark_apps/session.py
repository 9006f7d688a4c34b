"""Opening Spark: one way for spark-submit, a local session and Spark Connect.

Under spark-submit the session is the submitted one.  `LAKE_SPARK_REMOTE` (sc://HOST:PORT) names a Connect
server.  Tasks of one run share its session if the URL carries a session id; `close` at their end leaves the server
and the shared session alone.  A session that this process runs already is used, and left running.  Otherwise a
session starts on `LAKE_SPARK_MASTER`, by default on two cores of this machine.

If there is no Spark at the address, the caller gets Unavailable within seconds (`reach`); if the server goes away
in the middle, within about a minute.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

from lake_core.errors import InvalidInput, Unavailable, words
from log_lake.extras import need
from spark_apps.in_task import InTask
from spark_apps.reach import address, check_master, check_server

log = logging.getLogger(__name__)

REMOTE = "LAKE_SPARK_REMOTE"
MASTER = "LAKE_SPARK_MASTER"
RETRIES = 10
"""How often a call to a Connect server is tried again.  The pauses between tries grow up to `LONGEST_PAUSE`; all
together take about a minute."""
LONGEST_PAUSE = 10_000
"""Milliseconds between two tries of a call, at most."""

UNKNOWN_SESSION = "INVALID_HANDLE.SESSION_NOT_FOUND"
"""What a Connect server that was started again says of a session that it had before."""


class OpenSpark(Protocol):
    """A function that opens a session with a name for a `with` block: `spark_session`, or one that adds
    Airflow's connections.

    `size`: the bytes of the work, None if they are not known.  For small work it may return an `InTask`.
    """

    def __call__(self, name: str, /, *, size: int | None = None) -> AbstractContextManager[Any]:
        """Returns the session, or what stands in its place."""


@contextmanager
def spark_session(
    name: str,
    *,
    remote: str | None = None,
    master: str | None = None,
    setting: str = "--remote",
    retries: int = RETRIES,
    conf: Mapping[str, str] | None = None,
    size: int | None = None,
) -> Iterator[Any]:
    """Yields a session named `name`, and closes it at the end of the block.  A shared session on a server keeps
    running; only this client disconnects.

    `remote` replaces the variable LAKE_SPARK_REMOTE, and `master` LAKE_SPARK_MASTER.  If either is given, both
    variables are ignored, and `setting` names the place where the address was set.  A call to a server is
    retried `retries` times.  `conf`: settings of Spark, for example resources; a running session, and a server,
    accept only settings that Spark lets a session change.  `size` is ignored: other openers of the type
    `OpenSpark` decide by it.

    Raises Unavailable if no Spark answers at the address, or no longer does.  Raises InvalidInput for an
    invalid address, for a setting that Spark refuses, or if PySpark is not installed.
    """
    need("spark", f"the Spark application {name!r}")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # it has its own master, whatever the variables say
    if remote is None and master is None and not submitted:
        remote, setting = os.environ.get(REMOTE, ""), REMOTE
    if remote:
        check_server(remote, setting=setting)
        with (
            _connected(remote, setting, retries) as session,
            _set(session, conf or {}, where=f"Spark at {address(remote)}"),
        ):
            yield session
        return
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        with _set(running, conf or {}, where="the Spark session that runs already"):
            yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if not submitted:
        # a task whose Python worker dies is tried again, up to four times
        if master is None:
            master, setting = os.environ.get(MASTER, "local[2,4]"), MASTER
        check_master(master, setting=setting)
        builder = builder.master(master).config("spark.ui.enabled", "false")
        check_java()
        if master.startswith("local"):
            builder = builder.config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def check_java() -> None:
    """Raises InvalidInput if there is no Java: Spark's own error does not say so, and would be retried."""
    home = os.environ.get("JAVA_HOME")
    if not (os.access(os.path.join(home, "bin", "java"), os.X_OK) if home else shutil.which("java")):
        where = f"JAVA_HOME={home} has no bin/java" if home else "neither JAVA_HOME nor PATH leads to one"
        raise InvalidInput(
            f"no Java on this machine: {where}. Install Java 17 or newer (Debian: apt install "
            "openjdk-17-jre-headless), or name a Spark Connect server; in Airflow, field in_task_mib of the lake's "
            "connection does small work without Java"
        )


@contextmanager
def _set(session: Any, conf: Mapping[str, str], *, where: str) -> Iterator[None]:
    """Sets, within the block, the settings that a session may change.  Raises InvalidInput for the others.

    At the end it restores the earlier values, unless the session's Spark has gone, because another task may
    share the session.  Tasks that share it at the same time share its settings.
    """
    for key, value in conf.items():
        if not session.conf.isModifiable(key):
            raise InvalidInput(
                f"{key}={value!r}: {where} cannot change it; set it where that Spark is started, or name a "
                "connection of type spark, which starts one"
            )
    before = {key: session.conf.get(key, None) for key in conf}
    gone = False
    try:
        for key, value in conf.items():
            session.conf.set(key, value)
        yield
    except Exception as error:
        gone = is_gone(error)
        raise
    finally:  # also if the time limit of a task ends the block
        if not gone:
            _set_back(session, before)


def _set_back(session: Any, before: Mapping[str, str | None]) -> None:
    """Restores the settings of the session; if that fails, the work stays done."""
    for key, value in before.items():
        try:
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)
        except Exception as error:  # Spark's own classes
            log.warning("%s: the session of Spark does not take its own value again: %s", key, error)


@contextmanager
def one_session(open_spark: OpenSpark) -> Iterator[OpenSpark]:
    """Gives an opener that opens one session at its first call, returns it to all later calls, and closes it with
    the block."""
    sessions: list[Any] = []
    with ExitStack() as until:

        @contextmanager
        def shared(name: str, /, *, size: int | None = None) -> Iterator[Any]:
            if sessions:
                yield sessions[0]
                return
            opened = until.enter_context(open_spark(name, size=size))
            if not isinstance(opened, InTask):  # work that comes later may be too large for it
                sessions.append(opened)
            yield opened

        yield shared


@contextmanager
def session_when_needed(name: str, *, open_spark: OpenSpark = spark_session) -> Iterator[Callable[[], Any]]:
    """Gives a function that opens a session at its first call; the session is closed at the end of the
    block."""
    with one_session(open_spark) as shared:

        def session() -> Any:
            with shared(name) as opened:
                return opened

        yield session


@contextmanager
def _connected(remote: str, setting: str, retries: int) -> Iterator[Any]:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=retries, max_backoff=LONGEST_PAUSE)])
    try:
        yield session
    except (SparkConnectGrpcException, PySparkRuntimeError) as error:
        reason = _why_gone(error)
        if reason is None:
            raise
        raise Unavailable(
            f"Spark at {address(remote)} ({setting}) went away: {reason}; what was committed stays; run it again"
        ) from error
    finally:
        session.client.close()


def is_gone(error: BaseException) -> bool:
    """Whether the error means that the session's server has gone away, or no longer knows the session."""
    try:
        return _why_gone(error) is not None
    except ImportError:  # without the client of Spark Connect there is no such server
        return False


def _why_gone(error: BaseException) -> str | None:
    """Returns what gRPC says of a server that stopped answering (its UNAVAILABLE); None if it is another error.

    A server that was started again answers that it does not know the session (UNKNOWN_SESSION).
    """
    import grpc

    if UNKNOWN_SESSION in str(error):
        return "it was started again meanwhile, and does not know this session"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, grpc.RpcError) and cause.code() == grpc.StatusCode.UNAVAILABLE:
            return words(Exception(cause.details()))
        cause = cause.__cause__ or cause.__context__
    return None
