"""Typed JSON: a value as JSON that reads back as exactly the same value.

Values that JSON has stay as they are.  Every other value is an object with one member, whose name is the class:

    {"lake:timestamp":"2026-01-31T12:00:00.5Z"}    with a zone; without one there is no Z
    {"lake:date":"2026-01-31"}  {"lake:time":"12:00:00"}  {"lake:duration":"1.5s"}  {"lake:bytes":"AP8="}
    {"lake:number":"NaN"}                          doubles that JSON lacks
    {"lake:decimal":"1.10"}                        a decimal; a plain number is an integer or a double
    {"lake:map":[[KEY,VALUE],...]}
    {"lake:record":{...}}                          a record whose only member has one of these names

Null members of records are left out, because columnar objects cannot tell a null field from a missing one.
`value_of` reads typed JSON; `to_shown` and `to_typed` convert between typed and plain JSON.  Plain JSON without
such members is the same in both forms, so text of other programs needs no change.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import json
from typing import Any

import msgspec

from lake_core.keys.encoding import Instant, class_of
from log_lake.texts.exact import exact_number
from log_lake.texts.value import NotReadable, read, read_double, show

TAG = "lake:"
"""The beginning of a member's name that names a class."""

QUOTED_TAG = f'"{TAG}'
MAP, RECORD = f"{TAG}map", f"{TAG}record"
_CLASSES = {
    f"{TAG}{name}": name for name in ("timestamp", "date", "time", "duration", "bytes", "decimal", "number")
}


class MapEntries(list[tuple[Any, Any]]):
    """The entries of a map, as `value_of` returns them."""

    __slots__ = ()


def dumps(value: Any) -> str:
    """Returns compact JSON of plain values; non-ASCII characters are not escaped."""
    return msgspec.json.encode(value).decode()


def value_of(text: str) -> Any:
    """Returns the value of a typed JSON text: a value, `MapEntries`, a dict or a list.  Raises ValueError if it is
    not JSON."""
    value = PLAIN.decode(text)
    return _untagged(value) if QUOTED_TAG in text else value


def is_typed(text: str) -> bool:
    """Whether another program's text is valid typed JSON on one line."""
    try:
        value_of(text)
    except (ValueError, TypeError, RecursionError):  # a tag may hold something else; too deep
        return False
    return "\n" not in text and "\r" not in text


def text_of(value: Any) -> str:
    """Returns typed JSON for a value in the form that `value_of` returns."""
    return dumps(_taggable(value))


def to_shown(text: str) -> str:
    """Converts typed JSON to JSON for people."""
    return dumps(_showable(value_of(text))) if QUOTED_TAG in text else text


def to_typed(text: str) -> str:
    """Returns plain JSON as typed JSON, on one line; numbers keep their digits.  Raises ValueError if it is not
    JSON."""
    one_line = msgspec.json.format(text, indent=-1)
    if QUOTED_TAG not in one_line:
        PLAIN.decode(one_line)
        return one_line
    return text_of(PLAIN.decode(one_line))


def _untagged(value: Any) -> Any:
    """Replaces each record with one tagged member by the value that it stands for."""
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inner),) = value.items()
        if name == RECORD and isinstance(inner, dict):
            return {member: _untagged(item) for member, item in inner.items()}
        if name == MAP and isinstance(inner, list):
            return MapEntries((_untagged(key), _untagged(item)) for key, item in inner)
        if (class_name := _CLASSES.get(name)) is not None and isinstance(inner, str):
            zoned = class_name == "timestamp" and inner.endswith("Z")
            with contextlib.suppress(NotReadable):
                return read(inner, "timestamp with zone" if zoned else class_name)
    return {member: _untagged(item) for member, item in value.items()}


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the members of an object.  Raises ValueError if two have one name, because neither may be
    dropped."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"field {next(name for name in names if names.count(name) > 1)!r} is there more than once"
        )
    return record


def _any_number(text: str) -> Any:
    try:
        return exact_number(text)
    except NotReadable:
        return float(text)


NO_JSON = r"(?:^|[\[:,{\s])-?(?:NaN|Infinity)"
"""A pattern that finds the words that DuckDB prints for doubles that JSON cannot express."""

LENIENT = json.JSONDecoder(parse_float=_any_number, parse_int=_any_number, parse_constant=read_double)
"""Reads the JSON in answers of SQL.  If two members have one name, it keeps the last."""


PLAIN = json.JSONDecoder(
    parse_float=exact_number, parse_int=exact_number, parse_constant=_no_constant, object_pairs_hook=_distinct
)
"""Reads plain JSON, with exact numbers (`texts.exact`).  Raises ValueError for two members with one name, and for
NaN."""


def _taggable(value: Any) -> Any:
    """Converts the value to plain JSON values.  A value that JSON cannot express becomes a record of one member,
    the tag."""
    if isinstance(value, MapEntries):
        return {MAP: [[_taggable(k), _taggable(v)] for k, v in value]}
    if isinstance(value, dict):
        record = {name: _taggable(member) for name, member in value.items()}
        return {RECORD: record} if len(record) == 1 and next(iter(record)).startswith(TAG) else record
    if isinstance(value, list):
        return [_taggable(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return _plain_decimal(value)
    if isinstance(value, Instant | bytes | dt.date) or (isinstance(value, float) and value - value != 0):
        return {f"{TAG}{class_of(value).partition(' ')[0]}": show(value)}
    return value


def _plain_decimal(value: decimal.Decimal) -> Any:
    """Returns the decimal as a plain number if that reads back as a decimal, otherwise tagged."""
    text = format(value, "f")
    if isinstance(exact_number(text), decimal.Decimal):
        return msgspec.Raw(text.encode())
    return {f"{TAG}decimal": text}


def _showable(value: Any) -> Any:
    if isinstance(value, MapEntries):
        return {k if isinstance(k, str) else dumps_shown(k): _showable(v) for k, v in value}
    if isinstance(value, dict):
        return {name: _showable(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_showable(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return msgspec.Raw(format(value, "f").encode())
    if isinstance(value, Instant | bytes | dt.date) or (isinstance(value, float) and value - value != 0):
        return show(value)
    return value


def dumps_shown(value: Any) -> str:
    """Returns a value that `value_of` returned as JSON for people."""
    return dumps(_showable(value))
