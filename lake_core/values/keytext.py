"""Keys as people write them: values of the key's fields, in its order.

A key of one field is the text itself: `1.10` is that text if the field holds strings, a number if it holds
numbers.  A key of several fields is a JSON list, `["2026-01-31", 7]`, or the text of its first field, which
stands for all keys that begin with it.  What the lake shows of a key, typed back, is that key and no other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import Value, decode_key, encode_key
from lake_core.values.classes import of_class, of_python
from lake_core.values.text import NotReadable, exact_number, read, show_json


class _Number(str):
    """The digits of a JSON number."""

    __slots__ = ()


def parts_of(text: str, key: PoolKey) -> list[Any]:
    """The values that the text holds, still as text, null as None."""
    if len(key.fields) > 1 and text.lstrip().startswith("["):
        try:
            parts = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
        except (ValueError, RecursionError):
            return [text]
        return [str(v).lower() if isinstance(v, bool) else v for v in parts]
    return [text]


def encoded(parts: Sequence[Any], key: PoolKey, classes: Mapping[str, str]) -> bytes:
    """Values of the leading key fields as the bytes of a bound.

    Text is read as the class that the field has; without a class it stays text.  Raises InvalidInput.
    """
    if len(parts) > len(key.fields):
        raise InvalidInput(
            f"key {list(parts)!r} has {len(parts)} values; the pool key {key} has {len(key.fields)} fields"
        )
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
        raise InvalidInput(f"key {name}={part!r}: the field is a {kind}, and this is {error}") from error


def _read(text: str, kind: str) -> Value:
    """Text as a value of the class; a number with more digits than a double has is not rounded to another key."""
    value = read(text, kind)
    return of_class(exact_number(text), kind) if isinstance(value, float) and math.isfinite(value) else value


def check_range(key_range: KeyRange, key: PoolKey) -> None:
    """Raises InvalidInput for a range that holds no key."""
    if key_range.empty:
        low, high = (show_key(bound, key) for bound in (key_range.low, key_range.high))
        raise InvalidInput(
            f"the key range from {low} (inclusive) to {high} (exclusive) is empty: in the order of the pool "
            f"key {key} "
            "its end must come after its beginning"
        )


def show_key(data: bytes | None, key: PoolKey) -> object:
    """An encoded bound as people read it: a scalar for one field, a list for more, None for an open end."""
    if not data:
        return None
    values = [show_json(v) for v in decode_key(data, key)]
    return values[0] if len(values) == 1 else values
