"""Finds the positions of an object's hidden records with the lake's own reader, and writes them as a file of
deletes.

It reads the object from its beginning, and only the columns that decide what is hidden: those of the key, of
conditions, and of delete markers.  Each record gets its position.  Then the references are clipped and the
tombstones applied as in a scan.  The records that do not remain are hidden.

The file of deletes has Iceberg's form: Parquet, with the object's location and a position in each row,
ascending.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.history import Reference
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import DELETED
from lake_core.store import Store
from log_lake.columns.arrays import Ints
from log_lake.combine.newest import without_markers
from log_lake.objects.read import DataObject, rows_below
from log_lake.publish.rules import ObjectRule
from log_lake.reading.deleted import Hiding, fields_of, needs_sequences
from log_lake.reading.merge.streams import ReferenceReading, read_reference
from log_lake.reading.revision import Revision
from log_lake.reading.scan import with_markers

POSITION = "_position"
"""The column of positions while an object is read.  No field that is read has this name."""

FILE_PATH_ID, POS_ID = 2147483546, 2147483545
"""The ids that Iceberg reserves for the two columns of a file of deletes."""

DELETES = pa.schema(
    [
        pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(id)})
        for name, kind, id in (("file_path", pa.string(), FILE_PATH_ID), ("pos", pa.int64(), POS_ID))
    ]
)


def hidden_positions(rule: ObjectRule, data: DataObject, revision: Revision, store: Store) -> Ints:
    """Returns the positions of an object's records that the rule hides, ascending.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    live = np.zeros(data.metadata.records, np.bool_)
    for reference, tombstones in zip(rule.references, rule.tombstones, strict=True):
        whole = KeyRange(data.metadata.low, data.metadata.high)
        if not tombstones and not rule.markers and data.inside(reference.key_range):
            return np.empty(0, np.int64)
        assert whole.high is not None
        all_of_it = msgspec.structs.replace(reference, low=whole.low, high=whole.high)
        upsert = revision.rule.kind == "upsert"
        first, hiding = 0, Hiding(tombstones, key=revision.key, has_markers=upsert)
        reading = _reading(revision, store, [all_of_it], fields_of(tombstones))
        has_sequence = needs_sequences(tombstones, [reference])
        for table in read_reference(all_of_it, reading, has_sequence=has_sequence):
            positions = pa.array(np.arange(first, first + table.num_rows))
            first += table.num_rows
            begin, end = _clipped(table, reference, revision)
            clipped = table.append_column(POSITION, positions).slice(begin, max(0, end - begin))
            left = hiding.left(clipped)
            shown = without_markers(left) if upsert else left
            live[shown.column(POSITION).to_numpy()] = True
    return np.flatnonzero(~live)


def _reading(
    revision: Revision, store: Store, references: list[Reference], conditions: tuple[str, ...]
) -> ReferenceReading:
    """Returns a reading of the columns that decide which records are live."""
    rule, schema = revision.rule, revision.stored_schema
    names = [*revision.key.names, *conditions, *([DELETED] if rule.kind == "upsert" else [])]
    columns = pa.schema([schema.field(name) for name in dict.fromkeys(names) if name in schema.names])
    return ReferenceReading(
        store,
        revision.config.id,
        revision.key,
        EVERYTHING,
        with_markers(columns, rule, conditions),
        limits=revision.limits,
        lifts=revision.lifts_of(references),
    )


def _clipped(table: pa.Table, reference: Reference, revision: Revision) -> tuple[int, int]:
    """Returns the positions of the reference's first record and of the first record after it, in a table of its
    object."""
    if not revision.key.fields:
        return 0, table.num_rows
    return (
        rows_below(table, reference.low, revision.key),
        rows_below(table, reference.high, revision.key),
    )


def deletes_file(location: str, positions: Ints) -> bytes:
    """Returns the bytes of the file that hides the records at these positions of the object at the location."""
    paths = pa.DictionaryArray.from_arrays(np.zeros(len(positions), np.int32), [location]).cast(pa.string())
    table = pa.table([paths, positions], schema=DELETES)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        DELETES,
        compression="zstd",
        use_dictionary=["file_path"],
        column_encoding={"pos": "DELTA_BINARY_PACKED"},
    ) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
