"""A condition as text: `parse(show(c)) == c`, except for the readings, `Unless` and `Called`.

The readings are the value of a comparison as values of other classes (`records.conditions`).  The text does not
have them; `check` computes them again.
"""

from __future__ import annotations

from lake_core.records.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Path, Unless
from log_lake.where.literals import show_literal
from log_lake.where.words import quoted, show_name


def show(condition: Condition) -> str:
    """Returns the condition as text; on one line unless a name or a text in it has several."""
    match condition:
        case And(of):
            return " and ".join(_inside(member) for member in of)
        case Or(of):
            return " or ".join(_inside(member) for member in of)
        case Not(IsNull(field)):
            return f"{show_path(field)} is not null"
        case Not(In(field, values)):
            return f"{show_path(field)} not in ({_listed(values)})"
        case Not(of):
            return f"not ({show(of)})"
        case Called(function, version, names=names):
            return f"{function}@{version}({', '.join(map(show_name, names))})"
        case Unless(of):
            return f"({show(of)}) is not true"
        case Compare(field, op, value):
            return f"{show_path(field)} {op} {show_literal(value)}"
        case In(field, values):
            return f"{show_path(field)} in ({_listed(values)})"
        case IsNull(field):
            return f"{show_path(field)} is null"


def show_path(path: Path) -> str:
    """Returns a field's path in the text form."""
    return show_name(path[0]) if len(path) == 1 else ".".join(quoted(name) for name in path)


def _inside(member: Condition) -> str:
    return f"({show(member)})" if isinstance(member, And | Or) else show(member)


def _listed(values: tuple[bytes, ...]) -> str:
    return ", ".join(show_literal(value) for value in values)
