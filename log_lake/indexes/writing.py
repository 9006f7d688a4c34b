"""Makes the index objects of one data object: while it is written, or afterwards from its records.

A failure here never fails the load or the rewriting: an index that is missing costs only time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import pyarrow as pa

from lake_core.errors import LakeError
from lake_core.store import Store
from log_lake.indexes.gathering import KINDS, GatheredIndex
from log_lake.indexes.hashes import indexed_field
from log_lake.indexes.layout import index_bytes
from log_lake.indexes.names import index_name
from log_lake.indexes.rule import IndexRule

log = logging.getLogger(__name__)


class IndexWriter:
    """Gathers the values of one data object, and writes its index objects after it.

    All tables have the schema of the first.
    """

    def __init__(self, rules: Iterable[IndexRule]) -> None:
        self._rules = tuple(rules)
        self._gathered: dict[IndexRule, GatheredIndex] | None = None

    def add(self, table: pa.Table, groups: Sequence[int]) -> None:
        """Adds records of the object: row groups of these sizes."""
        if self._gathered is None:
            self._gathered = {}
            for rule in self._rules:
                if (indexed := indexed_field(table.schema, rule.field)) is not None:
                    self._gathered[rule] = KINDS[rule.kind](*indexed)
        for gathering in self._gathered.values():
            gathering.add(table, groups)

    def write(self, store: Store, pool_id: str, object_id: str, *, must: bool = False) -> int:
        """Writes the index objects of the data object; returns their bytes.

        A failure is logged, or raised if an index is all that is wanted (`must`).
        """
        written = 0
        for rule, gathering in (self._gathered or {}).items():
            index = gathering.body()
            if index is None:
                continue
            name = index_name(pool_id, object_id, rule.digest)
            data = index_bytes(rule, object_id, values=index[0], body=index[1])
            try:
                store.create(name, data)
                written += len(data)
            except LakeError as error:
                if must:
                    raise
                log.warning("%s: the index was not written, so readers read more: %s", name, error)
        return written
