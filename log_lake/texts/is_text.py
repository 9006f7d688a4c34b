"""Checks that names and statements that programs give are texts, before any work begins."""

from __future__ import annotations

from lake_core.errors import InvalidInput


def require_text(value: object, what: str, *, example: str) -> str:
    """Returns the value if it is a text.  Otherwise raises InvalidInput, which names `what` it should be and shows
    `example`."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} {value!r}: give a text, as {example}")
    return value
