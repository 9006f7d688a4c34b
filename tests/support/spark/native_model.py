"""Computes what a native plan returns in plain Python instead of Spark. Predicates are evaluated row by row, with
SQL's three answers.

Encoded values are compared, in the order that Spark has too: NaN last, -0.0 equal to 0.0, texts by bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from lake_core.keys.encoding import encode_value, from_scalar
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import OPS
from lake_core.schemas.hidden import ORDER
from log_lake.columns.cast import cast_table
from log_lake.lake.view import View, among
from log_lake.objects.read import DataObject
from log_lake.reading.plan import ScanPlan
from log_lake.reading.scan import result_schema
from spark_apps.native import predicates as p
from spark_apps.native.plan import NativePlan, ParquetRead


def rows(native: NativePlan, plan: ScanPlan, view: View) -> list[pa.Table]:
    """Returns the tables of all reads."""
    tables = [table for read in native.parquet for table in _parquet(read, plan, view)]
    if native.source is not None:
        names = native.source.references
        only = None if names is None else [(r.object, r.low) for r in names]
        for key_range in native.source.key_ranges:
            part = replace(
                plan,
                key_range=key_range,
                references=tuple(r for r in among(plan.references, only) if r.key_range.overlaps(key_range)),
            )
            tables += list(view.run(part))
    return tables


def _parquet(read: ParquetRead, plan: ScanPlan, view: View) -> list[pa.Table]:
    tables = []
    for reference in read.references:
        with DataObject(view.store, pool_id=view.config.id, object_id=reference.object) as data:
            batches = list(data.batches(EVERYTHING, key=plan.key, columns=None))
        table = pa.Table.from_batches(batches)
        asked = set(p.columns_of(read.predicate)) - set(read.columns.names)
        assert not {name for name in asked if name in table.schema.names}, (
            "a column of the filter is not read"
        )
        mask = [truth(read.predicate, table, row) is True for row in range(table.num_rows)]
        kept = table.filter(pa.array(mask, pa.bool_()))
        stored = plan.schemas[reference.schema]
        users = kept.select([n for n in kept.schema.names if n not in ORDER.names]).cast(stored)
        tables.append(cast_table(users, result_schema(plan), what="model"))
    return tables


def truth(predicate: p.Predicate, table: pa.Table, row: int) -> bool | None:
    """Evaluates a predicate for one row."""
    match predicate:
        case p.Compared(path, op, value):
            ours = _value(table, path, row)
            return None if ours is None else OPS[op](encode_value(ours), encode_value(from_scalar(value)))
        case p.Empty(path):
            return _value(table, path, row) is None
        case p.Always(path, answer):
            return None if _value(table, path, row) is None else answer
        case p.Constant(answer):
            return answer
        case p.All(of):
            answers = [truth(part, table, row) for part in of]
            return False if False in answers else None if None in answers else True
        case p.Any(of):
            answers = [truth(part, table, row) for part in of]
            return True if True in answers else None if None in answers else False
        case p.Inverted(of):
            answer = truth(of, table, row)
            return None if answer is None else not answer
        case p.NotTrue(of):
            return truth(of, table, row) is not True


def _value(table: pa.Table, path: tuple[str, ...], row: int) -> Any:
    scalar = table.column(path[0])[row]
    for name in path[1:]:
        scalar = scalar[name] if scalar.is_valid else pa.scalar(None)
    return (
        from_scalar(scalar)
        if scalar.is_valid and not pa.types.is_nested(scalar.type)
        else (None if not scalar.is_valid else scalar)
    )


def canonical(tables: list[pa.Table]) -> list[str]:
    """Returns all rows as sorted texts, because a native read has no order."""
    found = []
    for table in tables:
        columns = [_texts(column) for column in table.columns]
        found += [repr(row) for row in zip(*columns, strict=True)] if columns else [""] * table.num_rows
    return sorted(found)


def _texts(column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return [str(scalar.value) for scalar in column]
    return [repr(scalar.as_py()) for scalar in column]
