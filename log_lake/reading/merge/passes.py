"""Decides which streams a merge has: one for each object, or one for a group of small ones.

Tiny objects that follow each other by age become one stream (`together`).  Very many small objects are merged
in two passes: first groups of them into runs on disk, then the runs.

If a thousand streams are open at once, each has room for a batch of only a few records, and a merge spends its
time on batches instead of records.  So small objects are merged in groups, each into one run in the merge's
`Spool`.  Then the runs are merged with the remaining objects.  Every record of a group is written once more, to
a local file.

The objects of a group follow each other by age, and no other object lies between them.  So if two records have
one key, the older record is always in the older run.  Called by `scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lake_core.history import Reference
from log_lake.objects.merge import ClosedStream
from log_lake.objects.spool import Spool, SpooledBatch
from log_lake.objects.weight import Sizes
from log_lake.reading.limits import ScanLimits
from log_lake.reading.merge.together import LEAST, tiny_runs

MergeReferences = Callable[[Sequence[Reference]], Iterator[pa.Table]]
"""A function that yields the records of some references in order."""


@dataclass
class Group:
    """References that follow each other by age and become one stream.  `at_once`: they are tiny, so one sort
    orders their records."""

    references: list[Reference]
    at_once: bool = False


def groups(cluster: Sequence[Reference], limits: ScanLimits) -> list[Group]:
    """Returns the references by age, in groups: tiny ones that follow each other share a group.

    If there would be more than `limits.max_streams` streams, small ones share groups too.
    """
    by_age = sorted(cluster, key=lambda r: (r.first_seq, r.seq, r.ordinal))
    parts = [
        group
        for run in tiny_runs(by_age, limits)
        for group in ([Group(run, at_once=True)] if len(run) >= LEAST else [Group([r]) for r in run])
    ]
    if len(parts) <= limits.max_streams:
        return parts
    streams: list[Group] = []
    for part in parts:
        last = streams[-1] if streams else part
        if (
            last is not part
            and not (part.at_once or last.at_once)
            and len(last.references) < limits.max_group
            and _are_small((last.references[-1], *part.references), limits)
        ):
            last.references += part.references
        else:
            streams.append(part)
    return streams


def _are_small(references: Sequence[Reference], limits: ScanLimits) -> bool:
    return all(r.size <= limits.max_small_bytes for r in references)


def run(
    group: Sequence[Reference], merge: MergeReferences, *, spool: Spool, batch_bytes: int, has_sequence: bool
) -> ClosedStream:
    """Merges a group into a run on disk, and returns it as one stream.  Raises Unavailable, and what `merge`
    raises."""
    pieces: list[SpooledBatch] = []
    schema: pa.Schema | None = None
    for table in merge(group):
        schema = table.schema
        rows = max(1, int(batch_bytes // Sizes.of(schema).record(table)))
        for start in range(0, table.num_rows, rows):
            part = table.slice(start, rows).combine_chunks()
            pieces += [spool.put(batch) for batch in part.to_batches()]

    def read() -> Iterator[pa.Table]:
        for piece in pieces:
            yield pa.Table.from_batches([spool.take(piece, schema)])

    oldest = group[0]
    return ClosedStream(min(r.low for r in group), oldest.seq, oldest.ordinal, read, has_sequence)
