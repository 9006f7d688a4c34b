"""Finds statements that need only one end of a pool's key: `order by KEY limit n`, `min` and `max` of the key.

DuckDB passes neither an order nor a limit to the scan, so it would read every record.  Such a statement is run
over a range at the end of the key first.  If the answer has as many rows as the limit, or a minimum, other
records cannot change it, whatever the WHERE says.  Otherwise the statement is run over a wider range, and in
the end over all records.

A statement is accepted only if that is certain: one pool, no join, no subquery, functions only in WHERE.
Called by `sql`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pyarrow as pa

from lake_core.errors import Corrupt, ObjectMissing
from lake_core.history import Reference
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from log_lake.lake.view import View
from log_lake.reading.split import split

MOST_ROWS = 10_000
"""Rows of an answer that are held in memory to count them.  A statement with a larger limit is run over all
records."""

MOST_FOOTERS = 16
"""The most objects at the end of the key whose footers are read; the keys sampled in them give the bounds of
ranges."""

MOST_PARTS = 1_024
"""The most parts into which the keys of these objects are divided."""

RECORDS = 16_384
"""How many records the first range has at least, approximately."""


@dataclass(frozen=True)
class End:
    """The end of a pool's key that a statement needs: the table, the field that decides the order, by its name in
    SQL, and which end it is.

    `greatest`: the greatest values are wanted.  `rows`: the answer is complete if it has this many rows; None:
    it is one row, of `min` or `max`, and is complete if that has a value.
    """

    table: str
    field: str
    greatest: bool
    rows: int | None
    skipped: int = 0

    @property
    def records(self) -> int:
        """How many records the answer needs, at least."""
        return (self.rows or 1) + self.skipped

    def is_whole(self, answer: pa.Table) -> bool:
        """Whether records outside of the range cannot change this answer."""
        if self.rows is not None:
            return bool(answer.num_rows == self.rows)
        return not any(column.null_count for column in answer.columns)


def end_of(tree: Any) -> End | None:
    """Returns the end that a SELECT needs, from DuckDB's parse tree; None if it may need all records."""
    statements = tree.get("statements", ())
    node = statements[0].get("node", {}) if len(statements) == 1 else {}
    if not is_plain(node):
        return None
    table, modifiers = node["from_table"]["table_name"], node["modifiers"]
    kinds = [modifier["type"] for modifier in modifiers]
    if kinds == ["ORDER_MODIFIER", "LIMIT_MODIFIER"]:
        return _of_order(table, node, *modifiers)
    return None if kinds else _of_aggregates(table, node["select_list"])


def is_plain(node: Mapping[str, Any], *, grouped: bool = False) -> bool:
    """Whether the node is a SELECT from one table without a subquery, and, unless `grouped`, without groups."""
    source = node.get("from_table") or {}
    groups = node.get("group_expressions") or node.get("group_sets") or node.get("having")
    return (
        node.get("type") == "SELECT_NODE"
        and source.get("type") == "BASE_TABLE"
        and not (source["schema_name"] or source["catalog_name"] or source["sample"] or source["at_clause"])
        and not (source["column_name_alias"] or node["cte_map"]["map"] or (groups and not grouped))
        and not (node["sample"] or node["qualify"])
        and node["aggregate_handling"] == "STANDARD_HANDLING"
        and not any(part.get("class") in ("SUBQUERY", "WINDOW") for part in _parts(node))
    )


def _parts(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _parts(inner)


def _of_order(
    table: str, node: Mapping[str, Any], order: Mapping[str, Any], limit: Mapping[str, Any]
) -> End | None:
    field = _column(order["orders"][0]["expression"])
    shown = node["select_list"]
    if (
        field is None
        or len(order["orders"]) > 1
        or any(part.get("class") == "FUNCTION" for part in _parts(shown))
    ):
        return None
    if any(one.get("alias", "").lower() == field.lower() and _column(one) != field for one in shown):
        return None  # the order is that of another value, which has this name
    if any(one.get("class") == "STAR" and (one["replace_list"] or one["rename_list"]) for one in shown):
        return None
    rows, skipped = _count(limit["limit"]), _count(limit["offset"]) if limit["offset"] else 0
    if limit["limit_type"] != "ROW_COUNT" or not rows or skipped is None or rows + skipped > MOST_ROWS:
        return None
    return End(table, field, order["orders"][0]["type"] == "DESCENDING", rows, skipped)


def _of_aggregates(table: str, shown: Sequence[Mapping[str, Any]]) -> End | None:
    """Returns the end if all columns are `min`, or all are `max`, of one field."""
    calls = {(one.get("function_name", "").lower(), (_argument(one) or "").lower()) for one in shown}
    function, field = calls.pop() if len(calls) == 1 else ("", "")
    if function not in ("min", "max") or not field:
        return None
    return End(table, field, function == "max", None)


def _argument(call: Mapping[str, Any]) -> str | None:
    """Returns the field that a function is called with, if that is its only argument."""
    arguments = call.get("arguments", ())
    if len(arguments) != 1 or call["filter"] or call["schema"] or call["order_bys"]["orders"]:
        return None
    return _column(arguments[0]["expression"])


def _column(expression: Mapping[str, Any]) -> str | None:
    names: Sequence[Any] = (
        expression.get("column_names", ()) if expression.get("class") == "COLUMN_REF" else ()
    )
    return str(names[0]) if len(names) == 1 else None


def _count(expression: Mapping[str, Any] | None) -> int | None:
    literal = (expression or {}).get("literal") or {}
    text = str(literal.get("text", "")) if literal.get("kind") == "INTEGER" else ""
    return int(text) if text.isdecimal() else None


def ranges(view: View, *, last: bool, records: int) -> Iterator[KeyRange]:
    """Yields ranges at the first or the last end of the key, each wider than the one before.

    The first has about `records` records.  No range is the whole key.  If a footer cannot be read, no more
    ranges follow: the scan of all records reports the fault, or does not need the object.  Raises Unavailable.
    """
    by_end = sorted(view.references, key=attrgetter("high" if last else "low"), reverse=last)
    before = EVERYTHING
    for times in (1, 8, 64):
        try:
            key_range = _range(view, by_end, last=last, records=times * records)
        except (ObjectMissing, Corrupt):
            return
        if key_range == EVERYTHING:
            return
        if key_range != before:
            yield key_range
        before = key_range


def _range(view: View, by_end: Sequence[Reference], *, last: bool, records: int) -> KeyRange:
    near = _near(by_end, records)
    parts = min(MOST_PARTS, sum(reference.records for reference in near) // max(records, RECORDS))
    if parts > 1:
        pieces = split(
            near,
            view.store,
            pool_id=view.config.id,
            key_range=EVERYTHING,
            pieces=parts,
            max_footers=MOST_FOOTERS,
        )
        return pieces[-1] if last else pieces[0]
    rest = by_end[len(near) :]
    if not rest:
        return EVERYTHING
    return KeyRange(max(r.high for r in rest)) if last else KeyRange(b"", min(r.low for r in rest))


def _near(by_end: Sequence[Reference], records: int) -> Sequence[Reference]:
    """Returns the references nearest to the end that together have at least so many records."""
    count = 0
    for place, reference in enumerate(by_end):
        if count >= records:
            return by_end[:place]
        count += reference.records
    return by_end
