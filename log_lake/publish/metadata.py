"""The metadata of a published table: pyiceberg's own class, with one snapshot.

A table keeps its id, the ids of its columns and its sort orders from publication to publication.  It has only
the newest snapshot: no tag keeps the objects of older ones, so a vacuum may delete them.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV2
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import MetadataLogEntry, Operation, Snapshot, SnapshotLogEntry, Summary
from pyiceberg.table.sorting import SortOrder

from log_lake.publish.names import TableNames
from log_lake.publish.published import NAME_MAPPING, READ_ONLY
from log_lake.publish.schema import ids_of, name_mapping, names_inside, sort_order, table_schema

MAX_LOG = 100
"""Earlier metadata files that the newest one names; also the number of schemas that it keeps."""


def parsed(text: bytes) -> TableMetadataV2:
    """Decodes the metadata of a table."""
    metadata: TableMetadataV2 = TableMetadataUtil.parse_raw(text.decode())
    return metadata


def current_snapshot(metadata: TableMetadataV2) -> Snapshot:
    """Returns the only snapshot of a published table."""
    (snapshot,) = metadata.snapshots
    return snapshot


@dataclass(frozen=True)
class Layout:
    """The columns and the sort order of a table, together with earlier ones."""

    schema: Schema
    schemas: tuple[Schema, ...]
    mapping: str
    last_id: int
    order: SortOrder
    orders: tuple[SortOrder, ...]
    names: TableNames

    @cached_property
    def inside(self) -> frozenset[str]:
        """The names that readers use for fields inside records, lists and maps."""
        return names_inside(self.mapping)


def layout_of(
    before: TableMetadataV2 | None,
    columns: pa.Schema,
    names: TableNames,
    *,
    stored: Iterable[pa.Schema],
    texts: Collection[str] = (),
) -> Layout:
    """Returns the layout of a table with these fields of a pool, over objects with the schemas `stored`; both have
    stored names.

    `before` is the metadata of the previous table; `texts` are fields that have another order in the table.
    """
    schemas = [] if before is None else list(before.schemas)
    orders = [SortOrder(order_id=0)] if before is None else list(before.sort_orders)
    newest_last = sorted(
        schemas, key=lambda s: before is not None and s.schema_id == before.current_schema_id
    )
    mapping = "" if before is None else before.properties[NAME_MAPPING]
    ids = ids_of(newest_last, mapping, 0 if before is None else before.last_column_id, names)
    schema = table_schema(columns, ids, names, schema_id=max((s.schema_id for s in schemas), default=-1) + 1)
    equal = next((s for s in schemas if s.fields == schema.fields), None)
    if equal is None:
        schemas = [*schemas, schema][-MAX_LOG:]
    mapping = name_mapping(stored, ids, names)
    order = sort_order(names, equal or schema, before=orders, texts=texts)
    orders = orders if order in orders else [*orders, order]
    return Layout(equal or schema, tuple(schemas), mapping, ids.last, order, tuple(orders), names)


def is_promoted(before: TableMetadataV2, layout: Layout) -> bool:
    """Whether a column got a wider type, so that bounds that were written for the narrower type no longer
    fit."""
    earlier = _types(before.schema())
    return any(earlier.get(id, kind) != kind for id, kind in _types(layout.schema).items())


def lost_names(before: TableMetadataV2, layout: Layout) -> frozenset[str]:
    """Returns the key fields whose names are now names of fields inside records."""
    lost = layout.inside - names_inside(before.properties[NAME_MAPPING])
    return lost.intersection(layout.names.key.names)


def _types(schema: Schema) -> dict[int, str]:
    return {id: str(schema.find_type(id)) for id in schema.field_ids if schema.find_type(id).is_primitive}


def table_metadata(
    before: TableMetadataV2 | None,
    layout: Layout,
    *,
    location: str,
    earlier: str,
    snapshot_id: int,
    manifest_list: str,
    summary: Mapping[str, str],
    properties: Mapping[str, str],
    now: float,
    shown: float,
) -> bytes:
    """Returns the metadata of the next table.

    `earlier` is the location of the previous metadata.  `now` is in seconds since 1970.  So is `shown`, the
    time of the version that the table shows, which becomes the time of the snapshot.  It cannot be `now`:
    DuckDB reads only snapshots older than its own transaction, and a catalog publishes while one runs (decision
    344).
    """
    of_snapshot = round(shown * 1_000_000) // 1000
    time = max(int(now * 1000), of_snapshot, 0 if before is None else before.last_updated_ms)
    log: list[MetadataLogEntry] = []
    if before is not None:
        newest = MetadataLogEntry(metadata_file=earlier, timestamp_ms=before.last_updated_ms)
        log = [*before.metadata_log, newest]
    sequence = next_sequence(before)
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        sequence_number=sequence,
        timestamp_ms=of_snapshot,
        manifest_list=manifest_list,
        summary=Summary(Operation.OVERWRITE, **summary),
        schema_id=layout.schema.schema_id,
    )
    metadata = TableMetadataV2(
        location=location,
        table_uuid=_table_id(location) if before is None else before.table_uuid,
        last_updated_ms=time,
        last_column_id=layout.last_id,
        schemas=list(layout.schemas),
        current_schema_id=layout.schema.schema_id,
        partition_specs=[UNPARTITIONED_PARTITION_SPEC],
        default_spec_id=0,
        last_partition_id=999,
        properties={NAME_MAPPING: layout.mapping, **READ_ONLY, **properties},
        current_snapshot_id=snapshot_id,
        snapshots=[snapshot],
        snapshot_log=[SnapshotLogEntry(snapshot_id=snapshot_id, timestamp_ms=of_snapshot)],
        metadata_log=log[-MAX_LOG:],
        sort_orders=list(layout.orders),
        default_sort_order_id=layout.order.order_id,
        refs={"main": SnapshotRef(snapshot_id=snapshot_id, snapshot_ref_type=SnapshotRefType.BRANCH)},
        last_sequence_number=sequence,
    )
    text: str = metadata.model_dump_json()
    return text.encode()


def next_sequence(before: TableMetadataV2 | None) -> int:
    """Returns the sequence number of the next snapshot."""
    return 1 if before is None else before.last_sequence_number + 1


def _table_id(location: str) -> uuid.UUID:
    """Returns the id of a new table, computed from its location, so that two first publishers give it the
    same id."""
    return uuid.UUID(bytes=hashlib.sha256(location.encode()).digest()[:16], version=4)
