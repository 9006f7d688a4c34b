"""Holders: what may still need objects with matching records, in the words of a receipt; pure.

A tag or a deleted branch may need an object that it refers to.  A lease may need an object that was removed
after the version that it reads.  A load may still commit an object that nothing refers to.  Another run of the
same erasure may be working on an object that it has named.  A file that is not one of the pool's objects may
hold anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lake_core.history import PoolState, Reference
from lake_core.naming import clone_of
from log_lake.leases import Lease, Leases
from log_lake.leases.lease import READ, WRITE

TAG, DELETED_BRANCH, LEASE, FILE, CLONE = "tag ", "deleted branch ", "lease ", "file ", "clone "
IN_JOURNAL, COPY = "journal ", "copy "
"""The first words of a holder.  The name of a stored part of the journal, or the id of a copied object, follows
them."""

LOAD = "a load that has not committed"
ANOTHER_RUN = "another run of this erasure"
BROUGHT_BACK = "a branch to which an undo brought it back"
CLOCK = "an object that no load has committed, of an age that is unknown, because clocks are far apart"
JOURNAL = "the first entries of the journal, because an older object may be that of a lost entry"


@dataclass(frozen=True)
class Holders:
    """Everything that may still need objects, at one moment.

    `tagged` maps an object's id to its tags, in words.  `uncommitted` maps the id of an object that no load has
    committed to the reason why it stays.
    """

    state: PoolState
    leases: Leases
    tagged: Mapping[str, list[str]] = field(default_factory=dict)
    uncommitted: Mapping[str, str] = field(default_factory=dict)

    def of(self, id: str) -> list[str]:
        """Returns the holders that may need the object; empty if it may be deleted."""
        if id in self.uncommitted:
            return [self.uncommitted[id]]
        if id in self.tagged:
            return list(dict.fromkeys(self.tagged[id]))
        removal = self.state.removed.get(id)
        if removal is None:
            return []
        return [named(lease) for lease in self.leases.live if lease.note.version < removal.version]

    def of_referred(self, id: str) -> list[str]:
        """Returns who will need the object after it is removed: its tags, and each reader that has a lease."""
        return list(dict.fromkeys(self.tagged.get(id, ()))) or [named(lease) for lease in self.leases.live]

    def readers_before(self, version: int) -> list[str]:
        """Returns the readers of older versions, which may still read inlined objects from the journal."""
        older = (one for one in self.leases.live if one.note.kind == READ and one.note.version < version)
        return [named(lease) for lease in older]

    def writers_before(self, version: int) -> list[str]:
        """Returns the writers that began before a version: the objects that they still write may hold records of
        that time."""
        begun = (one for one in self.leases.live if one.note.kind == WRITE and one.note.version < version)
        return [f"{named(lease)}, which may still write such records" for lease in begun]


def tagged_by_object(state: PoolState, pairs: Iterable[tuple[str, Reference]]) -> dict[str, list[str]]:
    """Returns, by object, the tags that refer to it, in words; `pairs` are names of tags with the references of
    each."""
    tagged: dict[str, list[str]] = {}
    for name, reference in pairs:
        tag = state.tags[name]
        begins = DELETED_BRANCH if tag.deleted else TAG
        words = f"{tag.reason} (tag {name})" if clone_of(name) else begins + name
        tagged.setdefault(reference.object, []).append(words)
    return tagged


def named(lease: Lease) -> str:
    """Returns words for a lease: its holder, and its reason."""
    why = f" ({lease.note.why})" if lease.note.why else ""
    return f"{LEASE}{lease.id} of {lease.note.holder}{why}"


def in_journal_words(name: str) -> str:
    """Returns words for an entry, a checkpoint or a request of the journal that has the bytes of an inlined
    object."""
    return f"{IN_JOURNAL}{name}, which has its bytes: purge the journal, or erase without keeping the history"


def file_words(name: str) -> str:
    """Returns words for a file in the pool's folder that no writer of the lake made, so that its content is
    unknown."""
    return f"{FILE}{name}, which is none of the pool's objects"


def copy_words(name: str) -> str:
    """Returns words for a copy of an object beside a published table."""
    return f"{COPY}{name} beside a published table"


def release(by: str, *, pool_name: str, erasure_id: str) -> str:
    """Returns words for how a person releases the object from this holder; `by` is as in a receipt."""
    kind = next((kind for kind in (TAG, DELETED_BRANCH) if by.startswith(kind)), None)
    if kind is not None:
        return f"delete it: lake tag {pool_name} -d {by.removeprefix(kind)}"
    if by.startswith(CLONE):
        clone = by.removeprefix(CLONE).partition(" (tag ")[0]
        return (
            f"erase the records in {clone} too (lake erase {clone} ...), give it objects of its own (lake compact "
            f"{clone} --strategy full, and lake vacuum {clone}), or drop it and delete it for good; then: "
            f"lake-agent retention --lake LAKE {pool_name}"
        )
    if by.startswith(LEASE):
        return f"it ends by itself; until when, says: lake leases {pool_name}"
    if by.startswith(FILE):
        return "look what it is, and move it out of the lake or delete it"
    if by.startswith(COPY):
        return f"publish again: lake publish {pool_name}; the first publication after vacuum.grace deletes it"
    if by == JOURNAL:
        return f"purge them: lake checkpoint {pool_name}, then lake purge {pool_name} --keep 0s"
    if by == CLOCK:
        return f"set the clock that is wrong, then: lake erase {pool_name} --resume {erasure_id} --yes"
    if by == ANOTHER_RUN:
        return f"let it end, then: lake erase {pool_name} --resume {erasure_id} --yes"
    if by == BROUGHT_BACK:
        return f"lake erase {pool_name} --resume {erasure_id} --yes"
    return (
        "wait until vacuum.grace is over; if no load is under way: "
        f"lake erase {pool_name} --resume {erasure_id} --grace 0s --yes"
    )
