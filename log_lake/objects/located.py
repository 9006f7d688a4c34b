"""Where the bytes of an object are: under its own name on the store, or, if it is inlined, in the reference or
action that names it.

Both a reference and an action that adds an object carry the bytes of an inlined one.  A task that needs nothing
else of them gets a `Located`.  `objects.read` opens all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Locates(Protocol):
    """Anything that names an object and says where its bytes are: a reference, an action of the journal, or a
    `Located`."""

    @property
    def object(self) -> str:
        """The id of the object."""
        ...

    @property
    def size(self) -> int | None:
        """The object's size in bytes; None if no reference says it."""
        ...

    @property
    def data(self) -> bytes:
        """The bytes of an inlined object; b"" if the bytes are on the store."""
        ...


@dataclass(frozen=True)
class Located:
    """An object's name, size and inlined bytes: what a task needs to open it.

    `size` is None if no reference says it.
    """

    object: str
    size: int | None = None
    data: bytes = b""

    @classmethod
    def of(cls, one: Locates) -> Located:
        """Returns the name, size and inlined bytes of the object that a reference or an action names."""
        return cls(one.object, one.size, one.data)
