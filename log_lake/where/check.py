"""Checks a condition against a schema: its fields must exist, and its values must be readable as values of
these fields.

| field | values that may be written |
|---|---|
| number | integers, decimals, doubles; all taken exactly |
| decimal | the same, and a text of digits |
| string | a text |
| bytes | bytes, and a text in base64 |
| boolean | true, false; only with = and != |
| date | a date, and a text |
| timestamp | a timestamp, a date (its midnight), a text; if only one of the two has a zone, the other is UTC |
| time, duration | one of these, and a text |
| json | any; each record reads it as a field of the record's own class would |

null is allowed everywhere, and no record fulfils a comparison with it.  Records, lists and maps allow only `is
null`.  A path names a field inside a record or inside JSON.  A field that was null in every record so far takes
any value.

The result is the same condition with resolved paths.  It keeps the values as they were written, and adds their
readings as other classes (`records.conditions`).  The field's class decides only whether the condition is
refused. So on another branch, or after a later load, the field may have another class, and the condition still
means the same.  During evaluation, `classwise` narrows a comparison to the class of the record's value.
Checking a checked condition again changes nothing.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from lake_core.conditions.fields import find_field, resolve
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Value, decode_value, encode_value, key_class
from lake_core.records.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Path, Unless
from lake_core.values.types import is_json, show_type
from log_lake.texts.classes import of_class, readings
from log_lake.texts.value import NotReadable
from log_lake.where.parse import ComparisonWords, parse_with_positions
from log_lake.where.show import show, show_path
from log_lake.where.words import Position, fault, show_name

ANY = "any"
"""The class of a field of JSON: each of its values keeps a class of its own."""

_NAMED = 20
"""The most fields that an error lists."""


def check(
    condition: str | Condition, schema: pa.Schema, *, unfit: Mapping[str, str] | None = None
) -> Condition:
    """Checks a condition, given as text or as a structure, for records of the schema, and returns it.

    `unfit` names fields of the schema that the condition may not use, and why.  Raises InvalidInput that points
    at the wrong word of the text; a structure is shown as text for that.
    """
    if not isinstance(condition, str | Condition):
        raise InvalidInput(f"condition {condition!r}: give a text, as \"level = 'warn'\"")
    parsed = parse_with_positions(condition if isinstance(condition, str) else show(condition))
    return _Check(schema, parsed.text, unfit or {}, iter(parsed.leaves)).typed(parsed.condition)


def fitted(condition: Condition, schema: pa.Schema) -> Condition | None:
    """Returns a parsed condition as `check` does, for records of the schema; None if the schema lacks a field of
    it.

    It is not refused if a field has another class than its value: then the comparison is null, as for records.
    """
    match condition:
        case And(of) | Or(of):
            members = [member for one in of if (member := fitted(one, schema)) is not None]
            return type(condition)(tuple(members)) if len(members) == len(of) else None
        case Not(of) | Unless(of):
            inner = fitted(of, schema)
            return None if inner is None else type(condition)(inner)
        case Called(fields=names):
            return condition if set(names) <= set(schema.names) else None
        case _:
            path = resolve(schema, condition.field)
            return None if path is None else _with_readings(condition, path)


def _with_readings(leaf: Compare | In | IsNull, path: Path) -> Condition:
    """Returns the comparison of the field at the path, with the readings of its values."""
    if isinstance(leaf, IsNull):
        return IsNull(path)
    stored = leaf.values if isinstance(leaf, In) else (leaf.value,)
    values = [value for data in stored if (value := decode_value(data)) is not None]
    others = _encoded(other for value in values for other in readings(value))
    return In(path, stored, others) if isinstance(leaf, In) else Compare(path, leaf.op, leaf.value, others)


@dataclass(frozen=True)
class _Check:
    schema: pa.Schema
    text: str
    unfit: Mapping[str, str]
    leaves: Iterator[ComparisonWords]

    def typed(self, condition: Condition) -> Condition:
        """Returns the condition with typed values. The positions of its comparisons are taken from `leaves`, in
        order."""
        match condition:
            case And(of):
                return And(tuple(self.typed(member) for member in of))
            case Or(of):
                return Or(tuple(self.typed(member) for member in of))
            case Not(of):
                return Not(self.typed(of))
            case Unless(of):
                return Unless(self.typed(of))
            case Called():
                return condition
            case _:
                return self._comparison(condition, next(self.leaves))

    def _comparison(self, condition: Compare | In | IsNull, leaf: ComparisonWords) -> Condition:
        path, field = self._field(condition.field, leaf.field)
        if isinstance(condition, IsNull):
            return IsNull(path)
        kind = self._class(path, field, leaf.field)
        stored = condition.values if isinstance(condition, In) else (condition.value,)
        values = [decode_value(data) for data in stored]
        boolean = kind == "boolean" or (kind in ("null", ANY) and isinstance(values[0], bool))
        if boolean and isinstance(condition, Compare) and condition.op not in ("=", "!="):
            raise fault(self.text, leaf.field, f"a boolean has no order (got {condition.op}); use = or !=")
        for value, position in zip(values, leaf.values, strict=True):
            try:
                _check_readable(value, kind)
            except NotReadable as error:
                fault_text = f"{show_path(path)} is of type {show_type(field)}, and this is {error}"
                raise fault(self.text, position, fault_text) from error
        return _with_readings(condition, path)

    def _field(self, written: Path, position: Position) -> tuple[Path, pa.Field]:
        path = resolve(self.schema, written)
        field, _ = find_field(self.schema, path or written)
        if path is None or field is None:
            raise fault(self.text, position, f"no such field; {self._suggestion('.'.join(written))}")
        if path[0] in self.unfit:
            raise fault(self.text, position, self.unfit[path[0]])
        return path, field

    def _suggestion(self, name: str) -> str:
        names = self.schema.names
        close = difflib.get_close_matches(name, names, n=1)
        if close:
            return f"perhaps {show_name(close[0])}"
        shown = ", ".join(map(show_name, names[:_NAMED])) or "none"
        return f"there are: {shown}" + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")

    def _class(self, path: Path, field: pa.Field, position: Position) -> str:
        """Returns the class of values that compare with the field's."""
        if is_json(field):
            return ANY
        with contextlib.suppress(InvalidInput):
            return key_class(field.type)
        fault_text = f"a field of type {show_type(field)} can only be asked whether it `is null`"
        if pa.types.is_struct(field.type):
            fault_text += f"; name a field inside of it: {show_path(path)}.NAME"
        raise fault(self.text, position, fault_text)


def _check_readable(value: Value, kind: str) -> None:
    """Raises NotReadable, which names the value's class, if the value compares with no value of this class."""
    if (
        value is not None
        and kind not in ("null", ANY)
        and not (kind == "number" and isinstance(value, Decimal))
    ):
        of_class(value, kind)


def _encoded(values: Iterable[Value]) -> tuple[bytes, ...]:
    """Returns the values in the form in which an `in` keeps them."""
    return tuple(sorted({encode_value(value) for value in values}))
