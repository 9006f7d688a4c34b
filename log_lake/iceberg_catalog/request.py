"""A request to the catalog and its answer, as values; pure.

A path is cut at its slashes first.  Then each part is decoded once.  So a name with `%2F`, `..` or `*` stays one
name, and is only ever compared with the names of pools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from lake_core.errors import InvalidInput

JSON = "application/json"
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
MAX_PATH = 8_192
"""Characters of a path or a query; a longer one is refused.  A name of 255 characters takes up to 3,060."""


@dataclass(frozen=True)
class CatalogRequest:
    """A request: `path` is below the address of the catalog and begins with a slash; it is as it was sent,
    still encoded, as is `query`.  `etag` is that of the answer that the client has."""

    method: str
    path: str
    query: str = ""
    etag: str = ""


@dataclass(frozen=True)
class CatalogResponse:
    """An answer.  The body is JSON, or text for `/metrics`, or empty."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def parts_of(path: str) -> tuple[str, ...]:
    """Returns the decoded parts of a path.  Raises InvalidInput if a part is not UTF-8, or if its percent-encoding
    is wrong."""
    if len(path) > MAX_PATH:
        raise InvalidInput(f"the path has more than {MAX_PATH:,} characters; no pool has so long a name")
    return tuple(_decoded(part, "path") for part in path.removeprefix("/").split("/"))


def parameter(query: str, name: str) -> str:
    """Returns the value of a parameter, "" without one.  Raises InvalidInput if it is there twice or not
    UTF-8."""
    if len(query) > MAX_PATH:
        raise InvalidInput(f"the query has more than {MAX_PATH:,} characters; shorten it")
    try:
        values = parse_qs(query, keep_blank_values=True, errors="strict").get(name, [""])
    except ValueError as error:  # not UTF-8, or too many parameters
        raise InvalidInput(f"the query cannot be read: {error}") from error
    if len(values) > 1:
        raise InvalidInput(f"the query has {name!r} {len(values)} times; give it once")
    return values[0]


def _decoded(part: str, what: str) -> str:
    broken = _BROKEN_ESCAPE.search(part)
    if broken is not None:
        raise InvalidInput(f"the {what} has % without two hexadecimal digits; encode % as %25")
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the {what} is not UTF-8 after decoding; encode names as UTF-8") from error
