"""The content of tables as one value: the number of their records, and the sum of the records' hashes.

Two sets of records that are equal have equal contents, in whatever order, tables and types they come.  Equal
records count as often as they occur.  The sums of parts add up to that of the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lake_core.phrases import counted
from lake_core.records.sums import AGE_FACTORS, packed_sums
from lake_core.schemas.hidden import ORDINAL, SEQ, user_fields
from lake_core.values.types import is_json
from log_lake.content.scalars import ValueHashes, mixed
from log_lake.content.values import record_hashes

_BITS = 2**64
_AT_ONCE = 32_768
"""Records that are hashed at a time: their columns stay in the processor's cache."""


@dataclass(frozen=True)
class ContentSum:
    """The number of records, and the sum of their hashes, of 64 bits."""

    records: int = 0
    total: int = 0

    def __add__(self, other: ContentSum) -> ContentSum:
        return ContentSum(self.records + other.records, (self.total + other.total) % _BITS)

    def __sub__(self, other: ContentSum) -> ContentSum:
        return ContentSum(self.records - other.records, (self.total - other.total) % _BITS)

    @property
    def sum(self) -> str:
        """The sum as 16 digits of base 16."""
        return f"{self.total:016x}"

    def __str__(self) -> str:
        return f"{counted(self.records, 'record')}, content sum {self.sum}"


@dataclass
class ObjectSums:
    """The sums of tables that become one object: the sum of their content without hidden columns, and the sum of
    their records' ages.

    `ages` is None if the records have none.
    """

    content: ContentSum = field(default_factory=ContentSum)
    ages: int | None = None

    def add(self, table: pa.Table) -> None:
        """Adds the records of a table."""
        self.content += content_of(table.select(user_fields(table.schema).names))
        if SEQ in table.schema.names:
            self.ages = ((self.ages or 0) + _ages_of(table)) % _BITS

    def take(self, table: pa.Table) -> None:
        """Subtracts the records of a table."""
        other = ObjectSums()
        other.add(table)
        self.content -= other.content
        self.ages = None if self.ages is None else (self.ages - (other.ages or 0)) % _BITS

    @property
    def packed(self) -> bytes:
        """The sums in the form in which references store them."""
        return packed_sums(self.content.total, *(() if self.ages is None else (self.ages,)))


def _ages_of(table: pa.Table) -> int:
    """Returns the sum of the ages of records, each as in `lake_core.records.sums.age_sum`."""
    first, second = map(np.uint64, AGE_FACTORS)
    seqs, ordinals = (table.column(name).to_numpy().astype(np.int64) for name in (SEQ, ORDINAL))
    return int(
        np.sum(mixed(seqs.view(np.uint64) * first + ordinals.view(np.uint64) * second), dtype=np.uint64)
    )


def content_of(table: pa.Table, *, as_text: Collection[str] = ()) -> ContentSum:
    """Returns the content of a table's records, with all columns.

    JSON of the fields `as_text` counts by its text, which is faster.  Use it for tables of one origin whose
    JSON is never written anew.  Raises Corrupt for a text that is not JSON, InvalidInput for a type that no
    object holds.
    """
    return content_of_hashes(hashes_of(table, as_text=as_text))


def hashes_of(table: pa.Table, *, as_text: Collection[str] = ()) -> ValueHashes:
    """Returns the hash of each record of a table.  Raises what `content_of` raises."""
    schema = pa.schema(
        [field.remove_metadata() if field.name in as_text else field for field in table.schema]
    )
    hashes = [record_hashes(batch, schema) for batch in table.to_batches(_AT_ONCE)]
    return np.concatenate(hashes) if hashes else np.zeros(0, np.uint64)


def content_of_hashes(hashes: ValueHashes) -> ContentSum:
    """Returns the content of records that have these hashes."""
    return ContentSum(len(hashes), int(np.sum(mixed(hashes.copy()), dtype=np.uint64)))


def json_everywhere(schemas: Iterable[pa.Schema]) -> frozenset[str]:
    """Returns the fields that are JSON in every schema that has them."""
    json, others = set[str](), set[str]()
    for schema in schemas:
        for one in schema:
            (json if is_json(one) else others).add(one.name)
    return frozenset(json - others)
