"""Errors as the specification of Iceberg's REST catalog has them: a status, a type and one line; pure."""

from __future__ import annotations

from lake_core.errors import Corrupt, Denied, InvalidInput, LakeError, NotFound, ObjectVacuumed, Unavailable
from lake_core.phrases import printable
from log_lake.iceberg_catalog.answers import ErrorBody, ErrorModel, encoded
from log_lake.iceberg_catalog.request import JSON, CatalogResponse

RETRY_SECONDS = 5
"""After this time a client may ask again, if the store did not answer or too many requests were pending."""


class Refusal(Exception):
    """A request that is refused: the status, and the type that the specification has for it.

    It is no error of the lake: it exists between a request and its answer only.
    """

    def __init__(self, status: int, type: str, message: str) -> None:
        super().__init__(message)
        self.status, self.type = status, type

    @classmethod
    def no_namespace(cls, name: str) -> Refusal:
        """Returns the refusal of a request for a namespace that does not exist."""
        shown = printable(name.replace("\x1f", "."))
        return cls(
            404, "NoSuchNamespaceException", f"namespace {shown!r} does not exist; list the namespaces"
        )

    @classmethod
    def no_table(cls, message: str) -> Refusal:
        """Returns the refusal of a request for a table that does not exist."""
        return cls(404, "NoSuchTableException", message)

    @classmethod
    def no_login(cls, message: str) -> Refusal:
        """Returns the refusal of a request without a valid token."""
        return cls(401, "NotAuthorizedException", message)

    @classmethod
    def no_right(cls, message: str) -> Refusal:
        """Returns the refusal of a request that the user has no right to make."""
        return cls(403, "ForbiddenException", message)


def refused(error: LakeError | Refusal) -> Refusal:
    """Returns the error of the lake as a refusal."""
    if isinstance(error, Refusal):
        return error
    status, type = next(answer for kind, answer in _KINDS if isinstance(error, kind))
    return Refusal(status, type, str(error))


_KINDS: tuple[tuple[type[LakeError], tuple[int, str]], ...] = (
    (NotFound, (404, "NoSuchTableException")),
    (ObjectVacuumed, (404, "NoSuchTableException")),
    (InvalidInput, (400, "BadRequestException")),
    (Corrupt, (500, "InternalServerError")),
    (Denied, (503, "ServiceUnavailableException")),
    (Unavailable, (503, "ServiceUnavailableException")),
    (LakeError, (503, "ServiceUnavailableException")),
)
"""Status and type for classes of errors; the first class that fits an error counts.  The last row is for the
lake's other errors, such as a lost race: a later request may succeed."""


def refusal_response(refusal: Refusal, *, text: str = "", with_body: bool = True) -> CatalogResponse:
    """Returns the answer; `text` replaces the message.  An answer to HEAD has no body."""
    model = ErrorModel(" ".join((text or str(refusal)).split()), refusal.type, refusal.status)
    headers = {"Retry-After": str(RETRY_SECONDS)} if refusal.status == 503 else {}
    if refusal.status == 401:
        headers = {"WWW-Authenticate": "Bearer"}
    if not with_body:
        return CatalogResponse(refusal.status, headers=headers)
    return CatalogResponse(refusal.status, encoded(ErrorBody(model)), {"Content-Type": JSON, **headers})
