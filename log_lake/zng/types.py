"""Types of ZNG values, compared by their structure, not by where they were defined.

A type knows how many types it contains (`nodes`) and how deep it is (`depth`).  Typedefs refer to earlier ones,
so a hundred bytes can define a type of 2^30 fields.  `fault_of` refuses such a type when it is defined, and all
code that walks a type relies on that.  A cycle is impossible, because an id exists only after its typedef.
"""

from __future__ import annotations

from collections.abc import Hashable

MAX_DEPTH = 100
"""How deep types may be nested.  Code that walks a type recurses, with a few Python frames per level."""

MAX_NODES = 100_000
"""The most types that one type may contain, counted as often as it uses them.  The original program allows as many
fields."""


MAX_STREAM_NODES = 1_000_000
"""The most types that all types of one stream may contain.  A typedef of six bytes can add 100,000 of them."""


class Type:
    """The type of a value.  Equal types have the same structure and the same names."""

    __slots__ = ("_hash", "children", "depth", "label", "nodes")

    def __init__(self, label: Hashable, children: tuple[Type, ...] = ()) -> None:
        self.label = label
        self.children = children
        self.nodes: int = 1 + sum(child.nodes for child in children)
        self.depth: int = 1 + max((child.depth for child in children), default=0)
        self._hash = hash((type(self).__name__, label, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Type)
            and type(self) is type(other)
            and self._hash == other._hash
            and self.label == other.label
            and self.children == other.children
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.label}>"  # `text.type_text` spells it out


class Primitive(Type):
    """One of the types that need no typedef."""

    __slots__ = ("id",)

    def __init__(self, type_id: int, name: str) -> None:
        super().__init__(name)
        self.id = type_id

    @property
    def name(self) -> str:
        """The name of the type in text."""
        return str(self.label)


class Record(Type):
    """The type of records: fields with names, in order; names are distinct."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...], types: tuple[Type, ...]) -> None:
        super().__init__(names, types)
        self.names = names


class Array(Type):
    """The type of lists: values of one type."""

    __slots__ = ()

    def __init__(self, inner: Type) -> None:
        super().__init__(None, (inner,))

    @property
    def inner(self) -> Type:
        """The type of the elements."""
        return self.children[0]


class Set(Array):
    """The type of sets: distinct values of one type, sorted by their bytes."""

    __slots__ = ()


class Map(Type):
    """The type of maps: keys with values, sorted by the bytes of the keys."""

    __slots__ = ()

    def __init__(self, key: Type, value: Type) -> None:
        super().__init__(None, (key, value))


class Union(Type):
    """The type of values that have one of several types; the order of the types is part of the type."""

    __slots__ = ()

    def __init__(self, types: tuple[Type, ...]) -> None:
        super().__init__(None, types)


class Enum(Type):
    """The type of values that are one of several symbols."""

    __slots__ = ("symbols",)

    def __init__(self, symbols: tuple[str, ...]) -> None:
        super().__init__(symbols)
        self.symbols = symbols


class Named(Type):
    """A type with a name; the bytes of its values are those of the type without it."""

    __slots__ = ("name",)

    def __init__(self, name: str, target: Type) -> None:
        super().__init__(name, (target,))
        self.name = name

    @property
    def target(self) -> Type:
        """The type to which the name was given."""
        return self.children[0]


_NAMES = (
    "uint8 uint16 uint32 uint64 int8 int16 int32 int64 duration time float16 float32 float64 decimal "
    "bool bytes string bstring ip net type error null"
)
PRIMITIVES = tuple(Primitive(number, name) for number, name in enumerate(_NAMES.split()))
"""The primitive types; the index is the id."""

FIRST_TYPEDEF = len(PRIMITIVES)
"""The id of a stream's first typedef."""

(UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, DURATION, TIME, FLOAT16, FLOAT32, FLOAT64) = (
    PRIMITIVES[:13]
)
(DECIMAL, BOOL, BYTES, STRING, BSTRING, IP, NET, TYPE, ERROR, NULL) = PRIMITIVES[13:]

UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
SIGNED = (INT8, INT16, INT32, INT64, DURATION, TIME)


def plain(kind: Type) -> Type:
    """Returns the type with all names removed from it."""
    while isinstance(kind, Named):  # ends: a type is not part of itself
        kind = kind.target
    return kind


def fault_of(kind: Type) -> str:
    """Returns why a type is not allowed: too deep, too large, or a record with a field twice; "" if it is
    allowed."""
    if kind.depth > MAX_DEPTH:
        return f"a type is nested deeper than {MAX_DEPTH}"
    if kind.nodes > MAX_NODES:
        return f"a type is made of more than {MAX_NODES:,} types"
    if isinstance(kind, Record) and len(set(kind.names)) < len(kind.names):
        twice = next(name for at, name in enumerate(kind.names) if name in kind.names[:at])
        return f"a record type has the field {twice!r} twice"
    return ""
