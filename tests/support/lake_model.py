"""What a pool should hold, computed a second time and simply: by lists of Python values, sorted and searched one
by one.

It imports nothing of the project. It has its own order of keys, equality of values, meaning of conditions,
deletes and aggregates, and its own reader of typed JSON (docs/format.md).
"""

from __future__ import annotations

import calendar
import functools
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

Record = dict[str, Any]
Predicate = Callable[[Record], bool]

FUNCTIONS = {"v": "sum", "low": "min", "high": "max", "n": "count", "one": "first", "end": "last"}
"""The function of each field of the aggregate pool; other fields keep the last value."""


class Moment(NamedTuple):
    """A time: seconds and nanoseconds since 1970."""

    seconds: int
    nanos: int


FIRST_MOMENT, LATER_MOMENT = Moment(0, 1), Moment(1_770_000_000, 123_456_789)


# ---------------------------------------------------------------- values


def canonical(value: Any) -> Any:
    """Returns equal results for equal values, whatever type they have: numbers by value, and NaN equals
    itself."""
    if isinstance(value, int | float | Decimal):
        if math.isnan(value) or math.isinf(value):
            return "number", str(float(value))
        return "number", Fraction(value)
    return value


def value_of_json(text: str | None) -> Any:
    """Returns the value in a text of typed JSON."""
    value = None if text is None else json.loads(text)
    if isinstance(value, dict):
        ((tag, said),) = value.items()
        return {"lake:timestamp": moment, "lake:decimal": Decimal, "lake:number": float}[tag](said)
    return value


def moment(text: str) -> Moment:
    """Reads a time in the form that the lake shows: 1970-01-01T00:00:00.000000001Z."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return Moment(seconds, int(fraction.ljust(9, "0")))


# ---------------------------------------------------------------- keys


@dataclass(frozen=True)
class Span:
    """A range of keys by the place of their first field: from `begin` to before `end` (None: to the last)."""

    begin: int
    end: int | None

    def holds(self, place: int) -> bool:
        return self.begin <= place and (self.end is None or place < self.end)

    def meets(self, other: Span) -> bool:
        """Whether both have a common place."""
        return (self.end is None or other.begin < self.end) and (other.end is None or self.begin < other.end)


@dataclass(frozen=True)
class Order:
    """The order of records: fields, each ascending or descending (`k:desc,s`)."""

    fields: tuple[tuple[str, bool], ...]

    @classmethod
    def parse(cls, text: str) -> Order:
        parts = [part.partition(":") for part in text.split(",")]
        return cls(tuple((name, sense == "desc") for name, _, sense in parts))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.fields]

    def place(self, value: int) -> int:
        """Returns the place of a value of the first field; greater places are later."""
        return -value if self.fields[0][1] else value

    def span(self, *bounds: int | None) -> Span | None:
        """Returns the keys from one value of the first field to before another; None if there are none."""
        begin, *end = sorted(self.place(bound) for bound in bounds if bound is not None)
        return None if end == [begin] else Span(begin, end[0] if end else None)

    def compare(self, one: Record, other: Record) -> int:
        """Returns a negative number if `one` comes first, 0 if the keys are equal. Null comes first, also if
        descending."""
        for name, descends in self.fields:
            a, b = one[name], other[name]
            if a == b:
                continue
            if a is None or b is None:
                return -1 if a is None else 1
            a, b = (v.encode() if isinstance(v, str) else v for v in (a, b))
            return -1 if (a < b) != descends else 1
        return 0


# ---------------------------------------------------------------- conditions


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal)


KEY_CONDITIONS: dict[str | None, Predicate] = {
    None: lambda r: True,
    "k = 2": lambda r: r["k"] == 2,
    "k < 1 or k > 2": lambda r: r["k"] < 1 or r["k"] > 2,
}
CONDITIONS: dict[str | None, Predicate] = {
    "v > 0": lambda r: r["v"] is not None and r["v"] > 0,
    "not v > 0": lambda r: r["v"] is not None and r["v"] <= 0,
    "one is null or high = 0": lambda r: r["one"] is None or (r["high"] is not None and r["high"] == 0),
    "\"end\" = 'a' and low != 1": lambda r: r["end"] == "a" and r["low"] is not None and r["low"] != 1,
    "s in ('', 'a')": lambda r: r["s"] in ("", "a"),
    "any > 1": lambda r: is_number(r["any"]) and (r["any"] != r["any"] or r["any"] > 1),
    "not any = 0.1": lambda r: is_number(r["any"]) and float(r["any"]) != 0.1,
    "any in ('a', '1')": lambda r: r["any"] in ("a", "1"),
    "any is null": lambda r: r["any"] is None,
    "any > timestamp '1970-01-01T00:00:00.000000001Z'": lambda r: r["any"] == LATER_MOMENT,
    **KEY_CONDITIONS,
}
"""For each condition, a function that evaluates it."""


# ---------------------------------------------------------------- the pool


@dataclass(frozen=True)
class Erased:
    """What a delete or a replace removed; `started` has the version on which it began, and its id."""

    version: int
    span: Span
    covers: Predicate
    replaces: bool = False
    started: tuple[int, str] = (0, "")


@dataclass
class Model:
    """What one pool should hold: the records of every transaction in the order of arrival, and what was
    deleted."""

    kind: str
    order: Order
    names: list[str]
    """The fields of all records."""
    loads: dict[int, list[Record]] = field(default_factory=dict)
    erased: list[Erased] = field(default_factory=list)

    def conditions(self) -> tuple[str | None, ...]:
        """The conditions that the pool's kind allows: records of an aggregate pool are deleted by key only."""
        return tuple(KEY_CONDITIONS if self.kind == "aggregate" else CONDITIONS)

    def inside(self, record: Record, span: Span) -> bool:
        return span.holds(self.order.place(record[self.order.names[0]]))

    def _is_covered(self, record: Record, erased: Erased) -> bool:
        return self.inside(record, erased.span) and erased.covers(record)

    def land(self, version: int, records: list[Record], started: tuple[int, str]) -> None:
        """Adds a load, without the records that are hidden by replaces which began later and were committed
        earlier."""
        overtaken = [e for e in self.erased if e.replaces and e.version > started[0] and e.started > started]
        self.loads[version] = [r for r in records if not any(self._is_covered(r, e) for e in overtaken)]

    def at(self, version: int) -> list[Record]:
        """Returns the records at a version, in order."""
        erased = [e for e in self.erased if e.version <= version]
        arrived = [
            (record, any(e.version > number and self._is_covered(record, e) for e in erased))
            for number, records in sorted(self.loads.items())
            for record in (records if number <= version else [])
        ]
        by_key = functools.cmp_to_key(lambda a, b: self.order.compare(a[0], b[0]))
        groups: list[list[tuple[Record, bool]]] = []
        for one in sorted(arrived, key=by_key):  # equal keys stay in the order of arrival
            if groups and self.order.compare(groups[-1][0][0], one[0]) == 0:
                groups[-1].append(one)
            else:
                groups.append([one])
        return [record for group in groups for record in self._combined(group)]

    def _combined(self, versions: list[tuple[Record, bool]]) -> list[Record]:
        if self.kind == "upsert":
            return [record for record, gone in versions[-1:] if not gone]
        group = [record for record, gone in versions if not gone]
        if self.kind == "append" or not group:
            return group
        folded = {name: _fold(FUNCTIONS.get(name, "last"), [r[name] for r in group]) for name in self.names}
        return [folded | {name: group[0][name] for name in self.order.names}]


def _fold(function: str, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if function in ("sum", "count"):
        return sum(known)
    if function in ("min", "max"):
        return min(known) if function == "min" else max(known)
    return known[0] if function == "first" else known[-1]
