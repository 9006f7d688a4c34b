"""A split block Bloom filter: says whether a number of 64 bits is certainly not in a set, or may be in it.

A filter is a row of blocks of 32 bytes.  The upper half of a number chooses its block, the lower half one bit in
each of the block's eight words.  So a question needs one block only.  Source: Apache Parquet, BloomFilter.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLOCK = 32
"""Bytes of a block."""

BITS_PER_VALUE = 10.75
"""Bits of the filter for each distinct value: 1 % of the values that an object lacks then seem to be in it
(decision 477)."""

_SALT = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    np.uint32,
)
_HALF = np.uint64(32)
_POSITION = np.uint32(27)

Numbers = npt.NDArray[np.uint64]


def blocks_for(values: int) -> int:
    """The number of blocks for so many distinct values, at least 1."""
    return max(1, int(-(-values * BITS_PER_VALUE // (8 * BLOCK))))


def block_of(number: int, blocks: int) -> int:
    """The block that a number belongs to."""
    return ((number >> 32) * blocks) >> 32


def filter_of(numbers: Numbers) -> bytes:
    """The blocks of a filter that has exactly these numbers, which are distinct and ascending."""
    blocks = blocks_for(len(numbers))
    words = np.zeros((blocks, 8), "<u4")
    if len(numbers):
        places = ((numbers >> _HALF) * np.uint64(blocks)) >> _HALF  # ascending, as the numbers are
        starts = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
        own, low = places[starts].astype(np.int64), numbers.astype(np.uint32)
        for word, salt in enumerate(_SALT):
            masks = np.uint32(1) << ((low * salt) >> _POSITION)
            words[own, word] = np.bitwise_or.reduceat(masks, starts)
    return words.tobytes()


def may_have(block: bytes | memoryview, number: int) -> bool:
    """Whether the set of the block's filter may have the number."""
    low = np.uint32(number & 0xFFFFFFFF)
    with np.errstate(over="ignore"):
        masks = np.uint32(1) << ((low * _SALT) >> _POSITION)
    return bool(np.all(np.frombuffer(block, "<u4") & masks))
