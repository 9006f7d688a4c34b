"""The list of pools: the configuration of a pool, and the actions that change the list."""

from __future__ import annotations

import msgspec

from lake_core.ids import check_id
from lake_core.keys import PoolKey
from lake_core.keys.spec import ARRIVAL
from lake_core.naming import check_pool_name
from lake_core.records.decoding import check_counts, check_times


class CloneOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a clone began with: a branch of the pool `source` (its id) at a version; `name` is the name that the
    pool had then.  `homes` are the pools in whose folders objects of the clone may lie, by id."""

    source: str = msgspec.field(name="pool")
    name: str
    version: int
    branch: str
    homes: tuple[str, ...]

    def __post_init__(self) -> None:
        for id in (self.source, *self.homes):
            check_id(id, what="a clone: a pool")
        check_counts("a clone", version=self.version)

    @property
    def text(self) -> str:
        """The revision with which the clone began, as users write it, with the name that the source had then."""
        return f"{self.name}@{self.version}"


class PoolConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The configuration of a pool.  Key, kind and aggregates never change; name and `settings` may.

    `restored` is the version of the list of pools in which it was last restored; 0 if it was never dropped.
    `clone` is what a clone began with, None for other pools.
    """

    id: str
    name: str
    key: PoolKey
    kind: str = "append"
    settings: dict[str, str] = {}
    aggregates: dict[str, str] = {}
    restored: int = 0
    clone: CloneOrigin | None = None

    def __post_init__(self) -> None:
        check_id(self.id, what=f"pool {self.name[:80]!r}: its folder")
        check_pool_name(self.name)
        check_counts(f"pool {self.name!r}", restored=self.restored)

    @property
    def homes(self) -> frozenset[str]:
        """The ids of the other pools in whose folders objects of this pool may lie."""
        return frozenset(() if self.clone is None else self.clone.homes)

    def key_of(self, sub_pool: str) -> PoolKey:
        """Returns the key that sorts a sub-pool's records ("" for the pool itself); sub-pools keep the order of
        arrival."""
        return ARRIVAL if sub_pool else self.key


class CreatePool(msgspec.Struct, frozen=True, tag="create_pool"):
    """Adds a pool to the list."""

    pool: PoolConfig


class ConfigurePool(msgspec.Struct, frozen=True, tag="configure_pool"):
    """Changes settings of a pool; an empty value resets a setting to its default."""

    pool_id: str = msgspec.field(name="pool")
    settings: dict[str, str]


class RenamePool(msgspec.Struct, frozen=True, tag="rename_pool"):
    """Gives the pool another name."""

    pool_id: str = msgspec.field(name="pool")
    name: str

    def __post_init__(self) -> None:
        check_pool_name(self.name)


class DropPool(msgspec.Struct, frozen=True, tag="drop_pool"):
    """Moves the pool to the dropped ones; its objects stay until the vacuum of dropped pools."""

    pool_id: str = msgspec.field(name="pool")


class RestorePool(msgspec.Struct, frozen=True, tag="restore_pool"):
    """Restores a dropped pool under a name; for a listed pool, whose drop was interrupted, it changes the name."""

    pool_id: str = msgspec.field(name="pool")
    name: str

    def __post_init__(self) -> None:
        check_pool_name(self.name)


class DeletePool(msgspec.Struct, frozen=True, tag="delete_pool"):
    """Says that the objects of a dropped pool are being deleted: it cannot be restored any more."""

    pool_id: str = msgspec.field(name="pool")


class ForgetPool(msgspec.Struct, frozen=True, tag="forget_pool"):
    """Says that all objects of a dropped pool are deleted, so that the list forgets the pool."""

    pool_id: str = msgspec.field(name="pool")


PoolAction = CreatePool | ConfigurePool | RenamePool | DropPool | RestorePool | DeletePool | ForgetPool


class DroppedPool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dropped pool that is still on the store: who dropped it, when (microseconds since 1970), and in which
    version of the list.  `is_deleted`: its objects are being deleted."""

    pool: PoolConfig
    version: int = msgspec.field(name="n")
    time: int
    author: str
    is_deleted: bool = msgspec.field(name="deleted", default=False)

    def __post_init__(self) -> None:
        check_counts(f"dropped pool {self.pool.id}", version=self.version)
        check_times(f"dropped pool {self.pool.id}", time=self.time)


class PoolsEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the journal of pools.  `time` is in microseconds since 1970.  `previous` is the checksum of
    the entry before it (`journal.link`)."""

    id: str
    time: int
    author: str
    actions: tuple[PoolAction, ...]
    previous: int = 0

    def __post_init__(self) -> None:
        check_id(self.id, what="entry of the list of pools")
        check_times(f"entry {self.id} of the list of pools", time=self.time)

    @property
    def written_at(self) -> float:
        """The entry's time in seconds since 1970, by the author's clock."""
        return self.time / 1e6
