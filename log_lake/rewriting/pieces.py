"""What a worker says of a piece of a rewriting, and whether the stored sums of all pieces add up.

In a pool with `content.sums=on` each object has the sum of its records, made when it was written.  So a rewriting
of inputs that all have one reads no input again: the sums of the inputs must be those of the new objects, and of
the records that deletes, `age_off` or an erasure took.  Called by `rewriting.work` and `rewriting.exchange`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lake_core.history.conserved import added_up, imbalance, sums_of
from lake_core.records import Conserve
from lake_core.records.sums import packed_sums
from log_lake.content.content import ObjectSums
from log_lake.objects.write import WrittenObject
from log_lake.rewriting.refusal import refused
from log_lake.rewriting.rewriting import Rewriting


@dataclass(frozen=True)
class RewrittenPiece:
    """A part of a rewriting that was carried out.

    It has the new object, None if no record is left, and the sums of the records that were read and left out.
    """

    written: WrittenObject | None = None
    taken: ObjectSums = field(default_factory=ObjectSums)


def objects_of(pieces: Iterable[RewrittenPiece]) -> list[WrittenObject]:
    """Returns the new objects."""
    return [piece.written for piece in pieces if piece.written is not None]


def statement(work: Rewriting, pieces: Sequence[RewrittenPiece]) -> Conserve | None:
    """Returns what the transaction states of its sums; None if an input has none, or if the pool combines records.

    Raises NotConserved if they do not add up.  An erasure states nothing: the sum of the few records that it took
    would tell whether a guess of them is right.
    """
    if not work.conserves:
        return None
    covering = work.covering()
    unread = [sums_of(r) for r in work.inputs if covering.of(r).hide_all(upsert=False)]
    parts = [
        (piece.taken.content.records, piece.taken.content.total, piece.taken.ages or 0) for piece in pieces
    ]
    records, content, ages = added_up([*parts, *(one for one in unread if one is not None)])
    stated = Conserve(records, packed_sums(content, ages or 0))
    if fault := imbalance(work.inputs, [*(one.action for one in objects_of(pieces)), stated]):
        raise refused(work, fault)
    return stated if work.bounded else None
