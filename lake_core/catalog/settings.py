"""What can be set on a pool: every policy of every agent, by name, with its default and its meaning.

Settings are stored as the text that the user gave and read as typed values here, so that an old lake gets
the defaults of a newer program.  `type.FIELD=TYPE` declares a field's type.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake_core.errors import InvalidInput
from lake_core.phrases import choices, did_you_mean

if TYPE_CHECKING:  # `lake --help` and `lake load --help` read this module: they need no Arrow
    import pyarrow as pa

    from lake_core.keys import PoolKey

TYPE_PREFIX = "type."
FORMATS = ("auto", "json", "ndjson", "csv", "parquet", "avro", "orc")


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"use {choices(words)}")
        return text

    return parse


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ValueError("use a whole number of at least 1")
    return int(text)


def _ratio(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 < value < 1000:
        raise ValueError("use a number above 1, such as 1.5")
    return value


_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_DURATIONS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([kmg]i?)?b?", text.strip().lower())
    if not match or int(match[1]) < 1:
        raise ValueError("use a size such as 500MB or 1GiB")
    return int(match[1]) * _SIZES[match[2] or ""]


def duration(text: str) -> float:
    """Seconds; raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip().lower())
    if not match:
        raise ValueError("use a span of time such as 30s, 10m, 6h, 7d")
    return float(match[1]) * _DURATIONS[match[2]]


def _age_off(text: str) -> tuple[str, float] | None:
    field, colon, age = text.rpartition(":")
    if text and not (colon and field):
        raise ValueError("use FIELD:SPAN, such as ts:30d")
    return (field, duration(age)) if text else None


def _limit(text: str) -> Limit | None:
    match = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?)\s*%", text.strip())
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
    """One ASCII character, or "" for `none`."""
    if text == "none":
        return ""
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ValueError("use one ASCII character, or none")
    return text


def _delimiter(text: str) -> str:
    """One ASCII character, or "" for `auto`."""
    if text == "auto":
        return ""
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ValueError("use one ASCII character, tab, or auto")
    return text


def _encoding(text: str) -> str:
    """A codec's name, or "" for `auto`."""
    if text == "auto":
        return ""
    try:
        known = codecs.lookup(text)
        "".encode(text)
    except LookupError as error:
        raise ValueError("use an encoding such as utf-8, utf-16, latin-1, cp1252, or auto") from error
    return known.name


def _time_format(text: str) -> str:
    if text and not re.search("%[a-zA-Z]", text):
        raise ValueError("use codes such as %Y, %m, %d, %H, %M, %S")
    return text


@dataclass(frozen=True)
class Limit:
    """At most `count` records, or at most this share of all of them."""

    count: int | None = None
    share: float = 1.0

    def allows(self, part: int, whole: int) -> bool:
        """Whether `part` of `whole` records are not too many."""
        return part <= self.count if self.count is not None else part <= self.share * whole

    def __str__(self) -> str:
        return f"{self.count:,}" if self.count is not None else f"{self.share * 100:g}%"


@dataclass(frozen=True)
class Setting:
    """One setting: how its text is read, the text it has by default, what it does."""

    parse: Callable[[str], Any]
    default: str
    meaning: str


READ_OPTIONS: dict[str, Setting] = {
    "bad_records": Setting(
        _one_of("fail", "quarantine"),
        "fail",
        "fail: a record that cannot be read fails the load; quarantine: it goes to the sub-pool $rejected",
    ),
    "bad_records.max": Setting(
        _limit, "", "quarantine at most this many records of a load (100) or this share of them (1%)"
    ),
    "nokey": Setting(
        _one_of("fail", "accept"),
        "fail",
        "a file in which no record has the key fails the load, or its records go to the sub-pool $nokey",
    ),
    "include": Setting(_patterns, "", "load only files whose names match one of these globs"),
    "exclude": Setting(_patterns, "", "pass by files whose names match one of these globs"),
    "partitions": Setting(
        _one_of("ignore", "hive"),
        "ignore",
        "hive: folders named key=value give fields to their files' records",
    ),
    "csv.delimiter": Setting(
        _delimiter, "auto", "character between values, or tab; auto: a comma, else ; tab or | where one fits"
    ),
    "csv.quote": Setting(_character, '"', "character around values that hold delimiters; none: no quoting"),
    "csv.escape": Setting(
        _character, "none", "character before a quote or delimiter that belongs to a value"
    ),
    "csv.encoding": Setting(
        _encoding, "auto", "encoding of the text, such as latin-1; auto: UTF-8 or by its mark"
    ),
    "csv.header": Setting(
        _one_of("first", "none"), "first", "the first line names the fields; none: the first line is a record"
    ),
    "csv.names": Setting(_words, "", "names of the fields (a,b,c), in the place of those in the header"),
    "csv.bad_names": Setting(
        _one_of("fail", "number"), "fail", "empty or equal names in a header fail the load, or get numbers"
    ),
    "csv.comment": Setting(_character, "none", "a line that begins with this character is passed by"),
    "csv.null": Setting(_words, "", "words that stand for null (NA,NULL), besides the empty field"),
    "csv.true": Setting(_words, "", "words that stand for true (yes,Y), beside true, True and TRUE"),
    "csv.false": Setting(_words, "", "words that stand for false (no,N), beside false, False and FALSE"),
    "csv.decimal": Setting(_one_of(".", ","), ".", "character before the fraction of a number"),
    "csv.date_format": Setting(_time_format, "", "how dates are written, such as %d.%m.%Y; empty: ISO 8601"),
    "csv.time_format": Setting(
        _time_format, "", "how times are written, such as %d.%m.%Y %H:%M; empty: ISO 8601"
    ),
}
"""How files are read.  Each is a setting of a pool and an option of `lake load`, `lake replace` and the Spark
application: `csv.null` is `--csv-null`."""

KNOWN: dict[str, Setting] = {
    "description": Setting(str, "", "what the pool holds, for people"),
    **READ_OPTIONS,
    "load.memory": Setting(
        _size, "256MiB", "memory for sorting; larger loads are split into several objects"
    ),
    "checkpoint.entries": Setting(_count, "500", "write a checkpoint after this many transactions"),
    "checkpoint.age": Setting(
        duration, "1d", "also write a checkpoint when the oldest transaction after the last one is this old"
    ),
    "history.keep": Setting(
        duration, "30d", "purge transactions older than this; younger states can be read"
    ),
    "token.keep": Setting(duration, "30d", "remember a token at least this long"),
    "compact.strategy": Setting(
        _one_of("size_ratio", "depth", "time_window", "full"),
        "size_ratio",
        "how compaction chooses what to merge",
    ),
    "compact.target_size": Setting(_size, "128MiB", "size of the objects that compaction writes, about"),
    "compact.depth": Setting(_count, "8", "merge when more objects than this overlap at a key"),
    "compact.ratio": Setting(
        _ratio, "2", "merge objects when their total size is at least this many times the largest"
    ),
    "compact.window": Setting(duration, "1d", "for time_window: length of one window"),
    "compact.max_inputs": Setting(_count, "64", "maximum number of objects in one compaction job"),
    "compact.max_bytes": Setting(_size, "4GiB", "maximum size of one compaction job"),
    "age_off": Setting(_age_off, "", "FIELD:SPAN: hide and later remove records older than this"),
    "delete.apply": Setting(duration, "1d", "rewrite objects to remove deleted records after this time"),
    "delete.remember": Setting(
        duration, "1d", "remember a replace at least this long, for loads that began before it"
    ),
    "ingest.source": Setting(
        str, "", "where files land: a folder or a glob; empty: the ingest agent skips this pool"
    ),
    "ingest.format": Setting(_one_of(*FORMATS), "auto", "format of the landed files; auto: by their names"),
    "interval.source": Setting(
        str,
        "",
        "where an interval's files land, as in /landing/%Y-%m-%d/*.csv; empty: the interval agent skips this pool",
    ),
    "ingest.batch_files": Setting(_count, "1000", "maximum number of files in one batch"),
    "ingest.batch_bytes": Setting(
        _size, "1GiB", "maximum size of one batch (a larger file is a batch alone)"
    ),
    "ingest.batch_age": Setting(
        duration, "0s", "let a batch that is not full wait until its oldest file is this old"
    ),
}


class Settings:
    """Typed access to a pool's settings."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __getitem__(self, name: str) -> Any:
        setting = KNOWN[name]
        return setting.parse(self._texts.get(name, setting.default))

    def text(self, name: str) -> str:
        """As it was given, or the default."""
        return self._texts.get(name, KNOWN[name].default)

    @property
    def declared(self) -> dict[str, pa.Field]:
        """Fields whose type the pool declares, by name."""
        from lake_core.values.types import declared_field

        return {
            name[len(TYPE_PREFIX) :]: declared_field(name[len(TYPE_PREFIX) :], text)
            for name, text in self._texts.items()
            if name.startswith(TYPE_PREFIX)
        }


def check_settings(changes: Mapping[str, str], *, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput for an unknown setting or a value that it cannot take in a pool of the kind and key."""
    for name, text in changes.items():
        if text == "":
            continue
        if name.startswith(TYPE_PREFIX):
            from lake_core.values.types import declared_field

            declared_field(name[len(TYPE_PREFIX) :], text)
            continue
        setting = KNOWN.get(name)
        if setting is None:
            raise InvalidInput(
                f"setting {name!r} is unknown; {did_you_mean(name, [*KNOWN, 'type.FIELD'])} "
                "(lake show POOL lists them)"
            )
        try:
            value = setting.parse(text)
        except ValueError as error:
            raise InvalidInput(f"setting {name}={text}: {error}") from error
        if name == "age_off" and kind == "aggregate" and value[0] not in key.names:
            raise InvalidInput(
                f"setting {name}={text}: in an aggregate pool it must name a field of the key ({key})"
            )
