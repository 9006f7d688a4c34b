"""Names of columns in upper and lower case: the lake distinguishes them; Spark does only with a setting.

Spark's setting `spark.sql.caseSensitive` does not reach a data source when it plans.  So a name that Spark
could take for another is refused, unless the option `caseSensitive` says that the session tells them apart.
Called by readers and writers while they plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import types as T

from lake_core.errors import InvalidInput
from spark_apps.datasource import options as opts
from spark_apps.datasource.types import spark_schema


def check_apart(schema: T.StructType, options: opts.Options, *, what: str) -> None:
    """Raises InvalidInput if two columns, or two fields of a record, have equal names, or names that differ in
    case only."""
    for path, names in _records(schema, ()):
        by_folded: dict[str, str] = {}
        for name in names:
            folded = _folded(name, options)
            other = by_folded.get(folded)
            if other is None:
                by_folded[folded] = name
                continue
            if other == name:
                raise InvalidInput(f"column {_shown((*path, name))} occurs twice in {what}; rename one")
            raise InvalidInput(
                f"columns {_shown((*path, other))} and {_shown((*path, name))} of {what} differ in case only, and "
                "Spark takes them for one; rename one or choose one (option columns), or set "
                "spark.sql.caseSensitive=true and the option caseSensitive=true"
            )


def check_known(
    names: Iterable[str], pool_names: Sequence[str], options: opts.Options, *, pool_name: str
) -> None:
    """Raises InvalidInput for a name that differs from a name of the pool in case only."""
    if _is_case_sensitive(options):
        return
    for name, other in _in_another_case(names, pool_names):
        raise InvalidInput(
            f"column {name!r}: pool {pool_name!r} has it as {other!r}, and the lake tells upper and lower case "
            f"apart; name the column {other!r}, or say that you mean another one (option caseSensitive=true)"
        )


def check_known_inside(
    schema: T.StructType, pool_schema: pa.Schema, options: opts.Options, *, pool_name: str
) -> None:
    """Checks fields of records inside the columns, as `check_known` checks the columns."""
    if _is_case_sensitive(options):
        return
    inside = [field for field in pool_schema if pa.types.is_nested(field.type) and field.name in schema.names]
    names_by_path: dict[tuple[str, ...], set[str]] = {}
    for path, names in _records(spark_schema(pa.schema(inside)), ()):
        names_by_path.setdefault(path, set()).update(names)
    for path, names in _records(schema, ()):
        if not path or path not in names_by_path:
            continue
        for name, other in _in_another_case(names, names_by_path[path]):
            raise InvalidInput(
                f"column {_shown((*path, name))}: pool {pool_name!r} has it as {_shown((*path, other))}, and "
                "the lake tells upper and lower case apart; name the field so, or say that you mean another "
                "one (option caseSensitive=true)"
            )


def _in_another_case(names: Iterable[str], pool_names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields each name that the pool has in another case only, and how the pool has it."""
    by_folded = {name.lower(): name for name in pool_names}
    for name in names:
        other = by_folded.get(name.lower())
        if other is not None and name not in pool_names:
            yield name, other


def _records(kind: T.DataType, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], list[str]]]:
    """Returns the names of each record in a type, with the path to it."""
    if isinstance(kind, T.StructType):
        yield path, kind.names
        for field in kind:
            yield from _records(field.dataType, (*path, field.name))
    elif isinstance(kind, T.ArrayType):
        yield from _records(kind.elementType, path)
    elif isinstance(kind, T.MapType):
        yield from _records(kind.keyType, path)
        yield from _records(kind.valueType, path)


def _folded(name: str, options: opts.Options) -> str:
    return name if _is_case_sensitive(options) else name.lower()


def _is_case_sensitive(options: opts.Options) -> bool:
    return opts.flag(options, "caseSensitive")


def _shown(path: tuple[str, ...]) -> str:
    return repr(".".join(path))
