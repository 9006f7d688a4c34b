"""Describes the fields of a pool, by counts that DuckDB makes: nulls, least and greatest value, distinct values, a
histogram.

It runs two statements over the pool's scan: one for the figures, and one for the histograms, whose bins need
the least and the greatest value.  Called by `lake describe`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from lake_core.errors import InvalidInput, LakeError
from lake_core.values.types import is_json, show_type
from log_lake.lake.by_type import records_of
from log_lake.lake.view import View
from log_lake.system_tables.columns import sql_names
from log_lake.system_tables.dataset import PoolDataset
from log_lake.system_tables.engine import SQL_LIMITS, SqlLimits, connected

BINS = 10
"""The number of bars of a histogram."""

_SHOWN_VALUES = 3
"""How many frequent values of a field of texts or booleans are shown."""

_AT_ONCE = 200
"""How many fields one statement describes, because DuckDB holds figures for each in memory."""


@dataclass(frozen=True)
class FieldDescription:
    """One field: its type, how many records have no value, and what is known of the values.

    `least`, `greatest`: as text, None for values without an order.  `distinct` is an estimate, wrong by some
    percent. `histogram`: how many values are in each of `BINS` equal parts between the least and the greatest;
    empty unless the values are numbers or times.  `frequent`: some of the most frequent texts or booleans.
    """

    field: str
    type: str
    nulls: int
    least: str | None = None
    greatest: str | None = None
    distinct: int | None = None
    histogram: tuple[int, ...] = ()
    frequent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """The fields of the first `records` records of a pool; `is_all`: the pool has no more."""

    records: int
    is_all: bool
    fields: tuple[FieldDescription, ...]


def describe_fields(view: View, *, limit: int, limits: SqlLimits = SQL_LIMITS) -> Description:
    """Returns the description of the first `limit` records in key order.

    Raises InvalidInput (SQL has no name for a field, or too little memory) and what scans raise.
    """
    raised: list[LakeError] = []
    dataset = PoolDataset(view, records_of(view), raised)
    fields = list(dataset.stored)
    columns = [
        _Column(field, name) for field, name in zip(fields, sql_names(dataset.stored.names), strict=True)
    ]
    try:
        with connected(limits) as connection:
            connection.register("pool", dataset)
            look = _Look(connection, limit)
            descriptions = [
                one for at in range(0, len(columns), _AT_ONCE) for one in look.at(columns[at : at + _AT_ONCE])
            ]
            more = look.rows(f"SELECT count(*) FROM (SELECT 1 FROM pool LIMIT {limit + 1})")[0][0] > limit
    except duckdb.Error as error:
        if raised:
            raise raised[0] from error
        raise InvalidInput(f"describe: {' '.join(str(error).split())}") from error
    return Description(look.records, not more, tuple(descriptions))


@dataclass(frozen=True)
class _Column:
    field: pa.Field
    sql_name: str

    @property
    def name(self) -> str:
        quoted = self.sql_name.replace('"', '""')
        return f'"{quoted}"'

    @property
    def is_plain(self) -> bool:
        kind = self.field.type
        return not (is_json(self.field) or pa.types.is_nested(kind) or pa.types.is_null(kind))

    @property
    def is_ordered(self) -> bool:
        return self.is_plain and not pa.types.is_duration(self.field.type)  # SQL has durations as text

    @property
    def number(self) -> str:
        """The SQL expression of the value as a double, for a histogram; "" if the type has none."""
        kind = self.field.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            is_exact = pa.types.is_timestamp(kind) and kind.unit == "ns"
            # DuckDB 2.0.1 takes the epoch of seconds and milliseconds by way of nanoseconds, which hold 584 years
            return f"epoch({self.name})" if is_exact else f"epoch(CAST({self.name} AS TIMESTAMP))"
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return f"CAST({self.name} AS DOUBLE)" if is_number else ""

    @property
    def has_words(self) -> bool:
        return pa.types.is_string(self.field.type) or pa.types.is_boolean(self.field.type)


class _Look:
    """Runs statements over the first records of the pool."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, limit: int) -> None:
        self._connection, self._limit, self.records = connection, limit, 0

    def rows(self, sql: str) -> list[Any]:
        return self._connection.execute(sql).fetchall()

    def _one(self, parts: Sequence[str], columns: Sequence[_Column]) -> list[Any]:
        chosen = ", ".join(column.name for column in columns)
        (row,) = self.rows(f"SELECT {', '.join(parts)} FROM (SELECT {chosen} FROM pool LIMIT {self._limit})")
        return list(row)

    def at(self, columns: Sequence[_Column]) -> list[FieldDescription]:
        """Returns the descriptions of these columns."""
        figures = self._one(["count(*)", *(part for one in columns for part in _figures(one))], columns)
        self.records = figures.pop(0)
        width = len(_figures(columns[0]))
        rows = [figures[at : at + width] for at in range(0, len(figures), width)]
        drawn = [(one, row[5], row[6]) for one, row in zip(columns, rows, strict=True) if row[5] is not None]
        counts = self._one([_bins(one, low, high) for one, low, high in drawn], columns) if drawn else []
        bars = {one.sql_name: heights for (one, _, _), heights in zip(drawn, counts, strict=True)}
        return [
            _description(one, row, self.records, bars.get(one.sql_name))
            for one, row in zip(columns, rows, strict=True)
        ]


def _figures(column: _Column) -> list[str]:
    """Returns the parts of a SELECT that count a column; their number is the same for every column."""
    name, number = column.name, column.number
    ordered = column.is_ordered
    bound = f"({number}) FILTER (isfinite({number}))" if number else ""
    return [
        f"count({name})",
        f"CAST(min({name}) AS VARCHAR)" if ordered else "NULL",
        f"CAST(max({name}) AS VARCHAR)" if ordered else "NULL",
        f"approx_count_distinct({name})" if column.is_plain else "NULL",
        f"approx_top_k(CAST({name} AS VARCHAR), {_SHOWN_VALUES})" if column.has_words else "NULL",
        f"min{bound}" if number else "NULL",
        f"max{bound}" if number else "NULL",
    ]


def _bins(column: _Column, low: float, high: float) -> str:
    """Returns the histogram of a column between two bounds, as a map from the number of a bar to its count."""
    width = (high / 2 - low / 2) / BINS or 1.0  # of halves, because the whole range may be no double
    bar = f"floor(({column.number} / 2 - '{low / 2!r}'::DOUBLE) / '{width!r}'::DOUBLE)"
    place = f"CAST(least({BINS - 1}, {bar}) AS INTEGER)"
    return (
        f"histogram(CASE WHEN isfinite({column.number}) THEN {place} END)"  # FILTER comes after the argument
    )


def _description(
    column: _Column, row: list[Any], records: int, bars: dict[int, int] | None
) -> FieldDescription:
    there, least, greatest, distinct, frequent, _, _ = row
    return FieldDescription(
        column.field.name,
        show_type(column.field),
        records - there,
        least,
        greatest,
        None if distinct is None else min(distinct, there),
        () if bars is None else tuple(bars.get(bin, 0) for bin in range(BINS)),
        tuple(frequent or ()),
    )
