"""Limits content that is much larger than its file (decision 152).

A file of eight megabytes may hold 82 GB: by a value that is written once with a count, or by a compressed
stream of zeros.  Readers work in bounded memory, but a load of such a file would not end, and its objects would
fill the store.  So the content is compared with the file's size: the output of a decompressor, and the decoded
columns of columnar formats.  Text is compared when it is unpacked; its columns may be larger if its records
have different fields.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.phrases import human_size


@dataclass
class Expansion:
    """How much content a file may have: `most` times the file's bytes (`expansion.max`), and `free` bytes in any
    case.

    `size`: the bytes of the file, known once it is open.
    """

    most: int = 1_000
    free: int = 1 << 30
    size: int = 0

    @property
    def allowed(self) -> int:
        """The number of bytes that the content may have."""
        return max(self.free, self.most * self.size)

    def fault(self, content: int) -> str:
        """Returns why so many bytes of content are too many; "" if they are allowed."""
        if content <= self.allowed:
            return ""
        return (
            f"{human_size(self.size)} hold more than {human_size(self.allowed)} of content; if you trust the file, "
            f"allow more than {self.most:,} times its size (expansion.max)"
        )


def least_bytes(schema: pa.Schema) -> int:
    """Returns the bytes that a decoded record has at least, whatever its values are."""
    return max(1, sum(_bits(field.type) for field in schema) // 8)


def _bits(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_bits(member.type) for member in kind)
    if pa.types.is_null(kind) or pa.types.is_fixed_size_list(kind):
        return 0
    try:
        return int(kind.bit_width)
    except ValueError:  # of texts, lists and maps: where each begins
        return 32


def content_of(table: pa.Table) -> int:
    """Returns the bytes of the table's values, at least one per record.  A value in a dictionary counts each time
    it occurs."""
    texts = sum(_texts(chunk) for column in table.columns for chunk in column.chunks)
    return max(table.nbytes + texts, table.num_rows)


def _texts(array: pa.Array) -> int:
    """Bytes of texts in dictionaries, counted as often as they occur."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            return 0
        return int(
            pc.sum(pc.binary_length(array.dictionary).take(array.indices).cast(pa.int64())).as_py() or 0
        )
    if pa.types.is_struct(kind):
        return sum(_texts(array.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _texts(array.keys) + _texts(array.items)
    return _texts(array.flatten()) if pa.types.is_list(kind) or pa.types.is_large_list(kind) else 0


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _TEXTS)


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
