"""Describes the service: for programs (`openapi.json`), and as a page for people, which is made from it.

The page loads nothing from elsewhere and has no script.  Neither tells anything about a lake, so they need no
token.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from html import escape
from importlib import resources

import msgspec

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}
"""The headers that are sent with the page and with `openapi.json`."""

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#8882;padding:0 .2em}td,th{text-align:left;vertical-align:top;padding:.1rem 1rem .1rem 0}"
    ":root{color-scheme:light dark}"
)


class _Parameter(msgspec.Struct, rename={"place": "in"}):
    name: str
    place: str
    description: str
    required: bool = False


class _Response(msgspec.Struct):
    description: str


class _Operation(msgspec.Struct):
    summary: str
    responses: dict[str, _Response]
    description: str = ""
    parameters: list[_Parameter] = msgspec.field(default_factory=list)


class _Path(msgspec.Struct):
    parameters: list[_Parameter] = msgspec.field(default_factory=list)
    get: _Operation | None = None
    post: _Operation | None = None
    put: _Operation | None = None
    delete: _Operation | None = None

    @property
    def operations(self) -> list[tuple[str, _Operation]]:
        """The operations by their methods."""
        named = (("GET", self.get), ("POST", self.post), ("PUT", self.put), ("DELETE", self.delete))
        return [(method, one) for method, one in named if one is not None]


class _Info(msgspec.Struct):
    title: str
    description: str


class _Document(msgspec.Struct):
    info: _Info
    paths: dict[str, _Path]


_DECODER = msgspec.json.Decoder(_Document)


def is_page(path: str) -> bool | None:
    """Whether the path is that of the page: True for the page, False for `openapi.json`, None for any other
    path."""
    return {"/docs": True, "/openapi.json": False}.get(path)


@functools.cache
def document() -> tuple[bytes, str]:
    """Returns the description of the service for programs, and its media type."""
    return resources.files(__package__).joinpath("openapi.json").read_bytes(), "application/json"


@functools.cache
def page() -> tuple[bytes, str]:
    """Returns the page that describes the service for people, and its media type."""
    body = "".join(_lines(_DECODER.decode(document()[0])))
    return body.encode(), "text/html; charset=utf-8"


def _lines(told: _Document) -> Iterator[str]:
    title = escape(told.info.title)
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    yield f"<h1>{title}</h1><p>{_text(told.info.description)}"
    yield ' For programs: <a href="openapi.json">openapi.json</a>.</p>'
    for path, there in told.paths.items():
        for method, operation in there.operations:
            yield f"<h2><code>{method} {escape(path)}</code></h2>"
            yield f"<p>{_text(operation.summary)} {_text(operation.description)}</p><table>"
            for one in (*there.parameters, *operation.parameters):
                needed = "" if one.required else ", optional"
                yield _row(one.name, f"({one.place}{needed}) {one.description}")
            for status, response in operation.responses.items():
                yield _row(status, response.description)
            yield "</table>"
    yield "</html>\n"


def _row(name: str, text: str) -> str:
    return f"<tr><th><code>{escape(name)}</code></th><td>{_text(text)}</td></tr>"


def _text(text: str) -> str:
    """Returns the text, with the parts between back quotes as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
