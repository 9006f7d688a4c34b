"""Age-off: records whose time is further back than a pool keeps them are not visible; pure.

    lake set logs age_off=ts:30d

As a tombstone that is newer than everything: reading and compaction apply it as they do deletes, so compaction
drops what reading no longer shows.  A time is a timestamp, a date, or a number of seconds since 1970, record by
record: a record whose field holds anything else does not age.  In aggregate pools the field must be one of the key,
since a value is what all records of a key make, and some of them may lie elsewhere.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from lake_core.history.tombstone import Tombstone, newer_than_all
from lake_core.keys.encoding import Instant, encode_value
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Compare, Or
from lake_core.values.text import FIRST_SECOND, NAIVE, ZONED

NAME = "age-off"


def age_off(policy: tuple[str, float] | None, schema: pa.Schema, *, now: float) -> tuple[Tombstone, ...]:
    """The tombstone of a policy (field, seconds), none without one; a field that no record has covers nothing."""
    if policy is None or policy[0] not in schema.names:
        return ()
    name, seconds = policy
    moment = max(now - seconds, FIRST_SECOND)  # before it no time can be
    whole = int(moment // 1)
    nanos = int((moment - whole) * 1e6) * 1000
    bounds = (
        Instant((ZONED, whole, nanos)),
        Instant((NAIVE, whole, nanos)),
        dt.datetime.fromtimestamp(moment, dt.UTC).date(),
        moment,
    )
    # one comparison a class, since a field may hold values of several; those of other classes are null
    condition = Or(tuple(Compare((name,), "<", encode_value(bound)) for bound in bounds))
    reason = f"age_off={name}:{seconds:g}s"
    return (newer_than_all(NAME, EVERYTHING, condition, time=int(now * 1e6), reason=reason),)
