"""Age-off: records whose time is further back than a pool keeps them are not visible; pure.

    lake set logs age_off=ts:30d

As a tombstone that is newer than everything: reading and compaction apply it as they do deletes, so compaction
drops what reading no longer shows.  In aggregate pools the field must be one of the key, since a value is what all
records of a key make, and some of them may lie elsewhere.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from lake_core.commits.tombstone import Tombstone, newer_than_all
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Instant, Value, encode_value, key_class
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Compare
from lake_core.values.types import is_json

NAME = "age-off"


def age_off(policy: tuple[str, float] | None, schema: pa.Schema, *, now: float) -> tuple[Tombstone, ...]:
    """The tombstone of a policy (field, seconds), none without one; a field that no record has covers nothing.

    Raises InvalidInput where the field's values are no times.
    """
    if policy is None or policy[0] not in schema.names:
        return ()
    name, seconds = policy
    field = schema.field(name)
    kind = "" if is_json(field) or pa.types.is_nested(field.type) else key_class(field.type)
    if kind == "null":
        return ()
    condition = Compare((name,), "<", encode_value(_value(now - seconds, kind, name)))
    reason = f"age_off={name}:{seconds:g}s"
    return (newer_than_all(NAME, EVERYTHING, condition, time=int(now * 1e6), reason=reason),)


def _value(moment: float, kind: str, name: str) -> Value:
    match kind:
        case "timestamp" | "timestamp with zone":
            whole = int(moment // 1)
            return Instant((0x09 if "zone" in kind else 0x08, whole, int((moment - whole) * 1e6) * 1000))
        case "date":
            return dt.datetime.fromtimestamp(moment, dt.UTC).date()
        case "number":
            return moment
    raise InvalidInput(
        f"age_off={name}: the field holds values of type {kind or 'JSON'}, not timestamps, dates or seconds; "
        "lake set POOL age_off= takes it back"
    )
