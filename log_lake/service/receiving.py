"""Receives the body of a request: a short text in memory, records in a file.  A body that breaks off is not
used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import IO, Any

from lake_core.phrases import human_size
from log_lake.service.limits import IDLE_SECONDS
from log_lake.service.problems import ClientGone, Problem

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def parts(
    receive: Receive,
    *,
    most: int,
    length: str,
    seconds: float,
    idle: float = IDLE_SECONDS,
) -> AsyncIterator[bytes]:
    """Yields the body in parts.  `length` is the header that announces its size, "" without one.

    `most`: how many bytes the body may have.  `idle`: how many seconds one part may take; `seconds`: how many
    all of them may take.

    Raises Problem (too large, too slow), ClientGone (the body broke off).
    """
    if length.isdigit() and int(length[:20]) > most:
        raise _too_large(most)
    size, until = 0, time.monotonic() + seconds
    while True:  # bounded by `most`
        try:
            message = await asyncio.wait_for(receive(), min(idle, until - time.monotonic()))
        except TimeoutError as error:
            late = f"no part of the body came for {idle:g} s"
            if time.monotonic() >= until:
                late = (
                    f"the body took more than {seconds:g} s; send it in parts, each with a token of its own"
                )
            raise Problem(408, f"{late}; nothing was done") from error
        if message["type"] != "http.request":
            raise ClientGone
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        if part:
            yield part
        if not message.get("more_body", False):
            return


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        f"the body has more than the {human_size(most)} that this server allows; send it in parts, each with a "
        "token of its own; nothing was done",
    )


async def text_of(receive: Receive, *, most: int, length: str, seconds: float, what: str) -> str:
    """Returns a short body as text.  Raises Problem, ClientGone."""
    data = b"".join([part async for part in parts(receive, most=most, length=length, seconds=seconds)])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, f"the body is not UTF-8: {what} is text in UTF-8") from error


async def keep(
    receive: Receive,
    file: IO[bytes],
    *,
    most: int,
    length: str,
    seconds: float,
    take: Callable[[int], None],
) -> None:
    """Writes the body to a file; `take` counts its bytes.  Raises Problem, ClientGone, and what `take`
    raises."""
    try:
        async for part in parts(receive, most=most, length=length, seconds=seconds):
            take(len(part))
            file.write(part)
        file.flush()
    except OSError as error:
        raise Problem(503, f"the disk of the server takes no body: {error.strerror or error}") from error
