"""Errors as answers: a status and one line, as `application/problem+json` (RFC 9457); pure."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from lake_core.errors import (
    AlreadyExists,
    Conflict,
    Corrupt,
    InvalidInput,
    LakeError,
    NotFound,
    ObjectVacuumed,
)
from log_lake.iceberg_catalog.refusals import RETRY_SECONDS, Refusal

PROBLEM = "application/problem+json"


class ProblemBody(msgspec.Struct, frozen=True):
    """The body of an answer that refuses."""

    status: int
    title: str
    detail: str


class Problem(Exception):
    """A request that is refused, or that failed.  It is not an error of the lake: it exists only until its answer
    is sent."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer, besides those of its body."""
        if self.status == 401:
            return {"WWW-Authenticate": "Bearer"}
        return {"Retry-After": str(RETRY_SECONDS)} if self.status == 503 else {}

    @property
    def body(self) -> bytes:
        """The body of the answer: one line of JSON."""
        detail = " ".join(str(self).split())
        return msgspec.json.encode(ProblemBody(self.status, HTTPStatus(self.status).phrase, detail)) + b"\n"


class ClientGone(Exception):
    """The client has closed the connection, so it reads no answer."""


BROKEN = "the server has a fault; its log says more"

_KINDS: tuple[tuple[type[LakeError], int], ...] = (
    (NotFound, 404),
    (ObjectVacuumed, 404),
    (InvalidInput, 400),
    (AlreadyExists, 409),
    (Conflict, 409),
    (Corrupt, 500),
    (LakeError, 503),
)
"""The statuses of errors; the first row that fits counts.  Other errors of the lake are temporary: a store that
does not answer, an unknown outcome."""


def problem_of(error: Exception) -> Problem:
    """Returns the error as a problem.  For an error that is not the lake's, the problem does not tell the
    cause."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Refusal):
        return Problem(error.status, str(error))
    if isinstance(error, LakeError):
        return Problem(next(status for kind, status in _KINDS if isinstance(error, kind)), str(error))
    return Problem(500, BROKEN)
