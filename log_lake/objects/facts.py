"""Reads the facts of one data object, its footer and its content, from which other rooms decide.

`read_facts` reads the footer, which has its own checksum.  `read_content` reads every byte and every record of
a key range.  It checks the checksums of blocks and pages, the order of the records, and the statistics that the
catalog should have.  Both read the store as it is now, not a cache.

Called by `repair.check_objects`, which compares the facts with references, and by `repair.rebuild`, which makes
references from them.
"""

from __future__ import annotations

from itertools import accumulate

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.keys.spec import ARRIVAL
from lake_core.records.column import Bucket, Column
from lake_core.schemas.hidden import ORDINAL, SEQ, user_fields
from lake_core.schemas.schema import schema_id
from log_lake.columns.keys import key_at, keys_at, sort_order
from log_lake.content.content import ObjectSums
from log_lake.indexes.cluster import strays
from log_lake.objects.failures import reading
from log_lake.objects.metadata import ObjectMetadata
from log_lake.objects.read import DataObject
from log_lake.objects.statistics import LONGEST_BOUND, column_statistics, unite_statistics

NOT_CUT = 1 << 40
"""A length, in bytes, that no bound reaches: statistics that are made with it have whole bounds."""


class ObjectFacts(msgspec.Struct, frozen=True):
    """An object's footer, and the size of its file in bytes.  `schema_id` is computed from the footer's
    fields."""

    size: int
    metadata: ObjectMetadata
    schema_id: str


class Content(msgspec.Struct, frozen=True):
    """What was found in the records of an object in a key range.

    `low` and `last` are the first and the last key, or b"" without records.  `columns` are the statistics, with
    exact bounds, or with bounds shortened like those in the catalog.  `sequences` are all sequences of the
    records, ascending. `faults` say what is wrong inside the object.  `sums` are the sums of the records, as a
    reference stores them; b"" if the caller did not ask for them.  `strays`: how many records are not in the bucket
    that the caller named.
    """

    records: int
    low: bytes
    last: bytes
    columns: tuple[Column, ...]
    sequences: tuple[int, ...]
    faults: tuple[str, ...]
    sums: bytes = b""
    strays: int = 0


def key_of(footer: ObjectMetadata) -> PoolKey:
    """Returns the key by which the footer says that the object is sorted.  Raises InvalidInput if it is not a
    valid key."""
    return PoolKey.of_footer(footer.key) if footer.key else ARRIVAL


def read_facts(data: DataObject) -> ObjectFacts:
    """Reads and returns the facts in the footer.  Raises Corrupt, Unavailable."""
    return ObjectFacts(data.size, data.metadata, schema_id(user_fields(data.written_schema)))


def read_content(
    data: DataObject,
    *,
    key: PoolKey,
    key_range: KeyRange = EVERYTHING,
    cut: bool = False,
    sums: bool = False,
    stated: tuple[str, Bucket] | None = None,
) -> Content:
    """Reads and checks all records in the key range.  With `cut`, long bounds in the statistics are shortened, as
    the catalog stores them.

    With `sums` it also computes the sums of the records' content and ages.  `stated`: the bucket that all records
    should have.

    Raises Corrupt if bytes or pages are damaged, and Unavailable.
    """
    data.check_bytes()
    told = data.metadata
    whole = key_range == EVERYTHING
    firsts = [0, *accumulate(data.group_rows)] if whole else []
    records, low, last = 0, b"", b""
    before: tuple[bytes, int, int] | None = None
    columns: tuple[Column, ...] = ()
    seqs: set[int] = set()
    faults: dict[str, None] = {}
    added, outside = ObjectSums(), 0
    with reading(data.name):
        for batch in data.batches(key_range, key=key, columns=None):
            table = pa.Table.from_batches([batch])
            first, end = _order(table, 0, key), _order(table, table.num_rows - 1, key)
            if (before is not None and first < before) or not _in_order(table, key):
                faults["the records are out of order"] = None
            for group in range(len(told.groups) if whole else 0):
                row = firsts[group] - records
                if 0 <= row < table.num_rows and keys_at(table, [row], key)[0] != told.groups[group]:
                    faults["the first keys of its row groups are others"] = None
            low, last, before = (low if records else first[0]), end[0], end
            statistics = column_statistics(
                table.select(user_fields(table.schema).names), longest=LONGEST_BOUND if cut else NOT_CUT
            )
            columns = unite_statistics(columns, statistics)
            if SEQ in table.schema.names:
                seqs.update(pc.unique(table.column(SEQ)).to_pylist())
            if sums:
                added.add(table)
            outside += strays(table, stated)
            records += table.num_rows
    sequences = tuple(sorted(seqs))
    if whole:
        for what, footer_value, read in (
            ("records", told.records, records),
            ("first key", told.low, low),
            ("end of its keys", told.high, last + b"\0"),
            (
                "oldest and newest sequence",
                (told.first_seq, told.last_seq),
                (*sequences[:1], *sequences[-1:]) or (None, None),
            ),
        ):
            if footer_value != read:
                faults[f"the footer says another {what} than the records have"] = None
    packed = added.packed if sums else b""
    return Content(records, low, last, columns, sequences, tuple(faults), packed, outside)


def _order(table: pa.Table, row: int, key: PoolKey) -> tuple[bytes, int, int]:
    """Returns the values by which the record is ordered within its object: key, sequence and ordinal."""
    if SEQ not in table.schema.names:
        return key_at(table, row, key), 0, 0
    return key_at(table, row, key), table.column(SEQ)[row].as_py(), table.column(ORDINAL)[row].as_py()


def _in_order(table: pa.Table, key: PoolKey) -> bool:
    then = (
        tuple(table.column(name).to_numpy().astype(np.uint64) for name in (SEQ, ORDINAL))
        if SEQ in table.schema.names
        else ()
    )
    return sort_order(table, key, then=then) is None
