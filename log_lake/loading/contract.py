"""The fields of a pool as a contract: the settings `schema=freeze` and `schema=discard` (decision 250).

A record that brings a new field, or a value that its field cannot hold, breaks the contract.  Under `freeze` it
is a bad record.  Under `discard` it is loaded without that field or value, which is counted.  A value that the
field's type holds exactly is accepted, as for a declared type.  Called by `checks` for files, by `builder` for
tables of a program; the commit checks the fields once more (`history.fields.check_kept`).
"""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from lake_core.schemas.change import holds
from lake_core.schemas.hidden import DELETED, ROW
from lake_core.values.types import is_json, json_field, show_type
from log_lake.columns.json_text import typed
from log_lake.loading.declared import DoesNotFit, OtherClass, convert, fitting_values
from log_lake.loading.formats.python_values import infer_field
from log_lake.objects.normalize import normalized
from log_lake.texts.fit import array_of
from log_lake.texts.typed_json import MapEntries, text_of, value_of

EVOLVE, FREEZE, DISCARD = "evolve", "freeze", "discard"

Faults = dict[int, str]
"""By row of a table, why the record is bad."""

LostValues = Counter[str]
"""By the path of a field: from how many records the field, or a value in it, was left out."""

_Misfit = Callable[[str, str], None]
"""A function that gets the path of a part that does not fit, and the reason. Under `freeze` it raises; under
`discard` it counts."""


@dataclass(frozen=True)
class Conforming:
    """A table after the contract was applied.

    `wrong`: by row of a bad record, why it breaks the contract.  `lost`: by field, from how many records the
    field, or a value in it, was left out.
    """

    table: pa.Table
    wrong: Faults = field(default_factory=dict)
    lost: LostValues = field(default_factory=Counter)


@dataclass(frozen=True)
class Contract:
    """The fields that records may have, and the policy for other fields and values: `FREEZE` or `DISCARD`.

    If a value does not fit a field of the `key`, its record is bad under either policy.
    """

    policy: str
    fields: pa.Schema
    key: tuple[str, ...] = ()

    @cached_property
    def _known(self) -> dict[str, pa.Field]:
        return {one.name: one for one in self.fields}

    @property
    def key_fields(self) -> dict[str, pa.Field]:
        """The fields of the key. The JSON reader reads their values in their types, so that one bad value does not
        change the column."""
        return {name: field for name, field in self.scalars.items() if name in self.key}

    @property
    def scalars(self) -> dict[str, pa.Field]:
        """The fields whose values can be written as one text; a CSV reader reads these in the pool's types."""
        return {
            name: target
            for name, target in self._known.items()
            if not (is_json(target) or pa.types.is_nested(target.type) or pa.types.is_null(target.type))
        }

    def keep(self, table: pa.Table, *, first: bool = False) -> Conforming:
        """Returns the records after the contract was applied.  With `first`, it may stop at the first bad value of
        each field."""
        wrong, lost = Faults(), LostValues()
        if all(map(self._is_alike, table.schema)):
            return Conforming(table)
        table = normalized(table)
        kept = table
        for number, brought in enumerate(table.schema):
            if brought.name in (DELETED, *ROW.names):
                continue
            target = self._known.get(brought.name)
            if target is None:
                self._miss(table.column(number), brought.name, wrong, lost)
                kept = kept.drop_columns([brought.name])
            elif not holds(target, brought):
                column, faults = self._fitted(table.column(number), brought, target, lost, first=first)
                wrong = {**self.bad(brought.name, faults, lost), **wrong}
                unmarked = pa.field(target.name, column.type)  # the builder marks what the values need
                kept = kept.set_column(kept.schema.get_field_index(brought.name), unmarked, column)
        if not kept.num_columns:  # a table without fields has no records
            name = next(iter(self._known))
            kept = pa.table({name: pa.nulls(table.num_rows)})
        return Conforming(kept, wrong, +lost)

    def bad(self, name: str, faults: Faults, lost: LostValues) -> Faults:
        """Returns the `faults` that make a record bad.  `faults`: the rows whose value does not fit the field
        `name`.

        Under `freeze`, and for a field of the key, these are all of them.  Otherwise there are none: the values
        are left out, and `lost` counts them.
        """
        if name not in self._known or not faults:
            return faults
        if self.policy == DISCARD and name not in self.key:
            lost[name] += len(faults)
            return {}
        return {row: self._said(why) for row, why in faults.items()}

    def _is_alike(self, field: pa.Field) -> bool:
        target = self._known.get(field.name)
        return target is not None and _is_same(target, field)

    def _said(self, why: str) -> str:
        """Returns the fault with two additions: the setting that makes it one, and the value of it that would
        accept the record."""
        accepts = "; schema=evolve accepts it" if self.policy == FREEZE else ""
        return f"{why} (schema={self.policy}{accepts})"

    def _miss(self, column: pa.ChunkedArray, name: str, wrong: Faults, lost: LostValues) -> None:
        """Records the values of a field that the pool does not have, as faults or as lost ones."""
        rows = pc.indices_nonzero(column.is_valid()).to_pylist()
        if self.policy == DISCARD:
            lost[name] += len(rows)
            return
        for row in rows:
            wrong.setdefault(row, self._said(f"field {name!r} is not among the fields of the pool"))

    def _fitted(
        self, column: pa.ChunkedArray, field: pa.Field, target: pa.Field, lost: LostValues, *, first: bool
    ) -> tuple[pa.ChunkedArray, Faults]:
        """Returns the column in the type of the pool's field, with null for each value that does not fit, and the
        reasons by row."""
        if pa.types.is_nested(target.type):
            return self._nested(column, field, _typed_by(target, field), lost)
        if is_json(field) and pa.types.is_integer(target.type):  # 2.0 is an integer beside a text too
            column = pc.replace_substring_regex(column, r"^(-?[0-9]+)\.0$", r"\1")
        try:
            return fitting_values(column, field, target, first=first and self.policy == FREEZE)
        except OtherClass as error:
            rows = pc.indices_nonzero(column.is_valid()).to_pylist()
            return pa.chunked_array([pa.nulls(len(column), target.type)]), dict.fromkeys(rows, str(error))

    def _nested(
        self, column: pa.ChunkedArray, field: pa.Field, target: pa.Field, lost: LostValues
    ) -> tuple[pa.ChunkedArray, Faults]:
        """Like `_fitted`, for nested values: under `discard` a record or list is kept without the parts that do
        not fit."""
        faults = Faults()
        values: list[Any] = []
        missed: set[str] = set()

        def misfit(path: str, why: str) -> None:
            if self.policy == FREEZE:
                raise DoesNotFit(f"field {path!r}: {why}")
            missed.add(path)

        for row, text in enumerate(typed(column, field).to_pylist()):
            missed.clear()
            try:
                values.append(None if text is None else _part(value_of(text), target, target.name, misfit))
            except DoesNotFit as error:
                values.append(None)
                faults[row] = str(error)
            lost.update(missed)  # a record counts once, however many items of its list are left out
        return pa.chunked_array([_array(values, _settled(target, values))]), faults


def contract_of(policy: str, fields: pa.Schema, config: PoolConfig) -> Contract | None:
    """Returns the contract of a pool with these fields.  Returns None if loads may change its fields, or if the
    pool has no fields yet.

    A field that counts its records accepts any value, because the pool stores only the number.
    """
    if policy == EVOLVE or not len(fields):
        return None
    counted = {name for name, function in config.aggregates.items() if function == "count"}
    taken = [pa.field(one.name, pa.null()) if one.name in counted else one for one in fields]
    return Contract(policy, pa.schema(taken), tuple(config.key.names))


def changed_rows(before: pa.Table, after: pa.Table) -> npt.NDArray[np.bool_]:
    """Returns for each record whether the contract left out or converted one of its values."""
    changed = np.zeros(before.num_rows, np.bool_)
    before = normalized(before)
    for came, column in zip(before.schema, before.columns, strict=True):
        index = after.schema.get_field_index(came.name)
        here = column.is_valid()
        if index >= 0:
            kept = after.schema.field(index)
            if _is_same(came, kept):
                continue
            texts = typed(after.column(index), kept)
            here = pc.and_(here, pc.not_equal(typed(column, came), texts).fill_null(True))
        changed |= here.to_numpy()
    return changed


def lost_line(lost: LostValues) -> str:
    """Returns a line that says which fields and values were left out of records; "" if none were."""
    parts = [f"{name} of {counted(count, 'record')}" for name, count in sorted(lost.items()) if count]
    return (
        f"left out, because the pool's fields stay as they are (schema=discard): {', '.join(parts)}"
        if parts
        else ""
    )


def _part(value: Any, field: pa.Field, path: str, misfit: _Misfit) -> Any:
    """Returns the value, or the parts of it that fit the field.  Recursive: the depth of values is limited."""
    kind = field.type
    if value is None or is_json(field):
        return value
    if pa.types.is_struct(kind) and isinstance(value, dict):
        members = {member.name: member for member in kind}
        kept = {}
        for name, part in value.items():
            if name in members:
                kept[name] = _part(part, members[name], f"{path}.{name}", misfit)
            elif part is not None:
                misfit(f"{path}.{name}", "it is not among the fields of the pool")
        return kept
    if pa.types.is_list(kind) and isinstance(value, list) and not isinstance(value, MapEntries):
        return [_part(part, kind.value_field, path, misfit) for part in value]
    if pa.types.is_map(kind) and isinstance(value, MapEntries):
        return _entries(value, field, path, misfit)
    if pa.types.is_null(kind):
        return value  # a field without a type yet takes any (`_settled`)
    if pa.types.is_nested(kind):
        misfit(path, f"the value is not a {show_type(field)}")
        return None
    if pa.types.is_integer(kind) and isinstance(value, float) and value.is_integer():
        value = int(value)  # the other numbers of the column may have made it a double
    try:
        return convert(value, field)
    except DoesNotFit as error:
        misfit(path, str(error))
        return None


def _entries(value: MapEntries, field: pa.Field, path: str, misfit: _Misfit) -> MapEntries | None:
    """Returns a map in which every entry fits, or None: a map with an entry that does not fit is left out as a
    whole."""

    def fails(inner: str, why: str) -> None:
        raise DoesNotFit(f"field {inner!r}: {why}")

    kind = field.type
    try:
        return MapEntries(
            (_part(key, kind.key_field, path, fails), _part(item, kind.item_field, path, fails))
            for key, item in value
        )
    except DoesNotFit:
        misfit(path, f"the value is not a {show_type(field)}")
        return None


def _inner(kind: pa.DataType) -> list[pa.Field]:
    """Returns the fields inside a record, list or map; nothing for other types."""
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if pa.types.is_list(kind) else []


def _is_same(field: pa.Field, other: pa.Field) -> bool:
    """Whether both have the same type.  Arrow alone does not distinguish texts from typed JSON inside other
    values."""
    if field.type != other.type or is_json(field) != is_json(other):
        return False
    return all(map(_is_same, _inner(field.type), _inner(other.type)))


def _typed_by(field: pa.Field, brought: pa.Field) -> pa.Field:
    """Returns the field in which parts that have no type yet get the type of the record's values: such parts
    accept any type (`holds`)."""
    kind, theirs = field.type, brought.type
    if pa.types.is_null(kind):
        return brought.with_name(field.name)
    if pa.types.is_struct(kind) and pa.types.is_struct(theirs):
        members = {member.name: member for member in theirs}
        return field.with_type(pa.struct([_typed_by(m, members.get(m.name, m)) for m in kind]))
    if pa.types.is_list(kind) and pa.types.is_list(theirs):
        return field.with_type(pa.list_(_typed_by(kind.value_field, theirs.value_field)))
    if pa.types.is_map(kind) and pa.types.is_map(theirs):
        item = _typed_by(kind.item_field, theirs.item_field)
        return field.with_type(pa.map_(kind.key_field, item))
    return field


def _settled(field: pa.Field, values: Sequence[Any]) -> pa.Field:
    """Returns the field in which parts that still have no type get the type of their values."""
    kind = field.type
    if pa.types.is_null(kind):
        return (
            infer_field(field.name, list(values)) if all(map(_is_plain, values)) else json_field(field.name)
        )
    there = [value for value in values if value is not None]
    if pa.types.is_struct(kind) and not is_json(field):
        return field.with_type(pa.struct([_settled(m, [v.get(m.name) for v in there]) for m in kind]))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_settled(kind.value_field, [item for v in there for item in v])))
    if pa.types.is_map(kind):
        return field.with_type(
            pa.map_(kind.key_field, _settled(kind.item_field, [item for v in there for _, item in v]))
        )
    return field


def _is_plain(value: Any) -> bool:
    """Whether plain JSON can express the value.  Recursive: the depth of values is limited."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return not isinstance(value, MapEntries) and all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | decimal.Decimal)


def _array(values: Collection[Any], field: pa.Field) -> pa.Array:
    """Returns values that fit the field, as a column of its type."""
    kind = field.type
    if is_json(field):
        return pa.array([None if value is None else text_of(value) for value in values], pa.string())
    absent = pa.array([value is None for value in values], pa.bool_())
    if pa.types.is_struct(kind):
        parts = [_array([None if v is None else v.get(m.name) for v in values], m) for m in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=absent)
    if pa.types.is_list(kind):
        items = _array([item for value in values for item in value or ()], kind.value_field)
        ends = [0, *accumulate(len(value or ()) for value in values)]
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, type=kind, mask=absent)
    if pa.types.is_map(kind):
        entries = [entry for value in values for entry in value or ()]
        keys = _array([key for key, _ in entries], kind.key_field)
        items = _array([item for _, item in entries], kind.item_field)
        ends = [0, *accumulate(len(value or ()) for value in values)]
        return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), keys, items, type=kind, mask=absent)
    return array_of(list(values), kind) if not pa.types.is_nested(kind) else pa.nulls(len(values), kind)
