"""The arguments of a write, as one value: `Branch` makes it, and each step takes what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records.conditions import Condition
from lake_core.records.pools import PoolConfig
from log_lake.loading.block import silent
from log_lake.settings import Settings
from log_lake.texts.keytext import RangeText


@dataclass(frozen=True, kw_only=True)
class WriteArguments:
    """The arguments of a load, a replace or a delete.

    `key_range` and `where`: which records are replaced or deleted.  `format`, `options` and `progress`: how
    files are read; `options` take precedence over the pool's settings of the same names.  `paths`: where on
    this machine the bytes of a file are, if not under its name.  `bulk`: no two objects of a load share a key,
    and they are cut at the pool's split points.  `token` and `message` are stored with the transaction; the
    reason of a delete is its message.  `count`: reads some records, if necessary, to count those that are
    removed.  `derives`: this keeps a derived pool, into which nothing else is written.
    """

    token: str = ""
    message: str = ""
    key_range: KeyRange | RangeText = EVERYTHING
    where: str | Condition | None = None
    count: bool = False
    format: str = "auto"
    options: Mapping[str, str] = field(default_factory=dict)
    progress: Callable[[str, float], None] = silent
    bulk: bool = False
    paths: Mapping[str, str] = field(default_factory=dict)
    derives: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.key_range, KeyRange | RangeText):
            raise InvalidInput(
                f"key_range={self.key_range!r}: give a range of keys: pool.at().key_range(low=..., high=...)"
            )
        if not isinstance(self.bulk, bool):  # bool("no") would be true
            raise InvalidInput(f"bulk={self.bulk!r}: give True or False")

    def settings(self, config: PoolConfig) -> Settings:
        """Returns the pool's settings, with the options of the write in place of settings of the same names."""
        return Settings({**config.settings, **self.options})
