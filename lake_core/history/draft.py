"""A draft: a transaction that is not committed yet, as its writer prepared it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lake_core.records import (
    Action,
    AddInlined,
    AddObject,
    AddTombstone,
    Conserve,
    RemoveReference,
    RemoveTombstone,
)
from lake_core.records.transactions import VERSION_2, VERSION_3


@dataclass(frozen=True)
class Draft:
    """A transaction that is not committed yet; its `id` stays the same however often it is proposed.

    Some drafts are never stored as requests, because one state may refuse them and a later one accept them
    (decision 65): drafts that change branches or tags, that restore something, or that only remove something.
    Only their own writer commits them.  `is_exact`: the draft fits only if its branch has not changed since the
    read version.  `oldest_only`: the removed records must not hide any record that stays (`history.revealing`);
    set for expiry and for dropped delete markers.  `keeps_fields`: the draft promises not to change a field of
    its branch (the setting `schema`). A stored request cannot express this promise.
    """

    id: str
    branch: str
    read_version: int
    author: str
    actions: tuple[Action, ...]
    schemas: tuple[pa.Schema, ...] = ()
    message: str = ""
    token: str = ""
    is_exact: bool = False
    oldest_only: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    keeps_fields: bool = False

    @property
    def new_objects(self) -> list[AddObject]:
        """The new objects of the pool itself, whose records get the sequence of the commit.  Objects of sub-pools
        and of compactions are left out."""
        return [a for a in self.actions if isinstance(a, AddObject) and a.seqs is None and not a.sub_pool]

    @property
    def is_own(self) -> bool:
        """Whether only its own writer may commit the draft, so that it is never a request.  Inlined objects and
        stated sums alone are no reason for that.

        Without this rule there would be requests that some states refuse and that `refusals` does not know.
        """
        others = replace(
            self, actions=tuple(a for a in self.actions if not isinstance(a, AddInlined | Conserve))
        )
        return self.oldest_only or self.keeps_fields or self.only_takes or others.needs_version > 1

    @property
    def only_takes(self) -> bool:
        """Whether the draft removes references without adding an object in their place, or retires a tombstone by
        force."""
        kinds = {type(action) for action in self.actions}
        by_force = any(isinstance(action, RemoveTombstone) and action.forced for action in self.actions)
        return by_force or (RemoveReference in kinds and kinds.isdisjoint((AddObject, AddInlined)))

    @property
    def needs_version(self) -> int:
        """The oldest format version of a lake that can hold the draft."""
        if any(isinstance(action, VERSION_3) for action in self.actions):
            return 3
        needs_2 = self.is_exact or any(
            isinstance(action, VERSION_2) or (isinstance(action, AddTombstone) and action.only is not None)
            for action in self.actions
        )
        return 2 if needs_2 else 1
