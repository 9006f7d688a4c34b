"""Decides which fields objects of one pool may have together; pure.  Called by `rebase`, for the fields of a
draft.

Every reader unites the fields of a pool's schemas.  So a draft is refused if a field of the key cannot be
ordered with that of other objects, if an aggregated field cannot be added, if sums would have no room, or if
the pool would have too many columns.  A draft may also promise to change no field (`Draft.keeps_fields`).
"""

from __future__ import annotations

import contextlib
import decimal
import functools
from collections.abc import Iterable

import pyarrow as pa

from lake_core.errors import Conflict, InvalidInput
from lake_core.history.draft import Draft
from lake_core.history.state import PoolState
from lake_core.keys import PoolKey
from lake_core.keys.encoding import decode_value, key_class
from lake_core.records import Action, AddObject, Column, PutReference
from lake_core.schemas import Rule
from lake_core.schemas.change import changes
from lake_core.schemas.limits import MAX_COLUMNS, Fields, LeafPath, leaves
from lake_core.schemas.rule import ROOM_DIGITS, SUM_DIGITS
from lake_core.schemas.schema import schema_id, stored_schema, unit_remedy, unite_fields, unite_schemas
from lake_core.values.types import is_json, show_type


def check_fields(state: PoolState, draft: Draft, key: PoolKey, rule: Rule) -> None:
    """Raises InvalidInput if a field of the draft cannot be ordered, compared or added with the pool's other
    objects.

    Only new schemas are checked, against the distinct forms of each field in the pool: a pool may have thousands
    of schemas, which differ in other fields.
    """
    incoming = {schema_id(schema): schema for schema in draft.schemas}
    objects = [
        a for a in draft.actions if isinstance(a, AddObject) and not a.sub_pool and a.schema in incoming
    ]
    new = [incoming[id] for id in {a.schema for a in objects} if id not in state.pool_schemas]
    if not new:
        return
    for name in (*key.names, *rule.compared):
        forms = _forms(_pool_schemas(state), name)
        for schema in new:
            for field in _forms([schema], name):
                for other in forms:  # every two must unite: a scan may meet any two in any order
                    _check_pair(field, other, in_key=name in key.names)
                forms = [*forms, field]


def check_width(state: PoolState, draft: Draft) -> None:
    """Raises InvalidInput if a load brings new fields and the pool, or one of its sub-pools, then has too many.
    A reader has the fields of all schemas in one table.  A schema without a new field is never refused."""
    incoming = {schema_id(schema): schema for schema in draft.schemas}
    added = [a for a in draft.actions if isinstance(a, AddObject) and a.schema in incoming]
    for sub_pool in {a.sub_pool for a in added if a.schema not in state.pool_schemas}:
        new = {a.schema for a in added if a.sub_pool == sub_pool}
        schema_ids = state.pool_schemas if not sub_pool else _schemas_held(state, draft.branch, sub_pool)
        paths = frozenset[LeafPath]().union(*(_leaves(state.schemas[id]) for id in schema_ids))
        brought = frozenset(path for id in sorted(new) for path in leaves(incoming[id])) - paths
        if not brought or len(paths) + len(brought) <= MAX_COLUMNS:
            continue
        fields = Fields()
        if fault := fields.take_paths(paths) or fields.take_paths(sorted(brought, key=repr)):
            where = f"sub-pool {sub_pool}" if sub_pool else "pool"
            raise InvalidInput(f"this load and the {where} together: {fault}; or load into another pool")


def may_be_too_wide(state: PoolState, draft: Draft) -> bool:
    """Whether an older state may have refused the draft because a sub-pool had too many fields.

    A sub-pool loses fields when its records are removed.  So the draft's fields are counted with all that the
    pool and its sub-pools ever had, which never become fewer.
    """
    rejected = {a.schema for a in draft.actions if isinstance(a, AddObject) and a.sub_pool}
    brought = [leaves(schema) for schema in draft.schemas if schema_id(schema) in rejected]
    if not brought:
        return False
    return len(frozenset[LeafPath]().union(*brought, *map(_leaves, state.schemas.values()))) > MAX_COLUMNS


def check_kept(state: PoolState, draft: Draft) -> None:
    """Raises Conflict if a draft that promises to change no field would change one.

    When the draft was made, its records had only fields of the branch. It changes a field if another writer has
    since given an empty branch its first fields, or removed the last records that had one of them.
    """
    if not draft.keeps_fields:
        return
    added = {a.schema for a in draft.new_objects}
    schemas = state.branches[draft.branch].snapshot.schemas()
    brought = [schema for schema in draft.schemas if schema_id(schema) in added]
    if added <= set(schemas):
        return
    changed = changes(unite_schemas(map(state.schema, schemas)), brought)
    if changed := [one for one in changed if one.before is not None or one.path not in state.added]:
        raise Conflict(
            f"{changed[0].text}, which schema=freeze or discard refuses: the fields of the branch have changed "
            f"since version {draft.read_version}, on which this load began; start the load again"
        )


def _schemas_held(state: PoolState, branch: str, sub_pool: str) -> set[str]:
    return {reference.schema for reference in state.branches[branch].snapshot.overlapping(sub_pool=sub_pool)}


@functools.lru_cache(maxsize=4096)
def _leaves(data: bytes) -> frozenset[LeafPath]:
    return frozenset(leaves(stored_schema(data)))


def check_room(state: PoolState, draft: Draft, rule: Rule) -> None:
    """Raises InvalidInput if sums of a decimal field have no room. A sum has 38 digits: those behind the point,
    those of a value, and some more because many records are added.

    If a load brings more digits behind the point, the pool's own values have fewer digits left before it. Then
    the statistics of these values are checked too (decision 53).
    """
    incoming = {schema_id(schema): schema for schema in draft.schemas}
    added = [a for a in draft.actions if isinstance(a, AddObject) and not a.sub_pool]
    for name in (name for name, function in rule.aggregates if function == "sum"):
        pool_digits = _max_digits(_forms(_pool_schemas(state), name))
        digits = max(pool_digits, _max_digits(_forms(incoming.values(), name)))
        if digits < 0:
            continue
        references = state.branches[draft.branch].snapshot.overlapping() if 0 <= pool_digits < digits else []
        statistics = [a.columns for a in added] + [r.columns for r in references]
        _check_largest(name, digits, statistics)


def brings_digits(state: PoolState, draft: Draft, rule: Rule) -> bool:
    """Whether the draft gives a summed decimal field more digits after the point than the pool has.  If it does
    not, the answer of `check_room` does not depend on the pool's values."""
    return any(
        _max_digits(_forms(draft.schemas, name)) > _max_digits(_forms(_pool_schemas(state), name))
        for name, function in rule.aggregates
        if function == "sum"
    )


def check_room_of_merge(state: PoolState, draft: Draft, actions: tuple[Action, ...], rule: Rule) -> None:
    """Raises InvalidInput if sums of a decimal field have no room for the records of both branches together.

    All loads of a pool are checked against the schemas of all its branches.  But a load that brings more digits
    after the point is checked only against the values of its own branch.
    """
    for name in (name for name, function in rule.aggregates if function == "sum"):
        digits = _max_digits(_forms(_pool_schemas(state), name))
        if digits >= 0:
            references = state.branches[draft.branch].snapshot.overlapping()
            put = (a.columns for a in actions if isinstance(a, PutReference) and not a.sub_pool)
            _check_largest(name, digits, [*put, *(r.columns for r in references)])


def _check_largest(name: str, digits: int, statistics: Iterable[tuple[Column, ...]]) -> None:
    limit = decimal.Decimal(1).scaleb(SUM_DIGITS - ROOM_DIGITS - digits)
    largest = max((_largest(columns, name) for columns in statistics), default=decimal.Decimal(0))
    if largest >= limit:
        raise InvalidInput(
            f"aggregated field {name!r}: {largest:f} leaves no room for sums with {digits} digits behind the "
            f"point, {SUM_DIGITS} in all; load it as a double (lake set POOL type.{name}=double)"
        )


def _max_digits(forms: Iterable[pa.Field]) -> int:
    """Returns the most digits behind the point of the decimal fields; -1 if none is a decimal."""
    return max((f.type.scale for f in forms if pa.types.is_decimal(f.type)), default=-1)


def _largest(columns: Iterable[Column], name: str) -> decimal.Decimal:
    """Returns the largest absolute value of the column's exact numbers."""
    bounds = [b for c in columns if c.name == name for b in (c.low, c.high) if b is not None]
    values = [decode_value(bound) for bound in bounds]
    return max((abs(v) for v in values if isinstance(v, decimal.Decimal)), default=decimal.Decimal(0))


def _forms(schemas: Iterable[pa.Schema], name: str) -> list[pa.Field]:
    """Returns the distinct fields of this name."""
    forms: dict[tuple[str, bytes], pa.Field] = {}
    for schema in schemas:
        index = schema.get_field_index(name)
        if index >= 0:
            field = schema.field(index)
            forms.setdefault((str(field.type), repr(field.metadata).encode()), field)
    return list(forms.values())


def _check_pair(field: pa.Field, other: pa.Field, *, in_key: bool) -> None:
    role = "key field" if in_key else "aggregated field"
    remedy = f"declare it (lake set POOL type.{field.name}=TYPE)"
    if in_key:
        ours, theirs = key_class(field.type), key_class(other.type)
        if "null" not in (ours, theirs) and ours != theirs:
            raise InvalidInput(
                f"{role} {field.name!r}: a {ours} here, a {theirs} in the pool's other records; "
                f"{remedy} or load these records into another pool"
            )
    if is_json(unite_fields(other, field)):
        with contextlib.suppress(InvalidInput):  # raised for a type without an order
            remedy = unit_remedy({key_class(field.type), key_class(other.type)}) or remedy
        if in_key and pa.types.is_integer(field.type) and pa.types.is_integer(other.type):
            remedy = (  # the class of a pool's keys never changes
                f"a new pool does, if type.{field.name}=decimal(20,0) is set before its first load"
            )
        raise InvalidInput(
            f"{role} {field.name!r}: {show_type(field)} here, {show_type(other)} in the pool's other records, "
            f"and no type holds both exactly; {remedy}"
        )


def key_classes(state: PoolState, key: PoolKey) -> dict[str, str]:
    """Returns the class of each key field, by name; fields that are null in all schemas are left out."""
    schemas = _pool_schemas(state)
    classes = {
        name: {key_class(field.type) for field in _forms(schemas, name)} - {"null"} for name in key.names
    }
    return {name: distinct.pop() for name, distinct in classes.items() if distinct}


def _pool_schemas(state: PoolState) -> list[pa.Schema]:
    """Returns the schemas of the pool's own objects, which all have the key."""
    return [state.schema(id) for id in state.pool_schemas]
