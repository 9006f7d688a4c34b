"""A table of dlt as one value, and the pool that it gets: its key and its kind.  Pure.

dlt describes a table by a dictionary of hints.  `table_of` reads those that matter here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlt.common.schema.typing import TTableSchema
from dlt.common.schema.utils import (
    get_columns_names_with_prop,
    get_first_column_name_with_prop,
    is_nested_table,
)

from lake_core.errors import InvalidInput
from lake_core.keys import KeyField, PoolKey
from lake_core.schemas.hidden import DELETED

KEY_HINT = "x-lake-key"
"""The hint of a table that has the key of its pool, as `lake_adapter` writes it."""

APPEND, REPLACE, MERGE = "append", "replace", "merge"
"""What dlt does with the records that a table has: keep them, replace all, replace those of the same keys."""

UNORDERED = ("json",)
"""The types of dlt whose values no key can have."""


@dataclass(frozen=True)
class PipelineTable:
    """A table of dlt.  A name of a column is "" if the table has no such column.

    `key`: the key that the user chose.  `row_id`: the column that identifies a record; `root_id` and
    `parent_id` identify the root record and the record directly above it.  `position`: the column with a
    record's place in the list. `hard_delete`: the column that says which records to delete; `deletes_if_true`:
    this column is boolean, otherwise any value means yes.  `required`: the columns that are never null, in the
    order of the schema.
    """

    name: str
    disposition: str
    is_nested: bool = False
    key: str = ""
    primary_key: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()
    row_id: str = ""
    root_id: str = ""
    parent_id: str = ""
    position: str = ""
    load_id: str = ""
    hard_delete: str = ""
    deletes_if_true: bool = False
    dedup_sort: str = ""
    required: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def table_of(prepared: TTableSchema, normalized: Callable[[str], str]) -> PipelineTable:
    """Reads the hints in dlt's description of a table, and returns them as a value; `normalized` spells a name as
    the schema does."""
    columns = prepared["columns"]

    def with_hint(hint: str) -> str:
        return get_first_column_name_with_prop(prepared, hint) or ""

    def named(name: str) -> str:
        return normalized(name) if normalized(name) in columns else ""

    hard_delete = with_hint("hard_delete")
    return PipelineTable(
        name=str(prepared["name"]),
        disposition=str(prepared["write_disposition"]),
        is_nested=is_nested_table(prepared),
        key=str(prepared.get(KEY_HINT) or ""),
        primary_key=tuple(get_columns_names_with_prop(prepared, "primary_key")),
        sorted_by=tuple(get_columns_names_with_prop(prepared, "sort")),
        row_id=with_hint("row_key") or named("_dlt_id"),
        root_id=with_hint("root_key"),
        parent_id=with_hint("parent_key"),
        position=named("_dlt_list_idx"),
        load_id=named("_dlt_load_id"),
        hard_delete=hard_delete,
        deletes_if_true=bool(hard_delete) and columns[hard_delete].get("data_type") == "bool",
        dedup_sort=with_hint("dedup_sort"),
        required=tuple(
            name
            for name, column in columns.items()
            if column.get("nullable") is False and column.get("data_type") not in UNORDERED
        ),
        columns=tuple(columns),
    )


@dataclass(frozen=True)
class PoolShape:
    """The key and the kind of a pool."""

    key: PoolKey
    kind: str


def shape_of(table: PipelineTable, normalized: Callable[[str], str]) -> PoolShape:
    """Returns the key and the kind of the pool that a table gets.

    Raises InvalidInput if no hint says which fields are the key, if a merge lacks fields to merge by, or if key
    and merge name different fields.
    """
    chosen = _chosen(table.key, normalized) if table.key else None
    if table.disposition != MERGE:
        return PoolShape(chosen or _of(*_names(table)), "append")
    identity = merged_by(table)
    if chosen is not None and set(chosen.names) != set(identity):
        raise InvalidInput(
            f"table {table.name!r}: the key {chosen} has other fields than {', '.join(identity)}, by which records "
            "are merged; give a key of these fields, in any order"
        )
    return PoolShape(chosen or _of(*identity), "upsert")


def merged_by(table: PipelineTable) -> tuple[str, ...]:
    """Returns the names of the fields by which a merge recognizes the same record.  Raises InvalidInput if the
    table has none."""
    if table.is_nested:
        if table.root_id and table.row_id:
            return (table.root_id, table.row_id)
        raise InvalidInput(
            f"table {table.name!r}: its records do not name the record that holds them; load the source anew with "
            "root_key=True"
        )
    if not table.primary_key:
        raise InvalidInput(
            f"table {table.name!r}: write_disposition='merge' needs a primary_key; give one, or use 'append'"
        )
    return table.primary_key


def check_merge(table: PipelineTable) -> None:
    """Raises InvalidInput if a merged table has the hint dedup_sort, which the lake does not support."""
    if table.disposition == MERGE and table.dedup_sort:
        raise InvalidInput(
            f"table {table.name!r}: dedup_sort on {table.dedup_sort!r} is not supported: of records with one "
            "primary key the last one of the load is kept; sort them in the resource, and leave the hint out"
        )


def check_shape(table: PipelineTable, there: PoolShape, *, pool: str, has_nested: bool) -> None:
    """Raises InvalidInput if a pool, which may be older than the table, cannot take the table's records."""
    if table.disposition == MERGE:
        identity = merged_by(table)
        if there.kind != "upsert" or set(there.key.names) != set(identity):
            raise InvalidInput(
                f"pool {pool!r} is of kind {there.kind} with the key {there.key}, and table {table.name!r} is "
                f"merged by {', '.join(identity)}, which needs an upsert pool of these fields; load once with "
                "refresh='drop_resources'"
            )
    if there.kind != "upsert":
        return
    if DELETED in table.columns and table.hard_delete != DELETED:
        raise InvalidInput(
            f"table {table.name!r}: a column {DELETED!r} deletes records in an upsert pool; give it the hint "
            "hard_delete if it is meant so, otherwise another name"
        )
    if table.disposition == APPEND:
        raise InvalidInput(
            f"pool {pool!r} keeps one record of each key, and write_disposition='append' of table {table.name!r} "
            "keeps all; use 'merge', or load once with refresh='drop_resources'"
        )
    if table.disposition == REPLACE and has_nested:
        raise InvalidInput(
            f"table {table.name!r} was merged: a replace would give its records other ids, and a later merge would "
            "keep their nested records; load with refresh='drop_resources' instead"
        )


def _names(table: PipelineTable) -> tuple[str, ...]:
    """Returns the fields of the key if the user chose none."""
    if table.is_nested:
        ancestor = table.root_id or table.parent_id
        return tuple(filter(None, (ancestor, table.parent_id, table.position)))
    if names := table.sorted_by or table.primary_key or ((table.load_id,) if table.load_id else ()):
        return names
    if table.required:
        return table.required[:1]
    raise InvalidInput(
        f"table {table.name!r}: a pool needs a key, and no column is a primary key or never null; give one with "
        "lake_adapter(resource, key=...), or set NORMALIZE__PARQUET_NORMALIZER__ADD_DLT_LOAD_ID=true"
    )


def _chosen(text: str, normalized: Callable[[str], str]) -> PoolKey:
    """Returns the key that a user wrote, with the names as the schema spells them."""
    fields = PoolKey.parse(text).fields
    return PoolKey(tuple(KeyField(normalized(field.name), field.descending) for field in fields))


def _of(*names: str) -> PoolKey:
    return PoolKey(tuple(KeyField(name) for name in dict.fromkeys(names)))
