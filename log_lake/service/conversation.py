"""Sends an answer, at once or while it grows, and notices that its client is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping

from log_lake.iceberg_catalog.app import Send
from log_lake.service.limits import IDLE_SECONDS
from log_lake.service.problems import ClientGone
from log_lake.service.receiving import Receive
from log_lake.service.spool import AnswerSpool

PART = 64 << 10
"""Bytes that are sent at once."""

_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


async def begin(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Sends the status and the headers."""
    pairs = [
        (name.lower().encode(), value.encode("latin-1")) for name, value in {**_ALWAYS, **headers}.items()
    ]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def answer(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """Sends an answer whose body is complete."""
    await begin(send, status, {**headers, "Content-Length": str(len(body))})
    await send({"type": "http.response.body", "body": body})


async def stream(send: Send, spool: AnswerSpool, *, most: float, idle: float = IDLE_SECONDS) -> bool:
    """Sends an answer while it grows, after its headers; returns whether all of it was sent.

    An answer with an error breaks off without its end, so the client sees that it is not complete.  So does an
    answer whose client takes nothing for `idle` seconds, or not all within `most` seconds.
    """
    at, until = 0, time.monotonic() + most
    while True:  # bounded by the answer
        await spool.wait_for(at + 1)
        part = spool.part(at, PART)
        if not part:
            break
        at += len(part)
        try:
            await asyncio.wait_for(
                send({"type": "http.response.body", "body": part, "more_body": True}),
                min(idle, until - time.monotonic()),
            )
        except TimeoutError:
            return False
    if spool.error is not None:
        return False
    await send({"type": "http.response.body", "body": b""})
    return True


async def while_there(receive: Receive, work: Awaitable[None]) -> None:
    """Does the work while the client keeps its connection; the client's body must be read before.  Raises
    ClientGone, and what the work raises."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_until_gone(receive))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientGone
        await doing
    finally:
        for one in (doing, leaving):
            one.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":  # bounded by the connection
        pass
