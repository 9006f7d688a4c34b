"""Finds what names a field: settings of its pool, and queries of pools that are derived from it; pure.

Such a field is neither renamed nor dropped, because the setting or query would then mean another field, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lake_core.conditions.fields import paths
from lake_core.records.pools import PoolConfig
from log_lake.settings import Settings
from log_lake.settings.settings import TYPE_PREFIX


def naming_settings(config: PoolConfig, field: str) -> list[str]:
    """Returns the settings of a pool that name the field, or a field inside it."""
    return [name for name, named in _named(config) if named == field or named.startswith(f"{field}.")]


def naming_queries(pools: Iterable[PoolConfig], source: str, field: str) -> list[str]:
    """Returns the pools that are derived from the pool with the id `source` by a query that may name the field.

    A query with a star takes every field.  Otherwise the field's name in the text counts, wherever it is.
    """
    return [
        pool.name
        for pool in pools
        if pool.settings.get("derive.from") == source
        and _may_name(pool.settings.get("derive.query", ""), field)
    ]


def _named(config: PoolConfig) -> Iterator[tuple[str, str]]:
    settings = Settings(config.settings)
    for name in config.settings:
        if name.startswith(TYPE_PREFIX):
            yield name, name.removeprefix(TYPE_PREFIX)
    for rule in settings.index_rules:
        yield rule.setting, rule.field
    if cluster := settings["cluster.by"]:
        yield "cluster.by", cluster.field
    if age_off := settings["age_off"]:
        yield "age_off", age_off[0]
    if by := settings["expire.by"]:
        yield "expire.by", by
    if kept := settings["keep.where"]:
        yield from (("keep.where", ".".join(path)) for path in paths(kept))
    if call := settings["keep.by"]:
        yield from (("keep.by", name) for name in call.fields)
    if roll_up := settings["roll_up"]:
        yield "roll_up", roll_up[0]


def _may_name(query: str, field: str) -> bool:
    has_star = "*" in re.sub(r"count\s*\(\s*\*\s*\)", "", query, flags=re.IGNORECASE)
    return has_star or re.search(rf"(?<!\w){re.escape(field)}(?!\w)", query, re.IGNORECASE) is not None
