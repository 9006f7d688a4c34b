"""A request that was admitted, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from log_lake.iceberg_catalog.app import Headers, Send
from log_lake.iceberg_catalog.callers import ANYBODY, Caller, CallerRole
from log_lake.service import conversation, receiving
from log_lake.service.limits import MAX_SQL
from log_lake.service.problems import Problem
from log_lake.service.receiving import Receive

JSON = "application/json"


@dataclass(frozen=True)
class AdmittedRequest:
    """A request that was admitted: who asks, the headers, how to read the body, and how to answer.

    `may_write`: whether the server may write.  `seconds`: the time for the body.  `ends_by_closing`: the client
    uses HTTP 1.0, where an answer without a length looks complete even if it breaks off.
    """

    caller: Caller
    headers: Headers
    receive: Receive
    send: Send
    may_write: bool
    seconds: float
    ends_by_closing: bool = False

    def header(self, name: str) -> str:
        """Returns the value of a header; "" if the request does not have it."""
        return self.headers.get(name.lower().encode(), b"").decode("latin-1")

    def check_role(self, role: CallerRole) -> None:
        """Raises Problem if the caller does not have this role, or if the role writes and the server may
        not."""
        if self.caller is ANYBODY:
            raise Problem(
                403,
                "queries and loads need a token, and this server has none: start lake serve with --token-file FILE",
            )
        if self.caller.role < role:
            raise Problem(
                403,
                f"this needs the role {role.name.lower()}, and yours is {self.caller.role.name.lower()}; ask "
                "the person who keeps the token file of this server",
            )
        if role > CallerRole.READER and not self.may_write:
            raise Problem(403, "this server may only read (--read-only)")

    async def text(self, what: str) -> str:
        """Returns the body as text; `what` says in errors what it should be."""
        length = self.header("content-length")
        return await receiving.text_of(
            self.receive, most=MAX_SQL, length=length, seconds=self.seconds, what=what
        )

    async def done(self, result: Any, status: int = 200) -> None:
        """Answers with a result as one line of JSON."""
        await conversation.answer(
            self.send, status, msgspec.json.encode(result) + b"\n", {"Content-Type": JSON}
        )
