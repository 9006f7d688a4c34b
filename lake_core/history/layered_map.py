"""A persistent map over a large, fixed base that is looked up, not loaded.

What came since is in memory; the base answers for the rest, one key at a time or all in order.  Keys are never
taken out: what may be forgotten is left out when the next base is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rpds import HashTrieMap

K = TypeVar("K")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class MapBelow(Protocol[K, V_co]):
    """What lies below."""

    def get(self, key: K) -> V_co | None:
        """The value of a key."""

    def items(self) -> Iterator[tuple[K, V_co]]:
        """All of it, by key."""


class NothingBelow:
    """Nothing lies below."""

    def get(self, key: object) -> None:
        return None

    def items(self) -> Iterator[Any]:
        return iter(())


@dataclass(frozen=True)
class LayeredMap(Generic[K, V]):
    """`insert` makes a new map in constant time and leaves the old one as it was."""

    below: MapBelow[K, V] = NothingBelow()  # noqa: RUF009 - it has no state
    added: HashTrieMap[K, V] = field(default_factory=HashTrieMap)

    def get(self, key: K) -> V | None:
        """The newest value of the key, None where it has none."""
        found = self.added.get(key)
        return self.below.get(key) if found is None else found

    def insert(self, key: K, value: V) -> LayeredMap[K, V]:
        """The map with one value more, or another value."""
        return LayeredMap(self.below, self.added.insert(key, value))

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def items(self) -> Iterator[tuple[K, V]]:
        """Every key once, with its newest value."""
        for key, value in self.below.items():
            if key not in self.added:
                yield key, value
        yield from self.added.items()
