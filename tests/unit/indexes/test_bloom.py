"""The filter is that of Parquet's specification, forgets no value, and seldom takes another for one of its own."""

from __future__ import annotations

import numpy as np

from log_lake.content.scalars import mixed
from log_lake.indexes.bloom import BLOCK, block_of, blocks_for, filter_of, may_have

SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


def numbers(count: int, *, first: int = 0) -> list[int]:
    """Distinct numbers that look random, ascending."""
    return np.unique(mixed(np.arange(first, first + count, dtype=np.uint64))).tolist()  # type: ignore[no-any-return]


def by_the_specification(values: list[int]) -> bytes:
    """The filter, one value at a time, as Parquet's BloomFilter.md writes it."""
    blocks = [[0] * 8 for _ in range(blocks_for(len(values)))]
    for value in values:
        block = blocks[((value >> 32) * len(blocks)) >> 32]
        for word, salt in enumerate(SALT):
            block[word] |= 1 << (((value & 0xFFFFFFFF) * salt % 2**32) >> 27)
    return b"".join(word.to_bytes(4, "little") for block in blocks for word in block)


def has(data: bytes, value: int) -> bool:
    at = BLOCK * block_of(value, len(data) // BLOCK)
    return may_have(data[at : at + BLOCK], value)


def test_it_is_that_of_the_specification() -> None:
    for count in (0, 1, 23, 24, 1_000):
        assert filter_of(np.array(numbers(count), np.uint64)) == by_the_specification(numbers(count))


def test_it_forgets_no_value_and_takes_one_of_a_hundred_others_for_its_own() -> None:
    values = numbers(100_000)
    data = filter_of(np.array(values, np.uint64))
    assert all(has(data, value) for value in values[::17])
    others = numbers(20_000, first=10**9)
    assert 100 < sum(has(data, value) for value in others) < 250
