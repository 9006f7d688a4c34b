"""The pool key: one or more fields, each ascending or descending.

Written `ts`, `day,carrier`, `ts:desc,uid`.  A pool without key fields (the sub-pools) is ordered by arrival.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import InvalidInput
from lake_core.phrases import counted


class KeyField(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field of the key, by its exact name."""

    name: str
    descending: bool = False


class PoolKey(msgspec.Struct, frozen=True):
    """The fields that order a pool; the names are distinct (checked when it is made)."""

    fields: tuple[KeyField, ...]

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names) or "" in names:
            raise InvalidInput(f"pool key {self}: name each field once, and leave no name empty")

    @property
    def names(self) -> tuple[str, ...]:
        """Field names in key order."""
        return tuple(field.name for field in self.fields)

    @property
    def size(self) -> str:
        """How many fields the key has, in words."""
        return (
            f"the pool key {self} has {counted(len(self.fields), 'field')}"
            if self.fields
            else "there is no key"
        )

    @classmethod
    def parse(cls, text: str) -> PoolKey:
        """`FIELD[:asc|:desc],...` -> PoolKey; raises InvalidInput naming the part that is wrong."""
        fields = []
        for part in text.split(","):
            name, colon, direction = part.strip().rpartition(":")
            if not colon or direction.lower() not in ("asc", "desc"):
                name, direction = part.strip(), "asc"
            if not name:
                raise InvalidInput(f"pool key {text!r} has an empty field; write FIELD[:desc],...")
            fields.append(KeyField(name, direction.lower() == "desc"))
        return cls(tuple(fields))

    def __str__(self) -> str:
        return ",".join(f.name + (":desc" if f.descending else "") for f in self.fields)


ARRIVAL = PoolKey(())
"""The key of the sub-pools: no fields, hence the order of arrival."""
