"""The types of settings.  A type reads the text of a setting, describes the texts that it accepts, and has their
JSON schema.

`settings` gives each setting a type.  A type refuses a text with ValueError, whose message says what to use.
The JSON schema may accept a text that the type refuses, but never the reverse.  So an editor that checks a
policy file by it marks no text that the lake accepts.  The empty text stands for the default and is in every
schema.
"""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lake_core.phrases import choices
from log_lake.compaction.strategies import names
from log_lake.settings.time_format import date_format, interval_place, time_format
from log_lake.settings.upkeep_hours import upkeep_hours

FORMATS = ("auto", "json", "ndjson", "csv", "parquet", "avro", "orc", "zng", "zst", "zson")

_ANY = {"type": ["string", "number", "boolean"]}
"""An unquoted 1.5 or yes in YAML is a number or a boolean to other programs; the lake takes it as its text."""


@dataclass(frozen=True)
class SettingType:
    """A type: `read` gives the value of a text, `form` describes the texts for people, `schema` is their JSON
    schema."""

    read: Callable[[str], Any]
    form: str
    schema: Mapping[str, Any] = field(default_factory=lambda: _ANY)

    def __call__(self, text: str) -> Any:
        """The value of the text.  Raises ValueError."""
        return self.read(text)


def _pattern(pattern: str, *types: str) -> dict[str, Any]:
    """A schema of texts that match, or are empty; `types` are those that YAML may make of such a text."""
    return {"type": ["string", *types] if types else "string", "pattern": f"^(?:{pattern})?$"}


def one_of(*words: str) -> SettingType:
    """A type that accepts exactly these words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"use {choices(words)}")
        return text

    return SettingType(read, choices([f"`{word}`" for word in words]), {"enum": [*words, ""]})


def _strategy(text: str) -> str:
    """The name of a compaction strategy, also of one that a program registered."""
    return str(one_of(*names())(text))


def count(least: int) -> SettingType:
    """A type of whole numbers, with an inclusive minimum."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise ValueError(f"use a whole number of at least {least}")
        return int(text)

    schema = {**_pattern("[0-9]{1,18}", "integer"), "minimum": least}
    return SettingType(read, f"a whole number of at least {least}", schema)


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 < value < 1000:
        raise ValueError("use a number greater than 1 and less than 1000, such as 1.5")
    return value


_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_DURATIONS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@functools.lru_cache(maxsize=64)
def _size(text: str) -> int:
    """Bytes; kept, since each load asks for them."""
    match = re.fullmatch(r"([0-9]{1,18})\s*([kmg]i?)?b?", text.strip().lower())
    if not match or int(match[1]) < 1:
        raise ValueError("use a size such as 500MB or 1GiB")
    return int(match[1]) * _SIZES[match[2] or ""]


def _object_size(text: str) -> int:
    """Bytes of an object that a compaction writes; a job is cut into as many pieces as it has such objects."""
    size = _size(text)
    if size < LEAST_OBJECT:
        raise ValueError(f"use a size of at least {LEAST_OBJECT >> 20}MiB")
    return size


LEAST_OBJECT = 1 << 20
"""Bytes: the minimum of compact.target_size."""

LONGEST_SPAN = 1000 * 366 * 86_400
"""Seconds: a duration that begins now ends in the years that a date can have."""


@functools.lru_cache(maxsize=64)
def duration(text: str) -> float:
    """Seconds in a text such as 30s or 7d.  Results are cached, because each load reads some.  Raises
    ValueError."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([smhd])", text.strip().lower())
    if not match:
        raise ValueError("use a duration such as 30s, 10m, 6h, 7d")
    seconds = float(match[1]) * _DURATIONS[match[2]]
    if seconds > LONGEST_SPAN:
        raise ValueError(f"use a duration of at most {LONGEST_SPAN // 86_400:,}d")
    return seconds


def _window(text: str) -> float:
    seconds = duration(text)
    if seconds < 1:
        raise ValueError("use a duration of at least 1s")
    return seconds


def if_given(type: SettingType) -> SettingType:
    """The same type for a setting without a default: the empty text gives None."""
    return SettingType(lambda text: type.read(text) if text else None, type.form, type.schema)


def _place(text: str) -> str:
    if text and text != "beside" and "/" not in text:
        raise ValueError("use beside, or a folder or bucket such as /tables/logs or s3://bucket/logs")
    return text


def _age_off(text: str) -> tuple[str, float] | None:
    field, colon, age = text.rpartition(":")
    if text and not (colon and field):
        raise ValueError("use FIELD:DURATION, such as ts:30d")
    return (field, duration(age)) if text else None


def _limit(text: str) -> Limit | None:
    match = re.fullmatch(r"([0-9]{1,18})|([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%", text.strip())
    if text and (not match or (match[2] and float(match[2]) > 100)):
        raise ValueError("use a count such as 100, or a share such as 1%")
    if not match:
        return None
    return Limit(count=int(match[1])) if match[1] else Limit(share=float(match[2]) / 100)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(p.strip() for p in text.split(",") if p.strip())


def _character(text: str) -> str:
    """The character, "" for `none`.  Raises ValueError."""
    if text == "none":
        return ""
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ValueError("use one ASCII character, or none")
    return text


def _delimiter(text: str) -> str:
    """The character, "" for `auto`.  Raises ValueError."""
    if text == "auto":
        return ""
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ValueError("use one ASCII character, tab, or auto")
    return text


def _encoding(text: str) -> str:
    """The name of the codec, "" for `auto`.  Raises ValueError."""
    if text == "auto":
        return ""
    try:
        codec = codecs.lookup(text)
        "".encode(text)
        codecs.getincrementaldecoder(text)
        if codec.name.endswith(_NOT_OF_FILES):
            raise LookupError(text)
    except (LookupError, ValueError) as error:
        raise ValueError("use an encoding such as utf-8, utf-16, latin-1, cp1252, or auto") from error
    return codec.name


_NOT_OF_FILES = ("idna", "punycode", "escape")
"""Endings of codecs for host names and for program text, which no file has."""


@dataclass(frozen=True)
class Limit:
    """A limit for bad records: `count` records at most, or this share of all records."""

    count: int | None = None
    share: float = 1.0

    def allows(self, part: int, whole: int) -> bool:
        """Whether `part` of `whole` records stays within the limit."""
        return part <= self.count if self.count is not None else part <= self.share * whole

    def __str__(self) -> str:
        return f"{self.count:,}" if self.count is not None else f"{self.share * 100:g}%"


_DURATION = r"\s*[0-9]{1,18}(?:\.[0-9]{1,9})?\s*[smhdSMHD]\s*"
_SIZE = r"\s*[0-9]{1,18}\s*(?:[kmgKMG][iI]?)?[bB]?\s*"

TEXT = SettingType(str, "a text")
WORDS = SettingType(_words, "words, separated by commas")
PATTERNS = SettingType(_patterns, "globs, separated by commas")
SIZE = SettingType(_size, "a size, such as `500MB` or `1GiB`", _pattern(_SIZE, "integer"))
OBJECT_SIZE = SettingType(
    _object_size, f"a size of at least {LEAST_OBJECT >> 20}MiB", _pattern(_SIZE, "integer")
)
DURATION = SettingType(duration, "a duration, such as `30s`, `10m`, `6h` or `7d`", _pattern(_DURATION))
WINDOW = SettingType(_window, "a duration of at least 1s", _pattern(_DURATION))
RATIO = SettingType(_ratio, "a number greater than 1 and less than 1000", {"type": ["string", "number"]})
AGE_OFF = SettingType(_age_off, "`FIELD:DURATION`, such as `ts:30d`", _pattern(f"(?:.|\n)+:{_DURATION}"))
PLACE = SettingType(_place, "`beside`, or a folder or bucket, such as `s3://bucket/logs`")
LIMIT = SettingType(
    _limit,
    "a count, such as `100`, or a share, such as `1%`",
    _pattern(r"\s*[0-9]{1,18}(?:\.[0-9]{1,9})?\s*%?\s*", "integer"),
)
CHARACTER = SettingType(_character, "one ASCII character, or `none`")
DELIMITER = SettingType(_delimiter, "one ASCII character, `tab` or `auto`")
ENCODING = SettingType(_encoding, "an encoding, such as `utf-8`, or `auto`")
DATE_FORMAT = SettingType(date_format, "codes of strptime with year, month and day")
TIME_FORMAT = SettingType(time_format, "codes of strptime with year, month, day and hour")
INTERVAL_PLACE = SettingType(interval_place, "a path with codes of strftime")
STRATEGY = SettingType(_strategy, "the name of a strategy of compaction")
HOURS = SettingType(
    upkeep_hours, "`HH:MM-HH:MM`, several separated by commas, and a time zone if it is not UTC"
)
