"""Finds out within seconds whether a Spark server answers at an address.

Spark's own clients try for ten minutes and say nothing.  `spark_session` calls this before it connects.
"""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from lake_core.errors import InvalidInput, Unavailable

ANSWER_SECONDS = 10.0
"""How long an address may take to answer; a server under load was seen to take two seconds."""


def address(url: str) -> str:
    """Returns the URL without its parameters, which may contain a password, so that it may be shown."""
    return url.partition(";")[0].rstrip("/")


def check_server(url: str, *, setting: str, seconds: float = ANSWER_SECONDS) -> None:
    """Raises Unavailable unless a Spark Connect server answers at `url` (sc://HOST:PORT).

    `setting` names the place where the address was set.  Raises InvalidInput if the URL has another form.
    """
    import grpc
    from pyspark.errors import PySparkValueError
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        builder: Any = DefaultChannelBuilder(url)
    except (PySparkValueError, ValueError) as error:
        raise InvalidInput(f"{setting}={address(url)}: {error}; use sc://HOST:PORT") from error
    _connect(builder.endpoint, f"no Spark at {address(url)} ({setting})")
    channel = builder.toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except grpc.FutureTimeoutError as error:
        raise Unavailable(
            f"no Spark at {address(url)} ({setting}): what listens there does not speak Spark Connect, or is too "
            f"busy to answer within {seconds:g} s; start Spark there, or correct the address"
        ) from error
    finally:
        channel.close()


def check_master(master: str, *, setting: str) -> None:
    """Raises Unavailable unless one of the masters (spark://HOST:PORT,HOST:PORT) accepts connections.

    Other kinds of masters are not checked.
    """
    if not master.startswith("spark://"):
        return
    failures = []
    for endpoint in master.removeprefix("spark://").split(","):
        try:
            _connect(endpoint, f"no Spark at {master} ({setting})")
        except Unavailable as failure:
            failures.append(failure)
        else:
            return
    raise failures[0]


def _connect(endpoint: str, what: str) -> None:
    try:
        parts = urlsplit(f"//{endpoint}")
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"{what}: {reason}; start Spark there, or correct the address") from error
