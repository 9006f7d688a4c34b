"""Finds statements that need only counts, minima and maxima of one table, and rewrites them over partial answers.

    SELECT k, count(*), max(ts) - min(ts) FROM logs WHERE ts >= '2026-01-01' GROUP BY k HAVING count(*) > 1

A row of a partial answer summarizes many records: it has the fields of the GROUP BY, and a column for each call
of `count`, `min` and `max`.  The statement `partial` makes such rows; the statement `final` makes the answer
from them. The rest of the statement stays unchanged, and DuckDB computes it.

A statement is accepted only if the result is certain: one table, no join, no subquery, no other function,
groups by fields, and a WHERE of comparisons between a field and a constant, joined by AND.  Pure; called by
`from_state`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from log_lake.system_tables.bounds import is_compared
from log_lake.system_tables.columns import folded
from log_lake.system_tables.ends import is_plain

SqlNode = dict[str, Any]

_KEPT = ("CAST", "COMPARISON", "BETWEEN", "CONJUNCTION", "OPERATOR", "CASE")
"""Classes of expressions whose value follows from the values of their parts alone."""

_RISING = {"COMPARE_GREATERTHAN": True, "COMPARE_GREATERTHANOREQUALTO": True}
_FALLING = {"COMPARE_LESSTHAN": False, "COMPARE_LESSTHANOREQUALTO": False}
_DIRECTIONS = _RISING | _FALLING
"""For each comparison, whether it can only become true (and not false) when its left side grows."""

MOST_DIGITS = 18
"""Whole numbers with at most so many digits have at most 64 bits in SQL."""

MOST_CALLS = 1_000
"""The most calls and conditions of a statement; one with more is run over all records."""


class _NotCertain(Exception):
    """Raised if the statement may need more than partial answers contain."""


@dataclass(frozen=True)
class Call:
    """One call of an aggregate function in a statement: `count_star`, which has no field; or `count`, `min` or
    `max` of a field, by the field's name in SQL."""

    function: str
    field: str = ""


@dataclass(frozen=True)
class FieldComparison:
    """A comparison of a field with a constant.  `rises`: if it is true for a value, it is true for all greater
    values."""

    field: str
    rises: bool
    node: SqlNode


@dataclass(frozen=True)
class Aggregates:
    """A statement that partial answers suffice for.  `groups` are fields by their names in SQL.

    `columns`: for each call, its column in the partial answers.  `where`: the comparisons, which must all be
    true.
    """

    table: str
    groups: tuple[str, ...]
    columns: dict[Call, str]
    where: tuple[FieldComparison, ...]
    node: SqlNode
    parts: tuple[SqlNode, ...]
    """The calls as they are in the statement, in the order of `columns`."""

    def partial(self) -> SqlNode:
        """Returns the statement that makes partial answers: the groups, then a column for each call."""
        groups = [node | {"alias": name} for node, name in zip(self._group_nodes, self.groups, strict=True)]
        calls = [node | {"alias": name} for node, name in zip(self.parts, self.columns.values(), strict=True)]
        return self._over(groups + calls) | {"where_clause": self.node["where_clause"]}

    def test(self, comparisons: Sequence[FieldComparison]) -> SqlNode:
        """Returns the statement that evaluates comparisons, a column for each, over records of the table."""
        nothing: SqlNode = {"group_expressions": [], "group_sets": []}
        columns = [one.node | {"alias": f"c{place}"} for place, one in enumerate(comparisons)]
        return self._over(columns) | nothing

    def final(self, whole: Mapping[str, SqlNode], names: Sequence[str]) -> SqlNode:
        """Returns the statement over partial answers; its columns have these names.

        `whole`: for each column of the partial answers, the expression that combines its values into one.
        """
        node = copy.deepcopy(self.node) | {"where_clause": None}
        for part in ("select_list", "having", "modifiers"):
            node[part] = self._replaced(node[part], whole)
        for one, name in zip(node["select_list"], names, strict=True):
            one["alias"] = name
        return node

    @property
    def _group_nodes(self) -> list[SqlNode]:
        return list(self.node["group_expressions"])

    def _over(self, shown: list[SqlNode]) -> SqlNode:
        return copy.deepcopy(self.node) | {
            "select_list": shown,
            "where_clause": None,
            "having": None,
            "modifiers": [],
        }

    def _replaced(self, part: Any, whole: Mapping[str, SqlNode]) -> Any:
        if isinstance(part, list):
            return [self._replaced(one, whole) for one in part]
        if not isinstance(part, dict):
            return part
        call = _call(part, self.node)
        if call is not None:
            return whole[self.columns[call]] | {"alias": part["alias"]}
        return {name: self._replaced(value, whole) for name, value in part.items()}


def aggregates_of(tree: Any, fields: Mapping[str, pa.Field]) -> Aggregates | None:
    """Returns what a SELECT needs, from DuckDB's parse tree; None if it may need the records.

    `fields` are those of the table, by their names in SQL.
    """
    statements = tree.get("statements", ())
    node = statements[0].get("node", {}) if len(statements) == 1 else {}
    if not is_plain(node, grouped=True):
        return None
    try:
        return _Reading(node, fields).aggregates()
    except _NotCertain:
        return None


class _Reading:
    """One statement, while its parts are checked."""

    def __init__(self, node: SqlNode, fields: Mapping[str, pa.Field]) -> None:
        self._node = node
        self._fields = {folded(name): (name, field) for name, field in fields.items()}
        self._calls: dict[Call, SqlNode] = {}
        self._groups: list[str] = []
        self._aliases = {folded(one["alias"]) for one in node["select_list"] if one["alias"]}

    def aggregates(self) -> Aggregates:
        node = self._node
        if node["group_sets"] not in ([], [list(range(len(node["group_expressions"])))]):
            raise _NotCertain
        source = node["from_table"]
        aliases = [folded(one["alias"]) for one in node["select_list"] if one["alias"]]
        if folded(source["alias"] or source["table_name"]) in self._fields or len(set(aliases)) < len(
            aliases
        ):
            raise _NotCertain  # such a name means one of two things
        for one in node["select_list"]:
            name = folded(one["alias"])
            if name in self._fields and folded(_column(one, node) or "") != name:
                raise _NotCertain  # the name may mean the field, or the other value
        self._groups = [self._group(one) for one in node["group_expressions"]]
        for part in ("select_list", "having", "modifiers"):
            self._look(node[part])
        where = self._where(node["where_clause"])
        if not (self._groups or self._calls) or len(self._calls) + len(where) > MOST_CALLS:
            raise _NotCertain
        begin = "="
        while any(name.startswith(begin) for name in self._fields):  # ends: names are finite
            begin += "="
        columns = {call: f"{begin}{place}" for place, call in enumerate(self._calls)}
        table, parts = node["from_table"]["table_name"], tuple(self._calls.values())
        return Aggregates(table, tuple(self._groups), columns, where, node, parts)

    def _field(self, expression: SqlNode) -> tuple[str, pa.Field]:
        named = self._fields.get(folded(_column(expression, self._node) or ""))
        if named is None:
            raise _NotCertain
        return named

    def _group(self, expression: SqlNode) -> str:
        name, field = self._field(expression)
        if not (is_compared(field) or pa.types.is_boolean(field.type)):
            raise _NotCertain
        return name

    def _look(self, part: Any) -> None:
        """Notes the calls in a part.  Raises _NotCertain for anything but a call, a group or a constant."""
        if isinstance(part, list):
            for one in part:
                self._look(one)
        if not isinstance(part, dict):
            return
        kind = part.get("class")
        if kind == "COLUMN_REF":
            self._check_column(part)
            return
        if (call := _call(part, self._node)) is not None:
            if call.field:
                call_field, field = self._field(part["arguments"][0]["expression"])
                if call.function != "count" and not (is_compared(field) or _is_plain_number(field.type)):
                    raise _NotCertain
                assert folded(call_field) == call.field
            self._calls.setdefault(call, part)
            return
        if kind == "FUNCTION" and not part["is_operator"]:
            raise _NotCertain
        if kind is not None and kind not in (*_KEPT, "FUNCTION", "CONSTANT"):
            raise _NotCertain
        for value in part.values():
            self._look(value)

    def _check_column(self, expression: SqlNode) -> None:
        name = folded(_column(expression, self._node) or "")
        is_group = name in map(folded, self._groups)
        is_alias = name in self._aliases and name not in self._fields and len(expression["column_names"]) == 1
        if not (is_group or is_alias):
            raise _NotCertain

    def _where(self, clause: SqlNode | None) -> tuple[FieldComparison, ...]:
        if clause is None:
            return ()
        if clause["type"] == "CONJUNCTION_AND":
            return tuple(one for child in clause["children"] for one in self._where(child))
        if clause["type"] == "COMPARE_BETWEEN":
            if _form(clause["lower"]) != _form(clause["upper"]):
                raise _NotCertain  # SQL takes all three to one type, which may be another than that of two
            sides = (("COMPARE_GREATERTHANOREQUALTO", "lower"), ("COMPARE_LESSTHANOREQUALTO", "upper"))
            return tuple(self._comparison(_compare(type, clause["input"], clause[at])) for type, at in sides)
        if clause["class"] != "COMPARISON":
            raise _NotCertain
        types = [clause["type"]]
        if types == ["COMPARE_EQUAL"]:
            types = ["COMPARE_GREATERTHANOREQUALTO", "COMPARE_LESSTHANOREQUALTO"]
        return tuple(self._comparison(_compare(type, clause["left"], clause["right"])) for type in types)

    def _comparison(self, node: SqlNode) -> FieldComparison:
        rises = _DIRECTIONS.get(node["type"])
        if rises is None:
            raise _NotCertain
        column, constant = node["left"], node["right"]
        if _column(column, self._node) is None:
            column, constant, rises = constant, column, not rises
        name, field = self._field(column)
        if not is_compared(field) or not _is_constant(constant):
            raise _NotCertain
        if pa.types.is_string(field.type) and (constant.get("literal") or {}).get("kind") != "STRING":
            raise _NotCertain  # SQL would turn the texts into numbers, whose order is another
        return FieldComparison(name, rises, node)


def _compare(type: str, left: SqlNode, right: SqlNode) -> SqlNode:
    compared = {"class": "COMPARISON", "type": type, "alias": "", "left": left, "right": right}
    return compared | {"query_location": left["query_location"], "query_location_length": 0}


def _call(part: SqlNode, node: SqlNode) -> Call | None:
    """Returns the call that the expression is; None if partial answers cannot contain it."""
    if part.get("class") != "FUNCTION" or part["is_operator"]:
        return None
    if part["filter"] or part["schema"] or part["catalog"] or part["distinct"] or part["order_bys"]["orders"]:
        return None
    name, arguments = part["function_name"].lower(), part["arguments"]
    if name == "count_star" and not arguments:
        return Call(name)
    if name not in ("count", "min", "max") or len(arguments) != 1 or arguments[0]["name"]:
        return None
    argument = arguments[0]["expression"]
    if name == "count" and (argument.get("literal") or {}).get("kind") == "INTEGER":
        return Call("count_star")
    column = _column(argument, node)
    return None if column is None else Call(name, folded(column))


def _column(expression: SqlNode, node: SqlNode) -> str | None:
    """Returns the field that the expression names, with or without the table's name; None if it names none."""
    is_column = expression.get("class") == "COLUMN_REF"
    names: Sequence[str] = expression["column_names"] if is_column else ()
    source = node["from_table"]
    table = source["alias"] or source["table_name"]
    if len(names) == 2 and folded(names[0]) == folded(table):
        return names[1]
    return names[0] if len(names) == 1 else None


def _is_constant(expression: Any) -> bool:
    """Whether an expression has one value: constants, casts and operators."""
    if isinstance(expression, list):
        return all(map(_is_constant, expression))
    if not isinstance(expression, dict):
        return True
    kind = expression.get("class")
    if kind not in (None, "CONSTANT", "CAST", "FUNCTION") or (
        kind == "FUNCTION" and not expression["is_operator"]
    ):
        return False
    return all(map(_is_constant, expression.values()))


def _form(constant: SqlNode) -> str:
    """Returns how a constant is written, because its type depends on that: a literal, or a text after the name of
    a type. Raises _NotCertain."""
    literal: SqlNode | None
    literal, of_type = constant.get("literal"), ""
    if constant["class"] == "CAST":
        literal, of_type = constant["child"].get("literal"), _without_places(constant["type_expr"])
    literal = literal or {}
    kind = literal.get("kind")
    if kind == "STRING" or (kind == "INTEGER" and not of_type and len(literal["text"]) <= MOST_DIGITS):
        return f"{kind} {of_type}"
    raise _NotCertain


def _without_places(expression: Any) -> str:
    """Returns the expression as text, without its position in the statement."""
    if isinstance(expression, dict):
        kept = ((name, _without_places(value)) for name, value in expression.items())
        return str([one for one in kept if not one[0].startswith("query_location")])
    if isinstance(expression, list):
        return str([_without_places(one) for one in expression])
    return repr(expression)


def _is_plain_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_boolean(kind))
