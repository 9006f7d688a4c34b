"""The settings of a pool: every policy of every agent, by name, with its type, its default and its meaning.

The lake stores a setting as the text that the user gave; its type (`setting_types`) reads it.  So an old lake gets
the defaults of a newer program.  `type.FIELD=TYPE` declares a field's type.  `lake set`, `lake show`, the policy
file, its JSON schema and docs/policies.md are made from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.phrases import did_you_mean
from log_lake.settings.csv_options import csv_options
from log_lake.settings.setting_types import (
    AGE_OFF,
    CHARACTER,
    DATE_FORMAT,
    DELIMITER,
    DURATION,
    ENCODING,
    FORMATS,
    HOURS,
    INTERVAL_PLACE,
    LIMIT,
    OBJECT_SIZE,
    PATTERNS,
    PLACE,
    RATIO,
    SIZE,
    STRATEGY,
    TEXT,
    TIME_FORMAT,
    WINDOW,
    WORDS,
    SettingType,
    count,
    if_given,
    one_of,
)

if TYPE_CHECKING:  # `lake --help` and `lake load --help` read this module: they need no Arrow
    import pyarrow as pa

    from lake_core.keys import PoolKey
    from lake_core.records.pools import PoolConfig

TYPE_PREFIX = "type."


def _never(before: Settings, after: Settings) -> bool:
    return False


@dataclass(frozen=True)
class Setting:
    """One setting: the type of its text, its default text, its meaning for users.

    `removes_more` tells whether a change of a pool's settings lets agents remove more than before.
    """

    type: SettingType
    default: str
    meaning: str
    removes_more: Callable[[Settings, Settings], bool] = _never

    def parse(self, text: str) -> Any:
        """The value that the text stands for.  Raises ValueError."""
        return self.type(text)


def _less(name: str) -> Callable[[Settings, Settings], bool]:
    """Whether the setting keeps less than before; without a value it keeps everything."""

    def removes_more(before: Settings, after: Settings) -> bool:
        kept, keeps = before[name], after[name]
        return keeps is not None and (kept is None or keeps < kept)

    return removes_more


def _hides_more(before: Settings, after: Settings) -> bool:
    """Whether `age_off` hides by another field than before, or younger records."""
    old, new = before["age_off"], after["age_off"]
    return new is not None and (old is None or new[0] != old[0] or new[1] < old[1])


def _expires_otherwise(before: Settings, after: Settings) -> bool:
    """Whether the age of records is told by another field than before."""
    return after["expire.age"] is not None and before["expire.by"] != after["expire.by"]


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
"""Options of reading files.  Each is a setting of a pool and an option of `lake load`, `lake replace` and the Spark
application: `csv.null` is `--csv-null`."""

KNOWN: dict[str, Setting] = {
    "description": Setting(TEXT, "", "what the pool holds, for people"),
    "agents": Setting(
        one_of("active", "paused"),
        "active",
        "paused: every agent skips this pool and says so; commands and programs still work on it",
    ),
    "upkeep": Setting(
        one_of("active", "paused"),
        "active",
        "paused: compact, checkpoint, tombstones and retention skip this pool and say so; loads and erasures go on",
    ),
    "upkeep.window": Setting(
        HOURS,
        "",
        "hours in which compact, checkpoint, tombstones and retention may begin (22:00-06:00); empty: at any time",
    ),
    **READ_OPTIONS,
    "format": Setting(
        one_of(*naming.FORMATS),
        naming.PARQUET,
        "of data objects; zng: records keep their own types, in rows, and a compaction makes columns (zst); "
        "zst: the same, at once in columns",
    ),
    "load.memory": Setting(SIZE, "256MiB", "memory for sorting; larger loads are split into several objects"),
    "checkpoint.entries": Setting(count(1), "500", "write a checkpoint after this many transactions"),
    "checkpoint.age": Setting(
        DURATION, "1d", "also write a checkpoint when the oldest transaction after the last one is this old"
    ),
    "history.keep": Setting(
        DURATION,
        "30d",
        "keep this much history: purge transactions that are older",
        _less("history.keep"),
    ),
    "vacuum.grace": Setting(
        DURATION,
        "7d",
        "keep removed objects, and objects that were never committed, at least this long",
        _less("vacuum.grace"),
    ),
    "expire.age": Setting(
        if_given(WINDOW),
        "",
        "expire records that are older than this: by expire.by, or by their load",
        _less("expire.age"),
    ),
    "expire.by": Setting(
        TEXT,
        "",
        "field with the time of a record; if empty, the load counts, and whole objects are removed",
        _expires_otherwise,
    ),
    "expire.records": Setting(
        if_given(count(1)),
        "",
        "keep the newest loads that hold this many records together; remove older ones",
        _less("expire.records"),
    ),
    "expire.bytes": Setting(
        if_given(SIZE),
        "",
        "keep the newest loads that hold this many bytes together; remove older ones",
        _less("expire.bytes"),
    ),
    "lease.ttl": Setting(DURATION, "10m", "a lease dies this long after its holder renewed it last"),
    "lease.after": Setting(DURATION, "1m", "a writer takes a lease once its work has lasted this long"),
    "token.keep": Setting(DURATION, "30d", "remember a token at least this long"),
    "compact.strategy": Setting(STRATEGY, "size_ratio", "how compaction chooses what to merge"),
    "compact.target_size": Setting(
        OBJECT_SIZE, "128MiB", "approximate size of the objects that compaction writes"
    ),
    "compact.depth": Setting(count(1), "8", "merge objects if more than this many overlap at a key"),
    "compact.ratio": Setting(
        RATIO,
        "2",
        "merge neighbouring runs whose total size is at least this many times the largest of them",
    ),
    "compact.window": Setting(WINDOW, "1d", "for time_window: length of one window"),
    "compact.max_inputs": Setting(count(2), "64", "maximum number of objects in one compaction job"),
    "compact.max_bytes": Setting(SIZE, "4GiB", "maximum size of one compaction job"),
    "publish.iceberg": Setting(
        PLACE,
        "",
        "publish main as an Iceberg table after each compaction: beside its objects (beside), or at this URI",
    ),
    "age_off": Setting(
        AGE_OFF, "", "FIELD:DURATION: hide and later remove records older than this", _hides_more
    ),
    "tombstones.apply": Setting(DURATION, "1d", "rewrite objects to remove deleted records after this time"),
    "tombstones.remember": Setting(
        DURATION, "1d", "remember a replace at least this long, for loads that began before it"
    ),
    "ingest.source": Setting(
        TEXT, "", "folder or glob of the files to load; if empty, the ingest agent skips this pool"
    ),
    "ingest.format": Setting(
        one_of(*FORMATS), "auto", "format of these files; auto: by their names and first bytes"
    ),
    "ingest.batch_files": Setting(count(1), "1000", "maximum number of files in one batch"),
    "ingest.batch_bytes": Setting(SIZE, "1GiB", "maximum size of one batch (a larger file is a batch alone)"),
    "ingest.batch_age": Setting(
        DURATION, "0s", "let a batch that is not full wait until its oldest file is this old"
    ),
    "intervals.missing": Setting(
        one_of("fail", "empty"),
        "fail",
        "an interval without any file: fail, or empty: it holds no records then",
    ),
    "intervals.source": Setting(
        INTERVAL_PLACE,
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
        """The text that the user gave, or the default text."""
        return self._texts.get(name, KNOWN[name].default)

    @property
    def declared(self) -> dict[str, pa.Field]:
        """The fields whose type the pool's settings declare, by name."""
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
    """Raises InvalidInput if loads or agents could not use a changed setting in a pool of this kind and key.

    `stored` are the pool's settings before the change, because some settings exclude each other.
    """
    for name, text in changes.items():
        check_setting(name, text, kind=kind, key=key, aggregates=aggregates)
    check_together({**(stored or {}), **changes}, changes, kind=kind, key=key)


def check_pool(pool: PoolConfig, changes: Mapping[str, str]) -> None:
    """Raises InvalidInput if the pool cannot have the changed settings beside its others; `Catalog` calls
    this."""
    check_settings(changes, kind=pool.kind, key=pool.key, aggregates=pool.aggregates, stored=pool.settings)


def check_setting(
    name: str, text: str, *, kind: str, key: PoolKey, aggregates: Mapping[str, str] | None = None
) -> None:
    """Raises InvalidInput if no load or agent could use the setting in a pool of this kind and key."""
    if not _is_text(name) or not _is_text(text):
        raise InvalidInput(f"setting {name!r}={text!r} is not UTF-8; write it in UTF-8")
    if text == "":
        return
    if name.startswith(TYPE_PREFIX):
        _check_type(name.removeprefix(TYPE_PREFIX), text, kind=kind, key=key, aggregates=aggregates or {})
        return
    if name not in KNOWN:
        raise InvalidInput(
            f"setting {name!r} is unknown; {did_you_mean(name, [*KNOWN, 'type.FIELD'])} "
            "(lake show POOL lists them)"
        )
    value = Settings({name: text})[name]
    if name == "age_off" and kind == "aggregate" and value[0] not in key.names:
        raise InvalidInput(
            f"setting {name}={text}: in an aggregate pool it must name a field of the key ({key})"
        )


def check_together(texts: Mapping[str, str], changes: Collection[str], *, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if settings of the pool exclude each other; `changes` names the changed ones."""
    given = {name: text for name, text in texts.items() if text}
    _check_expire(given, changes, kind=kind, key=key)
    if any(name.startswith("csv.") for name in changes):
        csv_options(Settings(given))


def _check_expire(texts: Mapping[str, str], changes: Collection[str], *, kind: str, key: PoolKey) -> None:
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
    from lake_core.schemas.hidden import check_names
    from lake_core.schemas.limits import name_fault
    from lake_core.values.types import declared_field, is_json
    from log_lake.combine.declared import check_type

    if fault := name_fault(name):
        raise InvalidInput(f"setting {TYPE_PREFIX}FIELD={text}: {fault}")
    check_names([name])
    field = declared_field(name, text)
    if name in key.names and is_json(field):
        raise InvalidInput(
            f"setting {TYPE_PREFIX}{name}={text}: a field of the key must have a type with an order"
        )
    check_type(field, kind=kind, function=aggregates.get(name, ""))
