"""Reads the bodies of the page's requests, which have values that may be data of a person.

Servers and proxies log addresses; Airflow's server also logs the part of an address after the question mark. So
a condition and a key are never part of an address of the view.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from fastapi.requests import Request

from lake_core.errors import InvalidInput
from lake_core.records import decoders

MAX_BODY = 64 * 1024
"""The most bytes of a body; a longer one is refused before it is read to its end."""
JSON = "application/json"

T = TypeVar("T")


class AskedRecords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The records that an erasure would remove, as its form names them."""

    lake: str
    pool: str
    where: str | None = None
    key: str | None = None
    low: str | None = None
    high: str | None = None


async def body_of(request: Request, kind: type[T]) -> T:
    """Returns the JSON in the body of a request as a value of this type.

    Raises InvalidInput if the body is too long, is not declared as JSON, or is no such value.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise InvalidInput(f"the body of the request is not declared as JSON; send it as {JSON}")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise InvalidInput(
                f"the body of the request has more than {MAX_BODY:,} bytes; write a shorter condition"
            )
    try:
        return decoders.JSON.of(kind).decode(bytes(body))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:  # ValueError: not UTF-8
        raise InvalidInput(f"the body of the request is not as expected: {error}") from error
