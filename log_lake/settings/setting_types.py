"""The types of settings.  A type reads the text of a setting, describes the texts that it accepts, and has their
JSON schema.

A room whose settings accept other texts than these has types of its own, beside its settings.  A type refuses a
text with ValueError, whose message says what to use.  The JSON schema may accept a text that the type refuses,
but never the reverse.  So an editor that checks a policy file with the schema never reports a text as wrong
that the lake accepts.  The empty text means the default and is in every schema.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lake_core.phrases import choices
from lake_core.values.units import unit_bytes, unit_seconds

_ANY = {"type": ["string", "number", "boolean"]}
"""The JSON schema of any text. It also allows numbers and booleans: other programs read an unquoted 1.5 or yes in
YAML so, but the lake reads texts."""


@dataclass(frozen=True)
class SettingType:
    """A type: `read` gives the value of a text, `form` describes the texts for people, `schema` is their JSON
    schema."""

    read: Callable[[str], Any]
    form: str
    schema: Mapping[str, Any] = field(default_factory=lambda: _ANY)

    def __call__(self, text: str) -> Any:
        """Returns the value of the text.  Raises ValueError."""
        return self.read(text)


def pattern(regex: str, *types: str) -> dict[str, Any]:
    """Returns a schema of texts that match, or are empty; `types` are those that YAML may make of such a
    text."""
    return {"type": ["string", *types] if types else "string", "pattern": f"^(?:{regex})?$"}


def small_size(most: int) -> SettingType:
    """Returns a type of sizes in bytes, from 0 to `most` (inclusive)."""

    def read(text: str) -> int:
        size = 0 if re.fullmatch(r"\s*0\s*[bB]?\s*", text) else size_of(text)
        if size > most:
            raise ValueError(f"use at most {most:,} bytes")
        return size

    return SettingType(
        read, f"a size of at most {most:,} bytes, such as `64KiB`, or 0", pattern(SIZE_PATTERN, "integer")
    )


def one_of(*words: str) -> SettingType:
    """Returns a type that accepts exactly these words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"use {choices(words)}")
        return text

    return SettingType(read, choices([f"`{word}`" for word in words]), {"enum": [*words, ""]})


def count(least: int) -> SettingType:
    """Returns a type of whole numbers, with an inclusive minimum."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise ValueError(f"use a whole number of at least {least}")
        return int(text)

    schema = {**pattern("[0-9]{1,18}", "integer"), "minimum": least}
    return SettingType(read, f"a whole number of at least {least}", schema)


@functools.lru_cache(maxsize=64)
def size_of(text: str) -> int:
    """Returns the bytes of a text such as 10MB.  Results are cached, because each load reads some."""
    match = re.fullmatch(r"([0-9]{1,18})\s*([kmgt]i?)?b?", text.strip().lower())
    if not match or int(match[1]) < 1:
        raise ValueError("use a size such as 500MB or 1GiB")
    return int(match[1]) * unit_bytes(match[2])


LONGEST_SPAN = 1000 * 366 * 86_400
"""The longest duration, in seconds: one that begins now still ends in a year that dates can have."""


@functools.lru_cache(maxsize=64)
def duration(text: str) -> float:
    """Returns the seconds that a text such as 30s or 7d means.  Results are cached, because each load reads some.
    Raises ValueError."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([smhd])", text.strip().lower())
    if not match:
        raise ValueError("use a duration such as 30s, 10m, 6h, 7d")
    seconds = float(match[1]) * unit_seconds(match[2])
    if seconds > LONGEST_SPAN:
        raise ValueError(f"use a duration of at most {LONGEST_SPAN // 86_400:,}d")
    return seconds


def _window(text: str) -> float:
    seconds = duration(text)
    if seconds < 1:
        raise ValueError("use a duration of at least 1s")
    return seconds


def if_given(type: SettingType) -> SettingType:
    """Returns the same type for a setting without a default: the empty text gives None."""
    return SettingType(lambda text: type.read(text) if text else None, type.form, type.schema)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(p.strip() for p in text.split(",") if p.strip())


DURATION_PATTERN = r"\s*[0-9]{1,18}(?:\.[0-9]{1,9})?\s*[smhdSMHD]\s*"
SIZE_PATTERN = r"\s*[0-9]{1,18}\s*(?:[kmgtKMGT][iI]?)?[bB]?\s*"

TEXT = SettingType(str, "a text")
WORDS = SettingType(_words, "words, separated by commas")
PATTERNS = SettingType(_patterns, "globs, separated by commas")
SIZE = SettingType(size_of, "a size, such as `500MB` or `1GiB`", pattern(SIZE_PATTERN, "integer"))
DURATION = SettingType(duration, "a duration, such as `30s`, `10m`, `6h` or `7d`", pattern(DURATION_PATTERN))
WINDOW = SettingType(_window, "a duration of at least 1s", pattern(DURATION_PATTERN))
