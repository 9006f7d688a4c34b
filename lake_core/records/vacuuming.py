"""Actions that decide which objects are deleted (format version 2).

They belong to no branch.  When a branch gives up an object, it goes to the list of removed objects
(`history.removal`).  A vacuum takes objects off this list in two steps: it begins, checks the leases once more,
and is confirmed.  From then on any process may delete its objects, any number of times.  It ends when they are
deleted.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt
from lake_core.naming import check_objects
from lake_core.records.decoding import check_counts


class ScanOrphans(msgspec.Struct, frozen=True, tag="scan_orphans"):
    """Raises the floor: from now on no new object with an id below `upto` is committed.  `now`: the smallest id
    of the time of the scan."""

    upto: str
    now: str

    def __post_init__(self) -> None:
        check_objects((self.upto, self.now), what="scan_orphans")


class Discard(msgspec.Struct, frozen=True, tag="discard", omit_defaults=True):
    """Puts objects that no branch refers to on the list of removed objects.

    `sizes` are their bytes.  `never_read`: no version ever referred to them, so no reader needs them.
    `scanned`: all names below this one were searched for orphans.
    """

    objects: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    never_read: bool = False
    scanned: str = ""

    def __post_init__(self) -> None:
        check_objects(self.objects, what="discard")
        if self.scanned:
            check_objects((self.scanned,), what="discard: `scanned`")
        if self.sizes:
            check_counts("discard", size=min(self.sizes), largest=max(self.sizes))
            if len(self.sizes) != len(self.objects):
                raise Corrupt(f"discard: {len(self.objects)} objects, but {len(self.sizes)} sizes")


class BeginVacuum(msgspec.Struct, frozen=True, tag="begin_vacuum"):
    """Takes objects off the list of removed objects. From now on they may be missing, although older revisions
    need them."""

    objects: tuple[str, ...]

    def __post_init__(self) -> None:
        check_objects(self.objects, what="begin_vacuum")
        if not self.objects:
            raise Corrupt("begin_vacuum: needs objects")


class ConfirmVacuum(msgspec.Struct, frozen=True, tag="confirm_vacuum", omit_defaults=True):
    """Puts the spared objects of a vacuum back on the list of removed objects; the others may be deleted from
    now on.  `vacuum` is the sequence of the transaction that began it."""

    vacuum: int
    spared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_objects(self.spared, what="confirm_vacuum")


class EndVacuum(msgspec.Struct, frozen=True, tag="end_vacuum"):
    """States that all objects of a vacuum are deleted."""

    vacuum: int
