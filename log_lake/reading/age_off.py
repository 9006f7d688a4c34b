"""Age-off: hides records that are older than the pool keeps them; pure.

    lake set logs age_off=ts:30d

The rule becomes a tombstone that is newer than every transaction.  Reading and compaction apply it like a
delete, so compaction drops the records that reading hides.  A time is a timestamp, a date, or a number of
seconds since 1970; this is decided for each record.  A record whose field holds another value does not age.  In
aggregate pools the field must be in the key: any other value is combined from all records of a key, and some of
these may lie in other objects.

The retention agent deletes by the same condition (`older_than`), in a transaction.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from lake_core.history.tombstone import NEVER, Tombstone
from lake_core.keys import KeyRange
from lake_core.keys.encoding import FIRST_SECOND, NAIVE, ZONED, Instant, encode_value
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Compare, Condition, Or
from lake_core.records.transactions import sequence
from lake_core.values.types import is_json

NAME = "age-off"


def age_off(policy: tuple[str, float] | None, schema: pa.Schema, *, now: float) -> tuple[Tombstone, ...]:
    """Returns the tombstone for a policy (field, seconds); nothing without a policy, or if no record has the
    field."""
    if policy is None or policy[0] not in schema.names:
        return ()
    name, seconds = policy
    condition = older_than(name, now - seconds)
    reason = f"age_off={name}:{seconds:g}s"
    return (newer_than_all(NAME, EVERYTHING, condition, time=int(now * 1e6), reason=reason),)


def tells_time(field: pa.Field) -> bool:
    """Whether values of the field may be times for `age_off`; a text never is, whatever it says."""
    kind = field.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return is_json(field) or is_number or pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def older_than(name: str, moment: float) -> Condition:
    """Returns the condition that the time in the field is before `moment`, in seconds since 1970."""
    moment = max(moment, FIRST_SECOND)  # the earliest time that a record can hold
    whole = int(moment // 1)
    nanos = int((moment - whole) * 1e6) * 1000
    bounds = (
        Instant((ZONED, whole, nanos)),
        Instant((NAIVE, whole, nanos)),
        dt.datetime.fromtimestamp(moment, dt.UTC).date(),
        moment,
    )
    # one comparison a class, since a field may hold values of several; those of other classes are null
    return Or(tuple(Compare((name,), "<", encode_value(bound)) for bound in bounds))


def newer_than_all(
    id: str,
    key_range: KeyRange,
    condition: Condition | None,
    *,
    time: int = 0,
    reason: str = "",
    sub_pool: str = "",
) -> Tombstone:
    """Returns a tombstone that is newer than every transaction, for rules that are not in the journal but act like
    a delete (age-off)."""
    seq = sequence(NEVER)
    return Tombstone(
        id,
        NEVER,
        seq,
        NEVER,
        "",
        time,
        key_range.low,
        key_range.high,
        condition=condition,
        reason=reason,
        sub_pool=sub_pool,
    )
