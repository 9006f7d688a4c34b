"""One pool as a page: what it holds, whether it is well, its fields and its settings.

No data object is opened, except to count the records of a small pool, as `lake show` does.  The first records
are a separate answer (`sample`), so this answer does not wait for them.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from lake_core.errors import without_secrets
from lake_core.history import Snapshot
from lake_core.naming import MAIN, REJECTED
from lake_core.schemas.hidden import user_fields
from lake_core.values.types import show_type
from log_lake.compaction.ranges import figures
from log_lake.lake import Lake
from log_lake.lake.counting import records_seen
from log_lake.lake.holds import clones_of
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.reading.summary import FieldSummary
from log_lake.settings.settings import KNOWN
from log_lake.texts.keytext import key_text
from log_lake.texts.value import show
from log_lake.vacuum.reach import reach
from log_lake.view.figures import figures_of
from log_lake.view.health import Health, health_of
from log_lake.view.overview import lag_of

MAX_FIELDS = 1_000
"""The most fields that are listed, the first of the pool."""
MAX_RANGES = 200
"""The most ranges that are listed, the first of the pool."""
MAX_BOUND = 80
"""The most characters that are shown of a least or greatest value."""


class SubPoolRow(msgspec.Struct, frozen=True):
    """A sub-pool, and the number of its records."""

    pool: str
    records: int


class FieldRow(msgspec.Struct, frozen=True):
    """A field: its type, the number of nulls, the least and the greatest value; None if they are not known."""

    name: str
    type: str
    nulls: int | None = None
    low: str | None = None
    high: str | None = None


class SettingRow(msgspec.Struct, frozen=True):
    """A setting as text, and what it means; `chosen`: it differs from the default."""

    name: str
    text: str
    meaning: str
    chosen: bool


class RangeRow(msgspec.Struct, frozen=True):
    """A range between split points (`lake.ranges.PoolRange`); a bound is "" at an end of the pool."""

    low: str
    high: str
    records: int
    size: int
    objects: int
    straddling: int
    depth: int


class RemovedObjects(msgspec.Struct, frozen=True):
    """Removed objects that can come back: how many, their bytes, and until when (in seconds since 1970)."""

    objects: int
    size: int
    until: float | None


class PoolPage(msgspec.Struct, frozen=True):
    """A branch of a pool now; `clone_of` is what a clone began with, "" for other pools.

    `clones` are those that may need objects of the pool.

    `records` counts those that readers see, and is an upper bound unless `is_exact`; `stored` those in objects.
    `ranges` is empty unless the pool has split points.  `complete` is the oldest version that can be read
    whole; `bounds` says why the fields have no figures.  Times are in seconds since 1970, sizes in bytes.
    """

    pool: str
    id: str
    key: str
    kind: str
    clone_of: str
    clones: list[str]
    branch: str
    branches: list[str]
    tags: list[str]
    version: int
    time: float
    now: float
    records: int
    is_exact: bool
    stored: int
    objects: int
    size: int
    depth: int
    tombstones: int
    low: str
    high: str
    complete: int
    removed: RemovedObjects
    sub_pools: list[SubPoolRow]
    fields: list[FieldRow]
    fields_in_all: int
    ranges: list[RangeRow]
    ranges_in_all: int
    bounds: str
    settings: list[SettingRow]
    health: Health


def pool_page(lake: Lake, name: str, *, branch: str = MAIN) -> PoolPage:
    """Returns the page of a pool, or of a sub-pool.  Raises NotFound (pool, branch), Corrupt, Unavailable."""
    pool = lake.pool(name)
    view = pool.at_branch(branch)
    references, live, left = view.references, records_seen(view), reach(pool)
    sub_pools = [
        SubPoolRow(f"{pool.config.name}.{one}", records_of(view.snapshot, one))
        for one in view.snapshot.sub_pools()
    ]
    fields, bounds = _fields(view)
    return PoolPage(
        pool=pool.name,
        id=pool.config.id,
        key=str(view.key),
        kind=pool.config.kind,
        clone_of="" if pool.config.clone is None else pool.config.clone.text,
        clones=sorted(one.name for one in clones_of(lake.catalog.load().state, pool.config.id)),
        branch=branch,
        branches=sorted(view.state.branches),
        tags=sorted(name for name, tag in view.state.tags.items() if not tag.deleted),
        version=view.version,
        time=view.state.time / 1e6,
        now=view.now,
        records=live.records,
        is_exact=live.is_exact,
        stored=live.stored,
        objects=len({r.object for r in references}),
        size=sum(r.size for r in references),
        depth=view.depth,
        tombstones=len(view.tombstones),
        low=_cut(key_text(min(r.low for r in references), view.key)) if references and view.key.names else "",
        high=_cut(key_text(max(r.high for r in references), view.key))
        if references and view.key.names
        else "",
        complete=left.oldest,
        removed=RemovedObjects(left.objects, left.size, left.first),
        sub_pools=sub_pools,
        fields=fields[:MAX_FIELDS],
        fields_in_all=len(fields),
        ranges=_ranges(view) if view.points else [],
        ranges_in_all=len(view.points) + 1,
        bounds=bounds,
        settings=_settings(pool),
        health=_health(lake, pool, view),
    )


def records_of(snapshot: Snapshot, sub_pool: str) -> int:
    """Returns the number of records in a sub-pool, where no record hides another."""
    return snapshot.totals(sub_pool).records


def _health(lake: Lake, pool: Pool, view: View) -> Health:
    checkpoints = (mark.version for mark in pool.history.journal.marks().checkpoints)
    tail = view.version - min(max(checkpoints, default=0), view.version)
    main = pool.at_branch() if view.branch != MAIN else view
    lag = lag_of(figures_of(main.of_sub_pool("")), pool.settings, tail=tail, now=view.now)
    set_aside = records_of(view.snapshot, REJECTED) if REJECTED in view.snapshot.sub_pools() else 0
    return health_of(lake, pool, lag=lag, set_aside=set_aside, branch=view.branch)


def _fields(view: View) -> tuple[list[FieldRow], str]:
    """Returns the fields, and why they have no figures; "" if they have."""
    summary = view.summary()
    return [
        _field_row(one.name, show_type(one), summary.fields.get(one.name)) for one in user_fields(view.schema)
    ], summary.why


def _field_row(name: str, kind: str, summary: FieldSummary | None) -> FieldRow:
    if summary is None:
        return FieldRow(name, kind)
    low, high = (None if value is None else _cut(show(value)) for value in (summary.low, summary.high))
    return FieldRow(name, kind, summary.nulls, low, high)


def _ranges(view: View) -> list[RangeRow]:
    shown = figures(view.references, view.points)[:MAX_RANGES]
    bounds = ["", *(_cut(key_text(point, view.key)) for point in view.points[:MAX_RANGES]), ""]
    return [
        RangeRow(low, high, one.records, one.size, one.objects, one.straddling, one.depth)
        for (low, high), one in zip(pairwise(bounds), shown, strict=False)
    ]


def _settings(pool: Pool) -> list[SettingRow]:
    """Returns all settings, then the declared types of fields."""
    rows = [
        SettingRow(name, without_secrets(text), setting.meaning, text != setting.default)
        for name, setting in KNOWN.items()
        for text in (pool.settings.text(name),)
    ]
    declared = [
        SettingRow(f"type.{name}", show_type(field), "the declared type of the field", True)
        for name, field in pool.settings.declared.items()
    ]
    return rows + declared


def _cut(text: str) -> str:
    return text if len(text) <= MAX_BOUND else text[: MAX_BOUND - 1] + "…"
