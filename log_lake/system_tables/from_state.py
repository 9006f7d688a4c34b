"""Answers counts, minima and maxima from the pool's state; reads only objects whose statistics do not suffice.

The statistics of an object become one partial answer (`aggregates`) if all of these are true:

- No other object or tombstone may hide or combine its records (`reading.known`).
- The bounds that the statement needs are exact.
- All of its records fulfil the WHERE, or none does.
- All of its records are in one group.

DuckDB reads all other objects, and makes partial answers of their records.  Then it makes the answer from all
partial answers.  DuckDB itself also evaluates the comparisons of the WHERE, with the least and the greatest
value of each object.  So every cast means the same as in the statement.  Called by `sql`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from lake_core.history import Reference
from lake_core.phrases import counted
from log_lake.lake.view import FAIL
from log_lake.reading.known import FieldStatistics, known_references, value_in
from log_lake.reading.summary import KeyEnds, key_ends
from log_lake.system_tables.aggregates import Aggregates, Call, FieldComparison, SqlNode
from log_lake.system_tables.columns import folded
from log_lake.system_tables.dataset import PoolDataset

NOT_EXACT, PARTLY, SEVERAL = (
    "its statistics do not tell a value that is asked for",
    "only some of its records may fulfil the condition",
    "its records may be of several groups",
)
"""Reasons why a statement must read an object."""

_WHOLE = {
    "count_star": "CAST(coalesce(sum({0}), 0) AS BIGINT)",
    "count": "CAST(coalesce(sum({0}), 0) AS BIGINT)",
}
"""For each function, the one that combines its values in partial answers; `min` and `max` combine their own."""


@dataclass(frozen=True)
class Division:
    """What a statement reads: partial answers of some objects, and the other objects, each with the reason.

    `objects`: the number of the pool's objects.  `left_out`: the number of objects without a record for the
    answer.
    """

    answers: pa.Table
    read: tuple[tuple[Reference, str], ...]
    objects: int
    left_out: int = 0

    @property
    def text(self) -> str:
        """Returns a line that says which objects are read, and why."""
        reasons = Counter(reason for _, reason in self.read)
        whys = "; ".join(f"{number:,}: {reason}" for reason, number in reasons.most_common())
        told = self.objects - self.left_out - len(self.read)
        return (
            f"reads {len(self.read):,} of {counted(self.objects, 'object')}{f' ({whys})' if whys else ''}; "
            f"the statistics of {told:,} answer, {self.left_out:,} cannot fulfil the condition or are deleted"
        )


class FromState:
    """One statement over one pool that partial answers suffice for."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, dataset: PoolDataset, aggregates: Aggregates
    ) -> None:
        self._connection, self._dataset, self._aggregates = connection, dataset, aggregates
        self._by_folded = {folded(name): (name, field) for name, field in dataset.fields.items()}

    def relation(self, names: Sequence[str]) -> Any | None:
        """Returns the answer, with columns of these names, as a relation of DuckDB; None if all objects must be
        read.

        Raises duckdb.Error and errors of Arrow; then the caller runs the statement over all records.
        """
        division = self.division
        if not division.answers.num_rows and not division.left_out:
            return None
        partial = [division.answers]
        if division.read:
            self._dataset.only = frozenset((r.object, r.low) for r, _ in division.read)
            read = self._asked(self._aggregates.partial(), self._dataset).to_arrow_table()
            partial.append(read.cast(division.answers.schema))
        whole = self._whole()
        return self._asked(self._aggregates.final(whole, names), pa.concat_tables(partial))

    def undo(self) -> None:
        """Makes the connection read all records of the pool again."""
        self._dataset.only = None
        self._connection.register(self._aggregates.table, self._dataset)

    @cached_property
    def division(self) -> Division:
        """Decides which objects are read, and which partial answers follow from statistics."""
        return self._from_ends() or self._from_references()

    def _from_ends(self) -> Division | None:
        """Returns the division if the pool's totals and the ends of the key suffice; then no reference is looked
        at."""
        view, aggregates = self._dataset.view, self._aggregates
        calls = list(aggregates.columns)
        if aggregates.where or aggregates.groups or view.on_missing != FAIL:
            return None
        key = view.key.fields[0].name if view.key.fields else ""
        fields = [self._field(call.field).name for call in calls if call.function != "count_star"]
        if any(call.function == "count" for call in calls) or set(fields) - {key}:
            return None
        ends = key_ends(view, wants_values=bool(fields))
        if ends is None:
            return None
        values = [_of_ends(call, ends) for call in calls]
        table = self._table([values] if ends.records else [])
        return Division(table, (), view.snapshot.totals(view.sub_pool).references)

    def _from_references(self) -> Division:
        view = self._dataset.view
        plan = view.plan(columns=[])
        certain = known_references(plan)
        read, rows, left_out = (
            list(certain.read),
            [],
            len(plan.references) - len(certain.references) - len(certain.read),
        )
        standings = self._standings(certain.references)
        for reference, standing in zip(certain.references, standings, strict=True):
            if standing is None:
                left_out += 1
                continue
            row = standing or self._row(reference, plan.schemas[reference.schema])
            if isinstance(row, str):
                read.append((reference, row))
            else:
                rows.append(row)
        return Division(self._table(rows), tuple(read), len(plan.references), left_out)

    def _row(self, reference: Reference, schema: pa.Schema) -> list[Any] | str:
        """Returns the groups and calls of a reference's records; or the reason why its object must be read."""
        row: list[Any] = []
        stored = self._dataset.view.names.stored_name
        for name in self._aggregates.groups:
            field = self._field(name)
            statistics = FieldStatistics.of(reference, stored(field.name), schema)
            value = (
                None
                if statistics is None or statistics.low != statistics.high
                else value_in(statistics.low, field.type)
            )
            if statistics is None or not (
                (value is not None and not statistics.nulls) or statistics.nulls == reference.records
            ):
                return SEVERAL
            row.append(value)
        for call in self._aggregates.columns:
            if call.function == "count_star":
                row.append(reference.records)
                continue
            field = self._field(call.field)
            statistics = FieldStatistics.of(reference, stored(field.name), schema)
            if statistics is None:
                return NOT_EXACT
            if call.function == "count":
                row.append(reference.records - statistics.nulls)
                continue
            if statistics.nulls == reference.records:
                row.append(None)
                continue
            if call.function == "max" and pa.types.is_floating(field.type):
                return NOT_EXACT  # NaN, which is in no bound, is the greatest
            value = value_in(statistics.low if call.function == "min" else statistics.high, field.type)
            if value is None:
                return NOT_EXACT
            row.append(value)
        return row

    def _standings(self, references: Sequence[Reference]) -> Iterable[str | None]:
        """Yields for each reference "" if all its records fulfil the WHERE, None if none does, otherwise a reason
        to read it."""
        comparisons = self._aggregates.where
        if not comparisons:
            return [""] * len(references)
        schemas = self._dataset.view.state.schema
        names = list(dict.fromkeys(one.field for one in comparisons))
        stored = self._dataset.view.names.stored_name
        lows: dict[str, list[Any]] = {name: [] for name in names}
        highs: dict[str, list[Any]] = {name: [] for name in names}
        nulls: dict[str, list[int | None]] = {name: [] for name in names}
        for reference in references:
            for name in names:
                field = self._field(name)
                statistics = FieldStatistics.of(reference, stored(field.name), schemas(reference.schema))
                low = high = None
                if statistics is not None:
                    low, high = value_in(statistics.low, field.type), value_in(statistics.high, field.type)
                is_known = statistics is not None and (
                    statistics.nulls == reference.records or (low is not None and high is not None)
                )
                lows[name].append(low if is_known else None)
                highs[name].append(high if is_known else None)
                nulls[name].append(statistics.nulls if is_known and statistics is not None else None)
        at_low, at_high = self._tested(comparisons, lows), self._tested(comparisons, highs)
        standings: list[str | None] = []
        for place, reference in enumerate(references):
            standing: str | None = ""
            for number, one in enumerate(comparisons):
                missing = nulls[one.field][place]
                least, most = (at_low, at_high) if one.rises else (at_high, at_low)
                if missing is None:
                    standing = PARTLY
                elif missing == reference.records or not most[number][place]:
                    standing = None
                    break
                elif missing or not least[number][place]:
                    standing = PARTLY
            standings.append(standing)
        return standings

    def _tested(
        self, comparisons: Sequence[FieldComparison], values: Mapping[str, list[Any]]
    ) -> list[list[Any]]:
        """Returns for each comparison whether it is true for each of the values."""
        schema = self._dataset.schema
        columns = {name: pa.array(ones, schema.field(name).type) for name, ones in values.items()}
        answer = self._asked(self._aggregates.test(comparisons), pa.table(columns)).to_arrow_table()
        return [column.to_pylist() for column in answer.columns]

    def _field(self, name: str) -> pa.Field:
        """Returns the stored field of a name in SQL."""
        return self._by_folded[folded(name)][1]

    def _table(self, rows: Sequence[Sequence[Any]]) -> pa.Table:
        """Partial answers as a table: the fields of groups, then a column for each call."""
        offered, fields = self._dataset.schema, list[pa.Field]()
        fields += [pa.field(name, offered.field(name).type) for name in self._aggregates.groups]
        for call, column in self._aggregates.columns.items():
            is_count = call.function.startswith("count")
            kind = pa.int64() if is_count else offered.field(self._by_folded[call.field][0]).type
            fields.append(pa.field(column, kind))
        columns = [pa.array([row[place] for row in rows], one.type) for place, one in enumerate(fields)]
        return pa.table(columns, schema=pa.schema(fields))

    def _whole(self) -> dict[str, SqlNode]:
        """Returns, for each column of the partial answers, the expression that combines its values into one."""
        calls = self._aggregates.columns
        texts = [
            _WHOLE.get(call.function, call.function + "({0})").format(f'"{name}"')
            for call, name in calls.items()
        ]
        if not texts:
            return {}
        tree = self._connection.execute("SELECT json_serialize_sql(?)", [f"SELECT {', '.join(texts)}"])
        ((text,),) = tree.fetchall()
        nodes: list[SqlNode] = json.loads(text)["statements"][0]["node"]["select_list"]
        return dict(zip(calls.values(), nodes, strict=True))

    def _asked(self, node: SqlNode, table: Any) -> Any:
        """Returns the relation of a statement that reads `table` in place of the pool."""
        self._connection.register(self._aggregates.table, table)
        tree = json.dumps({"error": False, "statements": [{"node": node, "named_param_map": []}]})
        ((sql,),) = self._connection.execute("SELECT json_deserialize_sql(?)", [tree]).fetchall()
        return self._connection.sql(sql)


def _of_ends(call: Call, ends: KeyEnds) -> Any:
    return (
        ends.records if call.function == "count_star" else ends.low if call.function == "min" else ends.high
    )
