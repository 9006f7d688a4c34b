"""Content sums of objects, and the action by which a rewriting states that it conserves records (`Conserve`;
format version 3).

The sum of an object's content is made while it is written (`log_lake.content`).  The age of a record is its
sequence and its ordinal, as one number.  An object that stores these for its records also has the sum of their
ages; for other objects that sum follows from their transaction.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt
from lake_core.records.decoding import check_counts

SUM_BYTES = 8
"""Bytes of one sum: big-endian, without sign."""

AGE_FACTORS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
"""The factors of a sequence and of an ordinal in the age of a record."""
AGE_MIX = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_BITS = 2**64


class Conserve(msgspec.Struct, frozen=True, tag="conserve", omit_defaults=True):
    """States that the transaction's new objects have the records of its removed references, except `records` of
    them.  `sums` are the two sums of the records left out: of their content, and of their ages."""

    records: int = 0
    sums: bytes = bytes(2 * SUM_BYTES)

    def __post_init__(self) -> None:
        check_counts("conserve", records=self.records)
        if len(self.sums) != 2 * SUM_BYTES:
            raise Corrupt(f"conserve: {len(self.sums)} bytes of sums, not {2 * SUM_BYTES}")


def check_sums(object_id: str, sums: bytes, *, has_ages: bool) -> None:
    """Raises Corrupt if no object can have these sums. b"" means no sums, which is allowed."""
    if sums and len(sums) != (2 if has_ages else 1) * SUM_BYTES:
        raise Corrupt(f"{object_id}: {len(sums)} bytes of sums, which it cannot have")


def packed_sums(*sums: int) -> bytes:
    """Returns the stored form of some sums: their bytes one after another."""
    return b"".join((one % _BITS).to_bytes(SUM_BYTES, "big") for one in sums)


def unpacked_sums(sums: bytes) -> tuple[int, ...]:
    """Returns the sums that `packed_sums` packed."""
    places = range(0, len(sums), SUM_BYTES)
    return tuple(int.from_bytes(sums[at : at + SUM_BYTES], "big") for at in places)


def age_sum(seq: int, ordinal: int, *, records: int) -> int:
    """Returns the sum of the ages of `records` records that share one sequence and ordinal.  An age is these two
    in one number, mixed as by MurmurHash3."""
    mixed = (seq * AGE_FACTORS[0] + ordinal * AGE_FACTORS[1]) % _BITS
    for factor in AGE_MIX:
        mixed = (mixed ^ mixed >> 33) * factor % _BITS
    return (mixed ^ mixed >> 33) * records % _BITS
