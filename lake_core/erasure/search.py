"""Which objects of a pool hold such records, wherever the objects are.

Objects that branches and tags refer to are asked by their statistics first.  Removed objects and objects that were
never committed have no statistics in the state, so they are opened (`holding`).  Objects never change, so each is
asked once in a search.

What an old revision in reach refers to is among these: a branch or a tag still holds it, or it is on the list of
the removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from lake_core import naming
from lake_core.erasure.holding import Answer
from lake_core.erasure.means import Means, chunks
from lake_core.erasure.target import Target
from lake_core.errors import Corrupt, ObjectMissing
from lake_core.history import PoolState, Reference
from lake_core.history.roots import tagged_states
from lake_core.lake.pool import Pool
from lake_core.store import ObjectInfo
from lake_core.vacuum.orphans import LAST, iter_objects, unknown_objects

AHEAD = 60.0
"""Seconds: names of a later time than this from now are listed here, by one request, since there are hardly any."""

T = TypeVar("T")


@dataclass
class Search:
    """Answers whether objects hold such records; `answers` are those so far."""

    pool: Pool
    target: Target
    means: Means
    answers: dict[str, Answer] = field(default_factory=dict)

    def in_branches(self, state: PoolState) -> dict[str, list[Reference]]:
        """The references of each branch whose objects hold such records, without branches that have none.

        Raises ObjectMissing, Corrupt, Unavailable.
        """
        by_branch = {}
        for name in sorted(state.branches):
            references = self.target.references(state, name)
            if holding := list(self._holding(references, _object_of, self._holds)):
                by_branch[name] = holding
        return by_branch

    def in_tags(self, state: PoolState, *, now: float) -> Iterator[tuple[str, Reference]]:
        """Tags that are live at `now` (seconds since 1970), and references of theirs with such records.

        Raises Corrupt if the state of a tag cannot be read.
        """
        for name, tag, tagged in tagged_states(self.pool.history, state, now=now):
            references = self.target.references(tagged, tag.branch)
            for reference in self._holding(references, _object_of, self._may_hold):
                yield name, reference

    def removed(self, state: PoolState) -> list[str]:
        """Those on the list of the removed."""
        return list(self._holding((id for id, _ in state.removed.items()), str, self._may_hold))

    def uncommitted(self, state: PoolState) -> list[ObjectInfo]:
        """Those that no branch, tag or list knows, among the names that no scan for orphans has looked at.

        Lists these names.
        """
        soon = naming.first_id(self.pool.context.now() + AHEAD)
        since = state.removed.scanned
        infos = self.means.lister(self.pool, since, soon) if since < soon else []
        infos += iter_objects(self.pool.store, self.pool.config.id, max(since, soon), LAST)
        return list(self._holding(unknown_objects(self.pool, state, infos), object_id, self._may_hold))

    def _holding(
        self, items: Iterable[T], id_of: Callable[[T], str], holds: Callable[[str], bool]
    ) -> Iterator[T]:
        """The items whose objects hold such a record."""
        for chunk in chunks(items):
            new = list(dict.fromkeys(id for id in map(id_of, chunk) if id not in self.answers))
            if new:
                self.answers.update(zip(new, self.means.search(self.target, new), strict=True))
            yield from (item for item in chunk if holds(id_of(item)))

    def _holds(self, id: str) -> bool:
        """Of an object that a branch needs.  Raises ObjectMissing, Corrupt."""
        answer = self.answers[id]
        if isinstance(answer, Corrupt):
            raise answer
        return answer

    def _may_hold(self, id: str) -> bool:
        """Of an object that no branch refers to: False if it is gone, True if it cannot be read."""
        answer = self.answers[id]
        if isinstance(answer, Corrupt):
            # a damaged one may hold the bytes of such a record, and no branch needs it
            return not isinstance(answer, ObjectMissing)
        return answer


def object_id(info: ObjectInfo) -> str:
    """The id of a data object that was listed."""
    id = naming.data_id(info.name)
    assert id is not None  # `iter_objects` leaves other names out
    return id


def _object_of(reference: Reference) -> str:
    return reference.object
