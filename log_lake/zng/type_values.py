"""Types as values: a type stored in a record, in bytes that need no typedefs.

A named type is defined where it first occurs; after that only its name is written.
"""

from __future__ import annotations

from log_lake.zng.typedefs import text_bytes
from log_lake.zng.types import (
    FIRST_TYPEDEF,
    MAX_DEPTH,
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

_NAMED, _REFERENCE, _RECORD, _ARRAY, _SET, _UNION, _ENUM, _MAP = range(FIRST_TYPEDEF, FIRST_TYPEDEF + 8)


def type_value(kind: Type) -> bytes:
    """Returns the body of a value that represents this type."""
    body = bytearray()
    _append(body, kind, {})
    return bytes(body)


def _append(body: bytearray, kind: Type, targets: dict[str, Type]) -> None:
    match kind:
        case Primitive():
            body.append(kind.id)
        case Named():
            if targets.get(kind.name) == kind.target:
                body += bytes([_REFERENCE]) + text_bytes(kind.name)
                return
            targets[kind.name] = kind.target
            body += bytes([_NAMED]) + text_bytes(kind.name)
        case Record():
            body += bytes([_RECORD]) + uvarint(len(kind.names))
            for name, child in zip(kind.names, kind.children, strict=True):
                body += text_bytes(name)
                _append(body, child, targets)
            return
        case Set():
            body.append(_SET)
        case Array():
            body.append(_ARRAY)
        case Union():
            body += bytes([_UNION]) + uvarint(len(kind.children))
        case Enum():
            body += bytes([_ENUM]) + uvarint(len(kind.symbols)) + b"".join(map(text_bytes, kind.symbols))
        case Map():
            body.append(_MAP)
    for child in kind.children:
        _append(body, child, targets)


def read_type_value(body: bytes, name: str, *, offset: int = 0) -> Type:
    """Returns the type that a value represents; `name` and `offset` are for the error.  Raises Corrupt."""
    cursor = Cursor(body, name=name, offset=offset)
    kind = _read(cursor, {}, MAX_DEPTH)
    if cursor.left:
        raise cursor.corrupt("bytes after the end of a type value")
    return kind


def _read(cursor: Cursor, targets: dict[str, Type], depth: int) -> Type:
    begun = cursor.position
    if not depth:
        raise cursor.corrupt(f"a type is nested deeper than {MAX_DEPTH}")
    code = cursor.byte()
    kind: Type
    if code < FIRST_TYPEDEF:
        return PRIMITIVES[code]
    if code == _REFERENCE:
        name = cursor.text()
        if name not in targets:
            raise cursor.corrupt(f"the type {name!r} is used before it is defined", begun)
        return Named(name, targets[name])
    if code == _NAMED:
        name = cursor.text()
        kind = Named(name, _read(cursor, targets, depth - 1))
        targets[name] = kind.target
    elif code == _RECORD:
        names, types = [], []
        for _ in range(_count(cursor)):
            names.append(cursor.text())
            types.append(_read(cursor, targets, depth - 1))
        kind = Record(tuple(names), tuple(types))
    elif code == _ARRAY:
        kind = Array(_read(cursor, targets, depth - 1))
    elif code == _SET:
        kind = Set(_read(cursor, targets, depth - 1))
    elif code == _UNION:
        kind = Union(tuple(_read(cursor, targets, depth - 1) for _ in range(_count(cursor))))
        if not kind.children:
            raise cursor.corrupt("a union of no types", begun)
    elif code == _ENUM:
        kind = Enum(tuple(cursor.text() for _ in range(_count(cursor))))
    elif code == _MAP:
        key = _read(cursor, targets, depth - 1)
        kind = Map(key, _read(cursor, targets, depth - 1))
    else:
        raise cursor.corrupt(f"{code} begins no type", begun)
    if fault := fault_of(kind):
        raise cursor.corrupt(fault, begun)
    return kind


def _count(cursor: Cursor) -> int:
    begun = cursor.position
    count = cursor.uvarint()
    if count > cursor.left:
        raise cursor.too_short(f"{count:,} items are announced, {cursor.left:,} bytes are left", begun)
    return count
