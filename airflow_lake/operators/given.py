"""What a template filled in: the parameters of a task when it runs.

A template gives '' for what is not there; if the DAG renders native objects, None, and values of any type.  A
delete with an empty bound would have no bound.  So a parameter that the DAG gives must hold something when the task
runs.  Numbers and times become the texts that an ordinary template makes of them.

Pure; called by the operators before they do anything (`LakeOperator.take`), and by the sensor.  `task` is the id of
the task, for errors.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from typing import Any


def text(value: Any, name: str, *, task: str, asked: Any = "None") -> str:
    """A text that is not blank.

    `asked` is what the DAG says: an ordinary template makes "None" of None, so "None" counts as empty unless the
    DAG itself says it.  Raises InvalidInput.
    """
    from lake_core.errors import InvalidInput

    match value:
        case str() if value.strip() and (value != "None" or asked == "None"):
            return value
        case None | str():
            pass
        case int() | float() | decimal.Decimal() if not isinstance(value, bool):
            return str(value)
        case dt.date():
            return value.isoformat()
        case _:
            raise InvalidInput(f"{task}: {name} must be a text (got {value!r})")
    raise InvalidInput(
        f"{task}: {name} is empty after its template was filled in (got {value!r}); nothing was done"
    )


def text_if_given(value: Any, name: str, *, task: str, asked: Any) -> str | None:
    """None if the DAG does not give the parameter (`asked` is None); otherwise as `text`."""
    return None if asked is None else text(value, name, task=task, asked=asked)


def text_or_empty(value: Any, name: str, *, task: str, asked: Any = "") -> str:
    """As `text`, for a parameter that the DAG may leave empty: then "".

    `asked` is what the DAG says.  If it says something, the template must give something.
    """
    if not asked and (value is None or value == ""):
        return ""
    return text(value, name, task=task, asked=asked)


def texts(value: Any, name: str, *, task: str) -> list[str]:
    """One text, or a list of them, which may be empty.  Raises InvalidInput."""
    from lake_core.errors import InvalidInput

    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [text(one, name, task=task, asked=None) for one in value]
    if isinstance(value, bytes | Mapping | set | frozenset):
        raise InvalidInput(f"{task}: {name} must be a text or a list of texts (got {value!r})")
    return [text(value, name, task=task, asked=None)]


def texts_by_name(value: Any, name: str, *, task: str) -> dict[str, str]:
    """Texts by name; true and false are spelled so.  Raises InvalidInput."""
    from lake_core.errors import InvalidInput

    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{task}: {name} must be texts by name, as {{'a': 'b'}} (got {value!r})")
    return {
        key: str(one).lower() if isinstance(one, bool) else one if one == "" else text(one, name, task=task)
        for key, one in value.items()
    }
