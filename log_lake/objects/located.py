"""Where the bytes of an object are: under its own name on the store, or, if it is inlined, in what names it.

A reference names an object, and so does each action that adds one.  Both carry the bytes of an inlined object.
`Located` is the least of them, for a task that needs nothing else.  `objects.read` opens each of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Locates(Protocol):
    """Names an object and says where its bytes are: a reference, or an action of the journal."""

    @property
    def object(self) -> str:
        """The object's id."""
        ...

    @property
    def size(self) -> int | None:
        """Its size in bytes; None if no reference says it."""
        ...

    @property
    def data(self) -> bytes:
        """The bytes of an inlined object; b"" if they are on the store."""
        ...


@dataclass(frozen=True)
class Located:
    """An object, and where its bytes are: the least that a task must be told to open it.

    `size` is None if no reference says it.
    """

    object: str
    size: int | None = None
    data: bytes = b""

    @classmethod
    def of(cls, one: Locates) -> Located:
        """The object that a reference or an action names."""
        return cls(one.object, one.size, one.data)
