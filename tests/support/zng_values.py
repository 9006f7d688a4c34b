"""Hypothesis strategies for ZNG: for types, and for the bytes of values of a type (bodies), made one by one."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from log_lake.zng.reader import END, WIDE_VALUE
from log_lake.zng.type_values import type_value
from log_lake.zng.typedefs import TypeWriter
from log_lake.zng.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    IP,
    NET,
    NULL,
    PRIMITIVES,
    SIGNED,
    STRING,
    TYPE,
    UNSIGNED,
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
from log_lake.zng.wire import container, primitive, signed, unsigned, uvarint

_names = st.sampled_from(["a", "b", "c", "id", "x y", "né"])
_primitives = st.sampled_from(PRIMITIVES)
_BITS = {"8": 8, "6": 16, "2": 32, "4": 64}


def is_container(kind: Type) -> bool:
    """Whether values of the type have the tag of containers."""
    return isinstance(plain(kind), (Record, Array, Map, Union))


def _records(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.lists(st.tuples(_names, types), max_size=4, unique_by=lambda field: field[0])
    return fields.map(lambda found: Record(tuple(n for n, _ in found), tuple(t for _, t in found)))


def _nested(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        _records(types),
        types.map(Array),
        types.map(Set),
        st.tuples(_primitives, types).map(lambda pair: Map(*pair)),
        st.lists(types, min_size=1, max_size=3).map(lambda found: Union(tuple(found))),
        st.lists(_names, min_size=1, max_size=3, unique=True).map(lambda found: Enum(tuple(found))),
        st.tuples(st.sampled_from(["foo", "port"]), types).map(lambda pair: Named(*pair)),
    )


types = st.recursive(_primitives, _nested, max_leaves=6)
"""A strategy for any type."""

record_types = _records(types)
"""The types that the top level of a ZST file may have."""


def tagged(kind: Type, body: bytes | None) -> bytes:
    """Returns a value in the form that it has inside of a container."""
    return container(body) if is_container(kind) else primitive(body)


@st.composite
def bodies(draw: st.DrawFn, kind: Type, *, inner_nulls: bool = True) -> bytes:
    """Draws a body of the type; `inner_nulls`: containers inside of arrays and unions may be null."""
    kind = plain(kind)
    match kind:
        case Record():
            return b"".join(tagged(c, draw(values(c, inner_nulls=inner_nulls))) for c in kind.children)
        case Array():
            elements = draw(st.lists(_elements(kind.inner, inner_nulls=inner_nulls), max_size=3))
            found = [tagged(kind.inner, element) for element in elements]
            return b"".join(sorted(set(found)) if isinstance(kind, Set) else found)
        case Map():
            key, value = kind.children
            entries = draw(st.lists(st.tuples(values(key), values(value)), max_size=3))
            return b"".join(
                k + v for k, v in sorted({tagged(key, k): tagged(value, v) for k, v in entries}.items())
            )
        case Union():
            at = draw(st.integers(0, len(kind.children) - 1))
            inner = kind.children[at]
            return primitive(signed(at)) + tagged(inner, draw(_elements(inner, inner_nulls=inner_nulls)))
        case Enum():
            return unsigned(draw(st.integers(0, len(kind.symbols) - 1)))
    return draw(_primitive(kind))


def values(kind: Type, *, inner_nulls: bool = True) -> st.SearchStrategy[bytes | None]:
    """A strategy for a body, or None for null."""
    if plain(kind) is NULL:
        return st.none()
    return st.one_of(st.none(), bodies(kind, inner_nulls=inner_nulls))


def _elements(kind: Type, *, inner_nulls: bool) -> st.SearchStrategy[bytes | None]:
    no_form = is_container(kind) and not isinstance(plain(kind), Map)
    if not inner_nulls and no_form:
        return bodies(kind, inner_nulls=False)
    return values(kind, inner_nulls=inner_nulls)


def _primitive(kind: Type) -> st.SearchStrategy[bytes]:
    if kind in UNSIGNED:
        return st.integers(0, 2 ** _BITS[str(kind.label)[-1]] - 1).map(unsigned)
    if kind in SIGNED:
        bits = _BITS.get(str(kind.label)[-1], 64)
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(signed)
    if kind is BOOL:
        return st.sampled_from([b"\0", b"\1"])
    if kind is FLOAT16:
        return st.floats(width=16).map(lambda number: struct.pack("<e", number))
    if kind is FLOAT32:
        return st.floats(width=32).map(lambda number: struct.pack("<f", number))
    if kind is FLOAT64:
        return st.floats().map(lambda number: struct.pack("<d", number))
    if kind is IP:
        return st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16))
    if kind is NET:
        return st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=32, max_size=32))
    if kind is TYPE:
        return types.map(type_value)
    if kind is STRING:
        return st.text(max_size=20).map(str.encode)
    return st.binary(max_size=200)


def stream_values(
    *, records: bool = False, inner_nulls: bool = True
) -> st.SearchStrategy[list[tuple[Type, bytes]]]:
    """A strategy for top-level values of a few types, in mixed order."""

    def mixed(kinds: list[Type]) -> st.SearchStrategy[list[tuple[Type, bytes]]]:
        one = st.sampled_from(kinds).flatmap(
            lambda kind: bodies(kind, inner_nulls=inner_nulls).map(lambda body: (kind, body))
        )
        return st.lists(one, max_size=12)

    some = record_types if records else types.filter(lambda kind: plain(kind) is not NULL)
    return st.lists(some, min_size=1, max_size=3).flatmap(mixed)


def stream(found: list[tuple[Type, bytes]]) -> bytes:
    """Returns the values as one ZNG stream, written one by one."""
    context, data = TypeWriter(), bytearray()
    for kind, body in found:
        type_id = context.id_of(kind, data)
        data += (
            bytes([type_id]) if type_id < WIDE_VALUE else bytes([WIDE_VALUE]) + uvarint(type_id - WIDE_VALUE)
        )
        data += uvarint(len(body)) + body
    return bytes(data) + (bytes([END]) if found else b"")
