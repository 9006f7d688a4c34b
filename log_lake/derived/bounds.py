"""Finds between which values of the source's first key field the records of a group lie; pure.

If an expression never falls while the field grows, the records with one value of the expression lie between two
values of the field.  The rules below turn `expression = value` into such bounds, as SQL over the value, from
the outside of the expression to the field.  Both bounds are inclusive, and may be wider than the group.
"""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.system_tables.aggregates import SqlNode
from log_lake.system_tables.columns import folded

_UNITS = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"),
    *("decade", "century"),
)
_LONGER = {"quarter": "3 months", "decade": "10 years", "century": "100 years"}


@dataclass(frozen=True)
class FieldBounds:
    """The least and the greatest value that the field may have, each as SQL over the value of the group."""

    low: str
    high: str


def field_bounds(node: SqlNode, *, field: str, value: str) -> FieldBounds | None:
    """Returns the bounds of `field` in the records for which the expression `node` has the given value; None if
    they are not known.

    `value`: SQL for that value.
    """
    bounds = FieldBounds(value, value)
    while True:  # each round goes one expression inwards
        if node.get("class") == "COLUMN_REF":
            names = node["column_names"]
            return bounds if folded(names[-1]) == folded(field) and len(names) == 1 else None
        step = _inwards(node, bounds)
        if step is None:
            return None
        node, bounds = step


def _inwards(node: SqlNode, bounds: FieldBounds) -> tuple[SqlNode, FieldBounds] | None:
    if node.get("class") == "CAST":
        if node["type_expr"].get("type_name", "").upper() != "DATE":
            return None
        return node["child"], _longer(bounds, "1 day")
    if node.get("class") != "FUNCTION":
        return None
    name = node["function_name"].lower()
    arguments = [one["expression"] for one in node["arguments"]]
    if name in ("date_trunc", "datetrunc") and len(arguments) == 2:
        unit = _text(arguments[0]).lower().removesuffix("s")
        if unit not in _UNITS:
            return None
        return arguments[1], _longer(bounds, _LONGER.get(unit, f"1 {unit}"))
    if name == "time_bucket" and len(arguments) == 2 and (width := _interval(arguments[0])):
        return arguments[1], _longer(bounds, width)
    if name == "to_timestamp" and len(arguments) == 1:
        return arguments[0], FieldBounds(f"(epoch({bounds.low}) - 1)", f"(epoch({bounds.high}) + 1)")
    if name == "epoch" and len(arguments) == 1:
        return arguments[0], FieldBounds(
            f"to_timestamp({bounds.low} - 1)", f"to_timestamp({bounds.high} + 1)"
        )
    if name == "floor" and len(arguments) == 1:
        return arguments[0], FieldBounds(bounds.low, f"({bounds.high} + 1)")
    if name in ("//", "/") and len(arguments) == 2 and (divisor := _number(arguments[1])):
        return arguments[0], FieldBounds(
            f"(({bounds.low} - 1) * {divisor})", f"(({bounds.high} + 1) * {divisor})"
        )
    return None


def _longer(bounds: FieldBounds, width: str) -> FieldBounds:
    """Returns the bounds, longer by `width` at the high end, and by a second at the low end, because a value may
    be rounded before it is cut."""
    return FieldBounds(f"({bounds.low} - INTERVAL '1 second')", f"({bounds.high} + INTERVAL '{width}')")


def _text(node: SqlNode) -> str:
    literal = node.get("literal", {})
    return str(literal["text"]) if literal.get("kind") == "STRING" else ""


def _number(node: SqlNode) -> str:
    """A whole number above 0; "" for anything else."""
    literal = node.get("literal", {})
    text = str(literal.get("text", ""))
    return text if literal.get("kind") == "INTEGER" and text.isdecimal() and int(text) else ""


def _interval(node: SqlNode) -> str:
    """The length of a constant interval, as SQL writes it; "" for anything else."""
    if node.get("class") == "CAST" and node["type_expr"].get("type_name", "").upper() == "INTERVAL":
        return _text(node["child"]).replace("'", "")
    if node.get("class") == "FUNCTION" and node["function_name"].lower().startswith("to_"):
        unit = node["function_name"].lower().removeprefix("to_")
        argument = node["arguments"][0]["expression"]
        while argument.get("class") in ("CAST", "FUNCTION"):
            inside = argument.get("child") or (argument.get("arguments") or [{}])[0].get("expression", {})
            argument = inside
        number = _number(argument) or (_text(argument) if _text(argument).isdecimal() else "")
        return f"{number} {unit}" if number else ""
    return ""
