"""Makes the index objects of one data object: while it is written, or afterwards from its records.

A failure is never that of the load or the rewriting: an index that is missing costs only time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lake_core.errors import LakeError
from lake_core.records.conditions import Path
from lake_core.store import Store
from log_lake.indexes.bloom import Numbers, filter_of
from log_lake.indexes.hashes import indexed_field, numbers_of
from log_lake.indexes.layout import index_bytes
from log_lake.indexes.names import index_name
from log_lake.indexes.rule import IndexRule

log = logging.getLogger(__name__)

MOST_VALUES = 8_000_000
"""Distinct values of an object that are indexed; an object with more has no index.  Each takes 16 bytes of memory
while the object is written, and the index of so many has 11 MB."""

_GATHERED = 1 << 20
"""Numbers that are gathered before doubles are removed."""


@dataclass
class _Values:
    """The distinct values of one field so far."""

    path: Path
    field: pa.Field
    parts: list[Numbers] = field(default_factory=list)
    size: int = 0
    few: int = _GATHERED

    def add(self, table: pa.Table) -> None:
        numbers = numbers_of(table, self.path, self.field)
        self.parts.append(numbers)
        self.size += len(numbers)
        if self.size > self.few:
            self.distinct()

    def distinct(self) -> Numbers:
        numbers = distinct_of(np.concatenate(self.parts))
        self.parts, self.size = [numbers], len(numbers)
        self.few = max(_GATHERED, 2 * self.size)
        return numbers


def distinct_of(numbers: Numbers) -> Numbers:
    """The distinct numbers, ascending.  NumPy's `unique` takes four times as long."""
    numbers = np.sort(numbers)
    repeated = numbers[1:] == numbers[:-1]
    return numbers[np.concatenate(([True], ~repeated))] if repeated.any() else numbers


class IndexWriter:
    """Gathers the values of one data object, and writes its index objects after it.

    All tables have the schema of the first.
    """

    def __init__(self, rules: Iterable[IndexRule]) -> None:
        self._rules = tuple(rules)
        self._values: dict[IndexRule, _Values] | None = None

    def add(self, table: pa.Table) -> None:
        """Adds records of the object."""
        if self._values is None:
            self._values = {}
            for rule in self._rules:
                if (indexed := indexed_field(table.schema, rule.field)) is not None:
                    self._values[rule] = _Values(*indexed)
        for rule, values in list(self._values.items()):
            values.add(table)
            if values.size > MOST_VALUES and len(values.distinct()) > MOST_VALUES:
                del self._values[rule]

    def write(self, store: Store, pool_id: str, object_id: str) -> int:
        """Writes the index objects of the data object; returns their bytes.  Logs a failure."""
        written = 0
        for rule, values in (self._values or {}).items():
            name = index_name(pool_id, object_id, rule.digest)
            numbers = values.distinct()
            data = index_bytes(rule, object_id, values=len(numbers), filter=filter_of(numbers))
            try:
                store.create(name, data)
                written += len(data)
            except LakeError as error:
                log.warning("%s: the index was not written, so readers read more: %s", name, error)
        return written
