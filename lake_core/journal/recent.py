"""The recent ids: ids of lately committed changes, a pure function of the history, so every reader has the same.

A writer gives its change an id before it knows its version.  The recent ids are those of the entries of the
current generation (`limits.generation_versions` versions) and of the one before.  From them a writer learns its
outcome if its version was purged or another writer committed its change.  The fold refuses an entry whose id is
among them, so no change is committed twice.  No clock decides which ids are forgotten (decision 10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rpds import HashTrieMap

from lake_core.errors import Corrupt
from lake_core.journal.limits import JOURNAL_LIMITS, JournalLimits


def generation(version: int, *, limits: JournalLimits) -> int:
    """Returns the number of the generation (a span of `generation_versions` versions) to which a version
    belongs."""
    return version // limits.generation_versions


@dataclass(frozen=True)
class Recent:
    """The recent ids at a version, each with the version of its entry."""

    version: int = 0
    young: HashTrieMap[str, int] = field(default_factory=HashTrieMap)
    old: HashTrieMap[str, int] = field(default_factory=HashTrieMap)
    limits: JournalLimits = JOURNAL_LIMITS

    def version_of(self, id: str) -> int | None:
        """Returns the version of the entry that has the id; None if the id is not among the recent ones."""
        version = self.young.get(id)
        return self.old.get(id) if version is None else version

    def after(self, version: int, ids: Iterable[str]) -> Recent:
        """Returns the recent ids after an entry with these ids.  Raises Corrupt if one of the ids is already among
        the recent ones."""
        young, old = self.young, self.old
        if self._generation(version) != self._generation(self.version):
            young, old = HashTrieMap(), young
        for id in ids:
            if id in young or id in old:
                raise Corrupt(
                    f"entry {version}: the id {id} is in the history already, in entry {self.version_of(id)}"
                )
            young = young.insert(id, version)
        return Recent(version, young, old, self.limits)

    def reaches(self, version: int) -> bool:
        """Whether the recent ids include every id of this version and of later ones."""
        return self._generation(version) >= self._generation(self.version) - 1

    def _generation(self, version: int) -> int:
        return generation(version, limits=self.limits)

    def items(self) -> Iterator[tuple[str, int]]:
        """Yields each recent id with the version of its entry."""
        yield from self.old.items()
        yield from self.young.items()

    @classmethod
    def of(
        cls, version: int, items: Iterable[tuple[str, int]], *, limits: JournalLimits = JOURNAL_LIMITS
    ) -> Recent:
        """Returns the recent ids at a version, from their `items`.  Raises Corrupt if an item has an impossible
        version."""
        young: dict[str, int] = {}
        old: dict[str, int] = {}
        current = generation(version, limits=limits)
        for id, entry_version in items:
            if not 0 < entry_version <= version:
                raise Corrupt(
                    f"the id {id[:80]!r} is of version {entry_version}, and the newest is {version}"
                )
            is_young = generation(entry_version, limits=limits) == current
            (young if is_young else old)[id] = entry_version
        return cls(version, HashTrieMap(young), HashTrieMap(old), limits)
