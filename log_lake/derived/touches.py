"""Finds what the transactions between two versions of a source touch; pure.

A load touches the records of its objects, and a delete the records that it hides.  Both are exact.  Anything else
that changes what readers see touches a range of keys: a revert, the merge of a branch, an expiry.  Then all
records that one of the two versions has in that range count as touched.  Compactions and other upkeep touch
nothing.

A touch that is too wide costs time only: a group that is computed anew without need is the same group again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lake_core.history.snapshot.reference import Reference
from lake_core.keys import KeyRange
from lake_core.records import (
    AddObject,
    AddTombstone,
    PutReference,
    PutTombstone,
    RemoveReference,
    RemoveTombstone,
)
from lake_core.records.conditions import Condition
from log_lake.reverts.change import Change


@dataclass(frozen=True)
class LoadedObjects:
    """The objects that a load brought, and its version."""

    version: int
    objects: tuple[AddObject, ...]


@dataclass(frozen=True)
class HiddenRecords:
    """The records that a delete hides: records of the older version that lie in a range and fulfil a condition."""

    key_range: KeyRange
    condition: Condition | None


@dataclass(frozen=True)
class ChangedRange:
    """A range in which both versions may have other records."""

    key_range: KeyRange


Touch = LoadedObjects | HiddenRecords | ChangedRange


def touches_of(changes: Iterable[Change]) -> list[Touch]:
    """Returns what the changes of a branch touch, in the order of the changes."""
    return [touch for change in changes for touch in _touches(change)]


def _touches(change: Change) -> Iterator[Touch]:
    actions = [one for one in change.transaction.actions if not getattr(one, "sub_pool", "")]
    if change.is_maintenance and not _only_removes(actions):
        return
    removes = any(isinstance(one, RemoveReference) for one in actions)
    loaded = []
    for one in actions:
        if isinstance(one, AddObject) and not removes:
            loaded.append(one)
        elif isinstance(one, AddTombstone) and not one.self_only:
            yield HiddenRecords(one.range, one.condition)
        elif isinstance(one, AddObject | PutReference | PutTombstone):
            yield ChangedRange(KeyRange(one.low, one.high))
        elif isinstance(one, RemoveTombstone) and one.forced:
            tombstone = change.before.tombstones.get(one.tombstone)
            yield ChangedRange(tombstone.key_range if tombstone is not None else KeyRange())
    for reference in _removed(change):
        yield ChangedRange(KeyRange(reference.low, reference.high))
    if loaded:
        yield LoadedObjects(change.version, tuple(loaded))


def _removed(change: Change) -> Sequence[Reference]:
    return [reference for reference in change.removed if not reference.sub_pool]


def _only_removes(actions: Sequence[object]) -> bool:
    """Whether references are removed and none is added: an expiry looks like a compaction otherwise."""
    removes = any(isinstance(one, RemoveReference) for one in actions)
    return removes and not any(isinstance(one, AddObject) for one in actions)
