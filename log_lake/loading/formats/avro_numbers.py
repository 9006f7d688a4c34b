"""Finds numbers in an Avro value that have more than 64 bits.

Avro writes a number as seven bits a byte, so at most ten bytes hold 64 bits.  fastavro takes any number of bytes,
and returns another number without an error.  So such a number is damage of its block.

Only values with nine bytes in a row that have the highest bit can hold one.  Most have none, and cost one search.
The others are walked through by their schema, because texts may have such bytes too.  Called by `avro_values`.
"""

from __future__ import annotations

import re
from typing import Any

_GOES_ON = re.compile(rb"[\x80-\xff]{9}")
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_MOST = 10
"""The bytes of the longest number; of the last one only the lowest bit counts."""


def may_have_long_numbers(data: bytes, begin: int = 0, end: int | None = None) -> bool:
    """Whether bytes of a block may hold a number of more than 64 bits."""
    return _GOES_ON.search(data, begin, len(data) if end is None else end) is not None


def check_numbers(data: bytes, begin: int, schema: Any) -> None:
    """Raises ValueError if the value that begins there has a number of more than 64 bits.

    `schema` is one that `avro_values` has prepared, and fastavro has read the value by it.
    """
    _Walk(data, begin, schema.get("__named_schemas", {})).value(schema)


class _Walk:
    def __init__(self, data: bytes, at: int, named: dict[str, Any]) -> None:
        self._data, self._at, self._named = data, at, named

    def value(self, schema: Any) -> None:
        """Goes past a value.  Raises ValueError if it has a number of more than 64 bits."""
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, dict):
            self.value(kind)
        elif kind in _SIZES:
            self._at += _SIZES[kind]
        elif kind in ("int", "long", "enum"):
            self._number()
        elif kind in ("bytes", "string"):
            self._text()
        elif kind == "fixed":
            self._at += schema["size"]
        elif kind in ("array", "map"):
            self._items(schema, is_map=kind == "map")
        elif kind == "union":
            self.value(schema[self._number()])
        elif kind in ("record", "error"):
            for member in schema["fields"]:
                self.value(member["type"])
        else:
            self.value(self._named[kind])

    def _items(self, schema: Any, *, is_map: bool) -> None:
        while count := self._number():  # bounded by the bytes, which fastavro has read
            if count < 0:  # then the block says its size, too
                self._number()
            for _ in range(abs(count)):
                if is_map:
                    self._text()
                self.value(schema["values" if is_map else "items"])

    def _text(self) -> None:
        size = self._number()  # first, because it moves on
        self._at += size

    def _number(self) -> int:
        begin, value = self._at, 0
        while True:  # bounded by the bytes of a number
            byte = self._data[self._at]
            value |= (byte & 0x7F) << 7 * (self._at - begin)
            self._at += 1
            if self._at - begin == _MOST and byte > 1:
                raise ValueError("a number has more than 64 bits")
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
