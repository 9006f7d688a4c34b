"""Turns a parsed value, with its types, into the bytes of a value.

A value without a type has the type that its text shows: `1` is int64, `1.5` float64, `[1,2]` an array of int64.
Elements of several types become a union of these types, in the order in which they occur; nulls take the type of
the others.  A type after a value gives the type of the value and of everything inside it.  If that type is a
union, the first of its types that fits the value counts.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from fractions import Fraction

from log_lake.zng.addresses import ip_body, net_body
from log_lake.zng.text import DURATION_UNITS, type_text
from log_lake.zng.text_parser import Malformed, Node
from log_lake.zng.type_values import type_value
from log_lake.zng.types import (
    BOOL,
    BSTRING,
    BYTES,
    DECIMAL,
    DURATION,
    ERROR,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    IP,
    NET,
    NULL,
    STRING,
    TIME,
    TYPE,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Array,
    Enum,
    Map,
    Named,
    Record,
    Set,
    Type,
    Union,
    plain,
)
from log_lake.zng.wire import container, primitive, signed, unsigned

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*+")
_LONGEST_WORD = 1_000
"""The most characters of a number, a time or an address.  No value needs more, and a regular expression takes long
for many more."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_PART = r"(\d+)(?:\.(\d+))?(y|d|h|ms|us|µs|ns|m|s)"
_DURATION = re.compile(rf"-?(?:{_PART})+", re.ASCII)
_DURATION_PART = re.compile(_PART, re.ASCII)
_UNITS = DURATION_UNITS | {"µs": 1_000}
_SPECIAL = {"NaN": math.nan, "+Inf": math.inf, "Inf": math.inf, "-Inf": -math.inf}
_BITS: dict[Type, tuple[int, int]] = {
    UINT8: (0, 2**8),
    UINT16: (0, 2**16),
    UINT32: (0, 2**32),
    UINT64: (0, 2**64),
    INT8: (-(2**7), 2**7),
    INT16: (-(2**15), 2**15),
    INT32: (-(2**31), 2**31),
    INT64: (-(2**63), 2**63),
}
_FLOATS: dict[Type, str] = {FLOAT16: "<e", FLOAT32: "<f", FLOAT64: "<d"}

TypedText = tuple[Type, bytes | None]
"""A type and a body; a body of None means null."""


class _NoFit(Exception):
    """The written value does not belong to the type."""


def value_of(node: Node) -> TypedText:
    """Returns the type and the body of a written value.  Raises Malformed."""
    try:
        return _value(node, len(node.types), None)
    except _NoFit as error:
        raise Malformed(node.position, str(error)) from None


def type_of(node: Node) -> Type:
    """Returns the type that a written value has without a name for its type, as in `value(=name)`.  Raises
    Malformed."""
    return value_of(node)[0]


def _value(node: Node, count: int, expected: Type | None) -> TypedText:
    """Returns the value with the first `count` of the types written after it.

    Raises _NoFit if the value does not belong to the type `expected` (None: any type).
    """
    if not count:
        return _bare(node, expected)
    kind = node.types[count - 1]
    if count == 1:
        value = _bare(node, kind)
    else:
        inner_kind, body = value = _value(node, count - 1, None)
        if isinstance(kind, Named) and kind.target == inner_kind:  # `value(type)(=name)`
            value = (kind, body)
        else:
            value = _as_expected(kind, value)
    return value if expected is None else _as_expected(expected, value)


def _as_expected(expected: Type, value: TypedText) -> TypedText:
    kind = value[0]
    if kind == expected:
        return value
    if isinstance(plain(expected), Union):
        return _of_union(expected, value)
    raise _NoFit(f"a value of type <{type_text(kind)}>, where <{type_text(expected)}> is expected")


def _of_union(kind: Type, value: TypedText) -> TypedText:
    union = plain(kind)
    if value[0] not in union.children:
        raise _NoFit(f"a value of type <{type_text(value[0])}>, which is none of <{type_text(kind)}>")
    at = union.children.index(value[0])
    return kind, primitive(signed(at)) + tagged(*value)


def tagged(kind: Type, body: bytes | None) -> bytes:
    """Returns the value with its tag before it, as a container stores it."""
    is_container = isinstance(plain(kind), (Record, Array, Union, Map))
    return container(body) if is_container else primitive(body)


def _bare(node: Node, expected: Type | None) -> TypedText:
    """Returns the value without regard to the types written after it."""
    if expected is None:
        return _own(node)
    kind = plain(expected)
    if _is_null(node):
        return expected, None
    match kind:
        case Union():
            return expected, _alternative(kind, node)
        case Record() if node.kind == "record":
            if node.names != kind.names:
                raise _NoFit(f"the fields {', '.join(node.names)} are not those of <{type_text(kind)}>")
            parts = [_inside(part, child) for part, child in zip(node.inside, kind.children, strict=True)]
            return expected, b"".join(parts)
        case Set() if node.kind == "set":
            return expected, _sorted_set([_inside(part, kind.inner) for part in node.inside])
        case Array() if node.kind == "array" and not isinstance(kind, Set):
            return expected, b"".join(_inside(part, kind.inner) for part in node.inside)
        case Map() if node.kind == "map":
            key, value = kind.children
            kinds = [key, value] * (len(node.inside) // 2)
            parts = [_inside(part, child) for part, child in zip(node.inside, kinds, strict=True)]
            return expected, _sorted_map(parts)
        case Enum() if node.kind in ("word", "string"):
            symbol = node.word or node.data.decode(errors="surrogateescape")
            if symbol not in kind.symbols:
                raise _NoFit(f"{symbol!r} is no symbol of <{type_text(kind)}>")
            return expected, unsigned(kind.symbols.index(symbol))
    return expected, _primitive(node, kind)


def _is_null(node: Node) -> bool:
    return node.kind == "word" and node.word == "null"


def _inside(node: Node, kind: Type) -> bytes:
    return tagged(kind, _value(node, len(node.types), kind)[1])


def _alternative(kind: Union, node: Node) -> bytes:
    """Returns the body of a union value.  Its type is the one that the text shows, if the union has it, otherwise
    the first that fits."""
    try:
        own = _own(node)
    except _NoFit:
        own = None
    if own is not None and own[0] in kind.children:
        body = _of_union(kind, own)[1]
        assert body is not None
        return body
    for at, child in enumerate(kind.children):
        try:
            return primitive(signed(at)) + tagged(*_bare(node, child))
        except _NoFit:
            continue
    raise _NoFit(f"the value is none of <{type_text(kind)}>")


def _own(node: Node) -> TypedText:
    """Returns the value in the type that its text shows by itself, such as int64 for `1`."""
    match node.kind:
        case "record":
            values = [_value(part, len(part.types), None) for part in node.inside]
            kind: Type = Record(node.names, tuple(child for child, _ in values))
            return kind, b"".join(tagged(*value) for value in values)
        case "array":
            inner, parts = _united(node.inside)
            return Array(inner), b"".join(parts)
        case "set":
            inner, parts = _united(node.inside)
            return Set(inner), _sorted_set(parts)
        case "map":
            key, keys = _united(node.inside[0::2])
            child, values_of = _united(node.inside[1::2])
            return Map(key, child), _sorted_map(
                [part for pair in zip(keys, values_of, strict=True) for part in pair]
            )
        case "string":
            return STRING, node.data
        case "type":
            return TYPE, _primitive(node, TYPE)
    return _own_word(node)


def _own_word(node: Node) -> TypedText:
    word = node.word
    if word == "null":
        return NULL, None
    if word in ("true", "false"):
        return BOOL, _primitive(node, BOOL)
    if _INTEGER.fullmatch(word):  # a double might not hold it
        return INT64, _primitive(node, INT64)
    for kind, shows in _SHOWN:
        if shows(word):
            return kind, _primitive(node, kind)
    raise _NoFit(f"{_short(word)} is no value; write text in quotes, and its type behind a symbol of an enum")


def _united(nodes: tuple[Node, ...]) -> tuple[Type, list[bytes]]:
    """Returns the common type of the elements, and the elements; if their types differ, the common type is a
    union."""
    values = [_value(node, len(node.types), None) for node in nodes]
    kinds = list(dict.fromkeys(kind for kind, _ in values if kind is not NULL))
    if len(kinds) <= 1:
        kind = kinds[0] if kinds else NULL
        return kind, [tagged(kind, body) for _, body in values]
    union = Union(tuple(kinds))
    wrapped = [(union, None) if kind is NULL else _of_union(union, (kind, body)) for kind, body in values]
    return union, [tagged(*value) for value in wrapped]


def _sorted_set(parts: list[bytes]) -> bytes:
    return b"".join(sorted(set(parts)))


def _sorted_map(parts: list[bytes]) -> bytes:
    pairs = sorted(zip(parts[0::2], parts[1::2], strict=True))
    if len({key for key, _ in pairs}) < len(pairs):
        raise _NoFit("a map has the same key twice")
    return b"".join(key + value for key, value in pairs)


# --- primitives


def _primitive(node: Node, kind: Type) -> bytes:
    """Returns the body of a written value as this type; the value is not null.  Raises _NoFit."""
    if node.kind == "string" and kind in (STRING, BSTRING, ERROR):
        return node.data
    if node.kind == "type" and kind is TYPE:
        assert node.type is not None
        return type_value(node.type)
    if node.kind == "word":
        try:
            body = _of_word(node.word, kind)
        except (ValueError, OverflowError):
            body = None
        if body is not None:
            return body
    shown = _short(node.word) if node.kind == "word" else f"a {node.kind}"
    raise _NoFit(f"{shown} is no <{type_text(kind)}>")


def _of_word(word: str, kind: Type) -> bytes | None:
    """Returns the body of a word as this type.  Returns None or raises ValueError if the word is not a value of
    the type."""
    if kind in (BYTES, DECIMAL):
        return bytes.fromhex(word[2:]) if _HEX.fullmatch(word) else None
    if len(word) > _LONGEST_WORD:
        return None
    if kind in _BITS:
        low, high = _BITS[kind]
        number = int(word) if _INTEGER.fullmatch(word) else high
        if not low <= number < high:
            return None
        return signed(number) if low else unsigned(number)
    if kind in _FLOATS:
        if word not in _SPECIAL and not _FLOAT.fullmatch(word):
            return None
        value = _SPECIAL[word] if word in _SPECIAL else float(word)
        if math.isinf(value) and word not in _SPECIAL:
            return None
        return struct.pack(_FLOATS[kind], value)
    if kind is BOOL:
        return {"true": b"\1", "false": b"\0"}.get(word)
    if kind is TIME:
        return _ticks(_nanoseconds(word))
    if kind is DURATION:
        return _ticks(_duration(word))
    if kind is IP:
        return ip_body(word)
    return net_body(word) if kind is NET else None


def _ticks(number: int | None) -> bytes | None:
    return signed(number) if number is not None and -(2**63) <= number < 2**63 else None


def _nanoseconds(word: str) -> int | None:
    match = _TIME.fullmatch(word)
    if match is None:
        return None
    whole, fraction, sign, hours, minutes = match.groups()
    since = dt.datetime.fromisoformat(whole) - dt.datetime(1970, 1, 1)
    seconds = since.days * 86_400 + since.seconds
    if sign:
        if int(minutes) > 59 or int(hours) > 23:
            return None
        seconds -= (1 if sign == "+" else -1) * (int(hours) * 3600 + int(minutes) * 60)
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def _duration(word: str) -> int | None:
    if not _DURATION.fullmatch(word):
        return None
    total = Fraction(0)
    for whole, fraction, unit in _DURATION_PART.findall(word):
        total += (int(whole) + Fraction(int(fraction or "0"), 10 ** len(fraction))) * _UNITS[unit]
    if total.denominator != 1:
        return None
    return -int(total) if word.startswith("-") else int(total)


def _is(kind: Type) -> Callable[[str], bool]:
    def shows(word: str) -> bool:
        try:
            return _of_word(word, kind) is not None
        except (ValueError, OverflowError):
            return False

    return shows


_SHOWN: tuple[tuple[Type, Callable[[str], bool]], ...] = tuple(
    (kind, _is(kind)) for kind in (FLOAT64, TIME, DURATION, IP, NET, BYTES)
)
"""The types that a word can show, in the order in which they are tried, each with its test."""


def _short(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:37] + "...")
