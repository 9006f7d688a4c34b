"""A data object that a rebuild has read, and which objects of divided pieces do not count; pure.

A compaction of a pool with clusters writes one object for each bucket in the same range of keys, and each names its
siblings.  Only together they hold the records of the inputs there.  If one of them is damaged or not there, none
counts, as long as the inputs are there: these hold every record.  A sibling that a later compaction merged is not
lost.  If an input is gone, what is left of the siblings counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from lake_core.ids import ID_LENGTH
from lake_core.keys import KeyRange
from lake_core.records import Column
from log_lake.objects.located import Located


class Candidate(msgspec.Struct, frozen=True):
    """A data object, with what can be read of it.

    `created` is the second in its id, or that of `appeared` if this is earlier.  `appeared` is when the store got
    the object, by the store's clock (0: unknown).  `order` is a finer time that orders objects of one second (0:
    unknown).
    `sequences` are those that its records carry, if they do.  `fault` says why its records cannot be used, ""
    if they can.  If the footer cannot be read either, `transaction_id` is "".  `siblings`: the ids of the objects
    of its divided piece, if it is one.  `is_refused`: the fault is that the store did not give the object, which
    may be sound.  `data`: the bytes of an inlined object, from the old journal.
    """

    object: str
    size: int
    created: float
    order: int = 0
    appeared: float = 0.0
    fault: str = ""
    transaction_id: str = ""
    inputs: tuple[str, ...] = ()
    key: str = ""
    sub_pool: str = ""
    schema: str = ""
    records: int = 0
    low: bytes = b""
    high: bytes = b""
    partition: KeyRange = KeyRange()
    first_seq: int | None = None
    last_seq: int | None = None
    sequences: tuple[int, ...] = ()
    columns: tuple[Column, ...] = ()
    siblings: tuple[str, ...] = ()
    data: bytes = b""
    is_refused: bool = False

    @property
    def located(self) -> Located:
        """What is needed to open the object: its name and, if it is inlined, its bytes."""
        return Located(self.object, data=self.data)

    @property
    def is_known(self) -> bool:
        """Whether the footer can be read."""
        return bool(self.transaction_id)

    @property
    def key_range(self) -> KeyRange:
        """The range of the keys that the object holds."""
        return KeyRange(self.low, self.high)


def dismissed(candidates: Iterable[Candidate]) -> set[str]:
    """Returns the objects of divided pieces that do not count: a sibling is lost, and all inputs are there."""
    every = list(candidates)
    sound = {c.object for c in every if not c.fault}
    ids = {object_id[:ID_LENGTH] for object_id in sound}
    merged = {object_id[:ID_LENGTH] for c in every for object_id in c.inputs}
    pieces: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for candidate in every:
        if candidate.siblings:
            pieces[candidate.siblings].append(candidate)
    lost = {
        id
        for siblings, there in pieces.items()
        if any(id not in ids and id not in merged for id in siblings)
        and all(sound.issuperset(one.inputs) for one in there)
        for id in siblings
    }
    return {c.object for c in every if c.object[:ID_LENGTH] in lost}
