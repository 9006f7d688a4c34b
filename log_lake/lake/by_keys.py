"""Deletes or replaces records that are named by their keys.  Called by `Branch`, and by Spark.

In an upsert pool both are loads: a record replaces earlier ones of its key by itself, and a delete marker hides
them.  So the number of keys is unlimited.  In append and aggregate pools both are one tombstone whose condition
names the keys (`where.of_keys`), which limits their number; new records come in the same transaction, as in
every replace.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import from_array, key_class
from lake_core.schemas.hidden import DELETED
from log_lake.lake.deletes import delete
from log_lake.lake.line import Line
from log_lake.lake.loads import append_blocks
from log_lake.lake.replaces import replace_by_blocks
from log_lake.lake.results import DeleteResult, LoadResult
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from log_lake.loading.key_paths import with_key_paths
from log_lake.loading.roll_up import rolled
from log_lake.texts.floor import floor
from log_lake.where.of_keys import check_keys, of_keys


def delete_keys(branch: Line, keys: pa.Table, write: WriteArguments) -> DeleteResult | LoadResult:
    """Deletes the records of the keys, as `Branch.delete_keys` says."""
    keys = rolled(with_key_paths(keys, branch.key.names, {}).table, branch.settings["roll_up"])
    if branch.rule.kind == "upsert":
        check_keys(keys, branch.key)
        fields = key_fields(branch)
        markers = as_markers(in_types(keys, fields)) if fields is not None else None
        if not markers:
            return DeleteResult(None)
        return append_blocks(branch, [Block(markers)], write)
    condition = of_keys(keys, branch.key)
    if condition is None:
        return DeleteResult(None)
    return delete(branch, replace(write, where=condition))


def key_fields(branch: Line) -> pa.Schema | None:
    """Returns the key fields in the types that the records have; None if the pool has no records, and so nothing
    to delete."""
    schema = branch.revision().schema
    if any(name not in schema.names for name in branch.key.names):
        return None
    return pa.schema([schema.field(name) for name in branch.key.names])


def in_types(keys: pa.Table, fields: pa.Schema) -> pa.Table:
    """Returns the keys in these types. Leaves out keys that the types cannot hold, because no record has them.

    The keys become delete markers. Since these have the pool's own types, a marker never changes the type that
    a field has for readers. Raises InvalidInput for a field of another class.
    """
    columns: list[pa.Array] = []
    kept = pa.repeat(pa.scalar(True), keys.num_rows)
    for field in fields:
        array, holds = _in_type(keys.column(field.name).combine_chunks(), field)
        columns.append(array)
        kept = pc.and_(kept, holds)
    return pa.Table.from_arrays(
        columns, schema=pa.schema([field.with_nullable(True) for field in fields])
    ).filter(kept)


def as_markers(keys: pa.Table) -> pa.Table:
    """Returns a table with a delete marker for each key."""
    return keys.append_column(DELETED, pa.repeat(pa.scalar(True), keys.num_rows))


def _in_type(column: pa.Array, field: pa.Field) -> tuple[pa.Array, pa.Array]:
    """Returns the column in the field's type, and for each value whether that type holds it."""
    every = pa.repeat(pa.scalar(True), len(column))
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), field.type), every
    here, there = key_class(column.type), key_class(field.type)
    if here != there and {here, there} != {"number", "decimal"}:
        raise InvalidInput(
            f"key field {field.name!r}: a {here} in the keys, a {there} in the records of the pool; cast the keys"
        )
    if not pa.types.is_float32(field.type):  # for floats Arrow takes the nearest number
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return column.cast(field.type), every
    values = from_array(column)
    floors = [None if value is None else floor(value, field.type) for value in values]
    exact = [one[0] if one is not None and one[1] else None for one in floors]
    holds = [value is None or one is not None for value, one in zip(values, exact, strict=True)]
    return pa.array(exact, field.type), pa.array(holds, pa.bool_())


def replace_keys(branch: Line, records: pa.Table, write: WriteArguments, *, deleted: str) -> LoadResult:
    """Replaces the records of the keys of `records`, as `Branch.replace_keys` says."""
    records = rolled(with_key_paths(records, branch.key.names, {}).table, branch.settings["roll_up"])
    if deleted and (
        deleted not in records.schema.names or not pa.types.is_boolean(records.schema.field(deleted).type)
    ):
        raise InvalidInput(f"deleted={deleted!r}: the records have no boolean column of that name")
    if branch.rule.kind == "upsert":
        check_keys(records, branch.key)
        if deleted:
            names = [DELETED if name == deleted else name for name in records.schema.names]
            records = records.rename_columns(names)
        return append_blocks(branch, [Block(records)], write)
    condition = of_keys(records, branch.key)
    if condition is None:
        return LoadResult(None)
    if deleted:
        flags = pc.fill_null(records.column(deleted), False)
        records = records.filter(pc.invert(flags)).drop_columns([deleted])
    if not records.num_rows and not branch.revision().references:
        return LoadResult(None)  # nothing to delete, and no record that tells the types of the key
    return replace_by_blocks(branch, [Block(records)], replace(write, where=condition), narrow=True)
