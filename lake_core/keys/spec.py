"""The pool key: one or more fields, each ascending or descending.

Written `ts`, `day,carrier`, `ts:desc,uid`.  A pool without key fields (the sub-pools) is ordered by arrival.

The word after the last colon must be an order; any other word is a mistake.  So a field whose name
has a colon is written with its order: `meta:id:asc`.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import InvalidInput
from lake_core.phrases import choices, counted

ORDERS = ("asc", "desc")
"""The orders that may follow a field, after a colon."""

WHOLE = "this"
"""The name that other lakes give to the whole record as a key."""


class KeyField(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field of a key: its exact name, and its order."""

    name: str
    descending: bool = False

    @classmethod
    def parse(cls, text: str) -> KeyField:
        """Returns the field that a person writes as `FIELD[:asc|:desc]`.  Raises InvalidInput for another order."""
        _, colon, order = text.rpartition(":")
        if text == WHOLE:
            raise InvalidInput(
                f"key {text!r}: a key is a field, not the whole record; name one. If a field is called so, write "
                f"{text}:asc"
            )
        if colon and order.lower() not in ORDERS:
            raise InvalidInput(
                f"key field {text!r}: unknown order {order!r}; use {choices(ORDERS)}. If the name of the field has "
                f"the colon, write {text}:asc"
            )
        return cls._told(text)

    @classmethod
    def _told(cls, text: str) -> KeyField:
        """Returns the field; if the text does not end in a known order, all of it is the name."""
        name, colon, order = text.rpartition(":")
        if not colon or order.lower() not in ORDERS:
            return cls(text)
        return cls(name, order.lower() == "desc")


class PoolKey(msgspec.Struct, frozen=True):
    """The fields that order a pool; the names are distinct (checked when it is made)."""

    fields: tuple[KeyField, ...]

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names) or "" in names:
            raise InvalidInput(f"pool key {self}: name each field once, and leave no name empty")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields in the order of the key."""
        return tuple(field.name for field in self.fields)

    @property
    def size(self) -> str:
        """The number of the key's fields, as words for a message."""
        return (
            f"the pool key {self} has {counted(len(self.fields), 'field')}"
            if self.fields
            else "there is no key"
        )

    @classmethod
    def parse(cls, text: str) -> PoolKey:
        """Returns the key that a person writes as `FIELD[:asc|:desc],...`.  Raises InvalidInput, which names the
        part that is wrong."""
        fields = tuple(KeyField.parse(part.strip()) for part in text.split(","))
        if not all(field.name for field in fields):
            raise InvalidInput(f"pool key {text!r} has an empty field; write FIELD[:desc],...")
        return cls(fields)

    @classmethod
    def of_footer(cls, text: str) -> PoolKey:
        """Returns the key from a text that `str` wrote; there, a name that has a colon is written without an
        order.  Raises InvalidInput."""
        return cls(tuple(KeyField._told(part.strip()) for part in text.split(",")))

    def __str__(self) -> str:
        return ",".join(f.name + (":desc" if f.descending else "") for f in self.fields)


ARRIVAL = PoolKey(())
"""The key of the sub-pools: it has no fields, which means the order of arrival."""
