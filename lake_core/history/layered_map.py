"""A persistent map of new items, above a large map that never changes. The map below is never loaded as a whole.

Items that were added since are in memory.  For all other keys the map below is asked, one key at a time or all
in order.  Keys are never removed: the next checkpoint leaves out those that may be forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from rpds import HashTrieMap

K = TypeVar("K")
V = TypeVar("V")


class MapBelow(Protocol[K, V]):
    """The large map below a `LayeredMap`, which never changes."""

    def get(self, key: K) -> V | None:
        """Returns the value of a key; None if the map does not have the key."""

    def get_many(self, keys: Collection[K]) -> dict[K, V]:
        """Returns the values of those keys that the map has."""
        return {key: value for key in keys if (value := self.get(key)) is not None}

    def items(self) -> Iterator[tuple[K, V]]:
        """Yields all items, by key."""


class NothingBelow(MapBelow[Any, Any]):
    """A map below a `LayeredMap` that has no items."""

    def get(self, key: object) -> None:
        return None

    def items(self) -> Iterator[Any]:
        return iter(())


@dataclass(frozen=True)
class LayeredMap(Generic[K, V]):
    """The map below with added items; `insert` returns a new map in constant time and leaves the old one
    unchanged."""

    below: MapBelow[K, V] = NothingBelow()  # noqa: RUF009 - it has no state
    added: HashTrieMap[K, V] = field(default_factory=HashTrieMap)

    def get(self, key: K) -> V | None:
        """Returns the newest value of the key; None if the key has no value."""
        value = self.added.get(key)
        return self.below.get(key) if value is None else value

    def get_many(self, keys: Collection[K]) -> dict[K, V]:
        """Returns the newest values of those keys that have one; the map below looks for all of them at once."""
        added = {key: value for key in keys if (value := self.added.get(key)) is not None}
        return {**self.below.get_many([key for key in keys if key not in added]), **added}

    def insert(self, key: K, value: V) -> LayeredMap[K, V]:
        """Returns the map with this value for the key."""
        return LayeredMap(self.below, self.added.insert(key, value))

    def update(self, items: Mapping[K, V]) -> LayeredMap[K, V]:
        """Returns a new map that has these items too."""
        return LayeredMap(self.below, self.added.update(items))

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def items(self) -> Iterator[tuple[K, V]]:
        """Yields every key once, with its newest value."""
        for key, value in self.below.items():
            if key not in self.added:
                yield key, value
        yield from self.added.items()
