"""Converts DuckDB's answers to Arrow. Values that Arrow would change are cast to text first.

| DuckDB's type | in the answer |
|---|---|
| boolean, numbers, text, bytes, dates, times, timestamps, UUID | the same; a HUGEINT is a decimal |
| JSON, at any depth | JSON with the lake's mark |
| UHUGEINT, BIGNUM | JSON: a number, of as many digits as it has |
| UNION, VARIANT | JSON: a union is a record with its one member |
| ENUM, BIT, TIME WITH TIME ZONE, INTERVAL, GEOMETRY, any other | text, as SQL writes it |
| records, lists and maps | the same, with their parts converted as above; an ARRAY with such items is a list |

DuckDB 2.0 gives Arrow a UHUGEINT as a decimal that overflows, an INTERVAL in nanoseconds that overflow, a time
without its offset, and bits as bytes.  Called by `sql`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from lake_core.values.types import json_field

_TRUE = frozenset(
    {
        *(
            "boolean",
            "tinyint",
            "smallint",
            "integer",
            "bigint",
            "utinyint",
            "usmallint",
            "uinteger",
            "ubigint",
        ),
        *("hugeint", "float", "double", "decimal", "varchar", "blob", "uuid", "date", "time", "time_ns"),
        *("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"),
        *("timestamptz_ns", "null"),
    }
)
"""The ids of DuckDB's types whose values Arrow holds exactly."""

_AS_JSON = frozenset({"uhugeint", "bignum", "union", "variant"})


def carried(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Returns the relation with a cast for each column whose values Arrow would change; unchanged if there is no
    such column."""
    chosen = []
    changed = False
    for number, (name, kind) in enumerate(zip(relation.columns, relation.types, strict=True), 1):
        target, other = _target(kind)
        value = f"CAST(#{number} AS {target})" if other else f"#{number}"
        chosen.append(f"{value} AS {quoted(name)}")
        changed = changed or other
    return relation.project(", ".join(chosen)) if changed else relation


def _target(kind: Any) -> tuple[str, bool]:
    """Returns the SQL type to which a column of this type is cast, and whether it differs from the column's
    type."""
    text = str(kind)
    if text == "JSON" or kind.id in _TRUE:
        return text, False
    if kind.id in _AS_JSON:
        return "JSON", True
    if kind.id not in ("list", "array", "map", "struct", "tuple"):
        return "VARCHAR", True
    members = kind.children[:1] if kind.id == "array" else kind.children  # then comes its size
    targets = [(name, *_target(child)) for name, child in members]
    if kind.id == "map" and members[0][1].id == "null":  # of an empty map; Parquet has no such keys
        targets[0] = ("key", "VARCHAR", True)
    if not any(other for _, _, other in targets) and not (kind.id == "array" and "JSON" in text):
        return text, False
    types = [target for _, target, _ in targets]
    match kind.id:
        case "map" | "tuple":
            return f"{kind.id.upper()}({', '.join(types)})", True
        case "struct":
            return f"STRUCT({', '.join(f'{quoted(name)} {target}' for name, target, _ in targets)})", True
        case _:
            return f"{types[0]}[]", True


def quoted(name: str) -> str:
    """Returns the name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def distinct(names: Sequence[str]) -> list[str]:
    """Returns distinct names of columns: the second `a` becomes `a_1`, because a record has one value per
    name."""
    taken = set(names)
    seen: set[str] = set()
    results = []
    for name in names:
        other = name
        number = 0
        while other in seen or (number and other in taken):  # bounded by the number of names
            number += 1
            other = f"{name}_{number}"
        seen.add(other)
        results.append(other)
    return results


def marked(field: pa.Field, kind: Any) -> pa.Field:
    """Returns a field of the answer with the lake's marks, which DuckDB's type shows; Arrow itself has only text
    for JSON."""
    if str(kind) == "JSON":
        return json_field(field.name)
    if kind.id == "list":
        return field.with_type(pa.list_(marked(field.type.value_field, kind.children[0][1])))
    if kind.id == "map":
        (_, key), (_, value) = kind.children
        keys = marked(field.type.key_field, key).with_nullable(False)
        return field.with_type(pa.map_(keys, marked(field.type.item_field, value)))
    if kind.id in ("struct", "tuple"):
        members = zip(field.type, kind.children, strict=True)
        return field.with_type(pa.struct([marked(member, child) for member, (_, child) in members]))
    return field
