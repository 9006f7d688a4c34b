"""What can be set on a pool: every policy of every agent, by name, with its default and its meaning.

Settings are stored as the text that the user gave and read as typed values here, so that an old lake gets
the defaults of a newer program.  `type.FIELD=TYPE` declares a field's type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.values.types import declared_field

TYPE_PREFIX = "type."
FORMATS = ("auto", "ndjson", "csv", "parquet")


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"use {' or '.join(words)}")
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
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([kmg]i?)?b?", text.strip().lower())
    if not match or int(match[1]) < 1:
        raise ValueError("use a size such as 500MB or 1GiB")
    return int(match[1]) * _SIZES[match[2] or ""]


def span(text: str) -> float:
    """Seconds; raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip().lower())
    if not match:
        raise ValueError("use a span of time such as 30s, 10m, 6h, 7d")
    return float(match[1]) * _SPANS[match[2]]


def _age_off(text: str) -> tuple[str, float] | None:
    field, colon, age = text.rpartition(":")
    if text and not (colon and field):
        raise ValueError("use FIELD:SPAN, such as ts:30d")
    return (field, span(age)) if text else None


@dataclass(frozen=True)
class Setting:
    """One setting: how its text is read, the text it has by default, what it does."""

    parse: Callable[[str], Any]
    default: str
    meaning: str


KNOWN: dict[str, Setting] = {
    "description": Setting(str, "", "what the pool holds, for people"),
    "bad_records": Setting(
        _one_of("fail", "quarantine"),
        "fail",
        "a record that cannot be read fails the load, or goes to the sub-pool $rejected",
    ),
    "csv.null": Setting(str, "", "a word that stands for null in CSV, beside the empty value"),
    "load.memory": Setting(
        _size, "256MiB", "how much is sorted at once; a larger load makes several objects"
    ),
    "checkpoint.entries": Setting(_count, "500", "a checkpoint is due after so many transactions"),
    "checkpoint.age": Setting(span, "1d", "or when the oldest transaction since the last is this old"),
    "history.keep": Setting(
        span, "30d", "states this old can be read; transactions older than that are purged"
    ),
    "token.keep": Setting(span, "30d", "a token is remembered at least this long"),
    "compact.strategy": Setting(
        _one_of("size_ratio", "depth", "time_window", "full"),
        "size_ratio",
        "what compaction merges, and when",
    ),
    "compact.target_size": Setting(_size, "128MiB", "about how large compaction makes objects"),
    "compact.depth": Setting(_count, "8", "at most so many objects should overlap at a key"),
    "compact.ratio": Setting(
        _ratio, "2", "objects are alike, and worth merging, when together they are so many times the largest"
    ),
    "compact.window": Setting(span, "1d", "time_window: so much of the key's time is one window"),
    "compact.most_inputs": Setting(_count, "64", "most objects in one compaction job"),
    "compact.most_bytes": Setting(_size, "4GiB", "most bytes in one compaction job"),
    "age_off": Setting(
        _age_off, "", "FIELD:SPAN: records whose time in the field is further back are not visible, and go"
    ),
    "delete.apply": Setting(
        span, "1d", "what was deleted goes out of the objects when the delete is this old"
    ),
    "delete.remember": Setting(
        span, "1d", "a replace is remembered at least this long, for loads that began before it"
    ),
    "ingest.source": Setting(
        str, "", "where files land: a folder or a glob; empty: the ingest agent passes by"
    ),
    "ingest.format": Setting(_one_of(*FORMATS), "auto", "format of the landed files; auto: by their names"),
    "interval.source": Setting(
        str, "", "where the files of an interval land, as in /landing/%Y-%m-%d/*.csv; empty: passed by"
    ),
    "ingest.batch_files": Setting(_count, "1000", "most files in one batch"),
    "ingest.batch_bytes": Setting(_size, "1GiB", "most bytes in one batch (a larger file is one alone)"),
    "ingest.batch_age": Setting(
        span, "0s", "a batch that is not full waits until its oldest file is this old"
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
            declared_field(name[len(TYPE_PREFIX) :], text)
            continue
        setting = KNOWN.get(name)
        if setting is None:
            raise InvalidInput(f"setting {name!r} is unknown; there are: {', '.join(KNOWN)}, type.FIELD")
        try:
            value = setting.parse(text)
        except ValueError as error:
            raise InvalidInput(f"setting {name}={text}: {error}") from error
        if name == "age_off" and kind == "aggregate" and value[0] not in key.names:
            raise InvalidInput(
                f"setting {name}={text}: in an aggregate pool it must name a field of the key ({key})"
            )
