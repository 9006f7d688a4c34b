"""Metadata of transactions: texts of the writer's own, by name."""

from __future__ import annotations

from collections.abc import Mapping

from lake_core.errors import InvalidInput

MAX_PAIRS, MAX_NAME, MAX_VALUE = 64, 255, 8192
"""Limits of a transaction's metadata: pairs, characters of a name, bytes of a value (UTF-8)."""


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Checks pairs of metadata, and returns them by name.  Raises InvalidInput if there are too many, or one is
    too long or has no name."""
    if len(metadata) > MAX_PAIRS:
        raise InvalidInput(f"metadata: {len(metadata)} pairs; a transaction has at most {MAX_PAIRS}")
    for name, value in metadata.items():
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise InvalidInput(
                f"metadata {name!r}: a name has 1 to {MAX_NAME} characters, all of them printable"
            )
        check_text(f"metadata {name!r}", value)
    return dict(sorted(metadata.items()))


def check_text(what: str, text: str) -> None:
    """Raises InvalidInput if a message or a value of metadata is not a text, or is too long for a transaction."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what}: must be a text (got {text!r})")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} {text[:80]!r} is not UTF-8; write it in UTF-8") from error
    if size > MAX_VALUE:
        raise InvalidInput(
            f"{what}: the text has {size:,} bytes; at most {MAX_VALUE:,} are allowed: shorten it"
        )
