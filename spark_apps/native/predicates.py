"""Predicates on the rows of a Parquet file in Spark's words: a small tree, and its SQL text.

A predicate has SQL's three answers: true, false, null.  A column is compared with a literal of its own type, so
Spark casts nothing.

Spark pushes comparisons down to Parquet, and for some values that loses rows: the statistics of a row group leave
NaN out, its dictionaries tell -0.0 from 0.0, and a date of October 1582 is pushed down as another day.  Spark
itself (as the lake) says that NaN comes after all numbers and that -0.0 equals 0.0.  So these are compared with a
form of the column that Spark does not push down (decision 86).

Texts and bytes are written in hexadecimal, times as counts since 1970, so that no setting of the session (escapes,
time zone) changes a literal.  Pure; called by `conditions`, `bounds` and `plan`.
"""

from __future__ import annotations

import datetime as dt
import typing
from dataclasses import dataclass

import pyarrow as pa

from lake_core.keys.encoding import TICKS
from lake_core.records.conditions import Path
from lake_core.values.numbers import Op


@dataclass(frozen=True)
class Compared:
    """A predicate that compares a column at a path with a value of its own type (not null)."""

    path: Path
    op: Op
    value: pa.Scalar


@dataclass(frozen=True)
class Empty:
    """A predicate that says whether the column is null; the predicate itself is never null."""

    path: Path


@dataclass(frozen=True)
class Always:
    """A predicate with the same answer for every value of a column.  It is null for a null in the column, and for
    each value if `answer` is None."""

    path: Path
    answer: bool | None


@dataclass(frozen=True)
class Constant:
    """A predicate with the same answer for every row."""

    answer: bool | None


@dataclass(frozen=True)
class All:
    """Several predicates joined by SQL's `and`."""

    of: tuple[Predicate, ...]


@dataclass(frozen=True)
class Any:
    """Several predicates joined by SQL's `or`."""

    of: tuple[Predicate, ...]


@dataclass(frozen=True)
class Inverted:
    """A predicate with SQL's `not` before it: null stays null."""

    of: Predicate


@dataclass(frozen=True)
class NotTrue:
    """True if its inner predicate is false or null.  So it selects the rows that stay if the inner predicate
    says which rows are hidden."""

    of: Predicate


Predicate = Compared | Empty | Always | Constant | All | Any | Inverted | NotTrue

TRUE = Constant(True)


def all_of(parts: list[Predicate]) -> Predicate:
    """Returns any number of predicates joined by `and`."""
    return parts[0] if len(parts) == 1 else All(tuple(parts)) if parts else TRUE


def any_of(parts: list[Predicate]) -> Predicate:
    """Returns any number of predicates joined by `or`."""
    return parts[0] if len(parts) == 1 else Any(tuple(parts)) if parts else Constant(False)


def comparisons(predicate: Predicate) -> int:
    """Returns the number of comparisons in the predicate."""
    match predicate:
        case All(of) | Any(of):
            return sum(comparisons(part) for part in of)
        case Inverted(of) | NotTrue(of):
            return comparisons(of)
        case _:
            return 1


def columns_of(predicate: Predicate) -> tuple[str, ...]:
    """Returns the names of the columns in the predicate, each once."""
    match predicate:
        case All(of) | Any(of):
            return tuple(dict.fromkeys(name for part in of for name in columns_of(part)))
        case Inverted(of) | NotTrue(of):
            return columns_of(of)
        case Constant():
            return ()
        case _:
            return (predicate.path[0],)


def sql(predicate: Predicate) -> str:
    """Returns the predicate as an expression of Spark SQL."""
    match predicate:
        case Compared(path, op, value):
            column = quoted(path)
            if is_moved(value):
                column = guarded(column, value.type)
            return f"{column} {op} {literal(value)}"
        case Empty(path):
            return f"{quoted(path)} is null"
        case Always(path, answer):
            return f"if({quoted(path)} is null, cast(null as boolean), {_word(answer)})"
        case Constant(answer):
            return _word(answer)
        case All(of):
            return "(" + " and ".join(map(sql, of)) + ")"
        case Any(of):
            return "(" + " or ".join(map(sql, of)) + ")"
        case Inverted(of):
            return f"(not {sql(of)})"
        case NotTrue(of):
            return f"(not coalesce({sql(of)}, false))"


def quoted(path: Path) -> str:
    """Returns a column, or a field inside a record, quoted so that Spark takes the names exactly."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def guarded(column: str, kind: pa.DataType) -> str:
    """Returns an expression with the same values as the column, in a form that Spark does not push down to
    Parquet."""
    if pa.types.is_floating(kind):
        return (
            f"if(isnan({column}), cast('NaN' as {'float' if kind.bit_width == 32 else 'double'}), {column})"
        )
    return f"least({column}, {column})"


FIRST_MOVED, LAST_MOVED = dt.datetime(1582, 10, 3), dt.datetime(1582, 10, 17)
"""Dates that the old calendar lacks, and two days more on either side, since local days differ.  Spark pushes a
date down as one of the old calendar, so these become another day (decision 86)."""


def is_moved(value: pa.Scalar) -> bool:
    """Whether Spark may push down another value than this one: a date or time of October 1582, or a floating-point
    number."""
    kind = value.type
    if pa.types.is_date32(kind):
        return FIRST_MOVED.date() <= value.as_py() <= LAST_MOVED.date()
    if pa.types.is_timestamp(kind) and kind.tz:
        return (
            FIRST_MOVED
            <= dt.datetime(1970, 1, 1) + dt.timedelta(seconds=value.value // TICKS[kind.unit])
            <= LAST_MOVED
        )
    return bool(pa.types.is_floating(kind))


def literal(value: pa.Scalar) -> str:
    """Returns the value as a literal of the Spark type in which its column is read."""
    kind = value.type
    plain: typing.Any = None if pa.types.is_timestamp(kind) else value.as_py()  # which would cut nanoseconds
    if pa.types.is_boolean(kind):
        return _word(plain)
    if pa.types.is_integer(kind):
        return f"cast('{plain}' as {integer_name(kind)})"
    if pa.types.is_floating(kind):
        return f"cast('{plain!r}' as {'float' if kind.bit_width == 32 else 'double'})"
    if pa.types.is_decimal(kind):
        return f"cast('{plain:f}' as decimal({kind.precision},{kind.scale}))"
    if pa.types.is_string(kind):
        return f"cast(X'{plain.encode().hex()}' as string)"
    if pa.types.is_binary(kind):
        return f"X'{plain.hex()}'"
    if pa.types.is_date32(kind):
        return f"date_from_unix_date({(plain - dt.date(1970, 1, 1)).days})"
    assert pa.types.is_timestamp(kind)
    micros = value.value * (10**6 // TICKS[kind.unit])
    if kind.tz:
        return f"timestamp_micros({micros})"
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    return f"timestamp_ntz'{moment.isoformat(sep=' ', timespec='microseconds')}'"


def integer_name(kind: pa.DataType) -> str:
    """Returns the name of the Spark type in which integers of the type are read."""
    if pa.types.is_unsigned_integer(kind):
        return "bigint" if kind.bit_width == 32 else "int"
    return {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[int(kind.bit_width)]


def _word(answer: bool | None) -> str:
    return "cast(null as boolean)" if answer is None else str(answer).lower()
