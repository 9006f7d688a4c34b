"""The records of a view as a table: with their fields united, or by their own types.

    "logs"             `United`: the fields of all records united
    "logs:typed"       `Typed`: the same, and `_type`, the type of each record as text
    "logs:values"      `RecordsByType`: the fields of the key, `_type`, and `value`, the record as JSON
    "logs:type:ID"     `OfType`: the records of one type, with its own fields and types

`types_of` lists the types; the first digits of an ID are enough.  Records have types in pools with format=zng or
zst (`hidden.ROW`); for other pools the last three raise InvalidInput.  SQL reads them, and so does the Spark
data source, which pickles them for its tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput, NotFound
from lake_core.schemas.hidden import ROW, TYPE, user_fields
from lake_core.values.types import json_field
from log_lake.columns.json_text import typed
from log_lake.lake.view import View
from log_lake.objects.containers.rows import rows_of_table, table_of, type_of
from log_lake.objects.normalize import normalized
from log_lake.reading.plan import ScanPlan, plan_scan
from log_lake.reading.scan import result_schema
from log_lake.zng.rows import Rows
from log_lake.zng.slices import made
from log_lake.zng.text import type_text
from log_lake.zng.to_arrow import record_batch
from log_lake.zng.types import Named, Type

ID_DIGITS = 12
"""Digits of a type's digest that lists show."""


class Records(Protocol):
    """How the records of a view are shown as a table, whose columns are `schema`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, in their stored types."""
        ...

    def plan(self, view: View, columns: Sequence[str], **options: Any) -> ScanPlan:
        """Returns the plan of a scan for these columns; `options` are those of `View.plan`."""
        ...

    def shown(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Turns the records of such a scan into a table with these columns."""
        ...


@dataclass(frozen=True)
class United:
    """A view's records with the fields of all records united."""

    schema: pa.Schema

    def plan(self, view: View, columns: Sequence[str], **options: Any) -> ScanPlan:
        """Returns the plan of a scan for the columns."""
        return view.plan(columns=list(columns), **options)

    def shown(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Returns the records unchanged: the scan already has the right columns."""
        return table


@dataclass(frozen=True)
class Typed:
    """A view's records with the fields of all records united, followed by the type of each record as text.  `type`
    is the name of the column with the types."""

    schema: pa.Schema
    type: str

    def plan(self, view: View, columns: Sequence[str], **options: Any) -> ScanPlan:
        """Returns the plan of a scan for the columns, and for the types if the columns include them."""
        fields = [name for name in columns if name != self.type]
        return view.plan(columns=fields, keep=(TYPE,) if self.type in columns else (), **options)

    def shown(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Returns the records, and a column with their types if it is wanted."""
        if self.type not in columns:
            return table
        return table.append_column(self.type, _texts(table.column(TYPE))).select(list(columns))


@dataclass(frozen=True)
class RecordsByType:
    """A view's records with three kinds of columns: the fields of the key, the type of each record as text, and
    the record as JSON."""

    schema: pa.Schema
    fields: tuple[str, ...]
    """All fields of the pool's records, from which the JSON is made."""

    def plan(self, view: View, columns: Sequence[str], **options: Any) -> ScanPlan:
        """Returns the plan of a scan for the columns.

        If they include the record as JSON, the scan reads all fields, from which the JSON is made.  Otherwise it
        reads only those fields of the key that are among the columns."""
        names = self.schema.names
        fields = self.fields if names[-1] in columns else [name for name in columns if name in names[:-2]]
        return view.plan(columns=list(fields), keep=(TYPE,) if names[-2] in columns else (), **options)

    def shown(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Returns the records in these columns, with their JSON and types if these are wanted."""
        kind, value = self.schema.names[-2:]
        if value in columns:
            records = pa.chunked_array([table.select(self.fields).to_struct_array().combine_chunks()])
            texts = typed(records, pa.field(value, records.type))
        # of the fields only those of the key: another may be called as one of the two
        shown = table.select([name for name in columns if name not in (kind, value)])
        if kind in columns:
            shown = shown.append_column(kind, _texts(table.column(TYPE)))
        if value in columns:
            shown = shown.append_column(self.schema.field(value), texts)
        return shown.select(list(columns))


@dataclass(frozen=True)
class OfType:
    """The records of a view that have one type; `digest` is how the column `hidden.TYPE` names this type."""

    schema: pa.Schema
    digest: bytes

    def plan(self, view: View, columns: Sequence[str], **options: Any) -> ScanPlan:
        """Returns the plan of a scan for the records with the fields and types of their own."""
        return view.plan(columns=[], keep=ROW.names, **options)

    def shown(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Returns these columns of those records that have the type."""
        mine = table.filter(pc.equal(table.column(TYPE), pa.scalar(self.digest)))
        schema = pa.schema([self.schema.field(name) for name in columns])
        return table_of(rows_of_table(mine), schema, what="the pool")


@dataclass(frozen=True)
class TypeCount:
    """A type of records, and how many records of a view have it."""

    digest: bytes
    records: int

    @property
    def id(self) -> str:
        """The ID of the type, as in the name `"POOL:type:ID"`."""
        return self.digest.hex()[:ID_DIGITS]

    @property
    def kind(self) -> Type:
        """The type itself, as a value."""
        return type_of(self.digest)

    @property
    def name(self) -> str:
        """The name of the type if it has one, otherwise ""."""
        return self.kind.name if isinstance(self.kind, Named) else ""

    @property
    def text(self) -> str:
        """The type as ZSON writes it."""
        return type_text(self.kind)


def types_of(view: View) -> list[TypeCount]:
    """Returns the types of the view's records, the most frequent first.  Reads all records; raises what a scan
    raises."""
    plan = view.plan(columns=[], keep=(TYPE,))
    _check_kept(view, plan)
    counts: Counter[bytes] = Counter()
    for table in view.run(plan) if plan.references else ():
        for entry in table.column(TYPE).value_counts().to_pylist():
            counts[entry["values"]] += entry["counts"]
    return sorted((TypeCount(*entry) for entry in counts.items()), key=lambda t: (-t.records, t.digest))


def records_of(view: View, shape: str = "") -> Records:
    """Returns how the view's records are shown in a shape: "" (united), `typed`, `values`, or `type:ID`.

    Raises InvalidInput if the records have no types, and NotFound for a type that no record has.
    """
    # without a shape only the fields count, which needs no look at the references
    plan = view.plan(keep=(TYPE,)) if shape else plan_scan(view, ranges=())
    schema = user_fields(result_schema(plan))
    if not shape:
        return United(schema)
    _check_kept(view, plan)
    if shape == "typed":
        type_name = _apart("_type", schema.names)
        return Typed(schema.append(pa.field(type_name, pa.string())), type_name)
    if shape == "values":
        names = [name for name in view.key.names if name in schema.names]
        more = [_apart(name, names) for name in ("_type", "value")]
        fields = [schema.field(name) for name in names]
        fields += [pa.field(more[0], pa.string()), json_field(more[1])]
        return RecordsByType(pa.schema(fields), tuple(schema.names))
    return _of_type(_chosen(view, shape.partition(":")[2]))


def _chosen(view: View, id: str) -> TypeCount:
    """Returns the type whose id begins with `id`.  Raises NotFound."""
    name = view.config.name
    types = [t for t in types_of(view) if t.digest.hex().startswith(id)]
    if not types:
        raise NotFound(f'pool {name!r}: no record has a type {id!r}; "{name}:types" lists the types')
    if len(types) > 1:
        ids = ", ".join(t.id for t in types[:3])
        raise InvalidInput(f"pool {name!r}: {len(types)} types begin with {id!r}: {ids}; write more digits")
    return types[0]


def _of_type(chosen: TypeCount) -> OfType:
    nothing = np.zeros(0, np.int64)
    none = Rows(made(np.zeros(0, np.uint8)), [chosen.kind], nothing, nothing, nothing)
    schema = normalized(pa.Table.from_batches([record_batch(chosen.kind, none.columns()[0])])).schema
    return OfType(schema if schema.names else pa.schema([("record", pa.null())]), chosen.digest)


def _apart(name: str, taken: Sequence[str]) -> str:
    """Returns the name. If a field has it already, appends `_1` until no field has it."""
    folded = {other.lower() for other in taken}
    while name.lower() in folded:  # ends: there are finitely many fields
        name += "_1"
    return name


def _texts(digests: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns the types with these digests as text."""
    chunks = []
    for chunk in digests.chunks:
        coded = chunk.dictionary_encode()
        texts = pa.array([type_text(type_of(digest)) for digest in coded.dictionary.to_pylist()], pa.string())
        chunks.append(texts.take(coded.indices))
    return pa.chunked_array(chunks, pa.string())


def _check_kept(view: View, plan: ScanPlan) -> None:
    """Raises InvalidInput if the records of the view have no types."""
    if plan.references and not plan.keep:
        raise InvalidInput(
            f"pool {view.config.name!r}: its records have no types of their own; that takes format=zng or "
            "format=zst when they are loaded, in a pool that aggregates nothing"
        )
