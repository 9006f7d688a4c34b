"""Parses readable text, as `text` prints it, into a tree of its parts; `text_values` gives it types and bytes.

    1  -2.5  true  null  10.0.0.1  fe80::/10  1h30m  2026-01-31T12:00:00Z  0x00ff  "text"  symbol  (type)
    {name:value,"other name":value}  [value,value]  |[value,value]|  |{key:value}|
    value(type)  value(name=(type))  value(=name)

Types: names of primitives, defined names, `{f:type}`, `[type]`, `|[type]|`, `|{key:type}|`, `(type,type)`, and
`<symbol,symbol>`.  Any two parts may have white space between them, also line ends.  A name is known from its
definition to the end of the file; a later definition replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from lake_core.errors import InvalidInput
from log_lake.zng.text import ESCAPES, IDENTIFIER, TYPE_NAME
from log_lake.zng.types import (
    MAX_DEPTH,
    MAX_STREAM_NODES,
    PRIMITIVES,
    Array,
    Enum,
    Map,
    Named,
    Record,
    Set,
    Type,
    Union,
    fault_of,
)

T = TypeVar("T")
MAX_VALUES = 1_000_000
"""The most values in one piece of text, nested ones included.  Each takes about 200 bytes of memory."""

WordKind = Literal["word", "string", "type", "record", "array", "set", "map"]

_SPACE = re.compile(r"\s*")
_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_WORD = re.compile(r'[^\s{}\[\]()<>|,"=]+')
_KEY_WORD = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]*(?:Z|[+-]\d\d:\d\d)|[0-9a-fA-F:.]+/[0-9a-fA-F]+"
    r'|[^\s{}\[\]()<>|,"=]+(?=\s+:)|[^\s{}\[\]()<>|,"=:]+'
)
"""A key ends at a colon, unless the colon belongs to a time or a network.  An address with colons is followed by a
space."""
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|(.))",
    re.DOTALL,
)
_ESCAPED = {"/": "/"} | {letter: char for char, letter in ESCAPES.items()}
_BY_NAME: dict[str, Type] = {kind.name: kind for kind in PRIMITIVES}
_PRIMITIVE = re.compile(rf"\(({'|'.join(_BY_NAME)})\)")
_MARKS = frozenset('{[|("')


@dataclass(slots=True)
class Node:
    """One written value: a word, the bytes of a string, a type, or the parts inside it.

    `types` are the types in parentheses after it, the innermost first.
    """

    kind: WordKind
    position: int
    word: str = ""
    data: bytes = b""
    type: Type | None = None
    names: tuple[str, ...] = ()
    inside: tuple[Node, ...] = ()
    """The values of a record in the order of `names`; for a map its keys and values in turn."""
    types: list[Type] = field(default_factory=list)


class Malformed(Exception):
    """Raised if the text is not a value; `position` is where it stops being one."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(what)
        self.position = position


@dataclass
class Names:
    """The named types of a file, up to the current position."""

    targets: dict[str, Named] = field(default_factory=dict)
    _nodes: int = 0

    def define(self, name: str, target: Type) -> Named:
        """Defines a named type and returns it.  Raises InvalidInput if all types together would be too large."""
        kind = Named(name, target)
        if self.targets.get(name) != kind:
            self._nodes += kind.nodes
            if self._nodes > MAX_STREAM_NODES:
                raise InvalidInput(f"named types that are together made of more than {MAX_STREAM_NODES:,}")
            self.targets[name] = kind
        return kind


class ValueParser:
    """Reads values from one text.  Raises Malformed."""

    def __init__(
        self, text: str, names: Names, type_of: Callable[[Node], Type], *, most: int = MAX_VALUES
    ) -> None:
        """`type_of` returns the type that a value has without a name; `value(=name)` gives that type a name."""
        self._text = text
        self._names = names
        self._type_of = type_of
        self._at = 0
        self._most = most
        self._count = 0

    def next(self) -> Node | None:
        """Returns the next value; None at the end."""
        self._skip()
        return None if self._at >= len(self._text) else self._value(MAX_DEPTH)

    def _skip(self) -> None:
        if self._text[self._at : self._at + 1].isspace():
            match = _SPACE.match(self._text, self._at)
            assert match is not None
            self._at = match.end()

    def _follows(self, mark: str) -> bool:
        """Consumes `mark` if it comes next; returns whether it did."""
        self._skip()
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _expect(self, mark: str, what: str) -> None:
        if not self._follows(mark):
            raise self._malformed(f"{mark!r} is missing {what}")

    def _malformed(self, what: str) -> Malformed:
        near = self._text[self._at : self._at + 20].partition("\n")[0]
        return Malformed(self._at, f"{what}, at {near!r}" if near else f"{what}, at the end")

    def _value(self, depth: int, *, is_key: bool = False) -> Node:
        if not depth:
            raise self._malformed(f"a value is nested deeper than {MAX_DEPTH}")
        self._count += 1
        if self._count > self._most:
            raise self._malformed(f"more than {self._most:,} values within one another, or in one line")
        node = self._bare(depth, is_key=is_key)
        if match := _PRIMITIVE.match(self._text, self._at):  # most types are one of these
            node.types.append(_BY_NAME[match[1]])
            self._at = match.end()
        while self._follows("("):  # ends: each round takes a character at least
            if self._follows("="):
                name = self._type_name()
                node.types.append(self._define(name, self._type_of(node)))
            else:
                node.types.append(self._type(MAX_DEPTH))
            self._expect(")", "behind a type")
        return node

    def _define(self, name: str, target: Type) -> Named:
        try:
            return self._names.define(name, target)
        except InvalidInput as error:
            raise self._malformed(str(error)) from None

    def _bare(self, depth: int, *, is_key: bool) -> Node:
        self._skip()
        begun = self._at
        if self._text[begun : begun + 1] not in _MARKS:
            match = (_KEY_WORD if is_key else _WORD).match(self._text, begun)
            if match is None:
                raise self._malformed("a value is missing")
            self._at = match.end()
            return Node("word", begun, word=match[0])
        if self._follows("{"):
            names, values = self._fields("}", lambda: self._value(depth - 1))
            return Node("record", begun, names=names, inside=values)
        if self._follows("["):
            return Node("array", begun, inside=self._list("]", lambda: self._value(depth - 1)))
        if self._follows("|["):
            return Node("set", begun, inside=self._list("]|", lambda: self._value(depth - 1)))
        if self._follows("|{"):
            pairs = self._list("}|", lambda: self._entry(depth - 1))
            return Node("map", begun, inside=tuple(part for pair in pairs for part in pair))
        if self._follows("("):
            kind = self._type(MAX_DEPTH)
            self._expect(")", "behind a type")
            return Node("type", begun, type=kind)
        if self._text.startswith('"', begun):
            return Node("string", begun, data=self._string())
        raise self._malformed("a value is missing")

    def _entry(self, depth: int) -> tuple[Node, Node]:
        key = self._value(depth, is_key=True)
        self._expect(":", "behind a key")
        return key, self._value(depth)

    def _list(self, end: str, read: Callable[[], T]) -> tuple[T, ...]:
        items: list[T] = []
        if self._follows(end):
            return ()
        while True:  # ends: each round takes a character at least
            items.append(read())
            if self._follows(end):
                return tuple(items)
            self._expect(",", f"(or {end!r})")

    def _fields(self, end: str, read: Callable[[], T]) -> tuple[tuple[str, ...], tuple[T, ...]]:
        def one() -> tuple[str, T]:
            name = self._field_name()
            self._expect(":", "behind a field's name")
            return name, read()

        begun = self._at
        pairs = self._list(end, one)
        names = tuple(name for name, _ in pairs)
        if len(set(names)) < len(names):
            twice = next(name for at, name in enumerate(names) if name in names[:at])
            raise Malformed(begun, f"a record has the field {twice!r} twice")
        return names, tuple(item for _, item in pairs)

    def _field_name(self) -> str:
        self._skip()
        return (
            self._quoted_name()
            if self._text.startswith('"', self._at)
            else self._matched(IDENTIFIER, "a name")
        )

    def _type_name(self) -> str:
        self._skip()
        if self._text.startswith('"', self._at):
            return self._quoted_name()
        return self._matched(TYPE_NAME, "the name of a type")

    def _quoted_name(self) -> str:
        begun = self._at
        try:
            return self._string().decode()
        except UnicodeDecodeError:
            raise Malformed(begun, "a name is not UTF-8") from None

    def _matched(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise self._malformed(f"{what} is missing")
        self._at = match.end()
        return match[0]

    def _string(self) -> bytes:
        match = _STRING.match(self._text, self._at)
        if match is None:
            raise self._malformed("a string is not closed")
        self._at = match.end()
        try:
            return unescaped(match[1])
        except ValueError as error:
            raise Malformed(match.start(), str(error)) from None

    # --- types

    def _type(self, depth: int) -> Type:
        if not depth:
            raise self._malformed(f"a type is nested deeper than {MAX_DEPTH}")
        begun = self._at
        kind = self._bare_type(depth)
        if fault := fault_of(kind):
            raise Malformed(begun, fault)
        return kind

    def _bare_type(self, depth: int) -> Type:
        def inner() -> Type:
            return self._type(depth - 1)

        if self._follows("{"):
            return Record(*self._fields("}", inner))
        if self._follows("["):
            kind: Type = Array(inner())
            self._expect("]", "behind the type of elements")
            return kind
        if self._follows("|["):
            kind = Set(inner())
            self._expect("]|", "behind the type of elements")
            return kind
        if self._follows("|{"):
            key = inner()
            self._expect(":", "behind the type of keys")
            kind = Map(key, inner())
            self._expect("}|", "behind the type of values")
            return kind
        if self._follows("("):
            kinds = self._list(")", inner)
            if not kinds:
                raise self._malformed("a union of no types")
            return Union(kinds)
        if self._follows("<"):
            return Enum(self._list(">", self._field_name))
        return self._named_type(depth)

    def _named_type(self, depth: int) -> Type:
        self._skip()
        begun, is_quoted = self._at, self._text.startswith('"', self._at)
        name = self._type_name()
        if self._follows("="):
            self._expect("(", "before the type of a name")
            target = self._type(depth - 1)
            self._expect(")", "behind the type of a name")
            return self._define(name, target)
        kind = None if is_quoted else _BY_NAME.get(name)
        kind = kind or self._names.targets.get(name)
        if kind is None:
            raise Malformed(begun, f"the type {name!r} is not defined")
        return kind


def unescaped(text: str) -> bytes:
    """Returns the bytes between quotes.  Raises ValueError for an unknown escape."""
    if "\\" not in text:
        return text.encode(errors="surrogateescape")
    parts, at = [], 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[at : match.start()].encode(errors="surrogateescape"))
        parts.append(_escape(match))
        at = match.end()
    parts.append(text[at:].encode(errors="surrogateescape"))
    return b"".join(parts)


def _escape(match: re.Match[str]) -> bytes:
    byte, high, low, braced, four, char = match.groups()
    if byte:
        return bytes([int(byte, 16)])
    if high:  # one character as two halves of UTF-16
        return bytes.fromhex(high + low).decode("utf-16-be").encode()
    if braced or four:
        number = int(braced or four, 16)
        if number > 0x10FFFF:
            raise ValueError(f"{match[0]} is no character")
        return chr(number).encode(errors="surrogatepass")
    if char not in _ESCAPED:
        raise ValueError(f"{match[0]} is no escape")
    return _ESCAPED[char].encode()
