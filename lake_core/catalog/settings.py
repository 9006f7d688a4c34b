"""The settings of a pool: every policy of every agent, by name, with its default and its meaning.

The lake stores a setting as the text that the user gave; this module parses it.  So an old lake gets the defaults
of a newer program.  `type.FIELD=TYPE` declares a field's type.
"""

from __future__ import annotations

import codecs
import functools
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake_core.catalog.csv_options import csv_options
from lake_core.catalog.time_format import date_format, interval_place, time_format
from lake_core.errors import InvalidInput
from lake_core.phrases import choices, did_you_mean

if TYPE_CHECKING:  # `lake --help` and `lake load --help` read this module: they need no Arrow
    import pyarrow as pa

    from lake_core.keys import PoolKey

TYPE_PREFIX = "type."
FORMATS = ("auto", "json", "ndjson", "csv", "parquet", "avro", "orc", "zng", "zst", "zson")


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"use {choices(words)}")
        return text

    return parse


def _strategy(text: str) -> str:
    """The name of a compaction strategy.

    The compact agent lists them, in a room above this one; so its list is looked up when a name is given.
    """
    names = importlib.import_module("lake_core.agents.compact.strategies").names()
    return _one_of(*names)(text)


def _count(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < least:
            raise ValueError(f"use a whole number of at least {least}")
        return int(text)

    return parse


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
    """Seconds of a text such as 30s or 7d; kept, since each load asks for some.  Raises ValueError."""
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


def _if_given(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """The same parser for a setting without a default: None if it is empty."""
    return lambda text: parse(text) if text else None


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
    """At most `count` records, or at most this share of all of them."""

    count: int | None = None
    share: float = 1.0

    def allows(self, part: int, whole: int) -> bool:
        """Whether `part` of `whole` records stays within the limit."""
        return part <= self.count if self.count is not None else part <= self.share * whole

    def __str__(self) -> str:
        return f"{self.count:,}" if self.count is not None else f"{self.share * 100:g}%"


@dataclass(frozen=True)
class Setting:
    """One setting: the parser of its text, its default text, its meaning for users."""

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
        "fail: a file in which no record has the key fails the load; accept: load it into the sub-pool $nokey",
    ),
    "include": Setting(_patterns, "", "load only files whose names match one of these globs"),
    "exclude": Setting(_patterns, "", "skip files whose names match one of these globs"),
    "partitions": Setting(
        _one_of("ignore", "hive"),
        "ignore",
        "hive: add a field to the records for each folder named key=value",
    ),
    "csv.delimiter": Setting(
        _delimiter,
        "auto",
        "character between values, or tab; auto: a comma; without one ; tab or |, if one fits",
    ),
    "csv.quote": Setting(_character, '"', "character around values that hold delimiters; none: no quoting"),
    "csv.escape": Setting(
        _character, "none", "character before a quote or delimiter that belongs to a value"
    ),
    "csv.encoding": Setting(
        _encoding, "auto", "encoding of the text, such as latin-1; auto: UTF-8 or by its mark"
    ),
    "csv.header": Setting(
        _one_of("first", "none"), "first", "first: the first line names the fields; none: it is a record"
    ),
    "csv.names": Setting(_words, "", "names of the fields (a,b,c), instead of those in the header"),
    "csv.bad_names": Setting(
        _one_of("fail", "number"),
        "fail",
        "fail: empty or equal names in a header fail the load; number: number them",
    ),
    "csv.comment": Setting(_character, "none", "skip lines that begin with this character"),
    "csv.null": Setting(_words, "", "words that stand for null (NA,NULL), besides the empty field"),
    "csv.true": Setting(_words, "", "words that stand for true (yes,Y), besides true, True and TRUE"),
    "csv.false": Setting(_words, "", "words that stand for false (no,N), besides false, False and FALSE"),
    "csv.decimal": Setting(_one_of(".", ","), ".", "character before the fraction of a number"),
    "csv.date_format": Setting(date_format, "", "how dates are written, such as %d.%m.%Y; empty: ISO 8601"),
    "csv.time_format": Setting(
        time_format, "", "how times are written, such as %d.%m.%Y %H:%M; empty: ISO 8601"
    ),
}
"""Options of reading files.  Each is a setting of a pool and an option of `lake load`, `lake replace` and the Spark
application: `csv.null` is `--csv-null`."""

KNOWN: dict[str, Setting] = {
    "description": Setting(str, "", "what the pool holds, for people"),
    **READ_OPTIONS,
    "load.memory": Setting(
        _size, "256MiB", "memory for sorting; larger loads are split into several objects"
    ),
    "checkpoint.entries": Setting(_count(1), "500", "write a checkpoint after this many transactions"),
    "checkpoint.age": Setting(
        duration, "1d", "also write a checkpoint when the oldest transaction after the last one is this old"
    ),
    "history.keep": Setting(duration, "30d", "keep this much history: purge transactions that are older"),
    "vacuum.grace": Setting(
        duration, "7d", "keep removed objects, and objects that were never committed, at least this long"
    ),
    "expire.age": Setting(
        _if_given(_window), "", "expire records that are older than this: by expire.by, or by their load"
    ),
    "expire.by": Setting(
        str, "", "field with the time of a record; if empty, the load counts, and whole objects are removed"
    ),
    "expire.records": Setting(
        _if_given(_count(1)),
        "",
        "keep the newest loads that hold this many records together; remove older ones",
    ),
    "expire.bytes": Setting(
        _if_given(_size), "", "keep the newest loads that hold this many bytes together; remove older ones"
    ),
    "lease.ttl": Setting(duration, "10m", "a lease dies this long after its holder renewed it last"),
    "lease.after": Setting(duration, "1m", "a writer takes a lease once its work has lasted this long"),
    "token.keep": Setting(duration, "30d", "remember a token at least this long"),
    "compact.strategy": Setting(_strategy, "size_ratio", "how compaction chooses what to merge"),
    "compact.target_size": Setting(
        _object_size, "128MiB", "approximate size of the objects that compaction writes"
    ),
    "compact.depth": Setting(_count(1), "8", "merge objects if more than this many overlap at a key"),
    "compact.ratio": Setting(
        _ratio,
        "2",
        "merge neighbouring runs whose total size is at least this many times the largest of them",
    ),
    "compact.window": Setting(_window, "1d", "for time_window: length of one window"),
    "compact.max_inputs": Setting(_count(2), "64", "maximum number of objects in one compaction job"),
    "compact.max_bytes": Setting(_size, "4GiB", "maximum size of one compaction job"),
    "age_off": Setting(_age_off, "", "FIELD:DURATION: hide and later remove records older than this"),
    "tombstones.apply": Setting(duration, "1d", "rewrite objects to remove deleted records after this time"),
    "tombstones.remember": Setting(
        duration, "1d", "remember a replace at least this long, for loads that began before it"
    ),
    "ingest.source": Setting(
        str, "", "folder or glob of the files to load; if empty, the ingest agent skips this pool"
    ),
    "ingest.format": Setting(
        _one_of(*FORMATS), "auto", "format of these files; auto: by their names and first bytes"
    ),
    "ingest.batch_files": Setting(_count(1), "1000", "maximum number of files in one batch"),
    "ingest.batch_bytes": Setting(
        _size, "1GiB", "maximum size of one batch (a larger file is a batch alone)"
    ),
    "ingest.batch_age": Setting(
        duration, "0s", "let a batch that is not full wait until its oldest file is this old"
    ),
    "intervals.source": Setting(
        interval_place,
        "",
        "path pattern of an interval's files (/in/%Y-%m-%d/*.csv); if empty, the intervals agent skips this pool",
    ),
}


class Settings:
    """Typed access to a pool's settings."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __getitem__(self, name: str) -> Any:
        text = self.text(name)
        try:
            return KNOWN[name].parse(text)
        except ValueError as error:  # an older program accepted it
            raise InvalidInput(f"setting {name}={text}: {error}") from error

    def text(self, name: str) -> str:
        """The text as the user gave it, or the default."""
        return self._texts.get(name, KNOWN[name].default)

    @property
    def declared(self) -> dict[str, pa.Field]:
        """The fields whose type the pool declares, by name."""
        from lake_core.values.types import declared_field

        return {
            name[len(TYPE_PREFIX) :]: declared_field(name[len(TYPE_PREFIX) :], text)
            for name, text in self._texts.items()
            if name.startswith(TYPE_PREFIX)
        }


def check_settings(
    changes: Mapping[str, str],
    *,
    kind: str,
    key: PoolKey,
    aggregates: Mapping[str, str] | None = None,
    stored: Mapping[str, str] | None = None,
) -> None:
    """Raises InvalidInput if a load or an agent could not use a changed setting in a pool of the kind and key.

    `stored` are the pool's settings before the change, because some settings exclude each other.
    """
    for name, text in changes.items():
        if not _is_text(name) or not _is_text(text):
            raise InvalidInput(f"setting {name!r}={text!r} is not UTF-8; write it in UTF-8")
        if text == "":
            continue
        if name.startswith(TYPE_PREFIX):
            _check_type(name.removeprefix(TYPE_PREFIX), text, kind=kind, key=key, aggregates=aggregates or {})
            continue
        setting = KNOWN.get(name)
        if setting is None:
            raise InvalidInput(
                f"setting {name!r} is unknown; {did_you_mean(name, [*KNOWN, 'type.FIELD'])} "
                "(lake show POOL lists them)"
            )
        value = Settings({name: text})[name]
        if name == "age_off" and kind == "aggregate" and value[0] not in key.names:
            raise InvalidInput(
                f"setting {name}={text}: in an aggregate pool it must name a field of the key ({key})"
            )
    _check_expire(
        {name: text for name, text in {**(stored or {}), **changes}.items() if text},
        changes,
        kind=kind,
        key=key,
    )
    if any(name.startswith("csv.") for name in changes):
        csv_options(Settings({other: own for other, own in {**(stored or {}), **changes}.items() if own}))


def _check_expire(texts: Mapping[str, str], changes: Mapping[str, str], *, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if records could never expire as the settings say.

    The age of a load is known as long as its transaction, or a younger one that is old enough, is in the journal.
    """
    if not any(name.startswith("expire.") or name == "history.keep" for name in changes):
        return
    settings = Settings(texts)
    by, age, keep = settings["expire.by"], settings["expire.age"], settings["history.keep"]
    if by and kind == "aggregate" and by not in key.names:
        raise InvalidInput(
            f"setting expire.by={by}: in an aggregate pool it must name a field of the key ({key})"
        )
    if age is not None and not by and age > keep:
        raise InvalidInput(
            f"setting expire.age={settings.text('expire.age')}: without expire.by the age is that of the load, "
            f"which is known for history.keep ({settings.text('history.keep')}); use at most that, set "
            "history.keep to more, or name a field with expire.by"
        )


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_type(name: str, text: str, *, kind: str, key: PoolKey, aggregates: Mapping[str, str]) -> None:
    """Raises InvalidInput if the field cannot have the type in this pool, so that every load would fail."""
    from lake_core.combine.hidden import check_names
    from lake_core.combine.rule import check_type
    from lake_core.objects.limits import name_fault
    from lake_core.values.types import declared_field, is_json

    if fault := name_fault(name):
        raise InvalidInput(f"setting {TYPE_PREFIX}FIELD={text}: {fault}")
    check_names([name])
    field = declared_field(name, text)
    if name in key.names and is_json(field):
        raise InvalidInput(
            f"setting {TYPE_PREFIX}{name}={text}: a field of the key must have a type with an order"
        )
    check_type(field, kind=kind, function=aggregates.get(name, ""))
