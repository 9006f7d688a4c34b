"""The names that records' fields have in SQL.

SQL ignores the case of ASCII letters, and has no empty names.  DuckDB would rename the second of two equal
names, perhaps to the name of a third field.  So fields that differ in case only, and a field without a name,
have other names in SQL: `=`, then the field's name with a `^` before each capital, in lower case.  `app` and
`App` are `=app` and `=^app`.  A name depends on the field alone, so a stored statement means the same after
fields are added.

Pure; called by `dataset`, `statement` and `sql`.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.phrases import choices
from log_lake.columns.nested import Items, fields_of, mask_of

_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_MARKED = str.maketrans({c: "^" + c.lower() for c in string.ascii_uppercase} | {"^": "^^"})


def folded(name: str) -> str:
    """Returns the name in the form in which SQL compares it."""
    return name.translate(_SMALL)


def sql_names(names: Sequence[str]) -> list[str]:
    """Returns the names of one record's fields in SQL.  Raises InvalidInput if SQL has no name for one of
    them."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(folded(name), []).append(name)
    results = [
        name if name and len(alike[folded(name)]) == 1 else "=" + name.translate(_MARKED) for name in names
    ]
    taken: dict[str, str] = {}
    for name, result in zip(names, results, strict=True):
        if (other := taken.setdefault(folded(result), name)) != name:
            raise InvalidInput(
                f"query: SQL has no name for field {name!r} beside {other!r}; read the records with lake scan"
            )
    return results


@dataclass
class Renamed:
    """The fields of a statement's tables that have other names in SQL.

    `stored`: by SQL name, the field's own name, at any depth.  `columns`: by table, the folded names that stand
    for several fields.
    """

    stored: dict[str, str] = field(default_factory=dict)
    columns: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, table: str, schema: pa.Schema) -> None:
        """Adds the stored schema of a table.  Raises InvalidInput as `sql_names` does."""
        columns = dict(_renamed(schema))
        self.columns[folded(table)] = frozenset(folded(name) for name in columns.values())
        self.stored |= columns
        for column in schema:
            for record in _records(column.type):
                self.stored |= dict(_renamed(record))

    def hint(self, text: str) -> str:
        """Returns the advice if an error of DuckDB quotes a name that means several fields; "" if it quotes
        none."""
        words = folded(text)
        named = {
            f for f in map(folded, self.stored.values()) if f and (f'"{f}"' in words or f"'{f}'" in words)
        }
        return "; ".join(self.advice(name) for name in sorted(named))

    def advice(self, name: str) -> str:
        """Returns the advice for a name that SQL takes for several fields: the names to write instead."""
        alike = {sql: own for sql, own in self.stored.items() if folded(own) == name}
        fields = choices([f'"{own}"' for own in alike.values()], "and")
        names = choices([f'"{sql}"' for sql in alike])
        return f"SQL takes the fields {fields} for one; write {names}"


def _renamed(fields: Iterable[pa.Field]) -> Iterator[tuple[str, str]]:
    names = [one.name for one in fields]
    return ((sql, name) for sql, name in zip(sql_names(names), names, strict=True) if sql != name)


def _records(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yields the types of records in a type, itself included."""
    kinds = [kind]
    while kinds:  # bounded by the type
        kind = kinds.pop()
        if pa.types.is_struct(kind):
            yield kind
        if pa.types.is_nested(kind):
            kinds += [kind.field(i).type for i in range(kind.num_fields)]


def stored_type(kind: pa.DataType, stored: Mapping[str, str]) -> pa.DataType:
    """Returns the type with the fields' own names in its records."""
    if pa.types.is_struct(kind):
        return pa.struct([stored_field(member, stored) for member in kind])
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(stored_type(kind.key_field.type, stored))
        return pa.map_(key, kind.item_field.with_type(stored_type(kind.item_field.type, stored)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(stored_type(kind.value_field.type, stored)))
    return kind


def stored_field(one: pa.Field, stored: Mapping[str, str]) -> pa.Field:
    """Returns the field with its own name; the fields inside it get their own names too."""
    return one.with_name(stored.get(one.name, one.name)).with_type(stored_type(one.type, stored))


def as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Returns the values in another type, which differs from theirs only in the names of fields."""
    if array.type.equals(kind, check_metadata=True):
        return array
    if pa.types.is_struct(kind):
        members = [
            as_type(values, member.type) for values, member in zip(fields_of(array), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask_of(array))
    items = Items(array)
    if pa.types.is_map(kind):
        keys, values = items.entries
        return items.as_maps(as_type(keys, kind.key_type), as_type(values, kind.item_type), kind)
    return items.as_lists(as_type(items.values, kind.value_type), kind)
