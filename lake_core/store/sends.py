"""How often a request was sent, over all that repeat it: the store's client, its HTTP library, redirects.

A refusal says that nothing was written only if it answers the one and only sending.  The first of two may have
acted and lost its answer, and the second be refused because the first acted, or because a credential has expired in
between.  Repeats are hidden at three levels (aiohttp sends a PUT again when a kept connection breaks; botocore and
gcsfs repeat by their policies; s3fs repeats on top), so they are counted where all pass: aiohttp's trace of headers
that were sent.

A count belongs to the thread that asks.  It reaches the event loop, where the request is made, in the context that
`call_soon_threadsafe` copies.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp

from lake_core.errors import InvalidInput


@dataclass
class Sends:
    """`begun` requests of the HTTP library, and how often headers went out."""

    begun: int = 0
    sent: int = 0

    @property
    def is_first(self) -> bool:
        """Whether an answer can only be that of the first sending."""
        return self.sent <= 1

    @property
    def surely_never(self) -> bool:
        """Whether no server can have heard of the request: it was begun, and no connection was had."""
        return self.begun > 0 and self.sent == 0


_COUNTING: ContextVar[Sends | None] = ContextVar("lake_sends", default=None)


@contextlib.contextmanager
def counted() -> Iterator[Sends]:
    """Counts the sendings of what is asked within the block."""
    sends = Sends()
    token = _COUNTING.set(sends)
    try:
        yield sends
    finally:
        _COUNTING.reset(token)


async def _begun(*_: object) -> None:
    if (sends := _COUNTING.get()) is not None:
        sends.begun += 1


async def _sent(*_: object) -> None:
    if (sends := _COUNTING.get()) is not None:
        sends.sent += 1


def _trace() -> aiohttp.TraceConfig:
    config = aiohttp.TraceConfig()
    config.on_request_start.append(_begun)
    config.on_request_headers_sent.append(_sent)
    config.freeze()
    return config


_TRACE = _trace()
"""One for all sessions: fsspec keeps one file system for equal options."""


@functools.cache
def _s3_session() -> type[Any]:
    """aiobotocore's session, counted."""
    from aiobotocore.httpsession import AIOHTTPSession  # for Google it is not needed

    class CountedSession(AIOHTTPSession):  # type: ignore[misc]  # untyped
        async def _get_session(self, proxy_url: str | None) -> aiohttp.ClientSession:
            session: aiohttp.ClientSession = await super()._get_session(proxy_url)
            if _TRACE not in session.trace_configs:
                session.trace_configs.append(_TRACE)
            return session

    return CountedSession


def s3_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """s3fs's options, with sessions that are counted.  Raises InvalidInput where they name a class of sessions."""
    config = options.get("config_kwargs", {})
    if "http_session_cls" in config:
        raise InvalidInput(
            f"option config_kwargs.http_session_cls={config['http_session_cls']!r}: the lake must count requests, "
            "and counts those of its own sessions; leave the option out"
        )
    return {**options, "config_kwargs": {**config, "http_session_cls": _s3_session()}}


def gs_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """gcsfs's options, with a session that is counted."""
    session = dict(options.get("session_kwargs", {}))
    session["trace_configs"] = [*session.get("trace_configs", ()), _TRACE]
    return {**options, "session_kwargs": session}
