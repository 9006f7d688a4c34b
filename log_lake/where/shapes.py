"""The shape of a condition: what remains when the values of its comparisons are taken out.

Deletes often differ only in their values, such as `user = 7 and day < 100`.  Conditions of one shape are
evaluated together: each record is compared with the values of the one condition that it is paired with.  Called
by `many`, and for deletes whose key ranges find their records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.conditions import top_level
from lake_core.conditions.classwise import among
from lake_core.conditions.fields import find_field
from lake_core.keys.encoding import decode_value, key_class
from lake_core.records.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Path, Unless
from lake_core.values.numbers import Op
from lake_core.values.types import is_json
from log_lake.where.evaluate import Column, Records, column_at, comparison, ordered, truth


@dataclass(frozen=True)
class OpenComparison:
    """A comparison of a field with a value that the shape leaves open."""

    field: Path
    op: Op


@dataclass(frozen=True)
class Joined:
    """`and`, `or` or `not` of shapes."""

    word: str
    of: tuple[Shape, ...]


Shape: TypeAlias = OpenComparison | Joined | Condition
"""A shape. It may contain whole conditions, from which no value was taken out; these are evaluated as they
are."""


@dataclass(frozen=True)
class Shaped:
    """A condition as its shape and the values of its comparisons, in their fields' own types."""

    shape: Shape
    values: tuple[pa.Scalar, ...]


def own_comparison(leaf: Compare, schema: pa.Schema) -> tuple[Op, pa.Scalar] | None:
    """Returns the comparison in the type of its field, or None if one kernel is not enough for it."""
    field, rest = find_field(schema, leaf.field)
    if field is None or rest or is_json(field) or pa.types.is_nested(field.type):
        return None
    own = among(leaf, key_class(field.type))
    if not isinstance(own, Compare):
        return None
    meant = comparison(own.op, decode_value(own.value), field.type)
    if isinstance(meant, bool) or (pa.types.is_floating(field.type) and pc.is_nan(meant[1]).as_py()):
        return None
    return meant


def shaped(condition: Condition, schema: pa.Schema) -> Shaped:
    """Returns the condition as a shape for records of the schema."""
    values: list[pa.Scalar] = []
    return Shaped(_shape(condition, schema, values), tuple(values))


def _shape(condition: Condition, schema: pa.Schema, values: list[pa.Scalar]) -> Shape:
    match condition:
        case And(of):
            return Joined("and", tuple(_shape(member, schema, values) for member in of))
        case Or(of):
            return Joined("or", tuple(_shape(member, schema, values) for member in of))
        case Not(of):
            return Joined("not", (_shape(of, schema, values),))
        case Compare():
            meant = own_comparison(condition, schema)
            if meant is None:
                return condition
            values.append(meant[1])
            return OpenComparison(condition.field, meant[0])
        case In() | IsNull() | Unless() | Called():
            return condition


def shape_holds(shape: Shape, values: Iterator[pa.Array], records: Records) -> pa.BooleanArray:
    """Returns for each record whether the condition of this shape, with the record's values, holds; null counts as
    false.

    `values` has one array per comparison of the shape, with one value per record.
    """
    truths = pc.fill_null(_truth(shape, values, records), False)
    return truths.combine_chunks() if isinstance(truths, pa.ChunkedArray) else truths


def _truth(shape: Shape, values: Iterator[pa.Array], records: Records) -> Column:
    if isinstance(shape, Joined):
        members = [_truth(member, values, records) for member in shape.of]
        if shape.word == "not":
            return pc.invert(members[0])
        return reduce(pc.and_kleene if shape.word == "and" else pc.or_kleene, members)
    if isinstance(shape, OpenComparison):
        return ordered(column_at(records, shape.field), shape.op, next(values))
    return truth(shape, records)


@dataclass(frozen=True)
class Paired:
    """Conditions arranged by shape, for records of one schema."""

    shapes: tuple[Shape, ...]
    fields: tuple[tuple[str, ...], ...]
    """For each shape, the columns that it reads; or another one, which tells how many records there are."""
    kind: npt.NDArray[np.int64]
    """For each condition, the index of its shape."""
    values: tuple[tuple[pa.Scalar, ...], ...]
    """For each condition, the values of its comparisons."""

    @classmethod
    def of(cls, conditions: Sequence[Condition], schema: pa.Schema) -> Paired:
        """Arranges the conditions; `holding` names each by its index."""
        forms = [shaped(condition, schema) for condition in conditions]
        first = {form.shape: at for at, form in reversed(list(enumerate(forms)))}
        places = {shape: place for place, shape in enumerate(first)}
        return cls(
            tuple(first),
            tuple(_read(conditions[at], schema) for at in first.values()),
            np.array([places[form.shape] for form in forms], np.int64),
            tuple(form.values for form in forms),
        )

    def holding(
        self, records: pa.Table, rows: npt.NDArray[np.int64], which: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Returns for each pair of a row and a condition whether that record fulfils that condition."""
        holds = np.zeros(len(rows), np.bool_)
        kinds = self.kind[which]
        for place in np.unique(kinds):
            (paired,) = np.nonzero(kinds == place)
            distinct, back = np.unique(which[paired], return_inverse=True)
            columns = zip(*(self.values[at] for at in distinct), strict=True)
            values = (pa.array(list(column)).take(pa.array(back)) for column in columns)
            part = records.select(self.fields[place]).take(pa.array(rows[paired]))
            holds[paired] = shape_holds(self.shapes[place], values, part).to_numpy(zero_copy_only=False)
        return holds


def _read(condition: Condition, schema: pa.Schema) -> tuple[str, ...]:
    return tuple(name for name in top_level(condition) if name in schema.names) or (schema.names[0],)
