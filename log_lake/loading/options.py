"""The settings of loads: how files are read, how bad records are treated, and how objects are written.

`lake --help` and `lake load --help` read this module, so it must not import Arrow.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake_core import naming
from lake_core.errors import InvalidInput
from log_lake.indexes.cluster_rule import FORM, cluster_rule
from log_lake.loading.csv_options import csv_options
from log_lake.settings.setting_types import (
    DURATION_PATTERN,
    PATTERNS,
    SIZE,
    TEXT,
    WORDS,
    SettingType,
    count,
    duration,
    one_of,
    pattern,
    small_size,
)
from log_lake.settings.settings import Setting, Settings, Together
from log_lake.settings.time_format import date_format, time_format

if TYPE_CHECKING:
    from lake_core.keys import PoolKey

MAX_INLINE = 256 << 10
"""The most bytes of a load that the journal may hold: each reader reads entries whole, and a group commit collects
up to 4 MB of them (decision 314)."""

FORMATS = ("auto", "json", "ndjson", "csv", "parquet", "avro", "orc", "zng", "zst", "zson")


@dataclass(frozen=True)
class Limit:
    """How many bad records a load may have: `count` records at most, or this share of all its records."""

    count: int | None = None
    share: float = 1.0

    def allows(self, part: int, whole: int) -> bool:
        """Whether the limit allows `part` bad records among `whole` records."""
        return part <= self.count if self.count is not None else part <= self.share * whole

    def __str__(self) -> str:
        return f"{self.count:,}" if self.count is not None else f"{self.share * 100:g}%"


def _limit(text: str) -> Limit | None:
    match = re.fullmatch(r"([0-9]{1,18})|([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%", text.strip())
    if text and (not match or (match[2] and float(match[2]) > 100)):
        raise ValueError("use a count such as 100, or a share such as 1%")
    if not match:
        return None
    return Limit(count=int(match[1])) if match[1] else Limit(share=float(match[2]) / 100)


def _character(text: str) -> str:
    """Returns the character, "" for `none`.  Raises ValueError."""
    if text == "none":
        return ""
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ValueError("use one ASCII character, or none")
    return text


def _delimiter(text: str) -> str:
    """Returns the character, "" for `auto`.  Raises ValueError."""
    if text == "auto":
        return ""
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ValueError("use one ASCII character, tab, or auto")
    return text


def _encoding(text: str) -> str:
    """Returns the name of the codec, "" for `auto`.  Raises ValueError."""
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
"""Endings of the names of Python's codecs for host names and program text, in which no file is written."""


def _roll_up(text: str) -> tuple[str, int] | None:
    """Returns the field and the seconds of the grain.  Raises ValueError."""
    field, colon, grain = text.rpartition(":")
    if text and not (colon and field):
        raise ValueError("use FIELD:GRAIN, such as ts:1h")
    seconds = duration(grain) if text else 1.0
    if seconds < 1 or 86_400 % seconds:
        raise ValueError("use a grain that divides the day: 1s, 10s, 1m, 5m, 15m, 1h, 6h, 1d")
    return (field, int(seconds)) if text else None


LIMIT = SettingType(
    _limit,
    "a count, such as `100`, or a share, such as `1%`",
    pattern(r"\s*[0-9]{1,18}(?:\.[0-9]{1,9})?\s*%?\s*", "integer"),
)
ROLL_UP = SettingType(_roll_up, "`FIELD:GRAIN`, such as `ts:1h`", pattern(f"(?:.|\n)+:{DURATION_PATTERN}"))
CLUSTER = SettingType(cluster_rule, "`FIELD:N`, such as `user:16`", pattern(rf"\s*{FORM}\s*"))
CHARACTER = SettingType(_character, "one ASCII character, or `none`")
DELIMITER = SettingType(_delimiter, "one ASCII character, `tab` or `auto`")
ENCODING = SettingType(_encoding, "an encoding, such as `utf-8`, or `auto`")
DATE_FORMAT = SettingType(date_format, "codes of strptime with year, month and day")
TIME_FORMAT = SettingType(time_format, "codes of strptime with year, month, day and hour")

READ_OPTIONS: dict[str, Setting] = {
    "bad_records": Setting(
        one_of("fail", "quarantine"),
        "fail",
        "fail: a record that cannot be read fails the load; quarantine: it goes to the sub-pool $rejected",
    ),
    "bad_records.max": Setting(
        LIMIT, "", "quarantine at most this many records of a load (100) or this share of them (1%)"
    ),
    "schema": Setting(
        one_of("evolve", "freeze", "discard"),
        "evolve",
        "evolve: loads may add fields and change types, and say so; freeze: a record that would is a bad record; "
        "discard: leave such fields and values out, and say how many",
    ),
    "nokey": Setting(
        one_of("fail", "accept"),
        "fail",
        "fail: a file in which no record has the key fails the load; accept: load it into the sub-pool $nokey",
    ),
    "expansion.max": Setting(
        count(1),
        "1000",
        "refuse a file whose content has more than 1 GiB and more than this many times the file's size",
    ),
    "include": Setting(PATTERNS, "", "load only files whose names match one of these globs"),
    "exclude": Setting(PATTERNS, "", "skip files whose names match one of these globs"),
    "partitions": Setting(
        one_of("ignore", "hive"),
        "ignore",
        "hive: add a field to the records for each folder named key=value",
    ),
    "records": Setting(
        TEXT,
        "",
        "JSON: the field (Records, or a path such as data.items) whose list has the records of a document; "
        "the fields beside it are not loaded",
    ),
    "csv.delimiter": Setting(
        DELIMITER,
        "auto",
        "character between values, or tab; auto: a comma; without one ; tab or |, if one fits",
    ),
    "csv.quote": Setting(CHARACTER, '"', "character around values that hold delimiters; none: no quoting"),
    "csv.escape": Setting(CHARACTER, "none", "character before a quote or delimiter that belongs to a value"),
    "csv.encoding": Setting(
        ENCODING, "auto", "encoding of the text, such as latin-1; auto: UTF-8 or by its mark"
    ),
    "csv.header": Setting(
        one_of("first", "none"), "first", "first: the first line names the fields; none: it is a record"
    ),
    "csv.names": Setting(WORDS, "", "names of the fields (a,b,c), instead of those in the header"),
    "csv.bad_names": Setting(
        one_of("fail", "number"),
        "fail",
        "fail: empty or equal names in a header fail the load; number: number them",
    ),
    "csv.comment": Setting(CHARACTER, "none", "skip lines that begin with this character"),
    "csv.null": Setting(WORDS, "", "words that stand for null (NA,NULL), besides the empty field"),
    "csv.true": Setting(WORDS, "", "words that stand for true (yes,Y), besides true, True and TRUE"),
    "csv.false": Setting(WORDS, "", "words that stand for false (no,N), besides false, False and FALSE"),
    "csv.decimal": Setting(one_of(".", ","), ".", "character before the fraction of a number"),
    "csv.date_format": Setting(DATE_FORMAT, "", "how dates are written, such as %d.%m.%Y; empty: ISO 8601"),
    "csv.time_format": Setting(
        TIME_FORMAT, "", "how times are written, such as %d.%m.%Y %H:%M; empty: ISO 8601"
    ),
}
"""Options for reading files.  Each is a setting of a pool and an option of `lake load`, `lake replace` and the
Spark application: `csv.null` is `--csv-null`."""


def _check_roll_up(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput for a key that is a path into records, where the exact time would stay."""
    name = settings["roll_up"][0]
    if name in key.names and "." in name:
        raise InvalidInput(
            f"setting roll_up={settings.text('roll_up')}: the key {name!r} is a path into records; name a field of "
            "the records"
        )


def _check_exact(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if something else keeps the times that a roll-up rounds, or needs them."""
    given = f"setting roll_up={settings.text('roll_up')}"
    if settings["roll_up"] and settings["format"] != naming.PARQUET and kind != "aggregate":
        raise InvalidInput(
            f"{given}: with format={settings['format']} records keep their exact times; use format=parquet"
        )
    if settings["roll_up"] and settings.text("derive.from"):
        raise InvalidInput(
            f"{given}: a derived pool holds what its query says; round in the query (date_trunc)"
        )


def _check_cluster(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if versions of one key could lie in several buckets, or if the order of age matters."""
    rule = settings["cluster.by"]
    given = f"setting cluster.by={settings.text('cluster.by')}"
    if rule is not None and kind == "aggregate":
        raise InvalidInput(f"{given}: a pool of the kind aggregate has no clusters; use append or upsert")
    if rule is not None and kind == "upsert" and rule.field not in key.names:
        raise InvalidInput(
            f"{given}: in a pool of the kind upsert the field must be one of the key: {', '.join(key.names)}"
        )


POINT, SCAN = "point", "scan"
"""The kinds of reads that the row groups of a pool's objects can be made for."""

RUN, PARTS = "run", "parts"
OFF, ON = "off", "on"
"""How a load sorts records that exceed its memory: into one sorted run of objects, or into parts that
overlap."""

SETTINGS = {
    **READ_OPTIONS,
    "format": Setting(
        one_of(*naming.FORMATS),
        naming.PARQUET,
        "of data objects; zng: records keep their own types, in rows, and a compaction makes columns (zst); "
        "zst: the same, at once in columns",
    ),
    "layout": Setting(
        one_of(POINT, SCAN),
        POINT,
        "of Parquet objects; point: small row groups, for reads of few keys; scan: large ones, for reads of few "
        "columns of many records",
    ),
    "roll_up": Setting(
        ROLL_UP,
        "",
        "FIELD:GRAIN: loads round the times of this field down to the grain, in UTC, before records are combined",
        check=_check_roll_up,
    ),
    "load.memory": Setting(
        SIZE, "256MiB", "memory for sorting; a larger load is sorted on disk, in the folder TMPDIR"
    ),
    "load.sort": Setting(
        one_of(RUN, PARTS),
        RUN,
        "run: a load leaves objects that do not overlap; parts: it leaves an object whenever its memory is full",
    ),
    "load.inline": Setting(
        small_size(MAX_INLINE),
        "0",
        "loads of at most this size, encoded, lie in the journal and write no file; 0: none; at most 256KiB",
    ),
    "cluster.by": Setting(
        CLUSTER,
        "",
        "FIELD:N: loads and compactions divide records by the hash of this field over N objects, so that a lookup "
        "by the field reads one in N",
        check=_check_cluster,
    ),
    "cluster.least": Setting(
        SIZE,
        "1MiB",
        "divide the records of a load or a compaction only if each of the N objects gets at least this size",
    ),
    "content.sums": Setting(
        one_of(OFF, ON),
        OFF,
        "on: each new object gets the sum of its records, so that compactions, fsck and verify can compare it",
    ),
}


def _check_csv(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if two of the settings `csv.*` exclude each other."""
    csv_options(settings)


ROLL_UP_FITS = Together(frozenset({"roll_up", "format", "derive.from"}), _check_exact)
CSV_FITS = Together(
    frozenset(name for name in READ_OPTIONS if name.startswith("csv.")),
    _check_csv,
)
