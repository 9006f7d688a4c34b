"""Reading a condition for a schema: which fields it means, and its values as values of those fields.

| field | values that may be written |
|---|---|
| number | integers, decimals (taken as the nearest double where they are not whole), doubles |
| decimal | the same, and a text of digits; all taken exactly |
| string | a text |
| bytes | bytes, and a text of hexadecimal digits |
| boolean | true, false; compared by = and != only |
| date | a date, and a text |
| timestamp | a timestamp, a date (its midnight), and a text; where only one of both has a zone, the other is UTC |

null may stand anywhere, and fulfils nothing.  Records, lists, maps, times of day, durations and JSON can be asked
whether they are null, no more; a field inside of a record is named by its path.  A field that has been null in
every record so far takes any value.

The result is the same condition with its values in the class of the field (`keys.encoding.key_class`), as it is
stored and evaluated; checking it again changes nothing.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lake_core.conditions.fields import find, resolve
from lake_core.conditions.literals import (
    NotReadable,
    read_bytes,
    read_date,
    read_decimal,
    read_timestamp,
)
from lake_core.conditions.parse import Leaf, parse_with_places
from lake_core.conditions.show import show, show_path
from lake_core.conditions.words import Place, fault, show_name
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Instant, Value, class_of, decode_value, encode_value, key_class
from lake_core.objects.types import is_json, show_type
from lake_core.records.conditions import And, Compare, Condition, In, IsNull, Not, Or, Path

_DAY = 86_400
_EPOCH = dt.date(1970, 1, 1).toordinal()
_NAMED = 20
"""How many fields an error lists."""


def check(wanted: str | Condition, schema: pa.Schema, *, unfit: Mapping[str, str] | None = None) -> Condition:
    """The condition, given as text or not, for records of the schema.

    `unfit` names fields of the schema that it may not use, and why.  Raises InvalidInput that points at the word,
    in the text given or else in the text that the condition is shown as.
    """
    parsed = parse_with_places(wanted if isinstance(wanted, str) else show(wanted))
    return _Check(schema, parsed.text, unfit or {}, iter(parsed.leaves)).typed(parsed.condition)


@dataclass(frozen=True)
class _Check:
    schema: pa.Schema
    text: str
    unfit: Mapping[str, str]
    leaves: Iterator[Leaf]

    def typed(self, condition: Condition) -> Condition:
        """The condition with its values typed; takes the places of its comparisons in their order."""
        match condition:
            case And(of):
                return And(tuple(self.typed(member) for member in of))
            case Or(of):
                return Or(tuple(self.typed(member) for member in of))
            case Not(of):
                return Not(self.typed(of))
            case _:
                return self._comparison(condition, next(self.leaves))

    def _comparison(self, condition: Compare | In | IsNull, leaf: Leaf) -> Condition:
        path, field = self._field(condition.field, leaf.field)
        if isinstance(condition, IsNull):
            return IsNull(path)
        kind = self._class(path, field, leaf.field)
        if kind == "boolean" and isinstance(condition, Compare) and condition.op not in ("=", "!="):
            raise fault(self.text, leaf.field, "a boolean has no order; use = or !=")
        stored = condition.values if isinstance(condition, In) else (condition.value,)
        values = []
        for data, place in zip(stored, leaf.values, strict=True):
            try:
                values.append(encode_value(_as_class(decode_value(data), kind)))
            except NotReadable as error:
                said = f"{show_path(path)} is of type {show_type(field)}, and this is {error}"
                raise fault(self.text, place, said) from error
        if isinstance(condition, In):
            return In(path, tuple(sorted(set(values))))
        return Compare(path, condition.op, values[0])

    def _field(self, written: Path, place: Place) -> tuple[Path, pa.Field]:
        path = resolve(self.schema, written)
        field, inside = find(self.schema, path or written)
        if path is None or field is None:
            raise fault(self.text, place, f"no such field; {self._known('.'.join(written))}")
        if inside:
            said = f"{show_name(field.name)} holds JSON, of which a condition sees nothing inside"
            raise fault(self.text, place, said)
        if path[0] in self.unfit:
            raise fault(self.text, place, self.unfit[path[0]])
        return path, field

    def _known(self, name: str) -> str:
        names = self.schema.names
        close = difflib.get_close_matches(name, names, n=1)
        if close:
            return f"perhaps {show_name(close[0])}"
        shown = ", ".join(map(show_name, names[:_NAMED])) or "none"
        return f"there are: {shown}" + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")

    def _class(self, path: Path, field: pa.Field, place: Place) -> str:
        """The class of values that compare with the field's."""
        if not is_json(field):
            with contextlib.suppress(InvalidInput):
                kind = key_class(field.type)
                if kind not in ("time", "duration"):
                    return kind
        said = f"a field of type {show_type(field)} can only be asked whether it `is null`"
        if pa.types.is_struct(field.type):
            said += f"; name a field inside of it: {show_path(path)}.NAME"
        raise fault(self.text, place, said)


def _as_class(value: Value, kind: str) -> Value:
    """A value as one of the class; raises NotReadable, which says what it is instead."""
    if value is None or kind in ("null", class_of(value)):
        return value
    match kind, value:
        case "number", decimal.Decimal():
            whole = value == value.to_integral_value() and -(2**63) <= value < 2**64
            return int(value) if whole else float(value)
        case "decimal", int() | float() if not isinstance(value, bool):
            return read_decimal(repr(value))
        case "decimal", str():
            return read_decimal(value)
        case "bytes", str():
            return read_bytes(value)
        case "date", str():
            return read_date(value)
        case "timestamp" | "timestamp with zone", str():
            return _in_zone(read_timestamp(value), kind)
        case "timestamp" | "timestamp with zone", Instant():
            return _in_zone(value, kind)
        case "timestamp" | "timestamp with zone", dt.date():
            return _in_zone(Instant((0x08, (value.toordinal() - _EPOCH) * _DAY, 0)), kind)
    raise NotReadable(f"a {class_of(value)}")


def _in_zone(moment: Instant, kind: str) -> Instant:
    return Instant((0x09 if kind == "timestamp with zone" else 0x08, moment[1], moment[2]))
