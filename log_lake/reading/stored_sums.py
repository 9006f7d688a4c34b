"""The content of a revision (its number of records and their content sum) by the stored sums of its references,
without reading objects."""

from __future__ import annotations

from lake_core.naming import NOKEY
from lake_core.records.sums import unpacked_sums
from log_lake.content.content import ContentSum
from log_lake.reading.covers import Covering
from log_lake.reading.revision import Revision

QUOTED_REFERENCES = 10_000
"""The most references of a pool whose sum other commands quote, because the references are visited one by
one."""


def stored_content(revision: Revision) -> ContentSum | None:
    """Returns the number and the content sum of the records of an append pool, or of a sub-pool, by the sums of
    its references alone.

    Returns None in other pools, if a reference has no sum, or if a delete or a filter may hide a record.
    Returns None too if a field was renamed or dropped, because the sums have stored names.
    """
    if not revision.rule.keeps_all or revision.names:
        return None
    covering = Covering([*revision.tombstones, *revision.filters], revision.state.schema)
    total = ContentSum()
    for reference in revision.references:
        if not reference.content or covering.of(reference).tombstones:
            return None
        total += ContentSum(reference.records, unpacked_sums(reference.content)[0])
    return total


def quoted_content(revision: Revision) -> str:
    """Returns what `lake verify` prints of the pool, for the answers of other commands; "" if that would mean
    reading objects, or if the pool has many references."""
    parts = [revision.of_sub_pool(""), revision.of_sub_pool(NOKEY)]
    if sum(part.snapshot.totals(part.sub_pool).references for part in parts) > QUOTED_REFERENCES:
        return ""
    contents = [stored_content(part) for part in parts]
    told = [content for content in contents if content is not None]
    return str(sum(told, ContentSum())) if len(told) == len(contents) else ""
