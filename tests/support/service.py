"""Calls the service of `lake serve` without a server: requests and answers are values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from log_lake.iceberg_catalog.callers import Caller, CallerRole
from log_lake.iceberg_catalog.serving import Admitting
from log_lake.lake import Lake
from log_lake.service.app import ServiceApp
from log_lake.service.limits import ServiceLimits
from log_lake.view.lakes import Lakes

TOKENS = {role: f"{role.name.lower()}-0123456789" for role in CallerRole}
"""The token of each role."""
CALLERS = tuple(Caller(role.name.lower(), role, token.encode()) for role, token in TOKENS.items())


@dataclass
class Told:
    """An answer. `is_whole`: the service ended it."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = False

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """The body as lines of JSON."""
        return [json.loads(line) for line in self.body.splitlines()]


class Served:
    """The service for some lakes, asked by callers of each role."""

    def __init__(
        self,
        *lakes: Lake,
        bounds: ServiceLimits | None = None,
        may_write: bool = True,
        environ: Mapping[str, str] | None = None,
        opener: Callable[[str], Lake] | None = None,
        callers: Sequence[Caller] = CALLERS,
    ) -> None:
        names = ("lake", "other", "third")[: len(lakes)]
        uris = {name: f"memory://{name}" for name in names}
        by_uri = {f"memory://{name}": lake for name, lake in zip(names, lakes, strict=True)}
        self.app = ServiceApp(
            self._catalog,
            Lakes(uris, opener=opener or by_uri.__getitem__),
            Admitting(host="127.0.0.1", port=80, callers=callers),
            bounds=bounds or ServiceLimits(memory=2 << 30),
            may_write=may_write,
            environ=environ or {},
        )

    async def _catalog(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": b"of the catalog"})

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str = b"",
        *,
        role: CallerRole | None = CallerRole.READER,
        query: str = "",
        parts: Sequence[bytes] | None = None,
        is_cut: bool = False,
        version: str = "1.1",
        **headers: str,
    ) -> Told:
        """Returns the answer to one request. `parts` are given instead of `body`; with `is_cut`, the client leaves
        after them."""
        sent = body.encode() if isinstance(body, str) else body
        return asyncio.run(
            self.exchange(
                method,
                path,
                parts or [sent],
                role=role,
                query=query,
                is_cut=is_cut,
                version=version,
                headers=headers,
            )
        )

    async def exchange(
        self,
        method: str,
        path: str,
        parts: Sequence[bytes],
        *,
        role: CallerRole | None = CallerRole.READER,
        query: str = "",
        is_cut: bool = False,
        version: str = "1.1",
        headers: Mapping[str, str],
        gone: asyncio.Event | None = None,
        sent: Callable[[], Any] | None = None,
    ) -> Told:
        """Like `ask`, within an event loop. The client leaves when `gone` is set; `sent` is awaited at each part
        of the answer."""
        told, waiting, ended = Told(), list(parts), gone or asyncio.Event()
        pairs = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        if role is not None:
            pairs.setdefault("authorization", f"Bearer {TOKENS[role]}")

        async def receive() -> dict[str, Any]:
            if waiting:
                part = waiting.pop(0)
                return {"type": "http.request", "body": part, "more_body": bool(waiting) or is_cut}
            if not is_cut:
                await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                told.status = message["status"]
                told.headers = {name.decode(): value.decode() for name, value in message["headers"]}
                return
            if sent is not None:
                await sent()
            told.body += message.get("body", b"")
            told.is_whole = not message.get("more_body", False)

        scope = {
            "type": "http",
            "http_version": version,
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in pairs.items()],
        }
        await self.app(scope, receive, send)
        return told
