"""Translates names of fields to stored names and back, for one state of a pool; pure.

A name that was never changed is stored under itself.  A pool without changed names has the translation `SAME`,
which returns everything as it is.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import msgspec
import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput
from lake_core.history import PoolState
from lake_core.history.renaming import shown_names
from lake_core.history.tombstone import Tombstone
from lake_core.naming import REJECTED
from lake_core.records import AddTombstone
from lake_core.records.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Unless
from lake_core.schemas.schema import unite_schemas
from lake_core.values.types import declared_field
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.indexes.rule import IndexRule
from log_lake.where import show

D = TypeVar("D", AddTombstone, Tombstone)


@dataclass(frozen=True)
class FieldNames:
    """A translation: `stored` maps each name that differs from its stored name to that stored name."""

    stored: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.stored)

    @cached_property
    def _shown(self) -> dict[str, str]:
        return shown_names(self.stored)

    def of_stored(self, stored: str) -> str | None:
        """Returns the name that readers see for a stored name; None if it is hidden."""
        return self._shown.get(stored, None if stored in self.stored else stored)

    def stored_name(self, name: str) -> str:
        """Returns the stored name of the field with this name."""
        return self.stored.get(name, name)

    def stored_names(self, names: Iterable[str]) -> list[str]:
        """Returns the stored names of the fields with these names, in the same order."""
        return [self.stored_name(name) for name in names]

    def stored_columns(self, schema: pa.Schema) -> pa.Schema:
        """Returns a schema that readers see with the stored names of its fields."""
        return pa.schema([one.with_name(self.stored_name(one.name)) for one in schema]) if self else schema

    def shown(self, schema: pa.Schema) -> pa.Schema:
        """Returns a stored schema as readers see it: without hidden fields, and with their names."""
        if not self:
            return schema
        named = ((self.of_stored(one.name), one) for one in schema)
        return pa.schema([one.with_name(name) for name, one in named if name is not None])

    def shown_table(self, stored: pa.Table) -> pa.Table:
        """Returns a stored table as readers see it: without hidden fields, and with their names."""
        if not self:
            return stored
        kept = stored.select([name for name in stored.schema.names if self.of_stored(name) is not None])
        return kept.rename_columns(self.shown_columns(kept.schema.names))

    def shown_columns(self, stored: Sequence[str]) -> list[str]:
        """Returns the names of columns of a stored table; a hidden one keeps its stored name."""
        return [name if (name := self.of_stored(one)) is not None else one for one in stored]

    def to_store(self, records: pa.Table) -> pa.Table:
        """Returns records with the stored names of their fields.

        Raises InvalidInput if a field is named like the stored name of another field.
        """
        if not self:
            return records
        stored = self.stored_names(records.schema.names)
        if len(set(stored)) < len(stored):
            twice = next(name for name in records.schema.names if stored.count(self.stored_name(name)) > 1)
            raise InvalidInput(f"field {twice!r}: the pool stores another field under this name; rename it")
        for name in records.schema.names:
            if name not in self.stored and name in self._shown:
                raise InvalidInput(
                    f"field {name!r}: the pool stores another field under this name; rename it"
                )
        return records.rename_columns(stored)

    def stored_condition(self, condition: Condition) -> Condition:
        """Returns a condition, which names fields as readers do, with their stored names."""
        return _renamed(condition, self.stored) if self else condition

    def shown_condition(self, condition: Condition) -> Condition:
        """Returns a condition of the store with the names that readers see; a hidden field keeps its stored
        name."""
        return _renamed(condition, self._shown) if self else condition

    def shown_delete(self, delete: D) -> D:
        """Returns a delete whose condition names fields as readers do, for people."""
        if delete.condition is None or not self:
            return delete
        return msgspec.structs.replace(delete, condition=self.shown_condition(delete.condition))

    def text_of(self, condition: Condition) -> str:
        """Returns a condition of the store as text, with the names that readers see."""
        return show(self.shown_condition(condition))

    def stored_rule(self, rule: IndexRule) -> IndexRule:
        """Returns an index rule with the stored name of its field."""
        return replace(rule, field=self._stored_field(rule.field))

    def stored_cluster(self, rule: ClusterRule | None) -> ClusterRule | None:
        """Returns a rule of clusters with the stored name of its field."""
        return rule if rule is None else replace(rule, field=self._stored_field(rule.field))

    def _stored_field(self, written: str) -> str:
        """Returns a field of a rule with its stored name; it may lie inside of records."""
        parts = written.split(".")
        for size in range(len(parts), 0, -1):
            name = ".".join(parts[:size])
            if name in self.stored:
                return ".".join([self.stored[name], *parts[size:]])
        return written

    def stored_rules(self, rules: Sequence[IndexRule]) -> tuple[IndexRule, ...]:
        """Returns index rules with the stored names of their fields."""
        return tuple(map(self.stored_rule, rules)) if self else tuple(rules)


SAME = FieldNames()
"""The names of a pool whose fields were neither renamed nor dropped."""


def names_at(state: PoolState, sub_pool: str = "") -> FieldNames:
    """Returns the translation of field names for a pool or sub-pool in a state; it is `SAME` for rejected
    records, which have fields of their own."""
    if not len(state.stored) or sub_pool == REJECTED:
        return SAME
    return _names(tuple(sorted(state.stored.items())))


def with_added(schema: pa.Schema, state: PoolState, sub_pool: str = "") -> pa.Schema:
    """Returns a united schema of stored names, with the fields that were added and not dropped since.

    Raises Corrupt for a stored type that no program wrote.
    """
    if not len(state.added) or sub_pool:
        return schema
    names = names_at(state)
    kept = [(name, kind) for name, kind in sorted(state.added.items()) if names.of_stored(name) is not None]
    return unite_schemas([schema, _declared(tuple(kept))])


@functools.lru_cache(maxsize=64)
def _declared(added: tuple[tuple[str, str], ...]) -> pa.Schema:
    try:
        return pa.schema([declared_field(name, kind) for name, kind in added])
    except InvalidInput as error:
        raise Corrupt(f"an added field is damaged: {error}") from error


def digest_of(state: PoolState) -> str:
    """Returns a text that differs between states with other names of fields, or other added fields; "" for a state
    of a pool whose fields were never edited."""
    edits = [sorted(state.stored.items()), sorted(state.added.items())]
    return hashlib.sha256(msgspec.json.encode(edits)).hexdigest()[:20] if any(edits) else ""


@functools.lru_cache(maxsize=64)
def _names(stored: tuple[tuple[str, str], ...]) -> FieldNames:
    return FieldNames(dict(stored))


def _renamed(condition: Condition, names: Mapping[str, str]) -> Condition:
    """Returns the condition with other first names in its paths.  Recursive: the depth of conditions is limited."""
    match condition:
        case And(of):
            return And(tuple(_renamed(member, names) for member in of))
        case Or(of):
            return Or(tuple(_renamed(member, names) for member in of))
        case Not(of):
            return Not(_renamed(of, names))
        case Unless(of):
            return Unless(_renamed(of, names))
        case Called():
            fields = tuple(names.get(name, name) for name in condition.fields)
            return msgspec.structs.replace(condition, fields=fields)
        case Compare() | In() | IsNull():
            first, *rest = condition.field
            return msgspec.structs.replace(condition, field=(names.get(first, first), *rest))
