"""Which ids were committed lately: a pure function of the history, so that every reader knows the same.

An id is what a writer calls its change, before it knows its number.  The ids of the entries of this generation
(`GENERATION` numbers) and of the one before it are known.  By them a writer that was purged past, or whose change
was committed by somebody else, learns its outcome; and by them the fold refuses to take in an id twice.
No clock decides what is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rpds import HashTrieMap

from lake_core.errors import Corrupt

GENERATION = 1024


def generation(version: int) -> int:
    """Which generation entry `n` is of."""
    return version // GENERATION


@dataclass(frozen=True)
class Recent:
    """Ids of entries up to `n`, and the entry of each."""

    version: int = 0
    young: HashTrieMap[str, int] = field(default_factory=HashTrieMap)
    old: HashTrieMap[str, int] = field(default_factory=HashTrieMap)

    def find(self, id: str) -> int | None:
        """The entry that holds the id, None where it is not among the recent ones."""
        found = self.young.get(id)
        return self.old.get(id) if found is None else found

    def after(self, version: int, ids: Iterable[str]) -> Recent:
        """With the ids of entry `n`; raises Corrupt where one is known already."""
        young, old = self.young, self.old
        if generation(version) != generation(self.version):
            young, old = HashTrieMap(), young
        for id in ids:
            if id in young or id in old:
                raise Corrupt(f"entry {version}: {id} is in the history already, in entry {self.find(id)}")
            young = young.insert(id, version)
        return Recent(version, young, old)

    def reaches(self, version: int) -> bool:
        """Whether all ids of entry `n` and of those after it are known."""
        return generation(version) >= generation(self.version) - 1

    def items(self) -> Iterator[tuple[str, int]]:
        """All that is known."""
        yield from self.old.items()
        yield from self.young.items()

    @classmethod
    def of(cls, version: int, items: Iterable[tuple[str, int]]) -> Recent:
        """As `items` gave it at entry `n`."""
        young: dict[str, int] = {}
        old: dict[str, int] = {}
        for id, at in items:
            (young if generation(at) == generation(version) else old)[id] = at
        return cls(version, HashTrieMap(young), HashTrieMap(old))
