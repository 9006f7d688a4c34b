"""Typedefs: how a stream defines its types, and which ids they get.

Ids count up from 23 in the order of the definitions.  Defining a type again creates no id; writers never do so.
A name that is given to another type gets a new id, even if it named that type before.  At the end of a stream,
reader and writer forget all types.
"""

from __future__ import annotations

from collections.abc import Callable

from log_lake.zng.types import (
    FIRST_TYPEDEF,
    MAX_STREAM_NODES,
    PRIMITIVES,
    Array,
    Enum,
    Map,
    Named,
    Primitive,
    Record,
    Set,
    Type,
    Union,
    fault_of,
)
from log_lake.zng.wire import Cursor, uvarint

RECORD, ARRAY, SET, UNION, ENUM, MAP, NAMED = range(0xF6, 0xFD)
"""The first bytes of typedefs."""


class TypeReader:
    """The types that a stream has defined so far, for a reader."""

    def __init__(self) -> None:
        self._defined: list[Type] = []
        self._known: set[Type] = set()
        self._targets: dict[str, Type] = {}
        self._nodes = 0

    def type_of(self, type_id: int) -> Type | None:
        """Returns the type of the id; None if it is not defined."""
        if type_id < FIRST_TYPEDEF:
            return PRIMITIVES[type_id]
        at = type_id - FIRST_TYPEDEF
        return self._defined[at] if at < len(self._defined) else None

    def define(self, code: int, cursor: Cursor) -> None:
        """Reads the typedef whose first byte was `code`.  Raises Corrupt if it does not define a valid type."""
        begun = cursor.position
        kind = _READ[code](self, cursor)
        if fault := fault_of(kind):
            raise cursor.corrupt(fault, begun)
        self._nodes += kind.nodes
        if self._nodes > MAX_STREAM_NODES:
            raise cursor.corrupt(f"types that are together made of more than {MAX_STREAM_NODES:,}", begun)
        if isinstance(kind, Named):
            if self._targets.get(kind.name) == kind.target:
                return
            self._targets[kind.name] = kind.target
        elif kind in self._known:
            return
        self._known.add(kind)
        self._defined.append(kind)

    def _child(self, cursor: Cursor) -> Type:
        begun = cursor.position
        kind = self.type_of(type_id := cursor.uvarint())
        if kind is None:
            raise cursor.corrupt(f"type {type_id} is used before it is defined", begun)
        return kind

    def _record(self, cursor: Cursor) -> Type:
        names, types = [], []
        for _ in range(_count(cursor, least=2)):
            names.append(cursor.text())
            types.append(self._child(cursor))
        return Record(tuple(names), tuple(types))

    def _union(self, cursor: Cursor) -> Type:
        begun = cursor.position
        types = tuple(self._child(cursor) for _ in range(_count(cursor, least=1)))
        if not types:
            raise cursor.corrupt("a union of no types", begun)
        return Union(types)

    def _enum(self, cursor: Cursor) -> Type:
        return Enum(tuple(cursor.text() for _ in range(_count(cursor, least=1))))

    def _map(self, cursor: Cursor) -> Type:
        key = self._child(cursor)
        return Map(key, self._child(cursor))

    def _named(self, cursor: Cursor) -> Type:
        name = cursor.text()
        return Named(name, self._child(cursor))


_READ: dict[int, Callable[[TypeReader, Cursor], Type]] = {
    RECORD: TypeReader._record,
    ARRAY: lambda context, cursor: Array(context._child(cursor)),
    SET: lambda context, cursor: Set(context._child(cursor)),
    UNION: TypeReader._union,
    ENUM: TypeReader._enum,
    MAP: TypeReader._map,
    NAMED: TypeReader._named,
}


def _count(cursor: Cursor, *, least: int) -> int:
    """Reads the number of items of at least `least` bytes each.  Raises Corrupt before memory is allocated if so
    many cannot follow."""
    begun = cursor.position
    count = cursor.uvarint()
    if count * least > cursor.left:
        raise cursor.too_short(f"{count:,} items are announced, {cursor.left:,} bytes are left", begun)
    return count


class TypeWriter:
    """The types that a stream has defined so far, for a writer."""

    def __init__(self) -> None:
        self._ids: dict[Type, int] = {}

    def id_of(self, kind: Type, typedefs: bytearray) -> int:
        """Returns the id of the type.  Appends to `typedefs` the definitions that the type still needs, inner
        types first."""
        if isinstance(kind, Primitive):
            return kind.id
        if (type_id := self._ids.get(kind)) is not None:
            return type_id
        children = [self.id_of(child, typedefs) for child in kind.children]
        typedefs += _definition(kind, children)
        return self._ids.setdefault(kind, FIRST_TYPEDEF + len(self._ids))


def _definition(kind: Type, children: list[int]) -> bytes:
    ids = [uvarint(child) for child in children]
    match kind:
        case Record():
            fields = (text_bytes(name) + child for name, child in zip(kind.names, ids, strict=True))
            return bytes([RECORD]) + uvarint(len(ids)) + b"".join(fields)
        case Set():
            return bytes([SET]) + ids[0]
        case Array():
            return bytes([ARRAY]) + ids[0]
        case Union():
            return bytes([UNION]) + uvarint(len(ids)) + b"".join(ids)
        case Enum():
            return bytes([ENUM]) + uvarint(len(kind.symbols)) + b"".join(map(text_bytes, kind.symbols))
        case Map():
            return bytes([MAP]) + ids[0] + ids[1]
        case Named():
            return bytes([NAMED]) + text_bytes(kind.name) + ids[0]
    raise TypeError(f"{kind!r} has no typedef")


def text_bytes(text: str) -> bytes:
    """Returns a name as bytes, with its length before it."""
    encoded = text.encode()
    return uvarint(len(encoded)) + encoded
