"""Reads and checks the kind of a pool and the functions of its fields, as a user declares them.

`parse_aggregates("bytes=sum,last_seen=max")` -> {"bytes": "sum", "last_seen": "max"}.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.phrases import choices
from lake_core.schemas.hidden import DELETED
from lake_core.values.types import is_json, show_type

KINDS = ("append", "upsert", "aggregate")
FUNCTIONS = ("sum", "min", "max", "count", "first", "last", "any_value")


def parse_aggregates(text: str) -> dict[str, str]:
    """Returns the functions by field, from `FIELD=FN,...`.  Raises InvalidInput that names the wrong part."""
    aggregates: dict[str, str] = {}
    for part in text.split(",") if text else []:
        name, equals, function = part.strip().rpartition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidInput(f"aggregate {part.strip()!r}: write FIELD=FN, such as bytes=sum")
        if name in aggregates:
            raise InvalidInput(f"aggregate {name!r} is named twice; give each field one function")
        aggregates[name] = function.strip().lower()
    return aggregates


def check_rule(kind: str, aggregates: Mapping[str, str], key: PoolKey) -> None:
    """Raises InvalidInput for an unknown kind or function, and for a function on a key field."""
    if kind not in KINDS:
        raise InvalidInput(f"unknown kind {kind!r}: use {choices(KINDS)}")
    if aggregates and kind != "aggregate":
        raise InvalidInput(f"aggregates are for pools of kind aggregate (got kind {kind}); choose that kind")
    for name, function in aggregates.items():
        if function not in FUNCTIONS:
            raise InvalidInput(f"aggregate {name}={function}: use {choices(FUNCTIONS)}")
        if name in key.names:
            raise InvalidInput(
                f"aggregate {name}={function}: {name!r} is a field of the key; name another field"
            )


def check_type(field: pa.Field, *, kind: str, function: str) -> None:
    """Raises InvalidInput if a field of a pool of this kind may not have this type; for example, a text cannot be
    summed."""
    if kind == "upsert" and field.name == DELETED and not pa.types.is_boolean(field.type):
        raise InvalidInput(
            f"field {DELETED!r} is of type {show_type(field)}; in an upsert pool it must be a boolean (delete "
            "marker)"
        )
    if function == "sum":
        check_summed(field)
    elif function in ("min", "max"):
        check_ordered(field, function)


def check_summed(field: pa.Field) -> None:
    kind = field.type
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_json(field) or not numbers:
        raise InvalidInput(
            f"field {field.name!r} is of type {show_type(field)}, and only numbers have a sum; convert it, or use "
            "another function"
        )


def check_ordered(field: pa.Field, function: str) -> None:
    if is_json(field) or pa.types.is_nested(field.type):
        raise InvalidInput(
            f"field {field.name!r} is of type {show_type(field)}, which has no order and so no {function}; "
            "convert it, or use another function"
        )
