"""The faults of a reference, given the facts of its object; pure.

A reference may show a part of its object, but nothing that the object does not have.  If it shows the whole
object, all its numbers must be those of the object.  Otherwise its number of records and its bounds can only be
checked against the records themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from lake_core.history import Reference
from lake_core.keys import PoolKey
from lake_core.phrases import counted
from log_lake.objects.facts import Content, ObjectFacts
from log_lake.objects.statistics import lying_columns


def shows_whole(reference: Reference, facts: ObjectFacts) -> bool:
    """Whether the reference shows all records of its object."""
    return reference.low <= facts.metadata.low and facts.metadata.high <= reference.high


def faults_of(reference: Reference, facts: ObjectFacts, *, key: PoolKey) -> Iterator[tuple[str, str]]:
    """Yields the faults of a reference that the footer of its object shows, each with the kind of its
    finding."""
    footer = facts.metadata
    if footer.key != str(key):
        yield "object_damaged", f"the object is sorted by {footer.key or 'arrival'}, the pool by {key}"
    if footer.schema != facts.schema_id:
        yield (
            "object_damaged",
            f"the footer names schema {footer.schema}; its fields are of {facts.schema_id}",
        )
    if reference.low < footer.low or footer.high < reference.high:
        yield "reference_outside", "the reference reaches beyond the keys of its object"
    told: list[tuple[str, object, object]] = [
        ("bytes", reference.size, facts.size),
        ("schema", reference.schema, footer.schema),
        ("sub-pool", reference.sub_pool, footer.sub_pool),
    ]
    if shows_whole(reference, facts) or reference.records > footer.records:
        told.append(("records", reference.records, footer.records))
    if not reference.lifts:  # otherwise the object has the sequences of a merged branch
        told += _sequences(reference, footer.first_seq, footer.last_seq)
    for what, reference_value, object_value in told:
        if reference_value != object_value:
            yield (
                "statistics_lie",
                f"{what}: the reference says {reference_value!r}, the object {object_value!r}",
            )


def _sequences(reference: Reference, first: int | None, last: int | None) -> list[tuple[str, object, object]]:
    """Returns the sequences to compare: what they are, the reference's, and the object's.

    The object of a load stores none (`first` is None), because all its records have the sequence of the
    reference.  So only `oldest` is compared, which such a reference must not have.
    """
    if first is None:
        return [("oldest sequence", reference.oldest, None)]
    return [("oldest sequence", reference.oldest, first), ("newest sequence", reference.seq, last)]


def faults_of_content(
    reference: Reference, content: Content, *, shown: Content | None
) -> Iterator[tuple[str, str]]:
    """Yields faults as `faults_of` does, but compares the reference with the records.  `content` is that of the
    object's records, `shown` that of the records that the reference shows (None: it shows all)."""
    for fault in content.faults:
        yield "object_damaged", fault
    visible = content if shown is None else shown
    if reference.records != visible.records:
        what = f"records: the reference says {reference.records:,}, it shows {visible.records:,}"
        yield "statistics_lie", what
    if content.sums and reference.content and reference.content != content.sums:
        what = f"content: the reference says {reference.content.hex()}, the object has {content.sums.hex()}"
        yield "content_lies", what
    if content.strays:
        what = f"cluster: {counted(content.strays, 'record')} of another bucket than the reference says"
        yield "statistics_lie", what
    for lie in lying_columns(reference.columns, visible.columns):
        yield "statistics_lie", lie
