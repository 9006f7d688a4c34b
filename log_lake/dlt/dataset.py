"""The pools of a dataset of dlt: their names; open, make and drop them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from lake_core.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from log_lake.dlt.tables import PoolShape
from log_lake.lake import Lake
from log_lake.lake.author import default_metadata
from log_lake.lake.pool import Pool


@dataclass(frozen=True)
class DatasetPools:
    """The pools of one dataset in a lake; their names begin with the dataset's name.  If the dataset has no name,
    a pool has the name of its table."""

    uri: str
    name: str
    separator: str

    def __post_init__(self) -> None:
        if not re.search(r"[^A-Za-z0-9_]|__", self.separator):
            raise InvalidInput(
                f"separator={self.separator!r}: names of datasets and tables have such letters, so the pools of "
                "one dataset could pass for another's; use '.' or '__'"
            )

    @property
    def prefix(self) -> str:
        """The text with which the names of the dataset's pools begin."""
        return f"{self.name}{self.separator}" if self.name else ""

    @cached_property
    def lake(self) -> Lake:
        """The lake, opened.  Raises what `Lake.open` raises, and NotFound if it does not exist."""
        return Lake.open(self.uri, metadata=default_metadata())

    def make_lake(self) -> None:
        """Makes the lake if it does not exist."""
        try:
            _ = self.lake
        except NotFound:
            with contextlib.suppress(AlreadyExists, Conflict):  # another process was faster
                Lake.create(self.uri)

    def pool_name(self, table: str) -> str:
        """Returns the name of a table's pool."""
        return f"{self.prefix}{table}"

    def pool(self, table: str) -> Pool | None:
        """Returns the pool of a table; None if the table has no pool, or if the lake does not exist."""
        with contextlib.suppress(NotFound):
            return self.lake.pool(self.pool_name(table))
        return None

    def lacking(self, tables: Iterable[str]) -> list[str]:
        """Returns the tables that have no pool."""
        names = {table: self.pool_name(table) for table in tables}
        there = self.lake.pools_of(list(names.values()))
        return [table for table, name in names.items() if name not in there]

    def made(self, table: str, shape: PoolShape) -> Pool:
        """Returns the pool of a table.  If the table has no pool, makes one with the key and kind of
        `shape`."""
        if (pool := self.pool(table)) is not None:
            return pool
        name = self.pool_name(table)
        with contextlib.suppress(AlreadyExists):
            return self.lake.create_pool(name, key=shape.key, kind=shape.kind)
        return self.lake.pool(name)  # another process was faster

    def drop(self, table: str) -> None:
        """Drops the pool of a table, if there is one.  A dropped pool can be restored until it is vacuumed."""
        with contextlib.suppress(NotFound):
            self.lake.drop_pool(self.pool_name(table))

    def tables(self) -> list[str]:
        """Returns the names of the tables that have pools in this dataset.  Raises NotFound if the lake does not
        exist."""
        names = (pool.name for pool in self.lake.pools())
        return [name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix)]
