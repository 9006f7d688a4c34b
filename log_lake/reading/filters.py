"""The filters of a pool: settings that hide records from every reader, and that compaction applies too; pure.

    age_off=ts:30d                  hides records that are older
    keep.where=level != 'debug'     hides records for which the condition is not true
    keep.by=clean@3(level)          hides records that a function of the user's own does not keep

A filter becomes a tombstone that is newer than every transaction.  So whatever applies deletes applies filters:
scans, native reads, streams, publications, counts, compaction.  Filters are settings, and no part of the journal.
So they hide the same records of every version and branch, and nothing once they are unset.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lake_core.history.tombstone import Tombstone
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Called, Condition, Unless
from lake_core.values.types import show_type
from log_lake.fields.names import SAME, FieldNames
from log_lake.reading.age_off import NAME as AGE_OFF
from log_lake.reading.age_off import age_off, newer_than_all
from log_lake.reading.settings import OwnCall
from log_lake.settings import Settings
from log_lake.where.check import fitted

KEEP_WHERE, KEEP_BY = "keep-where", "keep-by"

SETTING_OF = {AGE_OFF: "age_off", KEEP_WHERE: "keep.where", KEEP_BY: "keep.by"}
"""The setting of each filter, by the id of its tombstone."""


def has_filters(settings: Settings) -> bool:
    """Whether the pool has a filter."""
    return any(map(settings.text, SETTING_OF.values()))


def shown_filters(settings: Settings) -> str:
    """Returns the filters of a pool as a text, which is "" without filters; equal texts mean equal filters."""
    texts = {name: text for name in SETTING_OF.values() if (text := settings.text(name))}
    return "; ".join(f"{name}={text}" for name, text in texts.items())


def idle_filters(settings: Settings, tombstones: Iterable[Tombstone]) -> tuple[str, ...]:
    """Returns the settings of those filters that have no tombstone, because no record ever had one of their
    fields."""
    active = {tombstone.id for tombstone in tombstones}
    return tuple(name for id, name in SETTING_OF.items() if settings.text(name) and id not in active)


def filters_of(
    settings: Settings, schema: pa.Schema, names: FieldNames = SAME, *, now: float
) -> tuple[Tombstone, ...]:
    """Returns the tombstones of a pool's filters at a time, in seconds since 1970.

    `schema` has every field that records of the branch have or had, with stored names.  Settings name fields as
    readers do (`names`).
    """
    policy = settings["age_off"]
    by_age = (names.stored_name(policy[0]), policy[1]) if policy else None
    kept = {KEEP_WHERE: settings["keep.where"], KEEP_BY: _own(settings)}
    hiding = [
        _keep(id, names.stored_condition(condition), settings, schema)
        for id, condition in kept.items()
        if condition is not None
    ]
    return (*age_off(by_age, schema, now=now), *(one for one in hiding if one is not None))


def _own(settings: Settings) -> Condition | None:
    """Returns the condition that calls the function of `keep.by`."""
    call: OwnCall | None = settings["keep.by"]
    if call is None:
        return None
    declared = settings.declared
    types = (show_type(declared[name]) if name in declared else "" for name in call.fields)
    return Called(call.function, call.version, call.fields, call.fields, tuple(types))


def _keep(id: str, condition: Condition, settings: Settings, schema: pa.Schema) -> Tombstone | None:
    """Returns the tombstone for records that do not fulfil the condition; None while no record ever had one
    of its fields, because the name may be wrong."""
    kept = fitted(condition, schema)
    if kept is None:
        return None
    setting = SETTING_OF[id]
    return newer_than_all(id, EVERYTHING, Unless(kept), reason=f"{setting}={settings.text(setting)}")
