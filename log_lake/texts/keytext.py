"""Keys as users write them: the values of the key's fields, in its order.

A key of one field is the text itself: `1.10` is that text if the field holds strings, a number if it holds
numbers. A key of several fields is a JSON list, `["2026-01-31", 7]`, or the text of its first field, which
stands for all keys that begin with it.  The text that the lake shows for a key, typed back, is that key and no
other.

To read a text as a key, the lake must know the class of the key field, which records show.  A reader of a pool
without records may take the text as a string, because there is nothing to find.  A writer must not: the stored
range of strings would miss numbers that come later.  So deletes and replaces keep the range as it was written
(`RangeText`).  They read it by the records of the pool, or by those that they bring.  `check_classes` refuses a
range if no record shows the class.
"""

from __future__ import annotations

import contextlib
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, Value, class_of, decode_key, encode_key
from lake_core.phrases import counted
from log_lake.texts.classes import of_class, of_python
from log_lake.texts.exact import exact_number
from log_lake.texts.value import NotReadable, read, show


class _Number(str):
    """A text that was a number in JSON, with its digits unchanged."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class RangeText:
    """A key range as a user wrote it, not yet read: from `low` (inclusive) to `high` (exclusive), None for an
    open end.

    Or `prefix` alone: all keys that begin with it.
    """

    low: str | None = None
    high: str | None = None
    prefix: str | None = None

    def read(self, key: PoolKey, classes: Mapping[str, str]) -> KeyRange:
        """Returns the range, with each value read as the class of its field; if the class is not known, the value
        is taken as a text.

        Raises InvalidInput, also for an empty text.  In a script an empty text is a variable that was not set,
        and would make the range open.
        """
        if "" in (self.low, self.high):
            end = "lower" if self.low == "" else "upper"
            raise InvalidInput(f"the {end} end of the key range is empty; name a key, or leave the end out")
        if self.prefix is not None:
            prefix = encoded(parts_of(self.prefix, key), key, classes)
            return KeyRange(prefix, prefix + AFTER)
        return KeyRange(
            b"" if self.low is None else encoded(parts_of(self.low, key), key, classes),
            None if self.high is None else encoded(parts_of(self.high, key), key, classes),
        )

    def is_readable(self, key: PoolKey, classes: Mapping[str, str]) -> bool:
        """Whether the class is known for every field for which the range has a value."""
        texts = [text for text in (self.low, self.high, self.prefix) if text is not None]
        named = max((len(parts_of(text, key)) for text in texts), default=0)
        return all(name in classes for name in key.names[:named])


def parts_of(text: str, key: PoolKey) -> list[Any]:
    """Returns the values in the text of a key, still as texts; a null becomes None."""
    if len(key.fields) > 1 and text.lstrip().startswith("["):
        try:
            parts = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
        except (ValueError, RecursionError):
            return [text]
        return [str(v).lower() if isinstance(v, bool) else v for v in parts]
    return [text]


def encoded(parts: Sequence[Any], key: PoolKey, classes: Mapping[str, str]) -> bytes:
    """Returns the values of the leading key fields as the bytes of a bound.

    A text is read as the class of its field; if the class is not known, it stays text.  Raises InvalidInput.
    """
    if len(parts) > len(key.fields):
        raise InvalidInput(f"key {list(parts)!r} has {counted(len(parts), 'value')}; {key.size}")
    values = [_value(part, name, classes.get(name)) for part, name in zip(parts, key.names, strict=False)]
    return encode_key(values, key)


def _value(part: Any, name: str, kind: str | None) -> Value:
    if isinstance(part, dict | list):
        raise InvalidInput(f"key {name}={part!r}: write a scalar, or one list of the key's fields")
    if part is None:
        return None
    try:
        if isinstance(part, str):
            return _read(str(part), kind) if kind else str(part)
        value = of_python(part)
        return of_class(value, kind) if kind else value
    except NotReadable as error:
        shown = repr(str(part)) if isinstance(part, str) else show(value)
        raise InvalidInput(f"key {name}={shown}: the field is a {kind}, and this is {error}") from error


def _read(text: str, kind: str) -> Value:
    """Reads the text as a value of the class.  Raises InvalidInput for a number with more digits than a double
    has, instead of rounding it to another key."""
    value = read(text, kind)
    return of_class(exact_number(text), kind) if isinstance(value, float) and math.isfinite(value) else value


def check_range(key_range: KeyRange, key: PoolKey) -> None:
    """Raises InvalidInput if the range holds no key."""
    if key_range.empty:
        low, high = (key_text(bound, key) for bound in (key_range.low, key_range.high))
        raise InvalidInput(
            f"the key range from {low} (inclusive) to {high} (exclusive) is empty: in the order of the pool "
            f"key {key} "
            "its end must come after its beginning"
        )


def check_classes(key_range: KeyRange, key: PoolKey, classes: Mapping[str, str]) -> None:
    """Raises InvalidInput if the range must not be stored: the class of a bound differs from its field's, or is
    not known.

    Such a range would cover all keys of a class, or none, instead of what its bounds say.
    """
    for bound in (key_range.low, key_range.high or b""):
        values: tuple[Value, ...] = ()
        with contextlib.suppress(struct.error, IndexError):  # a bound that ends within a value
            values = decode_key(bound, key)
        for name, value in zip(key.names, values, strict=False):
            if value is None or classes.get(name) == class_of(value):
                continue
            if name not in classes:
                raise InvalidInput(
                    f"key range: no record tells the type of the key field {name!r} yet, so {show(value)!r} could "
                    f"be of any; declare it (lake set POOL type.{name}=TYPE)"
                )
            raise InvalidInput(
                f"key range: {show(value)!r} is a {class_of(value)}, and the key field {name!r} is a "
                f"{classes[name]}; write the bound as a {classes[name]}"
            )


def key_text(data: bytes | None, key: PoolKey) -> str:
    """Returns an encoded bound as text, for errors; if a user types it, it is the same bound. For a key of several
    fields it is JSON."""
    values = decode_key(data, key) if data else ()
    if len(values) != 1:
        return json.dumps([_as_json(v) for v in values], ensure_ascii=False)
    return "null" if values[0] is None else show(values[0])


def range_words(
    low: bytes, high: bytes | None, key: PoolKey, *, text: Callable[[bytes, PoolKey], str] = key_text
) -> str:
    """Returns a range of keys in words: `the key 7`, `keys from 3 to below 5`, `keys after 3 up to 9 (inclusive)`;
    "" for all keys.

    A bound may end in `AFTER`: then it is above every key that begins with its values.  `text` converts a bound
    to text.
    """
    if low and high == low + AFTER and not low.endswith(AFTER):
        whole = len(decode_key(low, key)) == len(key.fields)
        return f"{'the key' if whole else 'keys that begin with'} {text(low, key)}"
    words = []
    if low:
        words.append(f"{'after' if low.endswith(AFTER) else 'from'} {text(low, key)}")
        if high is None:
            words.append("on")
    if high is not None:
        ends = f"up to {text(high, key)} (inclusive)" if high.endswith(AFTER) else f"below {text(high, key)}"
        words.append(ends if not low or high.endswith(AFTER) else f"to {ends}")
    return " ".join(["keys", *words]) if words else ""


def show_key(data: bytes | None, key: PoolKey) -> object:
    """Returns an encoded bound as plain values: a scalar for a key of one field, a list for several, None for an
    open end."""
    if not data:
        return None
    values = [_as_json(v) for v in decode_key(data, key)]
    return values[0] if len(values) == 1 else values


def _as_json(value: Value) -> object:
    """Returns the value as JSON expresses it: booleans, numbers and null unchanged, others as text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return show(value)
