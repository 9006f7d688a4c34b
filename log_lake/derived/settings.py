"""The settings that make a pool a derived one, and how far one step of keeping it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake_core.errors import InvalidInput
from log_lake.settings import Settings
from log_lake.settings.setting_types import SettingType, count, if_given
from log_lake.settings.settings import Setting

if TYPE_CHECKING:  # lake --help and DAG files read this module, and records need Arrow
    from lake_core.records.pools import PoolConfig

SETTINGS = {
    "derive.from": Setting(
        if_given(SettingType(str, "the id of a pool")),
        "",
        "keep this pool as the answer of `derive.query` over the pool with this id (lake derive)",
    ),
    "derive.query": Setting(
        if_given(SettingType(str, "a SELECT")), "", "the query of a derived pool; a new one is computed whole"
    ),
    "derive.entries": Setting(
        count(1), "1000", "keep a derived pool in steps of at most so many entries of its source"
    ),
}


@dataclass(frozen=True)
class DerivePolicy:
    """The id of the source of a derived pool, its query, and the most entries of a step."""

    source: str
    query: str
    entries: int


def derive_policy_of(settings: Settings) -> DerivePolicy | None:
    """The policy from a pool's settings `derive.*`; None for a pool that is not derived."""
    source, query = settings["derive.from"], settings["derive.query"]
    return DerivePolicy(source, query, settings["derive.entries"]) if source and query else None


def own_policy(pool: PoolConfig) -> DerivePolicy:
    """Returns the policy of a derived pool.  Raises InvalidInput for a pool that is not derived."""
    policy = derive_policy_of(Settings(pool.settings))
    if policy is None:
        raise InvalidInput(
            f"pool {pool.name!r} is not derived; lake derive NAME --from POOL --query SQL makes one"
        )
    return policy
