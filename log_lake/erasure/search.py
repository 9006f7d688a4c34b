"""Finds the objects of a pool that hold matching records, wherever the objects are.

For objects that branches and tags refer to, statistics are checked first.  For others the state has no
statistics, so they are opened (`holding`): removed objects, those of a vacuum that has begun, and those on the
store that the state does not name at all.  Objects never change, so a search checks each once.

This includes the objects of old revisions that can still be read: a branch or a tag refers to them, or they are
on the list of removed objects.  A listing of the store shows the rest (`on_store`): objects of a writer that
stopped, or whose clock was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

from lake_core.errors import Corrupt, ObjectMissing
from lake_core.history import PoolState, Reference
from lake_core.history.vacuuming import held_objects, objects_of, unlisted_objects
from lake_core.ids import first_id
from lake_core.store import ObjectInfo
from log_lake.erasure.holding import HoldingAnswer, answer_of
from log_lake.erasure.in_journal import Inlined
from log_lake.erasure.target import Target
from log_lake.indexes.names import listed_index
from log_lake.lake.pool import Pool
from log_lake.objects.located import Located
from log_lake.presence.roots import Tagged, read_tags, tagged_objects
from log_lake.vacuum.orphans import iter_names, list_names, object_id
from log_lake.workers import Workers

AHEAD = 60.0
"""Seconds.  Names whose time is more than this after now are listed by one request, because there are hardly
any."""

END = chr(0x10FFFF)
"""Greater than any name."""

CHUNK = 4_096
"""Objects that are searched at once: enough to keep a cluster busy, and few enough to hold in memory."""

EACH, ALONE = 16, 32
"""EACH: how many objects one task reads; few, so that little is repeated if the task fails.  ALONE: up to this
many objects are read without a task."""

T = TypeVar("T")


@dataclass(frozen=True)
class TaggedObjects:
    """The objects that a tag keeps.

    `references`: those that may hold matching records, by statistics.  `unlisted`: objects of the tag that are
    in no branch and not on the list of removed objects.
    """

    references: tuple[Reference, ...]
    unlisted: frozenset[str]


@dataclass
class Search:
    """Finds out which objects hold matching records; `answers` are the results so far, by object.

    `named`: objects in which an earlier run found matching records.  `tagged`: what was read from tags so far.
    """

    pool: Pool
    target: Target
    workers: Workers
    named: frozenset[str] = frozenset()
    answers: dict[str, HoldingAnswer] = field(default_factory=dict)
    tagged: dict[Tagged, TaggedObjects] = field(default_factory=dict)

    def in_branches(self, state: PoolState) -> dict[str, list[Reference]]:
        """Returns, by branch, the references whose objects hold matching records; branches without any are left
        out.

        Raises ObjectMissing, Corrupt, Unavailable.
        """
        by_branch = {}
        for name in sorted(state.branches):
            references = self.references(state, name)
            if holding := list(self._holding(references, Located.of, self._holds)):
                by_branch[name] = holding
        return by_branch

    def references(self, state: PoolState, branch: str) -> Iterator[Reference]:
        """Yields the references of a branch that may hold matching records, by statistics and age.

        A merge gives records a new age.  So the age of an object that an earlier run has named does not count.
        """
        references = self.target.references(state, branch)
        return (r for r in references if r.first_seq <= self.target.last or r.object in self.named)

    def in_tags(
        self, state: PoolState, names: list[ObjectInfo], *, now: float
    ) -> Iterator[tuple[str, Reference]]:
        """Yields the names of the tags that are live at `now` (seconds since 1970), with their references that
        hold matching records.

        Raises Corrupt if the state of a tag cannot be read.
        """
        for name, tagged in self._tags(state, self._unlisted(state, names), now=now):
            for reference in self._holding(tagged.references, Located.of, self._may_hold):
                yield name, reference

    def _tags(
        self, state: PoolState, unlisted: frozenset[str], *, now: float | None
    ) -> Iterator[tuple[str, TaggedObjects]]:
        """Yields each tag with what it keeps.  A search reads the state of each version only once.

        The first result stays valid when objects or lists change during the search, for two reasons.  An object
        that comes to the store later is in no version that was read before.  And a branch that is deleted
        leaves a tag with a version of its own, so its objects are found there.
        """

        def read(tagged: PoolState, branch: str) -> TaggedObjects:
            branch_state = tagged.branches.get(branch)
            kept = () if branch_state is None else objects_of(branch_state.snapshot, unlisted)
            others = (self.references(tagged, name) for name in sorted(tagged.branches) if name != branch)
            # the checkpoint of the tag's version holds the inlined objects of all branches
            inlined = (reference for references in others for reference in references if reference.data)
            return TaggedObjects((*self.references(tagged, branch), *inlined), frozenset(kept))

        return read_tags(self.pool.history, state, read, now=now, seen=self.tagged)

    def _unlisted(self, state: PoolState, names: list[ObjectInfo]) -> frozenset[str]:
        """Returns the objects among these names that are in no branch, not on the list of removed objects, and not
        in a vacuum.  Such an object is kept by a tag only, or was never committed."""
        ids = {id for info in names if (id := object_id(info)) is not None}
        return unlisted_objects(state, ids) - state.removed.vacuumed()

    def removed(self, state: PoolState, *, now: float) -> list[str]:
        """Returns the objects on the list of removed objects that hold matching records.

        If a branch, or a tag that is live at `now` (seconds since 1970), still needs such an object, the object
        is judged by the ages of its records, as any reference is.  So it stays if all of its records were
        written after the last version that the erasure covers.
        """
        removed = list(self._holding((id for id, _ in state.removed.items()), Located, self._may_hold))
        if not (removed and self.target.until):
            return removed
        needed = held_objects(state, removed) | tagged_objects(self.pool.history, state, removed, now=now)
        return [id for id in removed if id not in needed]

    def begun(self, state: PoolState) -> list[str]:
        """Returns objects with matching records that an interrupted vacuum has not deleted yet.  They are no
        longer on the list of removed objects, and the erasure must not delete them yet."""
        return list(self._holding(sorted(state.removed.vacuumed()), Located, self._may_hold))

    def uncommitted(self, state: PoolState, names: list[ObjectInfo]) -> list[ObjectInfo]:
        """Returns the listed objects that hold matching records, and are in no branch, no tag, no vacuum, and
        not on the list of removed objects."""
        unknown = self._unlisted(state, names)
        if unknown:
            kept = self._tags(state, unknown, now=None)
            unknown = unknown.difference(*(tagged.unlisted for _, tagged in kept))
        infos = [info for info in names if object_id(info) in unknown]
        return list(self._holding(infos, lambda info: Located(known_id(info)), self._may_hold))

    def inlined(self, objects: Iterable[Inlined]) -> Iterator[Inlined]:
        """Yields the inlined objects in the journal that hold matching records."""
        return self._holding(objects, lambda one: one.located, self._may_hold)

    def on_store(self) -> list[ObjectInfo]:
        """Lists every name in the pool's folder of data objects, in the order of the names."""
        soon = first_id(self.pool.context.now() + AHEAD)
        infos = list_names(self.pool, "", soon, self.workers)
        return infos + list(iter_names(self.pool.store, self.pool.config.id, soon, END))

    def _holding(
        self, items: Iterable[T], locate: Callable[[T], Located], holds: Callable[[str], bool]
    ) -> Iterator[T]:
        """Yields the items whose objects hold a matching record.

        `locate` says where the object of an item is.  `holds` turns the stored answer for an object's id into
        yes or no.
        """
        for chunk in chunks(items):
            located = [locate(item) for item in chunk]
            new = {one.object: one for one in located if one.object not in self.answers}
            if new:
                asked = list(new.values())
                answers = self.workers.map(partial(answer_of, self.target), asked, each=EACH, alone=ALONE)
                self.answers.update(zip(new, answers, strict=True))
            yield from (item for item, one in zip(chunk, located, strict=True) if holds(one.object))

    def _holds(self, id: str) -> bool:
        """Returns the answer for an object that a branch needs.  Raises ObjectMissing, Corrupt."""
        answer = self.answers[id]
        if isinstance(answer, Corrupt):
            raise answer
        return answer

    def _may_hold(self, id: str) -> bool:
        """Returns the answer for an object that no branch refers to: False if it is gone, True if it cannot be
        read."""
        answer = self.answers[id]
        if isinstance(answer, Corrupt):
            # a damaged one may hold the bytes of such a record, and no branch needs it
            return not isinstance(answer, ObjectMissing)
        return answer


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yields the items in lists of at most `size`."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


def known_id(info: ObjectInfo) -> str:
    """Returns the id of a listed name that is certainly the name of a data object."""
    id = object_id(info)
    assert id is not None  # `unknown_objects` leaves other names out
    return id


def foreign(names: list[ObjectInfo]) -> list[str]:
    """Returns the listed names that belong neither to a data object nor to an index of one: their content is
    unknown.

    The index of a data object that is not there counts as foreign: it may hold values of erased records.
    """
    others = [info for info in names if object_id(info) is None]
    if not others:
        return []
    there = {object_id(info) for info in names}
    return [i.name for i in others if (one := listed_index(i)) is None or one.object_id not in there]


def left_indexes(names: list[ObjectInfo]) -> list[str]:
    """Returns those index objects among the names whose data objects are not on the store."""
    left = set(foreign(names))
    return [info.name for info in names if info.name in left and listed_index(info) is not None]
