"""The kind of a pool as a rule for records of equal keys.

A field of an aggregate pool without a function keeps its last value.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lake_core.naming import PARQUET
from lake_core.records.pools import PoolConfig

DEFAULT = "last"

ROOM_DIGITS = 12
"""Digits of a sum that are reserved for the number of records: 10^12 of the largest values of a key do not
overflow (decision 53)."""

SUM_DIGITS = 38
"""Digits of a sum of integers or decimals."""


class Rule(msgspec.Struct, frozen=True):
    """A pool's kind (listed in the package's docstring), and the functions of an aggregate pool's fields."""

    kind: str = "append"
    aggregates: tuple[tuple[str, str], ...] = ()

    @property
    def compared(self) -> tuple[str, ...]:
        """The fields whose values are compared or summed, so that they must have one class in all records."""
        return tuple(name for name, function in self.aggregates if function in ("sum", "min", "max"))

    @property
    def keeps_all(self) -> bool:
        """Whether the pool keeps all records with equal keys."""
        return self.kind == "append"

    def keeps_rows(self, formats: Iterable[str]) -> bool:
        """Whether records in one of these formats keep their own types (`hidden.ROW`); aggregated records never
        do."""
        return self.kind != "aggregate" and any(format != PARQUET for format in formats)

    def function(self, name: str) -> str:
        """Returns the name of the function that combines the values of a field outside the key."""
        return dict(self.aggregates).get(name, DEFAULT)


APPEND = Rule()


def rule_of(config: PoolConfig, sub_pool: str = "") -> Rule:
    """Returns the rule of a pool, or of one of its sub-pools ("" for the pool itself); sub-pools keep all
    records."""
    return APPEND if sub_pool else Rule(config.kind, tuple(sorted(config.aggregates.items())))
