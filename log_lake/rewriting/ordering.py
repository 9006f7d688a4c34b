"""Whether records come in the order of an object: by key, then by age."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.schemas.hidden import ORDER, ORDINAL, SEQ
from log_lake.columns.keys import keys_at, sort_order
from log_lake.combine.groups import ends_key


@dataclass
class InOrder:
    """Checks the order of an object's records, which it gets as tables one after another.

    `strictly`: each key may occur only once.  `fault`: the first fault in words; "" if there is none so far.
    """

    key: PoolKey
    strictly: bool
    fault: str = ""
    _last: tuple[bytes, int, int] | None = None

    def see(self, table: pa.Table) -> None:
        """Checks the records of the next table, also against the last record before it; does nothing after a
        fault."""
        if table.num_rows and not self.fault:
            self.fault = self._fault_of(table)
            self._last = self._place(table, -1)

    def _fault_of(self, table: pa.Table) -> str:
        first, last = self._place(table, 0), self._last
        ages = tuple(table.column(name).to_numpy().astype(np.uint64) for name in ORDER.names)
        if sort_order(table, self.key, then=ages) is not None or (last and last > first):
            return "records out of order"
        if self.strictly and (not ends_key(table, self.key).all() or (last and last[0] == first[0])):
            return "two records of one key"
        return ""

    def _place(self, table: pa.Table, row: int) -> tuple[bytes, int, int]:
        row = row % table.num_rows
        (key,) = keys_at(table, [row], self.key)
        return key, table.column(SEQ)[row].as_py(), table.column(ORDINAL)[row].as_py()
