"""A sketch: a summary of the values of one field in a data object, so small that the sketches of all objects
can be read at once.

It has the distinct values and the quantiles.  Sketches of several objects make one for all of them (`united`).

Distinct values.  Up to `EXACT` numbers (`hashes`) are listed, so their count is exact.  More become HyperLogLog:
the upper 12 bits of a number choose one of 4,096 registers, which keeps the longest row of zeros that begins the
other bits.  The standard error is 1.04 / sqrt(4096) = 1.6 %.  Source: Ertl, New cardinality estimation algorithms
for HyperLogLog sketches (2017), algorithm 6.

Quantiles.  The sorted values are divided into runs of about equal length.  The sketch has the last value and
the length of each run.  So the number of values up to x is known, except for the run in which x lies: it is too
small by at most `off`.  This bound holds always, not just probably, and bounds of several objects add up.  Only
types of fixed size have quantiles: numbers, decimals, and times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import msgspec
import numpy as np
import numpy.typing as npt

from lake_core.errors import Corrupt
from lake_core.records.decoding import decoding
from log_lake.indexes.bloom import Numbers

EXACT = 512
"""Distinct values that are listed.  Their 4 KiB are as large as the registers."""

BITS = 12
REGISTERS = 1 << BITS
DISTINCT_ERROR = 1.04 / math.sqrt(REGISTERS)
"""The standard error of the number of distinct values, if there are more than `EXACT`."""

RUNS = 256
"""Runs of the values of an object: a rank is off by little more than 1/256 of the values."""

_REST = 64 - BITS
_ALPHA = 1 / (2 * math.log(2))

Registers = npt.NDArray[np.uint8]


class Sketch(msgspec.Struct, frozen=True, array_like=True):
    """The summary of a field: the number of records, and how many of them have null there.

    `numbers`: the distinct numbers, ascending, 8 bytes each; or `registers`, if there are too many.  `low`, `high`:
    the encoded least and greatest value, b"" if not known.  `values`, `lengths`: the last value of each run,
    encoded, and its length; none for a type without quantiles.  `off`: ranks are too small by at most so many.
    """

    records: int
    nulls: int
    numbers: bytes = b""
    registers: bytes = b""
    low: bytes = b""
    high: bytes = b""
    values: tuple[bytes, ...] = ()
    lengths: tuple[int, ...] = ()
    off: int = 0

    @property
    def distinct(self) -> int:
        """The number of distinct values that are not null, about; exact if `is_exact`."""
        if self.is_exact:
            return len(self.numbers) // 8
        return round(_estimate(np.frombuffer(self.registers, np.uint8)))

    @property
    def is_exact(self) -> bool:
        """Whether the distinct values are listed."""
        return not self.registers

    @property
    def rank_error(self) -> float:
        """The greatest distance of a quantile's rank from the wanted rank, as a share of all ranks."""
        return -(-self.off // 2) / max(1, sum(self.lengths))

    def quantile(self, share: float) -> bytes | None:
        """The encoded value below which a share of the values lies, from 0 to 1; None without quantiles."""
        total = sum(self.lengths)
        if not total:
            return None
        if share <= 0 or share >= 1:
            return (self.low if share <= 0 else self.high) or None
        least = max(1, math.ceil(share * total) - self.off // 2)  # so that it is off in both directions
        for value, rank in zip(self.values, accumulate(self.lengths), strict=True):
            if rank >= least:
                return value
        return self.values[-1]


_DECODER = msgspec.msgpack.Decoder(Sketch)


def encoded_sketch(sketch: Sketch) -> bytes:
    """The bytes of a sketch."""
    return msgspec.msgpack.encode(sketch)


def decoded_sketch(data: bytes) -> Sketch:
    """The sketch of these bytes.  Raises Corrupt."""
    with decoding("an index", "not a sketch"):
        sketch = _DECODER.decode(data)
    fits = (
        not len(sketch.numbers) % 8
        and len(sketch.registers) in (0, REGISTERS)
        and len(sketch.values) == len(sketch.lengths)
        and min((sketch.records, sketch.nulls, sketch.off, *sketch.lengths)) >= 0
    )
    if not fits:
        raise Corrupt("it is not a sketch")
    return sketch


# ---------------------------------------------------------------- distinct values


def registers_of(numbers: Numbers) -> Registers:
    """The registers of these numbers, which may be there more than once."""
    registers = np.zeros(REGISTERS, np.uint8)
    rest = (numbers & np.uint64((1 << _REST) - 1)).astype(np.float64)  # exact: it has 52 bits
    lengths = (_REST + 1 - np.frexp(rest)[1]).astype(np.uint8)  # of 0 the exponent is 0
    np.maximum.at(registers, (numbers >> np.uint64(_REST)).astype(np.int64), lengths)
    return registers


def _estimate(registers: Registers) -> float:
    counts = np.bincount(registers, minlength=_REST + 2)
    z = REGISTERS * _tau(1 - float(counts[_REST + 1]) / REGISTERS)
    for k in range(_REST, 0, -1):
        z = 0.5 * (z + float(counts[k]))
    z += REGISTERS * _sigma(float(counts[0]) / REGISTERS)
    return _ALPHA * REGISTERS * REGISTERS / z


def _sigma(x: float) -> float:
    if x == 1:
        return math.inf
    y, z, before = 1.0, x, -1.0
    while z != before:  # ends: x is squared until it adds nothing
        x, before = x * x, z
        z, y = z + x * y, y + y
    return z


def _tau(x: float) -> float:
    if x in (0, 1):
        return 0.0
    y, z, before = 1.0, 1 - x, -1.0
    while z != before:  # ends: the root nears 1
        x, before, y = math.sqrt(x), z, 0.5 * y
        z -= (1 - x) ** 2 * y
    return z / 3


# ---------------------------------------------------------------- quantiles


@dataclass(frozen=True)
class RankedRuns:
    """Runs of sorted values: the last value of each, encoded, and its length.  Ranks are off by at most `off`."""

    values: tuple[bytes, ...] = ()
    lengths: tuple[int, ...] = ()
    off: int = 0


def run_ends(count: int, runs: int) -> list[int]:
    """The places after each of about equal runs of `count` sorted values, at most `runs`.

    Before them comes the place after the least value, so that low quantiles are not above it.
    """
    runs = min(runs, count)
    return sorted({1, *(count * (run + 1) // runs for run in range(runs))}) if count else []


def united_ranks(parts: Iterable[RankedRuns], *, most: int) -> RankedRuns:
    """Unites the runs of sorted values of several parts into at most `most` runs, and one more for the least
    value."""
    parts = list(parts)
    pairs = sorted(pair for part in parts for pair in zip(part.values, part.lengths, strict=True))
    off = sum(part.off for part in parts)
    if len(pairs) <= most + 1:
        return RankedRuns(tuple(value for value, _ in pairs), tuple(count for _, count in pairs), off)
    least = sum(count for _, count in pairs) / most
    values: list[bytes] = []
    lengths: list[int] = []
    length, loses = 0, 0
    for at, (value, count) in enumerate(pairs):
        length += count
        if length >= least or at in (0, len(pairs) - 1):
            values.append(value)
            lengths.append(length)
            loses, length = max(loses, length - count), 0
    return RankedRuns(tuple(values), tuple(lengths), off + loses)


# ---------------------------------------------------------------- several objects


def united(sketches: Sequence[Sketch]) -> Sketch:
    """One sketch of the records of all of them; it keeps all runs, so only their bounds add up."""
    ranks = united_ranks((RankedRuns(s.values, s.lengths, s.off) for s in sketches), most=1 << 62)
    lows, highs = ([getattr(s, end) for s in sketches if s.nulls < s.records] for end in ("low", "high"))
    numbers = registers = b""
    if all(s.is_exact for s in sketches):
        numbers = np.unique(np.frombuffer(b"".join(s.numbers for s in sketches), "<u8")).tobytes()
    else:
        registers = np.maximum.reduce([_registers(s) for s in sketches]).tobytes()
    return Sketch(
        sum(s.records for s in sketches),
        sum(s.nulls for s in sketches),
        numbers,
        registers,
        min(lows, default=b""),
        max(highs, default=b"") if b"" not in highs else b"",
        ranks.values,
        ranks.lengths,
        ranks.off,
    )


def _registers(sketch: Sketch) -> Registers:
    if sketch.registers:
        return np.frombuffer(sketch.registers, np.uint8)
    return registers_of(np.frombuffer(sketch.numbers, "<u8"))
