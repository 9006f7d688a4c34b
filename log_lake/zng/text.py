"""Values and types as readable text, one value per line, as the original program prints them.

If a value does not show its type, the type follows in parentheses: `1(int32)`, `null(string)`.  A record,
array, set or map shows its type if the values inside do.  A named type is defined where it first occurs in a
line, `80(port=(uint16))` or `{a:1}(=foo)`; after that the name alone is enough: `(port)`.  Bytes that are not
UTF-8 are lone surrogates in the text, as in Python's `surrogateescape`, and are written unchanged.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from lake_core.errors import Corrupt
from log_lake.zng.type_values import read_type_value
from log_lake.zng.types import (
    BOOL,
    BSTRING,
    BYTES,
    DURATION,
    ERROR,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    IP,
    NET,
    NULL,
    PRIMITIVES,
    SIGNED,
    STRING,
    TIME,
    TYPE,
    UNSIGNED,
    Array,
    Enum,
    Map,
    Named,
    Primitive,
    Record,
    Set,
    Type,
    Union,
    plain,
)
from log_lake.zng.wire import Cursor, as_signed, as_unsigned

_IMPLIED = frozenset((INT64, DURATION, TIME, FLOAT64, BOOL, BYTES, STRING, IP, NET, TYPE, NULL))
DURATION_UNITS = {
    "y": 31_536_000_000_000_000,
    "d": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
"""Nanoseconds of the units of durations; a year has 365 days."""

ESCAPES = {"\\": "\\", '"': '"', "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
"""Characters, and the letter that represents each after a backslash."""

IDENTIFIER = re.compile(r"(?:[^\W\d]|\$)(?:\w|\$)*")
"""A field's name that is written without quotes."""

TYPE_NAME = re.compile(r"[\w$./]+")
"""A type name that is written without quotes, unless it equals the name of a primitive type."""

_RESERVED = frozenset(kind.name for kind in PRIMITIVES)


def value_text(kind: Type, body: bytes | None) -> str:
    """Returns one top-level value as one line.  Raises Corrupt if the bytes are not valid for the type."""
    writer = _Writer()
    writer.top(kind, body)
    return "".join(writer.parts)


def type_text(kind: Type) -> str:
    """Returns a type; each named type has its definition where it first occurs."""
    writer = _Writer()
    writer.type(kind)
    return "".join(writer.parts)


class _Writer:
    """Builds one line of text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._names: set[Type] = set()
        """The named types that the line has defined so far."""

    def top(self, kind: Type, body: bytes | None) -> None:
        is_typed, implied = kind in self._names, _implied(kind)
        self._value(kind, body, is_typed=is_typed, implied=implied, decorate=False)
        self._decorate(kind, is_typed=False, null=body is None)

    def _value(
        self, kind: Type, body: bytes | None, *, is_typed: bool, implied: bool, decorate: bool
    ) -> None:
        """Appends a value.  `is_typed`: the text around it has shown its type; `implied`: the whole line shows it.

        `decorate`: the type may follow in parentheses if the text does not show it.
        """
        if body is None:
            self.parts.append("null")
            if decorate:
                self._decorate(kind, is_typed=is_typed and not implied, null=True)
            return
        inside = is_typed or kind in self._names
        null = False
        match kind:
            case Named():
                self._value(kind.target, body, is_typed=inside, implied=implied, decorate=False)
            case Record():
                self._record(kind, body, is_typed=inside, implied=implied)
            case Array():
                null = self._elements(kind, body, is_typed=inside, implied=implied)
            case Map():
                null = self._map(kind, body, is_typed=inside, implied=implied)
            case Union():
                at, inner = selected(kind, body)
                self._value(kind.children[at], inner, is_typed=False, implied=True, decorate=True)
            case Enum():
                self.parts.append(_symbol(kind, body))
            case Primitive():
                self.parts.append(_primitive(kind, body))
        if decorate:
            self._decorate(kind, is_typed=is_typed, null=null)

    def _record(self, kind: Record, body: bytes, *, is_typed: bool, implied: bool) -> None:
        cursor = Cursor(body, name="a record")
        separator = "{"
        for name, child in zip(kind.names, kind.children, strict=True):
            self.parts += (separator, name_text(name), ":")
            self._value(child, cursor.value(), is_typed=is_typed, implied=implied, decorate=True)
            separator = ","
        if cursor.left:
            raise Corrupt("a record has more values than its type has fields")
        self.parts.append("}" if kind.names else "{}")

    def _elements(self, kind: Array, body: bytes, *, is_typed: bool, implied: bool) -> bool:
        opened, closed = ("|[", "]|") if isinstance(kind, Set) else ("[", "]")
        self.parts.append(opened)
        for at, element in enumerate(Cursor(body, name="an array").values()):
            if at:
                self.parts.append(",")
            self._value(kind.inner, element, is_typed=is_typed, implied=implied, decorate=True)
        self.parts.append(closed)
        return not body

    def _map(self, kind: Map, body: bytes, *, is_typed: bool, implied: bool) -> bool:
        key_kind, value_kind = kind.children
        self.parts.append("|{")
        for at, (key, value) in enumerate(entries(body)):
            if at:
                self.parts.append(",")
            self._value(key_kind, key, is_typed=is_typed, implied=implied, decorate=True)
            if plain(key_kind) is IP and key is not None and len(key) == 16:
                self.parts.append(" ")  # the colon would be read as one of the address
            self.parts.append(":")
            self._value(value_kind, value, is_typed=is_typed, implied=implied, decorate=True)
        self.parts.append("}|")
        return not body

    def _decorate(self, kind: Type, *, is_typed: bool, null: bool) -> None:
        if is_typed or (not (null and kind is not NULL) and _implied(kind)):
            return
        if kind in self._names:
            self.parts.append(f"({type_name_text(str(kind.label))})")
        elif not null and _describes_itself(kind):
            if isinstance(kind, Named):
                self._names.add(kind)
                self.parts.append(f"(={type_name_text(kind.name)})")
        else:
            self.parts.append("(")
            self.type(kind)
            self.parts.append(")")

    def type(self, kind: Type) -> None:
        """Appends a type."""
        match kind:
            case Named():
                self.parts.append(type_name_text(kind.name))
                if kind not in self._names:
                    self._names.add(kind)
                    self.parts.append("=(")
                    self.type(kind.target)
                    self.parts.append(")")
            case Record():
                self._types("{", kind.children, "}", [f"{name_text(name)}:" for name in kind.names])
            case Set():
                self._types("|[", kind.children, "]|")
            case Array():
                self._types("[", kind.children, "]")
            case Union():
                self._types("(", kind.children, ")")
            case Map():
                self._types("|{", kind.children, "}|", between=":")
            case Enum():
                self.parts.append("<" + ",".join(map(name_text, kind.symbols)) + ">")
            case Primitive():
                self.parts.append(kind.name)

    def _types(
        self,
        opened: str,
        kinds: tuple[Type, ...],
        closed: str,
        names: list[str] | None = None,
        between: str = ",",
    ) -> None:
        self.parts.append(opened)
        for at, kind in enumerate(kinds):
            if at:
                self.parts.append(between)
            if names:
                self.parts.append(names[at])
            self.type(kind)
        self.parts.append(closed)


def selected(kind: Union, body: bytes) -> tuple[int, bytes | None]:
    """Returns which type of the union the value has, and the value's body."""
    cursor = Cursor(body, name="a union")
    selector = cursor.value()
    at = as_signed(selector) if selector is not None else -1
    if not 0 <= at < len(kind.children):
        raise Corrupt(f"a union of {len(kind.children)} types says that its value has type {at}")
    inner = cursor.value()
    if cursor.left:
        raise Corrupt("a union holds more than one value")
    return at, inner


def entries(body: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yields the key and the value of each entry in a map's body."""
    cursor = Cursor(body, name="a map")
    while cursor.left:  # ends: a value takes a byte at least
        key = cursor.value()
        yield key, cursor.value()


def _implied(kind: Type) -> bool:
    """Whether the text of a value shows that it has this type."""
    if isinstance(kind, Primitive):
        return kind in _IMPLIED
    return isinstance(kind, (Record, Array, Map)) and all(map(_implied, kind.children))


def _describes_itself(kind: Type) -> bool:
    """Whether the text of a value shows this type, provided it shows the types of the values inside."""
    if isinstance(kind, Named):
        return _describes_itself(kind.target)
    return isinstance(kind, (Record, Array, Map)) or _implied(kind)


def _symbol(kind: Enum, body: bytes) -> str:
    at = as_unsigned(body)
    if at >= len(kind.symbols):
        raise Corrupt(f"an enum of {len(kind.symbols)} symbols has the value {at}")
    symbol = kind.symbols[at]
    return quoted(symbol.encode(), escape_bytes=False) if symbol == "null" else name_text(symbol)


def _primitive(kind: Primitive, body: bytes) -> str:
    if kind is DURATION:
        return duration_text(as_signed(body))
    if kind is TIME:
        return time_text(as_signed(body))
    if kind in SIGNED:
        return str(as_signed(body))
    if kind in UNSIGNED:
        return str(as_unsigned(body))
    if kind in _FLOATS:
        code, number = _FLOATS[kind]
        if len(body) != struct.calcsize(code):
            raise Corrupt(f"a {kind.name} of {len(body)} bytes")
        return float_text(struct.unpack(code, body)[0], number)
    if kind is BOOL:
        return "true" if any(body) else "false"
    if kind in (STRING, BSTRING, ERROR):
        return quoted(body, escape_bytes=kind is BSTRING)
    if kind is IP:
        return ip_text(body)
    if kind is NET:
        return net_text(body)
    if kind is TYPE:
        return f"({type_text(read_type_value(body, 'a type value'))})"
    if kind is NULL:
        raise Corrupt("a value of type null")
    return "0x" + body.hex()


_FLOATS: dict[Type, tuple[str, type[np.floating[Any]]]] = {
    FLOAT16: ("<e", np.float16),
    FLOAT32: ("<f", np.float32),
    FLOAT64: ("<d", np.float64),
}


def time_text(nanoseconds: int) -> str:
    """Returns a time in UTC, with as many digits after the point as it needs."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    whole = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)  # int64 reaches from 1677 to 2262
    return whole.isoformat() + (f".{fraction:09}".rstrip("0") if fraction else "") + "Z"


def duration_text(nanoseconds: int) -> str:
    """Returns a duration in years of 365 days, days, hours, minutes and one fraction."""
    if not nanoseconds:
        return "0s"
    text, left = "-" if nanoseconds < 0 else "", abs(nanoseconds)
    for unit in ("y", "d", "h", "m"):
        count, left = divmod(left, DURATION_UNITS[unit])
        text += f"{count}{unit}" if count else ""
    for unit in ("s", "ms", "us", "ns"):
        size = DURATION_UNITS[unit]
        if left >= size:
            whole, rest = divmod(left, size)
            fraction = f".{rest:0{len(str(size)) - 1}}".rstrip("0") if rest else ""
            return f"{text}{whole}{fraction}{unit}"
    return text


def float_text(number: float, kind: type[np.floating[Any]] = np.float64) -> str:
    """Returns a floating-point number in the fewest digits that identify it; whole numbers end in a point."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == int(number) and -(2**63) <= number < 2**63:
        return f"{int(number)}."
    digits, _, exponent = np.format_float_scientific(kind(number), trim="-").lstrip("-").partition("e")
    minus, places, power = "-" if number < 0 else "", digits.replace(".", ""), int(exponent)
    if power < -4 or power >= 6:
        point = f".{places[1:]}" if len(places) > 1 else ""
        return f"{minus}{places[0]}{point}e{'-' if power < 0 else '+'}{abs(power):02}"
    if power < 0:
        return f"{minus}0.{'0' * (-power - 1)}{places}"
    return f"{minus}{places[: power + 1]}.{places[power + 1 :]}"


def ip_text(body: bytes) -> str:
    """Returns an address of 4 or 16 bytes."""
    if len(body) == 4:
        return str(ipaddress.IPv4Address(body))
    if len(body) != 16:
        raise Corrupt(f"an ip of {len(body)} bytes")
    mapped = ipaddress.IPv6Address(body).ipv4_mapped
    return str(mapped or ipaddress.IPv6Address(body))


def net_text(body: bytes) -> str:
    """Returns a network as text: the address, and the number of bits of the mask; if the mask has gaps, its
    digits."""
    if len(body) not in (8, 32):
        raise Corrupt(f"a net of {len(body)} bytes")
    half = len(body) // 2
    mask = body[half:]
    bits = "".join(f"{byte:08b}" for byte in mask)
    ones = bits.count("1")
    return f"{ip_text(body[:half])}/{ones if bits.startswith('1' * ones) else mask.hex()}"


def name_text(name: str) -> str:
    """Returns a name, quoted if it is not an identifier."""
    return name if IDENTIFIER.fullmatch(name) else quoted(name.encode(), escape_bytes=False)


def type_name_text(name: str) -> str:
    """Returns the name of a type, quoted if it would be read as something else."""
    is_plain = TYPE_NAME.fullmatch(name) and name not in _RESERVED
    return name if is_plain else quoted(name.encode(), escape_bytes=False)


def quoted(body: bytes, *, escape_bytes: bool) -> str:
    r"""Returns the text in quotes; `escape_bytes`: bytes that are not UTF-8 are written as `\xff`."""
    text = body.decode(errors="surrogateescape")
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(_escaped(c, escape_bytes=escape_bytes) for c in text)}"'


def _escaped(char: str, *, escape_bytes: bool) -> str:
    if (letter := ESCAPES.get(char)) is not None:
        return f"\\{letter}"
    if char.isprintable():
        return char if char != "\ufffd" or not escape_bytes else _hex(char.encode())
    encoded = char.encode(errors="surrogateescape")
    if len(encoded) == 1 and encoded[0] >= 0x80:
        return _hex(encoded) if escape_bytes else char
    # as the original has it: the first byte is escaped, and those after it are bytes that are not UTF-8
    rest = encoded[1:]
    return _hex(encoded[:1]) + (_hex(rest) if escape_bytes else rest.decode(errors="surrogateescape"))


def _hex(body: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in body)
