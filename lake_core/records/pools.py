"""The list of pools: what a pool is declared to be, and the actions that change the list."""

from __future__ import annotations

import msgspec

from lake_core.keys import PoolKey
from lake_core.naming import check_pool_name


class PoolConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pool as declared: key, kind and aggregates never change, `settings` may (see `catalog.settings`)."""

    id: str
    name: str
    key: PoolKey
    kind: str = "append"
    settings: dict[str, str] = {}
    aggregates: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_pool_name(self.name)


class CreatePool(msgspec.Struct, frozen=True, tag="create_pool"):
    """A new pool."""

    pool: PoolConfig


class ConfigurePool(msgspec.Struct, frozen=True, tag="configure_pool"):
    """Settings to change; an empty value takes a setting back to its default."""

    pool_id: str = msgspec.field(name="pool")
    settings: dict[str, str]


class RenamePool(msgspec.Struct, frozen=True, tag="rename_pool"):
    """Another name for the pool with this id."""

    pool_id: str = msgspec.field(name="pool")
    name: str


class DropPool(msgspec.Struct, frozen=True, tag="drop_pool"):
    """The pool is no longer listed; its objects stay until the vacuum."""

    pool_id: str = msgspec.field(name="pool")


PoolAction = CreatePool | ConfigurePool | RenamePool | DropPool


class PoolsEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One object of the journal of pools."""

    id: str
    time: int
    author: str
    actions: tuple[PoolAction, ...]
