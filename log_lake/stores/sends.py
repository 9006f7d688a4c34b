"""Counts how often a request was sent, over all layers that repeat it: client, HTTP library, redirects.

A refusal proves that nothing was written only if the request was sent once.  If it was sent twice, the first
sending may have written, and its answer may be lost. The second sending may then be refused because the first
has written, or because a credential has expired in between (decision 26).  Three layers repeat: aiohttp sends a
PUT again if a kept connection breaks, botocore and gcsfs repeat by their policies, s3fs repeats on top.  All
pass through aiohttp, so its trace of sent headers is counted.

The same trace reports requests, their bytes and their answers to the call's `Wait` (`patience`), and counts
them in the meter of the store, each with all its repeats.

Each calling thread has its own count. The event loop, which makes the request, finds it in the context that
`call_soon_threadsafe` copies.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Container, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp

from lake_core.errors import InvalidInput
from lake_core.store.meter import DELETES, LISTS, READS, RECEIVED, SENT, WRITES
from log_lake.stores import patience


@dataclass
class Sends:
    """How often one request was sent.  `begun`: how many requests the HTTP library began.  `sent`: how often it
    sent headers."""

    begun: int = 0
    sent: int = 0

    @property
    def is_first(self) -> bool:
        """Whether an answer that came is certainly the answer to the first sending."""
        return self.sent <= 1

    @property
    def surely_never(self) -> bool:
        """Whether no server can have received the request: it was begun, but never sent."""
        return self.begun > 0 and self.sent == 0


_COUNTING: ContextVar[Sends | None] = ContextVar("lake_sends", default=None)


@contextlib.contextmanager
def counted() -> Iterator[Sends]:
    """Counts the sendings of the requests that are made within the block."""
    sends = Sends()
    token = _COUNTING.set(sends)
    try:
        yield sends
    finally:
        _COUNTING.reset(token)


async def _begun(_: object, __: object, params: aiohttp.TraceRequestStartParams) -> None:
    if (wait := patience.current()) is not None:
        wait.begin_request()
        if (meter := wait.patience.meter) is not None:
            meter.count(kind_of(params.method, params.url.path, params.url.query))
    if (sends := _COUNTING.get()) is not None:
        sends.begun += 1


async def _sent(*_: object) -> None:
    if (wait := patience.current()) is not None:
        wait.sent += 1
    if (sends := _COUNTING.get()) is not None:
        sends.sent += 1


async def _chunk_sent(_: object, __: object, params: aiohttp.TraceRequestChunkSentParams) -> None:
    if (wait := patience.current()) is not None:
        wait.send_chunk(len(params.chunk))
        if (meter := wait.patience.meter) is not None:
            meter.count(SENT, len(params.chunk))


async def _answered(_: object, __: object, params: aiohttp.TraceRequestEndParams) -> None:
    if (wait := patience.current()) is not None:
        size = params.response.content_length
        wait.answer(params.response.status, size)
        if (meter := wait.patience.meter) is not None and params.method == "GET":
            meter.count(RECEIVED, size or 0)


def kind_of(method: str, path: str, query: Container[str]) -> int:
    """Returns the kind of a request to S3, or to Google's JSON interface; requests of different kinds have
    different prices. Pure."""
    if method in ("GET", "HEAD"):
        return LISTS if "list-type" in query or path.endswith("/o") else READS
    return DELETES if method == "DELETE" or "delete" in query else WRITES


def _trace() -> aiohttp.TraceConfig:
    config = aiohttp.TraceConfig()
    config.on_request_start.append(_begun)
    config.on_request_headers_sent.append(_sent)
    config.on_request_chunk_sent.append(_chunk_sent)
    config.on_request_end.append(_answered)
    config.freeze()
    return config


_TRACE = _trace()
"""The trace of all sessions. It is one object, because fsspec shares one file system only between equal
options."""


@functools.cache
def _s3_session() -> type[Any]:
    """Returns the class of aiobotocore's session, with counting."""
    from aiobotocore.httpsession import AIOHTTPSession  # not needed for Google

    class CountedSession(AIOHTTPSession):  # type: ignore[misc]  # untyped
        async def _get_session(self, proxy_url: str | None) -> aiohttp.ClientSession:
            session: aiohttp.ClientSession = await super()._get_session(proxy_url)
            if _TRACE not in session.trace_configs:
                session.trace_configs.append(_TRACE)
            return session

    return CountedSession


def s3_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns s3fs's options, with sessions that count.  Raises InvalidInput if the options name another session
    class."""
    config = options.get("config_kwargs", {})
    if "http_session_cls" in config:
        raise InvalidInput(
            f"option config_kwargs.http_session_cls={config['http_session_cls']!r}: the lake must count requests, "
            "which it can only in sessions of its own class; remove the option"
        )
    return {**options, "config_kwargs": {**config, "http_session_cls": _s3_session()}}


def gs_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns gcsfs's options, with a session that counts."""
    session = dict(options.get("session_kwargs", {}))
    session["trace_configs"] = [*session.get("trace_configs", ()), _TRACE]
    return {**options, "session_kwargs": session}
