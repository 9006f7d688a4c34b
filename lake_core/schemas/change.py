"""Finds what records change in the fields of a pool: new fields, and fields whose type becomes another one.

`holds` says whether a field can take the values of another one unchanged.  A load reports what it changes, and
the setting `schema` of a pool may refuse it (decision 250).  Called by `history.fields` and by `loading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lake_core.schemas.hidden import DELETED, user_fields
from lake_core.schemas.schema import unite_fields, unite_schemas
from lake_core.values.types import is_json, show_type


@dataclass(frozen=True)
class FieldChange:
    """One change that records make in the fields of a pool: `path` names the field; dots separate the members
    of records.  `before` is its type so far; None if the field is new."""

    path: str
    before: pa.Field | None
    after: pa.Field

    @property
    def field(self) -> str:
        """The top-level field that contains the change."""
        return self.after.name if self.path == self.after.name else self.path.partition(".")[0]

    @property
    def text(self) -> str:
        """The change in words, as a load reports it."""
        after = show_type(self.after)
        if self.before is None:
            return f"field {self.path}: new, {after}"
        return f"field {self.path}: {show_type(self.before)} becomes {after}"


def holds(field: pa.Field, other: pa.Field) -> bool:
    """Whether the field can take values of the other one without changing its type; a field without a type
    takes any."""
    if is_json(field) or pa.types.is_null(field.type) or pa.types.is_null(other.type):
        return True
    if is_json(other):
        return False
    kind, theirs = field.type, other.type
    if pa.types.is_struct(kind) and pa.types.is_struct(theirs):
        members = {member.name: member for member in kind}
        return all(member.name in members and holds(members[member.name], member) for member in theirs)
    if pa.types.is_list(kind) and pa.types.is_list(theirs):
        return holds(kind.value_field, theirs.value_field)
    if pa.types.is_map(kind) and pa.types.is_map(theirs):
        return holds(kind.key_field, theirs.key_field) and holds(kind.item_field, theirs.item_field)
    if pa.types.is_nested(kind) or pa.types.is_nested(theirs):
        return False
    united = unite_fields(field, other)
    return bool(united.type == kind) and not is_json(united)


def changes(before: pa.Schema, brought: Iterable[pa.Schema]) -> list[FieldChange]:
    """Returns what records with the schemas `brought` change in the fields `before`; nothing if `before` has no
    fields.  The column that marks deleted records does not count as a field."""
    fields = {field.name: field for field in user_fields(before)}
    if not fields:
        return []
    united = unite_schemas(user_fields(schema) for schema in (before, *brought))
    return [
        change
        for field in united
        if field.name != DELETED
        for change in _changes(field.name, fields.get(field.name), field)
    ]


def _changes(path: str, before: pa.Field | None, after: pa.Field) -> Iterator[FieldChange]:
    """Yields the changes of one field, and of the members of its records.  Recursive: the depth of types is
    limited."""
    if before is None:
        yield FieldChange(path, None, after)
    elif holds(before, after):
        return
    elif pa.types.is_struct(before.type) and pa.types.is_struct(after.type):
        members = {member.name: member for member in before.type}
        for member in after.type:
            yield from _changes(f"{path}.{member.name}", members.get(member.name), member)
    else:
        yield FieldChange(path, before, after)
