"""Avro's types: for each the Arrow field, the schema by which fastavro reads it, and its values.

fastavro reads by a schema whose binary form is the same, but in which nothing depends on names or logical types:

| in the file | fastavro reads |
|---|---|
| a logical type | the integer or the bytes below it |
| an enum | its number |
| a boolean | its byte, as an integer: fastavro takes every byte but 0 for true |
| a map | an array of records of key and value: a dict would keep the last of two equal keys only |
| an alternative of a union | a record of one field, whose name says which alternative it is |
| names | `f0`, `f1`, ...; `n0`, `n1`, ...: some writers take names that Avro does not allow |

A logical type that the specification calls invalid (a decimal without a precision) is ignored, as it asks.
Source: the specification of Avro 1.12.  Called by `avro`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import (
    DECIMAL_DIGITS,
    FIRST_DAY,
    FIRST_SECOND,
    FRACTION_DIGITS,
    LAST_DAY,
    LAST_SECOND,
    NAIVE,
    TICKS,
    TIME,
    ZONED,
    Instant,
)
from lake_core.schemas.limits import MAX_COLUMNS, MAX_NESTING, too_deep, too_wide
from lake_core.values.types import json_field
from log_lake.loading.formats.avro_container import read_big_decimal
from log_lake.loading.formats.calendars import Calendar
from log_lake.texts.typed_json import text_of
from log_lake.texts.value import DATE_FAULT, TIME_FAULT, TIMESTAMP_FAULT, NotReadable, read_string

Convert = Callable[[Any], Any]

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


class Unsupported(ValueError):
    """Raised for a schema whose values the lake cannot read; the message says why."""


@dataclass(frozen=True)
class Form:
    """How the values of one Avro type are read: `kind` is a field with the Arrow type, `wire` the schema for
    fastavro.

    `store` converts a value to what Arrow accepts, `plain` to what typed JSON accepts.  Neither accepts null;
    both raise NotReadable for a value that the lake cannot keep.  `members` has a Form for each field of a
    record.  `columns` is the number of the fields inside, at any depth.  `is_empty`: a value takes no bytes in
    a file.
    """

    kind: pa.Field
    wire: Any
    plain: Convert
    store: Convert | None = None
    members: tuple[tuple[str, Form], ...] = ()
    columns: int = 1
    is_empty: bool = False

    def stored(self, value: Any) -> Any:
        """Converts a value for Arrow. Raises NotReadable."""
        return value if value is None or self.store is None else self.store(value)

    def shown(self, value: Any) -> Any:
        """Converts a value for typed JSON. Raises NotReadable."""
        return None if value is None else self.plain(value)


def _same(value: Any) -> Any:
    return value


@dataclass
class Types:
    """How the values of each type of one file are read (a `Form` per type).  Raises Unsupported for a schema that
    the lake cannot read.

    `calendar` is that of the file.  Only values that become JSON are converted here; `avro` converts columns.
    """

    calendar: Calendar = field(default_factory=Calendar)
    _named: dict[str, Form | None] = field(default_factory=dict)
    _names: int = 0

    def alternatives(self, schema: Any) -> list[Form]:
        """Returns how the file's values are read: one Form, or a Form for each type of the union at the top of the
        schema."""
        return [self.form(one, "", 0) for one in (schema if isinstance(schema, list) else [schema])]

    def form(self, schema: Any, space: str, depth: int, name: str = "") -> Form:
        """Returns how the values of a schema are read.  `space` is the namespace around the schema, `name` is the
        name of the field, and `depth` says how deeply it is nested."""
        if depth > MAX_NESTING + 1:
            raise Unsupported(too_deep(name))
        if isinstance(schema, list):
            return self._union(schema, space, depth, name)
        if isinstance(schema, str):
            return _PLAIN[schema] if schema in _PLAIN else self._of_name(schema, space)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.form(kind, space, depth, name)
        match kind:
            case "record" | "error":
                return self._record(schema, space, depth)
            case "enum" | "fixed":
                form = _enum(schema) if kind == "enum" else self._fixed(schema, name)
                self._named[_full_name(schema, space)[0]] = form
                return form
            case "array":
                item = self.form(schema["items"], space, depth + 1, name)
                return _array_of_nothing(item, name) if item.is_empty else _array(item)
            case "map":
                return self._map(self.form(schema["values"], space, depth + 1, name))
        form = _logical(schema, self.form(kind, space, depth, name), kind, name)
        if not self.calendar.is_hybrid or not pa.types.is_temporal(form.kind.type):
            return form
        plain, arrow = form.plain, form.kind.type
        return replace(form, plain=lambda value: plain(self.calendar.number(value, arrow)))

    def _new_name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def _of_name(self, name: str, space: str) -> Form:
        for full in (f"{space}.{name}", name) if space and "." not in name else (name,):
            if full in self._named:
                form = self._named[full]
                if form is None:
                    raise Unsupported(
                        f"its schema is recursive: type {name!r} holds itself; the lake has no such type"
                    )
                is_named = isinstance(form.wire, dict) and "name" in form.wire
                return replace(form, wire=form.wire["name"]) if is_named else form
        raise Unsupported(f"its schema does not define type {name!r}")

    def _record(self, schema: Any, space: str, depth: int) -> Form:
        full, inner = _full_name(schema, space)
        self._named[full] = None  # until its members are known: a recursive schema meets this None
        wire_name = self._new_name()
        members = tuple(
            (f["name"], self.form(f["type"], inner, depth + 1, f["name"])) for f in schema["fields"]
        )
        columns = sum(form.columns for _, form in members)
        if columns > MAX_COLUMNS:
            raise Unsupported(too_wide(columns))
        wire = {
            "type": "record",
            "name": wire_name,
            "fields": [{"name": f"f{at}", "type": form.wire} for at, (_, form) in enumerate(members)],
        }

        def plain(value: Any) -> Any:
            return {name: form.shown(value[f"f{at}"]) for at, (name, form) in enumerate(members)}

        def store(value: Any) -> Any:
            return {name: form.stored(value[f"f{at}"]) for at, (name, form) in enumerate(members)}

        if members:
            inside = pa.struct([form.kind.with_name(name) for name, form in members])
            is_empty = all(form.is_empty for _, form in members)
            form = Form(pa.field("", inside), wire, plain, store, members, columns, is_empty)
        else:
            form = replace(_as_json(wire, plain), is_empty=True)
        self._named[full] = form
        return form

    def _fixed(self, schema: Any, name: str) -> Form:
        size = int(schema["size"])
        form = Form(
            pa.field("", pa.binary()),
            {"type": "fixed", "name": self._new_name(), "size": size},
            _same,
            is_empty=not size,
        )
        match schema.get("logicalType"):
            case "uuid" if size == 16:
                return _text_form(form, lambda data: str(uuid.UUID(bytes=data)))
            case "duration" if size == 12:
                return _duration(form)
        return _logical(schema, form, "fixed", name)

    def _map(self, item: Form) -> Form:
        entry = {
            "type": "record",
            "name": self._new_name(),
            "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": item.wire}],
        }

        def plain(value: Any) -> Any:
            record = {read_string(one["key"]): item.shown(one["value"]) for one in value}
            if len(record) < len(value):
                raise NotReadable("a map has the same key twice")
            return record

        def store(value: Any) -> Any:
            return [(one["key"], item.stored(one["value"])) for one in value]

        kind = pa.map_(pa.string(), item.kind.with_name("value"))
        return Form(
            pa.field("", kind), {"type": "array", "items": entry}, plain, store, columns=item.columns + 1
        )

    def _union(self, schema: list[Any], space: str, depth: int, name: str) -> Form:
        others = [one for one in schema if one != "null"]
        if len(others) == 1:
            form = self.form(others[0], space, depth, name)
            return replace(form, wire=["null" if one == "null" else form.wire for one in schema])
        forms = [self.form(one, space, depth + 1, name) for one in others]
        wrapped = iter([self.wrapped(form, at) for at, form in enumerate(forms)])
        wire = ["null" if one == "null" else next(wrapped) for one in schema]

        def plain(value: Any) -> Any:
            ((number, inner),) = value.items()
            return forms[int(number[1:])].shown(inner)

        return _as_json(wire, plain)

    def wrapped(self, form: Form, number: int) -> Any:
        """Returns the schema of a record with one field `f{number}` of the type of `form`; a record has the bytes
        of its value alone."""
        fields = [{"name": f"f{number}", "type": form.wire}]
        return {"type": "record", "name": self._new_name(), "fields": fields}


def _full_name(schema: Any, space: str) -> tuple[str, str]:
    """Returns the full name of a named type, and the namespace inside of it."""
    name, space = schema["name"], schema.get("namespace", space)
    full = name if "." in name or not space else f"{space}.{name}"
    return full, full.rpartition(".")[0]


def _array(item: Form) -> Form:
    def plain(value: Any) -> Any:
        return [item.shown(one) for one in value]

    store = None if item.store is None else lambda value: [item.stored(one) for one in value]
    kind = pa.list_(item.kind.with_name("item"))
    return Form(pa.field("", kind), {"type": "array", "items": item.wire}, plain, store, columns=item.columns)


def _array_of_nothing(item: Form, name: str) -> Form:
    """Makes the form of an array whose items take no bytes, such as nulls. Only their number is read.

    A few bytes may state any number of items, and fastavro would make them all in memory.
    """

    def empty(count: Any) -> list[Any]:
        if count:
            raise InvalidInput(
                f"field {name!r} of an Avro file: an array of {count:,} values without bytes, such as null; a file "
                "may count any number of them, so only empty arrays are read: write the file without the field"
            )
        return []

    return Form(
        pa.field("", pa.list_(item.kind.with_name("item"))), "long", empty, empty, columns=item.columns
    )


def _as_json(wire: Any, plain: Convert) -> Form:
    return Form(json_field(""), wire, plain, lambda value: text_of(plain(value)))


def _text_form(form: Form, text: Convert) -> Form:
    return replace(form, kind=pa.field("", pa.string()), plain=text, store=text)


def _boolean(number: int) -> bool:
    """Converts the byte of a boolean, which is read as an integer: the byte 1 is Avro's form of -1."""
    if number not in (0, -1):
        raise NotReadable("a boolean that is neither true nor false")
    return number == -1


def _enum(schema: Any) -> Form:
    symbols = tuple(schema["symbols"])

    def symbol(number: int) -> str:
        if not 0 <= number < len(symbols):
            raise NotReadable(f"number {number} of an enum of {len(symbols)} symbols")
        return symbols[number]

    return Form(pa.field("", pa.string()), "int", symbol, symbol)


_INTERVAL = ("months", "days", "milliseconds")


def _duration(form: Form) -> Form:
    """Makes the form of a duration.  Months and days have no fixed length in seconds, so its three numbers stay
    apart."""

    def parts(data: bytes) -> dict[str, int]:
        return {
            name: int.from_bytes(data[4 * at : 4 * at + 4], "little") for at, name in enumerate(_INTERVAL)
        }

    kind = pa.struct([(name, pa.uint32()) for name in _INTERVAL])
    return replace(form, kind=pa.field("", kind), plain=parts, store=parts, columns=len(_INTERVAL))


def _logical(schema: Mapping[str, Any], form: Form, kind: str, name: str) -> Form:
    """Returns the form of a logical type, or `form` itself if the type is unknown or invalid."""
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(schema, form, name)
    if logical == "uuid" and kind == "string":
        return _text_form(form, _uuid_text)
    if logical == "big-decimal" and kind == "bytes":
        return _as_json(form.wire, _big_decimal)
    if (kind, logical) not in _INSTANTS:
        return form
    arrow, plain = _INSTANTS[kind, str(logical)]
    return replace(form, kind=pa.field("", arrow), plain=plain)


def _uuid_text(value: str) -> str:
    """Returns a UUID in its usual spelling; other text stays as it is."""
    try:
        return str(uuid.UUID(value))
    except ValueError:
        return value


def _big_decimal(data: bytes) -> decimal.Decimal:
    try:
        unscaled, scale = read_big_decimal(data)
    except ValueError as error:
        raise NotReadable(str(error)) from error
    number = int.from_bytes(unscaled, "big", signed=True)
    if abs(scale) > DECIMAL_DIGITS or abs(number) >= 10**DECIMAL_DIGITS or scale > FRACTION_DIGITS:
        raise NotReadable(
            f"more digits than a decimal has ({DECIMAL_DIGITS}, {FRACTION_DIGITS} after the point)"
        )
    with decimal.localcontext(prec=2 * DECIMAL_DIGITS):
        return decimal.Decimal(number).scaleb(-scale)


def _decimal(schema: Mapping[str, Any], form: Form, name: str) -> Form:
    """Makes the form of a decimal; one with too many digits becomes JSON when it is stored."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if (
        not isinstance(precision, int)
        or not isinstance(scale, int)
        or not 0 <= scale <= precision
        or not precision
    ):
        return form
    if precision > DECIMAL_DIGITS or scale > FRACTION_DIGITS:
        raise Unsupported(
            f"field {name!r}: decimal({precision},{scale}): a decimal may have at most {DECIMAL_DIGITS} digits, "
            f"{FRACTION_DIGITS} of them behind the point"
        )
    above = 10**precision

    def number(data: bytes) -> decimal.Decimal:
        unscaled = int.from_bytes(data, "big", signed=True)
        if not -above < unscaled < above:
            raise NotReadable(f"a number of more digits than decimal({precision},{scale}) has")
        with decimal.localcontext(prec=2 * DECIMAL_DIGITS):
            return decimal.Decimal(unscaled).scaleb(-scale)

    wide = precision > 38
    arrow = pa.decimal256(precision, scale) if wide else pa.decimal128(precision, scale)
    return replace(form, kind=pa.field("", arrow), plain=number, store=number)


def _date(days: int) -> dt.date:
    if not FIRST_DAY <= days <= LAST_DAY:
        raise NotReadable(DATE_FAULT)
    return dt.date.fromordinal(_EPOCH_DAY + days)


def _instant(tag: int, unit: str) -> Convert:
    ticks = TICKS[unit]
    first, last = (0, 86_399) if tag == TIME else (FIRST_SECOND, LAST_SECOND)
    fault = TIME_FAULT if tag == TIME else TIMESTAMP_FAULT

    def instant(value: int) -> Instant:
        seconds, rest = divmod(value, ticks)
        if not first <= seconds <= last:
            raise NotReadable(fault)
        return Instant((tag, seconds, rest * (10**9 // ticks)))

    return instant


_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_INSTANTS: dict[tuple[str, str], tuple[pa.DataType, Convert]] = {
    ("int", "date"): (pa.date32(), _date),
    ("int", "time-millis"): (pa.time32("ms"), _instant(TIME, "ms")),
    ("long", "time-micros"): (pa.time64("us"), _instant(TIME, "us")),
    **{
        ("long", f"{local}timestamp-{name}"): (pa.timestamp(unit, zone), _instant(tag, unit))
        for local, zone, tag in (("", "UTC", ZONED), ("local-", None, NAIVE))
        for name, unit in _UNITS.items()
    },
}

_PLAIN = {
    name: Form(pa.field("", kind), name, _same, is_empty=name == "null")
    for name, kind in {
        "null": pa.null(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
    }.items()
}
_PLAIN["boolean"] = Form(pa.field("", pa.bool_()), "int", _boolean, _boolean)
_PLAIN["string"] = Form(pa.field("", pa.string()), "string", read_string)
