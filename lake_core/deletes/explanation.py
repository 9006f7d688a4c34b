"""Why a key reads as it does: every stored version of it, from old to new, and what became of each.

    visible      part of the answer                    combined     part of the one record of the key
    deleted      a tombstone covers it                  superseded   a newer version decides (upsert)
    marker       it says that the key is deleted (upsert)

Reads what overlaps the key in each reference, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import pyarrow as pa

from lake_core.combine import Rule
from lake_core.combine.hidden import DELETED, ORDER, PLACE, SEQ
from lake_core.commits import Reference
from lake_core.commits.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.columns import key_at
from lake_core.records.transactions import PLACES
from lake_core.scan.covered import uncovered
from lake_core.scan.streams import Reading, read_reference
from lake_core.store import Store
from lake_core.values.typed_json import json_lines

MOST_VERSIONS = 10_000
"""Versions that are looked at: a prefix of a key may name a whole pool."""


@dataclass(frozen=True)
class Version:
    """One stored record, as JSON for people; `by` is the tombstone, or the transaction, that decides.

    `deletes`: it is a delete marker.
    """

    key: bytes
    seq: int
    place: int
    object: str
    record: str
    deletes: bool = False
    fate: str = "visible"
    by: str = ""

    @property
    def transaction(self) -> int:
        """The entry of the transaction that wrote it."""
        return self.seq // PLACES

    @property
    def age(self) -> tuple[bytes, int, int]:
        """By key, then from old to new."""
        return self.key, self.seq, self.place


def explain(
    references: Sequence[Reference],
    tombstones: Sequence[Tombstone],
    store: Store,
    *,
    pool: str,
    span: KeyRange,
    key: PoolKey,
    rule: Rule,
    schema: pa.Schema,
) -> list[Version]:
    """The versions of the keys in the range, at most `MOST_VERSIONS`; `tombstones` and `references` overlap it.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    reading = Reading(store, pool, key, span, schema)
    found: list[Version] = []
    for reference in references:
        for table in read_reference(reference, reading, ordered=True):
            for row in range(min(table.num_rows, MOST_VERSIONS - len(found))):
                found.append(_version(table.slice(row, 1), reference, tombstones, key=key))
    ordered = sorted(found, key=lambda v: v.age)
    if rule.kind == "upsert":
        return [_in_upsert(v, after) for v, after in zip_longest(ordered, ordered[1:])]
    if rule.kind == "aggregate":
        return [replace(v, fate="combined") if v.fate == "visible" else v for v in ordered]
    return ordered


def _version(
    row: pa.Table, reference: Reference, tombstones: Sequence[Tombstone], *, key: PoolKey
) -> Version:
    version = Version(
        key_at(row, 0, key),
        row[SEQ][0].as_py(),
        row[PLACE][0].as_py(),
        reference.object,
        json_lines(row.drop_columns(ORDER.names))[0].as_py(),
        DELETED in row.schema.names and row[DELETED][0].as_py() is True,
    )
    for tombstone in tombstones:
        if not any(t.num_rows for t in uncovered([row], [tombstone], key=key, marks=False)):
            return replace(version, fate="deleted", by=tombstone.id)
    return version


def _in_upsert(version: Version, after: Version | None) -> Version:
    if after is not None and after.key == version.key and version.fate == "visible":
        return replace(version, fate="superseded", by=str(after.transaction))
    if version.fate == "visible" and version.deletes:
        return replace(version, fate="marker")
    return version
