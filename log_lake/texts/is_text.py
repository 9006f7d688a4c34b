"""Names and statements of programs: a value of another class gets one sentence, before any work."""

from __future__ import annotations

from lake_core.errors import InvalidInput


def require_text(value: object, what: str, *, example: str) -> str:
    """The value if it is a text.  Raises InvalidInput, with an example of `what` it should be."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} {value!r}: give a text, as {example}")
    return value
