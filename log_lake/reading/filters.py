"""The filters of a pool: settings that hide records from every reader, and that compaction applies too; pure.

    age_off=ts:30d                  hides records that are older
    keep.where=level != 'debug'     hides records for which the condition is not true

A filter becomes a tombstone that is newer than every transaction.  So whatever applies deletes applies filters:
scans, native reads, streams, publications, counts, compaction.  Filters are settings, and no part of the journal.
So they hide the same records of every version and branch, and nothing once they are unset.
"""

from __future__ import annotations

import pyarrow as pa

from lake_core.history.tombstone import Tombstone
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Condition, NotTrue
from log_lake.fields.names import SAME, FieldNames
from log_lake.reading.age_off import NAME as AGE_OFF
from log_lake.reading.age_off import age_off, newer_than_all
from log_lake.settings import Settings
from log_lake.where.check import fitted

KEEP_WHERE = "keep-where"

SETTING_OF = {AGE_OFF: "age_off", KEEP_WHERE: "keep.where"}
"""The setting of each filter, by the id of its tombstone."""


def has_filters(settings: Settings) -> bool:
    """Whether the pool has a filter."""
    return any(map(settings.text, SETTING_OF.values()))


def shown_filters(settings: Settings) -> str:
    """Returns the filters of a pool as a text, which is "" without filters; equal texts mean equal filters."""
    texts = {name: text for name in SETTING_OF.values() if (text := settings.text(name))}
    return "; ".join(f"{name}={text}" for name, text in texts.items())


def filters_of(
    settings: Settings, schema: pa.Schema, names: FieldNames = SAME, *, now: float
) -> tuple[Tombstone, ...]:
    """Returns the tombstones of a pool's filters at a time, in seconds since 1970, for records of the stored
    schema.  Settings name fields as readers do (`names`)."""
    policy = settings["age_off"]
    by_age = (names.stored_name(policy[0]), policy[1]) if policy else None
    return (*age_off(by_age, schema, now=now), *_keep_where(settings, schema, names))


def _keep_where(settings: Settings, schema: pa.Schema, names: FieldNames) -> tuple[Tombstone, ...]:
    """Returns the tombstone for records that do not fulfil `keep.where`; nothing while no record has one of its
    fields, because the name may be wrong."""
    condition: Condition | None = settings["keep.where"]
    kept = None if condition is None else fitted(names.stored_condition(condition), schema)
    if kept is None:
        return ()
    reason = f"keep.where={settings.text('keep.where')}"
    return (newer_than_all(KEEP_WHERE, EVERYTHING, NotTrue(kept), reason=reason),)
