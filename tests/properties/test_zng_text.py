"""Every value of ZNG reads back from its text: the same type and the same bytes.

Left out is what text does not tell apart, as docs/zng-zst.md lists: the sign of a zero, what kind of NaN, an
address of 4 bytes within 16, a type that is twice in a union, `null` as a type of a union, one name for two types,
a name of a name, and the type of an empty array that has a name or is in no record.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from log_lake.zng.text import value_text
from log_lake.zng.text_parser import Names, ValueParser
from log_lake.zng.text_values import tagged, type_of, value_of
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
    INT64,
    IP,
    NET,
    NULL,
    STRING,
    TIME,
    TYPE,
    UINT8,
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
from log_lake.zng.wire import primitive, signed, unsigned

INT64S = st.integers(-(2**63), 2**63 - 1).map(signed)
FLOATS = {FLOAT16: 16, FLOAT32: 32, FLOAT64: 64}
CODES = {16: "<e", 32: "<f", 64: "<d"}


def floats(width: int) -> st.SearchStrategy[bytes]:
    numbers = st.floats(width=width, allow_nan=False)  # type: ignore[call-overload]
    return numbers.filter(lambda x: x or math.copysign(1, x) > 0).map(lambda x: struct.pack(CODES[width], x))


def net(body: bytes) -> bytes:
    half, bits = (4, body[0] % 33) if body[-1] % 2 else (16, body[0] % 129)
    ones = ((1 << bits) - 1) << (8 * half - bits)
    return b"\x20" + body[1:half] + ones.to_bytes(half, "big")


PRIMITIVES: dict[Type, st.SearchStrategy[bytes]] = {
    UINT8: st.integers(0, 255).map(unsigned),
    UINT64: st.integers(0, 2**64 - 1).map(unsigned),
    INT8: st.integers(-128, 127).map(signed),
    INT64: INT64S,
    DURATION: INT64S,
    TIME: INT64S,
    BOOL: st.sampled_from([b"\0", b"\1"]),
    BYTES: st.binary(max_size=5),
    DECIMAL: st.binary(max_size=5),
    STRING: st.text(max_size=8).map(str.encode),
    BSTRING: st.binary(max_size=8),
    ERROR: st.text(max_size=8).map(str.encode),
    IP: st.binary(min_size=4, max_size=4) | st.binary(min_size=15, max_size=15).map(lambda b: b"\x20" + b),
    NET: st.binary(min_size=17, max_size=17).map(net),
    **{kind: floats(width) for kind, width in FLOATS.items()},
}
NAMES = st.text(st.sampled_from('ab$_9 é"\\:(=.\n'), max_size=4) | st.sampled_from(
    ["null", "true", "int64", "x"]
)


def named(target: Type, name: str) -> Named:
    """One name for one type."""
    return Named(f"{name}_{abs(hash(target)) % 10**6}", target)


def deeper(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    names = st.lists(NAMES, max_size=3, unique=True)
    several = st.lists(inner.filter(lambda kind: kind is not NULL), min_size=1, max_size=3, unique=True)
    return st.one_of(
        names.flatmap(
            lambda names: st.tuples(*[inner] * len(names)).map(lambda kinds: Record(tuple(names), kinds))
        ),
        inner.map(Array),
        inner.map(Set),
        st.builds(Map, inner, inner),
        several.map(lambda kinds: Union(tuple(kinds))),
        st.lists(NAMES, min_size=1, max_size=3, unique=True).map(lambda names: Enum(tuple(names))),
        st.builds(named, inner.filter(lambda kind: not isinstance(kind, (Named, Array, Map))), NAMES),
    )


KINDS = st.recursive(st.sampled_from([*PRIMITIVES, TYPE, NULL]), deeper, max_leaves=5)


def body_of(draw: Any, kind: Type) -> bytes | None:
    """A body of the type, or null."""
    kind = plain(kind)
    if kind is NULL or draw(st.integers(0, 9)) == 0:
        return None
    if kind in PRIMITIVES:
        return draw(PRIMITIVES[kind])
    if kind is TYPE:
        return type_value(draw(KINDS))

    def part(kind: Type) -> bytes:
        return tagged(kind, body_of(draw, kind))

    size = draw(st.integers(0, 3))
    match kind:
        case Record():
            return b"".join(map(part, kind.children))
        case Set():
            return b"".join(sorted({part(kind.inner) for _ in range(size)}))
        case Array():
            return b"".join(part(kind.inner) for _ in range(size))
        case Map():
            entries = {part(kind.children[0]): part(kind.children[1]) for _ in range(size)}
            return b"".join(key + value for key, value in sorted(entries.items()))
        case Union():
            at = draw(st.integers(0, len(kind.children) - 1))
            return primitive(signed(at)) + part(kind.children[at])
        case Enum():
            return unsigned(draw(st.integers(0, len(kind.symbols) - 1)))
    raise TypeError(kind)


@given(st.data())
def test_a_value_reads_back_from_its_text(data: st.DataObject) -> None:
    kind = Record(("a", "b"), (data.draw(KINDS), data.draw(KINDS)))
    body = body_of(data.draw, kind)
    text = value_text(kind, body)
    node = ValueParser(text, Names(), type_of).next()
    assert node is not None
    assert value_of(node) == (kind, body), text
