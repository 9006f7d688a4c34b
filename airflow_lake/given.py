"""Reads the parameters of tasks, groups and triggers in one way, whether a DAG or a template gives them.

When a DAG file is parsed, `declared` refuses impossible values.  The value of a template (`is_template`) is
known only when the task runs (`filled_in`).

If a value is missing, a template renders '', or None if the DAG renders native objects; native values may have
any type. A delete with an empty bound would have no bound.  So a parameter that the DAG sets must not be empty
when the task runs. Numbers and times become the texts that an ordinary template would render.

Pure.  Called by the operators before they do anything (`LakeOperator.take`), by the sensor, the triggers and the
config of the groups.  `task` is the id of the task, for errors.
"""

from __future__ import annotations

import ast
import datetime as dt
import decimal
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

from lake_core.naming import MAIN
from log_lake.agents.roster import ParameterKind

OF_NOTHING = ("None", "nan", "NaN", "NaT", "<NA>", "inf", "-inf", "Infinity", "-Infinity")
"""Texts of missing values in Python and pandas, and of infinities: as a bound of a delete they would mean no
bound."""

MOST_DIGITS = 18
"""The most digits of a count."""


def is_template(value: Any) -> bool:
    """Whether the value, or one inside it, is known only when the task runs: a Jinja template, or another
    task's result."""
    match value:
        case str():
            return any(mark in value for mark in ("{{", "{%", "{#"))
        case Mapping():
            return any(map(is_template, value.values()))
        case list() | tuple() | set() | frozenset():
            return any(map(is_template, value))
    return hasattr(value, "iter_references")


def declared(value: Any, name: str, kind: ParameterKind, *, who: str, fixed: bool = False) -> Any:
    """Returns a parameter of a DAG as a value of that type, when the file is parsed; a template stays as it is.

    `fixed`: Airflow renders no templates in this parameter, so they are refused.  Raises ValueError.
    """
    from lake_core.errors import InvalidInput

    if not fixed and is_template(value):
        return list(value) if _is_collection(value) else value
    try:
        match kind:
            case ParameterKind.FLAG:
                return flag(value, name, task=who)
            case ParameterKind.COUNT:
                return count(value, name, task=who)
            case ParameterKind.TEXT if isinstance(value, str):
                return value
            case ParameterKind.TEXTS if isinstance(value, str) and value.strip():
                return [value]
            case ParameterKind.TEXTS if _is_collection(value) and all(
                isinstance(one, str) and one for one in value
            ):
                return list(value)
    except InvalidInput:
        pass
    raise ValueError(f"{who}: {name} must be {kind.value} (got {value!r})")


def fixed_flag(value: Any, name: str, *, who: str) -> bool:
    """Returns a flag in which Airflow renders no template.  Raises ValueError for a text, because "{{ ... }}"
    would count as true."""
    return bool(declared(value, name, ParameterKind.FLAG, who=who, fixed=True))


class LeftOut(Enum):
    """The default of an argument that a DAG may leave out; it shows that the DAG does not set the argument.

    None, or an empty list, is different: another task may return it by mistake, and a task mapped over it would
    delete more than it should.  A member of an enumeration keeps its identity when Airflow copies the operator.
    """

    LEFT_OUT = "left out"


LEFT_OUT = LeftOut.LEFT_OUT


def bounds(*, who: str, **values: str | LeftOut) -> dict[str, str | None]:
    """Returns the bounds by name; a bound that the DAG leaves out is None.  Raises ValueError if the DAG sets
    None."""
    for name, value in values.items():
        if value is None:
            raise ValueError(
                f"{who}: {name} is None; give a text, or leave it out: then there is no such bound"
            )
    return {name: None if isinstance(value, LeftOut) else value for name, value in values.items()}


def refuse_unread(arguments: Collection[str], unread: Mapping[str, str], *, who: str) -> None:
    """Raises ValueError if a DAG sets an argument that the operator does not read; `unread` has the reasons
    by name."""
    for name in arguments:
        if name in unread:
            raise ValueError(f"{who}: {name} has no meaning here: {unread[name]}; leave it out")


def _is_collection(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def branch_or_main(branch: Any) -> Any:
    """Returns the branch that a DAG sets; "" means main.  (A template that renders "" is refused when the task
    runs.)"""
    return MAIN if branch == "" else branch


def filled_in(value: Any, name: str, kind: ParameterKind, *, task: str) -> Any:
    """Returns the value of a rendered template as that type.  Raises InvalidInput, also if the value is
    empty."""
    match kind:
        case ParameterKind.FLAG:
            return flag(value, name, task=task)
        case ParameterKind.COUNT:
            return count(value, name, task=task)
        case ParameterKind.TEXT:
            return text(value, name, task=task, asked="")
    parts = [texts(one, name, task=task) for one in (value if _is_collection(value) else [value])]
    return [one for part in parts for one in part] or text("", name, task=task)


def flag(value: Any, name: str, *, task: str) -> bool:
    """Returns a flag as true or false; a text is accepted too.  Raises InvalidInput: an empty `dry_run` would
    change the lake."""
    from lake_core.errors import InvalidInput

    read = {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(read, bool):
        raise InvalidInput(f"{task}: {name} must be {ParameterKind.FLAG.value} (got {value!r})")
    return read


def count(value: Any, name: str, *, task: str) -> int:
    """Returns a whole number of at least 1; a text is accepted too.  Raises InvalidInput."""
    from lake_core.errors import InvalidInput

    is_number = isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) <= MOST_DIGITS
    read = int(value) if is_number else value
    if not isinstance(read, int) or isinstance(read, bool) or read < 1:
        raise InvalidInput(f"{task}: {name} must be {ParameterKind.COUNT.value} (got {value!r})")
    return read


def text(value: Any, name: str, *, task: str, asked: Any = LEFT_OUT) -> str:
    """Returns a text that is not blank.  Raises InvalidInput.

    `asked` is the text in the DAG file: an ordinary template renders None as "None", and a missing number as
    "nan".  So such a text counts as empty, unless the DAG file itself has it.  Without `asked` it is a text
    like any other.
    """
    from lake_core.errors import InvalidInput

    match value:
        case None:
            as_text = ""
        case str():
            as_text = str(value)  # of a template it may be Markup
        case int() | float() | decimal.Decimal() if not isinstance(value, bool):
            as_text = str(value)
        case dt.date():
            as_text = value.isoformat()
        case _:
            raise InvalidInput(f"{task}: {name} must be a text (got {value!r})")
    if as_text.strip() and (as_text not in OF_NOTHING or asked in (as_text, LEFT_OUT)):
        return as_text
    raise InvalidInput(
        f"{task}: {name} is empty after its template was filled in (got {value!r}); nothing was done"
    )


def text_if_given(value: Any, name: str, *, task: str, asked: Any) -> str | None:
    """Returns None if the DAG does not set the parameter (`asked` is None); otherwise the text, as `text`
    does."""
    return None if asked is None else text(value, name, task=task, asked=asked)


def text_or_empty(value: Any, name: str, *, task: str, asked: Any = "") -> str:
    """Returns the text, as `text` does; returns "" if the DAG file leaves the parameter empty (`asked`).

    If the DAG file sets the parameter, a template in it must not render an empty text.
    """
    if not asked and (value is None or value == ""):
        return ""
    return text(value, name, task=task, asked=asked)


def texts(value: Any, name: str, *, task: str) -> list[str]:
    """Returns a list of texts, which may be empty; one text becomes a list of one.

    Raises InvalidInput, also for a list that a template has made a text: no file has the name `['a.csv']`, so a
    replace with `missing="empty"` would remove all.
    """
    from lake_core.errors import InvalidInput

    if isinstance(value, str) and _is_list_as_text(value):
        raise InvalidInput(
            f"{task}: {name} is a list that became a text (got {value!r}); nothing was done. Pass the result of "
            f"the task itself ({name}=names(), or task.output), or set render_template_as_native_obj in the DAG"
        )
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_name(one, name, task=task) for one in value]
    if isinstance(value, bytes | Mapping | set | frozenset):
        raise InvalidInput(f"{task}: {name} must be a text or a list of texts (got {value!r})")
    return [_name(value, name, task=task)]


def _is_list_as_text(value: str) -> bool:
    """Whether a text is how Python, or JSON, writes a list."""
    if not value.lstrip().startswith("["):
        return False
    try:
        return isinstance(ast.literal_eval(value.strip()), list)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False


def _name(value: Any, name: str, *, task: str) -> str:
    """Returns a text of a list, such as a pool or a file; it may be called "nan"."""
    return text(value, name, task=task, asked=None if value == "None" else LEFT_OUT)


def texts_by_name(value: Any, name: str, *, task: str, asked: Any = None) -> dict[str, str]:
    """Returns texts by name; true and false become texts too.  Returns None only if the DAG file says None
    (`asked`).

    Raises InvalidInput.
    """
    from lake_core.errors import InvalidInput

    if value is None and asked is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{task}: {name} must be texts by name, as {{'a': 'b'}} (got {value!r})")
    return {
        key: str(one).lower() if isinstance(one, bool) else one if one == "" else text(one, name, task=task)
        for key, one in value.items()
    }
