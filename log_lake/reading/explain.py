"""Explains what a read of a key returns: every stored version of it, oldest first, and what happens to each.

    visible      part of the answer                    combined     part of the one record of the key
    deleted      a tombstone hides it                  superseded   a newer version replaces it (upsert)
    marker       it marks the key as deleted (upsert)

From each reference, only the part that overlaps the key is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.records.transactions import MAX_TRANSACTIONS
from lake_core.schemas.hidden import DELETED, ORDER, ORDINAL, SEQ
from lake_core.store import Store
from log_lake.columns.json_text import json_lines
from log_lake.columns.keys import key_at
from log_lake.fields.names import FieldNames
from log_lake.reading.deleted import apply_tombstones
from log_lake.reading.merge.streams import ReferenceReading, read_reference
from log_lake.reading.revision import Revision

MAX_STORED_RECORDS = 10_000
"""How many versions are read at most, because a prefix of a key may name a whole pool."""


@dataclass(frozen=True)
class StoredRecord:
    """One stored version of a record, as JSON for people, and what becomes of it.  `by` is the tombstone or the
    transaction that decides this.

    `deletes`: it is a delete marker.  `overtaken`: a replace overtook it, so it counts as never written.
    """

    key: bytes
    seq: int
    ordinal: int
    object: str
    record: str
    deletes: bool = False
    overtaken: bool = False
    fate: str = "visible"
    by: str = ""

    @property
    def transaction_version(self) -> int:
        """The version of the transaction that wrote it."""
        return self.seq // MAX_TRANSACTIONS

    @property
    def age(self) -> tuple[bytes, int, int]:
        """The key by which stored versions are sorted: first by the record's key, then from old to new."""
        return self.key, self.seq, self.ordinal


def explain(
    revision: Revision, store: Store, key_range: KeyRange, references: Sequence[Reference]
) -> list[StoredRecord]:
    """Returns the stored versions of the keys in the range, at most `MAX_STORED_RECORDS`.  `references` must be
    those that overlap the range.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    key, rule = revision.key, revision.rule
    lifts = revision.lifts_of(references)
    reading = ReferenceReading(store, revision.config.id, key, key_range, revision.stored_schema, lifts=lifts)
    tombstones = [t for t in (*revision.tombstones, *revision.filters) if t.key_range.overlaps(key_range)]
    versions: list[StoredRecord] = []
    for reference in references:
        for table in read_reference(reference, reading, has_sequence=True):
            for row in range(min(table.num_rows, MAX_STORED_RECORDS - len(versions))):
                one = _version(table.slice(row, 1), reference, tombstones, key=key, names=revision.names)
                versions.append(one)
    by_age = sorted(versions, key=lambda v: v.age)
    if rule.kind == "upsert":
        return _in_upsert(by_age)
    if rule.kind == "aggregate":
        return [replace(v, fate="combined") if v.fate == "visible" else v for v in by_age]
    return by_age


def _version(
    row: pa.Table,
    reference: Reference,
    tombstones: Sequence[Tombstone],
    *,
    key: PoolKey,
    names: FieldNames,
) -> StoredRecord:
    version = StoredRecord(
        key_at(row, 0, key),
        row[SEQ][0].as_py(),
        row[ORDINAL][0].as_py(),
        reference.object,
        json_lines(names.shown_table(row.drop_columns(ORDER.names)))[0].as_py(),
        DELETED in row.schema.names and row[DELETED][0].as_py() is True,
    )
    for tombstone in tombstones:
        if not any(t.num_rows for t in apply_tombstones([row], [tombstone], key=key, has_markers=False)):
            is_overtaken = tombstone.exactly is not None and tombstone.upto is None
            return replace(version, fate="deleted", by=tombstone.id, overtaken=is_overtaken)
    return version


def _in_upsert(by_age: Sequence[StoredRecord]) -> list[StoredRecord]:
    """Returns the versions with what happens to each: one is superseded by the next one of its key that was not
    overtaken, even if that one is deleted."""
    versions: list[StoredRecord] = []
    after: StoredRecord | None = None
    for version in reversed(by_age):
        fate, by = version.fate, version.by
        if version.fate == "visible" and after is not None and after.key == version.key:
            fate, by = "superseded", str(after.transaction_version)
        elif version.fate == "visible" and version.deletes:
            fate = "marker"
        versions.append(replace(version, fate=fate, by=by))
        if not version.overtaken:
            after = version
    return versions[::-1]
