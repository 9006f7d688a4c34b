"""Which row groups of a data object hold a value: for a field of few distinct values.

The body of such an index object is empty if the field has too many distinct values.  Otherwise it has the number
of row groups (8 bytes), the distinct numbers (`hashes`), ascending, 8 bytes each, and for each number a bit for
each row group: bit g % 8 of byte g // 8.  Integers are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lake_core.errors import Corrupt
from log_lake.indexes.bloom import Numbers

MOST_DISTINCT = 1_024
"""The most distinct values of an object that such an index records.  A field with more has each value in nearly
every row group, and a filter of the kind `bloom` is of more use."""

MOST_BODY = 1 << 20
"""Bytes of a body: it is read as a whole.  An object with so many row groups that it has more gets an empty one."""


def body_of(groups: Sequence[Numbers]) -> bytes:
    """The body for the distinct numbers of each row group, in order."""
    numbers = np.unique(np.concatenate([*groups, np.zeros(0, np.uint64)]))
    width = -(-len(groups) // 8)
    if len(numbers) > MOST_DISTINCT or 8 + len(numbers) * (8 + width) > MOST_BODY:
        return b""
    bits = np.zeros((len(numbers), 8 * width), np.uint8)
    for group, own in enumerate(groups):
        bits[np.searchsorted(numbers, own), group] = 1
    packed = np.packbits(bits, axis=1, bitorder="little")
    return len(groups).to_bytes(8, "little") + numbers.astype("<u8").tobytes() + packed.tobytes()


def groups_with(body: bytes, values: int, sought: Iterable[int]) -> frozenset[int] | None:
    """The row groups that hold one of the sought numbers; None if the index does not know.

    `values`: how many distinct numbers the body has.  Raises Corrupt if it has another size.
    """
    if not body:
        return None
    groups = int.from_bytes(body[:8], "little")
    width = -(-groups // 8)
    if groups > 8 * MOST_BODY or len(body) != 8 + values * (8 + width):
        raise Corrupt("its header does not fit its values")
    numbers = np.frombuffer(body, "<u8", count=values, offset=8)
    bits = np.frombuffer(body, np.uint8, offset=8 + 8 * values).reshape(values, width)
    asked = np.array(list(sought), np.uint64)
    places = np.flatnonzero(np.isin(numbers, asked))
    union = np.bitwise_or.reduce(bits[places], axis=0) if len(places) else np.zeros(width, np.uint8)
    return frozenset(int(g) for g in np.flatnonzero(np.unpackbits(union, bitorder="little")[:groups]))
