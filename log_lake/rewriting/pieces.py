"""The result of a piece of a rewriting, and whether the stored sums of all pieces add up.

In a pool with `content.sums=on` each object has the content sum of its records, made when it was written.  If
all inputs have one, a rewriting need not read any input again to compare.  The sums of the inputs must be equal
to those of the new objects together with those of the records that were left out, because a delete, a filter
or an erasure hides them.  Called by `rewriting.work` and `rewriting.exchange`.
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
    """A piece of a rewriting that a worker has carried out.

    `objects`: its new object, or one for each bucket; none if no record is left.  `taken`: the content sums of the
    records that the worker read from the inputs and left out of the new objects.
    """

    objects: tuple[WrittenObject, ...] = ()
    taken: ObjectSums = field(default_factory=ObjectSums)


def objects_of(pieces: Iterable[RewrittenPiece]) -> list[WrittenObject]:
    """Returns the new objects of the pieces; a piece without one adds nothing."""
    return [written for piece in pieces for written in piece.objects]


def statement(work: Rewriting, pieces: Sequence[RewrittenPiece]) -> Conserve | None:
    """Returns the sums of the left-out records, which the transaction states.  Returns None if an input has no
    sum, or if the pool combines records.

    Raises NotConserved if the sums of the inputs are not those of the new objects and the left-out records.  An
    erasure gets None too: with the stored sum of the few records that it erased, an attacker could check a
    guess of their content.
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
