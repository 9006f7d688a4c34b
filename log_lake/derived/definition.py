"""Reads the query of a derived pool: its groups and the fields that it needs, or why it cannot be kept; pure.

A query can be kept if the records of its answer divide into groups, and each group follows from the records of
the source that have the group's values.  With GROUP BY these are the groups.  Without one, each key of the
source is a group: its records alone decide the answer's records of that key.  So whatever happens to the
source, some groups are touched, and computing these anew is enough.

The statement comes as DuckDB's parse tree.  DuckDB turns parts of it into text again, so they mean the same.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.phrases import did_you_mean, listed
from log_lake.system_tables.aggregates import SqlNode
from log_lake.system_tables.columns import folded
from log_lake.system_tables.statement import nodes

AGGREGATES = frozenset(
    {
        *("count", "count_star", "count_if", "sum", "min", "max", "avg", "mean", "bool_and", "bool_or"),
        *("bit_and", "bit_or", "bit_xor", "median", "quantile_cont", "quantile_disc"),
    }
)
"""Aggregates whose value does not depend on the order of the records."""

_CLOCK = frozenset(
    {
        *("current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"),
        *("current_user", "session_user", "user", "current_role", "current_schema", "current_catalog"),
    }
)
"""Names that SQL reads as a function if no field has them."""

_REFUSED_CLASSES = {
    "WINDOW": "a window function takes records of other groups",
    "SUBQUERY": "a subquery reads records beside those of the group",
    "PARAMETER": "a parameter has no value",
    "POSITIONAL_REFERENCE": "write the name of the field",
}

_REFUSED_CLAUSES = {
    "LIMIT_MODIFIER": "LIMIT: which records it leaves depends on all others",
    "LIMIT_PERCENT_MODIFIER": "LIMIT: which records it leaves depends on all others",
    "ORDER_MODIFIER": "ORDER BY: the pool is in the order of its key; leave it out",
    "DISTINCT_MODIFIER": "DISTINCT: write GROUP BY ALL in place of it",
}


@dataclass(frozen=True)
class Functions:
    """DuckDB's own list of its functions: the names of aggregates, and of functions whose value may change."""

    aggregates: frozenset[str]
    changing: Mapping[str, str]
    """By name, why the value may change."""
    steady: frozenset[str]
    """Those with one value for the same arguments."""


@dataclass(frozen=True)
class GroupColumn:
    """An expression by which records are grouped, and the field of the answer that has its value."""

    name: str
    node: SqlNode


@dataclass(frozen=True)
class Definition:
    """A query that can be kept.

    `table`: the name that the query has for its source.  `fields`: the names of the fields that it uses, as
    `folded` returns them; None means all fields.  `node`: the parse tree of its SELECT.
    """

    table: str
    groups: tuple[GroupColumn, ...]
    is_grouped: bool
    fields: frozenset[str] | None
    node: SqlNode

    @property
    def key(self) -> str:
        """The key that the derived pool has if none is given."""
        return ",".join(group.name for group in self.groups)

    def selects(self, columns: Sequence[SqlNode]) -> SqlNode:
        """Returns a SELECT of these columns without groups, over the same source and with the same WHERE."""
        return copy.deepcopy(self.node) | {
            "select_list": list(columns),
            "group_expressions": [],
            "group_sets": [],
            "aggregate_handling": "STANDARD_HANDLING",
            "having": None,
        }


def definition_of(
    tree: Any, *, columns: Sequence[str], fields: Set[str], key: Sequence[str], functions: Functions
) -> Definition:
    """Returns the definition of the query with this parse tree.

    `columns`: the names of the answer.  `fields`: the names of the source's fields in SQL.  `key`: the names of
    its key fields in SQL.  Raises InvalidInput, which names the clause that cannot be kept.
    """
    node = tree["statements"][0]["node"]
    _check_clauses(node)
    own = {folded(name) for name in fields}
    parts = [
        one
        for name in ("select_list", "where_clause", "having", "group_expressions")
        for one in nodes(node[name])
    ]
    _check_expressions(parts, own, functions)
    if doubled := sorted({name for name in columns if columns.count(name) > 1}):
        raise _refused(f"two columns are called {doubled[0]!r}", "give each a name of its own with AS")
    aggregated = any(_is_aggregate(one, functions) for one in parts)
    is_grouped = bool(node["group_expressions"]) or node["aggregate_handling"] == "FORCE_AGGREGATES"
    if aggregated and not is_grouped:
        raise _refused(
            "aggregates without GROUP BY make one record of the whole pool",
            "group by a field or an expression",
        )
    if is_grouped:
        groups = _groups(node, columns, own, functions)
    else:
        groups = _keys(node, columns, key)
    has_star = any(one.get("class") == "STAR" for one in parts)
    names = (
        None if has_star else frozenset(folded(name) for one in parts for name in one.get("column_names", ()))
    )
    return Definition(node["from_table"]["table_name"], groups, is_grouped, names, node)


def _refused(what: str, advice: str) -> InvalidInput:
    return InvalidInput(f"derive: the query cannot be kept: {what}; {advice}")


def _check_clauses(node: SqlNode) -> None:
    if node["type"] != "SELECT_NODE":
        raise _refused("UNION, EXCEPT and INTERSECT combine several answers", "derive a pool of each")
    if node["cte_map"]["map"]:
        raise _refused("WITH names another query", "write one SELECT over the source")
    source = node["from_table"]
    if source["type"] == "JOIN":
        raise _refused("a JOIN reads more than one pool", "derive from one pool, and join when you read")
    if source["type"] != "BASE_TABLE":
        raise _refused("FROM names something that is no pool", "write FROM and the name of the source")
    if source["column_name_alias"]:
        raise _refused("FROM renames the columns of the source", "leave the names out")
    if node["sample"] or source["sample"]:
        raise _refused("a SAMPLE takes records by chance", "leave it out")
    if node["qualify"]:
        raise _refused("QUALIFY takes records of other groups", "leave it out")
    for modifier in node["modifiers"]:
        clause, _, advice = _REFUSED_CLAUSES.get(modifier["type"], modifier["type"]).partition("; ")
        raise _refused(clause, advice or "leave it out")
    if len(node["group_sets"]) > 1 or any(
        len(one) != len(node["group_expressions"]) for one in node["group_sets"]
    ):
        raise _refused("ROLLUP, CUBE and GROUPING SETS make groups of groups", "derive a pool of each")


def _check_expressions(parts: Sequence[SqlNode], own: Set[str], functions: Functions) -> None:
    for one in parts:
        if why := _REFUSED_CLASSES.get(one.get("class", "")):
            raise _refused(why, "leave it out")
        if one.get("class") == "STAR" and (one["columns"] or one["replace_list"] or one["rename_list"]):
            raise _refused("COLUMNS, REPLACE and RENAME of a star", "write the columns")
        names = one.get("column_names") or [""]
        if len(names) == 1 and names[0].lower() in _CLOCK and folded(names[0]) not in own:
            raise _refused(f"{names[0]} is another value at another time", "compare with a constant")
        if one.get("class") == "FUNCTION":
            _check_function(one, functions)


def _check_function(one: SqlNode, functions: Functions) -> None:
    name = one["function_name"].lower()
    if why := functions.changing.get(name):
        raise _refused(f"{name}() {why}", "leave it out")
    if name == "age" and len(one["arguments"]) == 1:
        raise _refused("age() of one time is another value at another time", "give it two times")
    if name in functions.aggregates and name not in AGGREGATES:
        raise _refused(
            f"the aggregate {name}() may depend on the order of the records",
            f"these can be kept: {listed(sorted(AGGREGATES - {'count_star'}))}",
        )
    if name not in functions.steady:
        raise _refused(f"{name}() is no function that is known to have one value", "write another expression")


def _is_aggregate(one: SqlNode, functions: Functions) -> bool:
    return one.get("class") == "FUNCTION" and one["function_name"].lower() in functions.aggregates


def _groups(
    node: SqlNode, columns: Sequence[str], own: Set[str], functions: Functions
) -> tuple[GroupColumn, ...]:
    selected: list[SqlNode] = node["select_list"]
    if any(one.get("class") == "STAR" for one in selected):
        raise _refused("a star beside GROUP BY", "write the columns")
    named = list(zip(columns, selected, strict=True))
    if node["aggregate_handling"] == "FORCE_AGGREGATES":
        groups = [
            GroupColumn(name, one)
            for name, one in named
            if not any(_is_aggregate(part, functions) for part in nodes(one))
        ]
    else:
        groups = [_group(one, named, own) for one in node["group_expressions"]]
    groups = [group for group in groups if _nodes_with_columns(group.node)]
    if not groups:
        raise _refused("no field is grouped by", "group by a field or an expression over fields")
    return tuple({group.name: group for group in groups}.values())


def _group(one: SqlNode, named: Sequence[tuple[str, SqlNode]], own: Set[str]) -> GroupColumn:
    """The group of an expression of GROUP BY: a position, a name of the answer, or an expression of the answer."""
    literal = one.get("literal", {})
    if one.get("class") == "CONSTANT" and literal.get("kind") == "INTEGER":
        place = int(literal["text"]) - 1
        if 0 <= place < len(named):
            return GroupColumn(*named[place])
    names = one.get("column_names", ())
    if len(names) == 1 and folded(names[0]) not in own:
        for name, node in named:
            if folded(name) == folded(names[0]):
                return GroupColumn(name, node)
    for name, node in named:
        if _plain(node) == _plain(one):
            return GroupColumn(name, node)
    raise _refused(
        "an expression of GROUP BY is not among the columns, so no record shows its group",
        "select each of these expressions too",
    )


def _keys(node: SqlNode, columns: Sequence[str], key: Sequence[str]) -> tuple[GroupColumn, ...]:
    """The groups of a query without GROUP BY: the fields of the source's key, as the answer calls them."""
    selected: list[SqlNode] = node["select_list"]
    star = next((one for one in selected if one.get("class") == "STAR"), None)
    source = node["from_table"]
    called = folded(source["alias"] or source["table_name"])
    shown = {
        folded(one["column_names"][-1]): one["alias"] or one["column_names"][-1]
        for one in reversed(selected)
        if one.get("class") == "COLUMN_REF"
        and [folded(part) for part in one["column_names"][:-1]] in ([], [called])
    }
    groups = []
    for field in key:
        column: SqlNode = {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": [field]}
        name = shown.get(folded(field))
        if name is None and star is not None:
            excluded = {folded(one) for one in star["exclude_list"] if isinstance(one, str)}
            name = None if folded(field) in excluded else field
        if name is None or name not in columns:
            raise _refused(
                f"without GROUP BY it must have the key of the source, and {field!r} is missing",
                f"select {field} too; {did_you_mean(field, columns)}",
            )
        groups.append(GroupColumn(name, column))
    return tuple(groups)


def _nodes_with_columns(node: SqlNode) -> bool:
    return any(one.get("class") == "COLUMN_REF" for one in nodes(node))


def _plain(node: Any) -> Any:
    """The node without its place in the text and its alias, to compare it with others."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    left_out = ("alias", "query_location", "query_location_length")
    shown = {name: _plain(value) for name, value in node.items() if name not in left_out}
    if shown.get("class") == "COLUMN_REF":
        shown["column_names"] = [folded(name) for name in shown["column_names"]]
    return shown
