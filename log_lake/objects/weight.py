"""Estimates the decoded bytes of records, from their types and from a Parquet footer.

The footer has the sizes of encoded columns.  With a dictionary these are below the decoded sizes.  So readers
begin with few records, and then use the measured size of these (decision 33).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

MAX_SAMPLED = 16
"""The most row groups that `weigh` examines column by column; one column chunk takes about 3 microseconds."""


@dataclass(frozen=True)
class Weight:
    """The decoded bytes of some row groups in some columns: in total, of the largest group, and of an average
    record."""

    total: int = 0
    largest_group: int = 0
    record: float = 0.0


@dataclass(frozen=True)
class Sizes:
    """Measures the bytes of records of one schema.

    It measures only columns of variable width, because measuring a column takes longer than sorting a few of
    its values.
    """

    fixed: int
    variable: tuple[int, ...]
    leaves: int = 1
    """The number of columns in the file, including those inside of records."""

    @classmethod
    def of(cls, schema: pa.Schema) -> Sizes:
        """Returns a measure for records of the schema."""
        variable = tuple(i for i, field in enumerate(schema) if not _is_fixed(field.type))
        fixed = sum(_width(field.type) for field in schema if _is_fixed(field.type))
        return cls(fixed, variable, sum(_leaves(field.type) for field in schema))

    def size(self, records: pa.Table | pa.RecordBatch) -> int:
        """Returns how many bytes of memory the records need."""
        varying = sum(records.column(i).nbytes for i in self.variable)
        return int(self.fixed * records.num_rows + varying)

    def record(self, records: pa.Table | pa.RecordBatch) -> float:
        """Returns how many bytes of memory a record needs, on average."""
        return max(1.0, self.size(records) / max(1, records.num_rows))


def _is_fixed(kind: pa.DataType) -> bool:
    try:
        return not pa.types.is_nested(kind) and kind.bit_width > 0
    except ValueError:
        return pa.types.is_null(kind)


def least_width(schema: pa.Schema) -> int:
    """Returns the decoded bytes of a record whose fields are all null."""
    return sum(_width(field.type) for field in schema)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return 1 + sum(_width(f.type) for f in kind)
    try:
        return 1 + max(1, kind.bit_width // 8)
    except ValueError:  # a type of variable width has an offset
        return 5


def leaves_of(schema: pa.Schema) -> dict[str, range]:
    """Returns for each field the numbers of the column chunks of a row group that hold it."""
    leaves, at = {}, 0
    for field in schema:
        count = _leaves(field.type)
        leaves[field.name] = range(at, at + count)
        at += count
    return leaves


def _leaves(kind: pa.DataType) -> int:
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields)) if pa.types.is_nested(kind) else 1


def weigh(footer: pq.FileMetaData, groups: Sequence[int], chunks: Sequence[int] | None) -> Weight:
    """Returns the weight of the row groups in these column chunks; None means all."""
    if not groups:
        return Weight()
    sizes = [footer.row_group(group).total_byte_size for group in groups]
    rows = sum(footer.row_group(group).num_rows for group in groups)
    share = 1.0
    if chunks is not None:
        sampled = groups[:: -(-len(groups) // MAX_SAMPLED)]
        whole = sum(footer.row_group(group).total_byte_size for group in sampled)
        part = sum(
            footer.row_group(group).column(chunk).total_uncompressed_size
            for group in sampled
            for chunk in chunks
        )
        share = part / whole if whole else 1.0
    total = sum(sizes) * share
    return Weight(int(total), int(max(sizes) * share), total / max(1, rows))
