"""A number of 64 bits for each plain value: the same for equal values of one class, whatever their Arrow type.

| class | what is mixed |
|---|---|
| number, decimal | the bits of the double that is shown alike; otherwise the whole number, or the decimal's text |
| text, bytes | their length, and the bytes in words of 8; above 64 bytes xxh3 |
| date | days since 1970 |
| timestamp, time, duration | microseconds, and the nanoseconds below them |
| boolean | 0 or 1 |

An integer, a double and a decimal are equal here if they compare as equal in conditions (`values.numbers`).  -0.0
equals 0.0, and NaN equals NaN, as in keys.  Every class has a constant of its own, so that a text `1` differs
from a number 1.  A product and a swap of bytes let each part of a value affect all bits.  The hashes of a
record's fields, and those inside lists and maps, are then combined by further products and mixes (decision
454).  The mix is the last step of MurmurHash3 (64 bits).
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import TICKS
from lake_core.values.numbers import shown_decimal
from log_lake.columns.arrays import Bytes, Ints

ValueHashes = npt.NDArray[np.uint64]
"""An array of hashes, one number of 64 bits for each value."""

_EXACT = 2**53
_DIVIDED_DIGITS = 15
"""A decimal with at most this many digits is shown like its nearest double."""
_DIVISOR_DIGITS = 22
"""Doubles express powers of ten up to this one exactly, so one division gives the nearest double."""

_LOOKED_AT, _FEW = 1_024, 512
"""If the first `_LOOKED_AT` values of a column have fewer than `_FEW` distinct ones, each distinct value is hashed
once."""

_WORD = 8
_LONG = 64
"""Texts of more bytes than this are hashed by xxh3, because that is faster than a loop over words."""
_MASKS = np.array([256**length - 1 for length in range(_WORD + 1)], np.uint64)
"""At index n, the mask that keeps the first n bytes of a word."""

_SPREAD, _FOLD = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_SHIFT = np.uint64(33)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def mixed(values: ValueHashes) -> ValueHashes:
    """Mixes the bits of the numbers in place, so that each bit depends on every earlier bit, and returns
    them."""
    above = values >> _SHIFT
    values ^= above
    for factor in _FACTORS:
        values *= factor
        np.right_shift(values, _SHIFT, out=above)
        values ^= above
    return values


@lru_cache(maxsize=4_096)
def constant(name: str) -> np.uint64:
    """Returns the constant of a class, or of a field's name; it is odd, so that a product with it loses
    nothing."""
    return np.uint64(xxhash.xxh3_64_intdigest(name.encode()) | 1)


def of_class(payload: ValueHashes, kind: str) -> ValueHashes:
    """Turns payloads into the hashes of values of a class, in place, and returns them.

    The product carries each bit upwards. The swap of bytes brings the highest bits down, so that the next
    product spreads them all.
    """
    payload ^= constant(f"class {kind}")
    payload *= _SPREAD
    return payload.byteswap(True)


def plain_hashes(array: pa.Array) -> ValueHashes:
    """Returns the hashes of an array that is neither nested nor JSON; the result for a null is arbitrary.

    Raises InvalidInput for a type that no object holds.
    """
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.uint64)
    if pa.types.is_boolean(kind):
        return of_class(_numpy(array.cast(pa.uint8())).astype(np.uint64), "boolean")
    if pa.types.is_integer(kind):
        return of_integers(_numpy(array))
    if pa.types.is_floating(kind):
        return of_doubles(_numpy(array.cast(pa.float64())))
    if pa.types.is_decimal(kind):
        return _of_decimal_array(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _of_bytes(array, "text")
    if pa.types.is_fixed_size_binary(kind):
        return _of_bytes(array.cast(pa.binary()), "bytes")
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return _of_bytes(array, "bytes")
    if pa.types.is_date(kind):
        return of_days(_numpy(array.cast(pa.date32()).view(pa.int32())))
    if pa.types.is_timestamp(kind):
        return _of_clock(array, "timestamp with zone" if kind.tz else "timestamp")
    if pa.types.is_time(kind):
        return _of_clock(array, "time")
    if pa.types.is_duration(kind):
        return _of_clock(array, "duration")
    raise InvalidInput(f"values of type {kind} have no content sum; convert them to another type")


def of_integers(values: npt.NDArray[Any]) -> ValueHashes:
    """Returns the hashes of integers of any width."""
    if not len(values):
        return np.zeros(0, np.uint64)
    if values.dtype.itemsize < 8 or (int(values.min()) >= -_EXACT and int(values.max()) <= _EXACT):
        return of_class(values.astype(np.float64).view(np.uint64), "number")
    near = values.astype(np.float64)
    low, high = (0.0, 2.0**64) if values.dtype == np.uint64 else (-(2.0**63), 2.0**63)
    inside = (near >= low) & (near < high)
    exact = inside & (np.where(inside, near, 0.0).astype(values.dtype) == values)
    hashes = of_doubles(np.where(exact, near, 0.0))
    for kind, others in (("negative", ~exact & (values < 0)), ("whole", ~exact & (values >= 0))):
        hashes[others] = of_class(values[others].view(np.uint64).copy(), kind)
    return hashes


def of_doubles(values: npt.NDArray[np.float64]) -> ValueHashes:
    """Returns the hashes of doubles."""
    plain = values + 0.0  # -0.0 becomes 0.0
    missing = np.isnan(plain)
    if missing.any():
        plain[missing] = np.nan
    return of_class(plain.view(np.uint64), "number")


def of_days(days: npt.NDArray[Any]) -> ValueHashes:
    """Returns the hashes of dates, given in days since 1970."""
    return of_class(days.astype(np.int64).view(np.uint64), "date")


def of_micros(micros: npt.NDArray[np.int64], rest: npt.NDArray[np.int64] | None, kind: str) -> ValueHashes:
    """Returns the hashes of times of a class in microseconds (which are changed), with nanoseconds below 1,000
    (None: 0)."""
    payload = micros.view(np.uint64)
    if rest is not None:
        payload = payload + rest.view(np.uint64) * constant("nanoseconds")
    return of_class(payload, kind)


def of_texts(values: Sequence[str]) -> ValueHashes:
    """Returns the hashes of Python's texts."""
    return _of_bytes(pa.array(values, pa.large_string()), "text")


def of_byte_values(values: Sequence[bytes]) -> ValueHashes:
    """Returns the hashes of Python's bytes."""
    return _of_bytes(pa.array(values, pa.large_binary()), "bytes")


def of_decimals(values: Sequence[decimal.Decimal]) -> ValueHashes:
    """Returns the hashes of Python's decimals."""
    hashes = np.zeros(len(values), np.uint64)
    doubles, texts = dict[int, float](), dict[int, str]()
    wholes, large = dict[int, int](), dict[int, int]()
    for at, value in enumerate(values):
        near = float(value)
        if shown_decimal(near) == value:
            doubles[at] = near
        elif value == (whole := value.to_integral_value()) and -(2**63) <= whole < 2**63:
            wholes[at] = int(whole)
        elif value == whole and 0 <= whole < 2**64:
            large[at] = int(whole)
        else:
            text = format(value, "f")
            texts[at] = text.rstrip("0").rstrip(".") if "." in text else text
    _put(hashes, doubles, of_doubles(np.array(list(doubles.values()), np.float64)))
    _put(hashes, wholes, of_integers(np.array(list(wholes.values()), np.int64)))
    _put(hashes, large, of_integers(np.array(list(large.values()), np.uint64)))
    _put(hashes, texts, _of_bytes(pa.array(list(texts.values()), pa.large_string()), "decimal"))
    return hashes


def _put(hashes: ValueHashes, places: dict[int, Any], own: ValueHashes) -> None:
    if places:
        hashes[list(places)] = own


def _of_decimal_array(array: pa.Array) -> ValueHashes:
    """Returns the hashes of decimals: by columns where doubles or whole numbers express them, otherwise one by
    one."""
    kind = array.type
    if kind.bit_width != 128 and kind.precision <= 38:
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
    if not len(array) or array.type.bit_width != 128 or not 0 <= kind.scale <= _DIVISOR_DIGITS:
        return _of_decimal_values(array)
    if array.null_count:
        array = array.fill_null(pa.scalar(decimal.Decimal(0), array.type))
    halves = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), 16 * array.offset).reshape(-1, 2)
    low, high = np.ascontiguousarray(halves[:, 0]), halves[:, 1]
    hashes = of_doubles(low / np.float64(10**kind.scale)) if kind.scale else of_integers(low)
    if kind.precision <= _DIVIDED_DIGITS:
        return hashes
    fits = high == (low >> 63)
    if kind.scale:
        most = 10**_DIVIDED_DIGITS
        fits &= (low > -most) & (low < most)
    if not fits.all():
        others = np.flatnonzero(~fits)
        hashes[others] = _of_decimal_values(array.take(pa.array(others)))
    return hashes


def _of_decimal_values(array: pa.Array) -> ValueHashes:
    return of_decimals([decimal.Decimal(0) if value is None else value for value in array.to_pylist()])


def _of_bytes(array: pa.Array, kind: str) -> ValueHashes:
    array, count = array.cast(pa.large_binary()), len(array)
    if not count:
        return np.zeros(0, np.uint64)
    offsets = np.frombuffer(array.buffers()[1], np.int64, count + 1, 8 * array.offset)
    begin, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    if size > _WORD * count and count > _LOOKED_AT and len(array.slice(0, _LOOKED_AT).unique()) < _FEW:
        encoded = array.dictionary_encode()
        own = _of_bytes(encoded.dictionary, kind)
        return own[_numpy(encoded.indices)] if len(own) else np.zeros(count, np.uint64)
    padded = np.zeros(size + _WORD, np.uint8)  # a word may be read at every byte
    if size:
        padded[:size] = np.frombuffer(array.buffers()[2], np.uint8, size, begin)
    starts, lengths, seed = offsets[:-1] - begin, np.diff(offsets), constant(f"class {kind}")
    if int(lengths.max()) <= _LONG:
        return _of_short(padded, starts, lengths, seed)
    hashes, is_long = np.empty(count, np.uint64), lengths > _LONG
    hashes[~is_long] = _of_short(padded, starts[~is_long], lengths[~is_long], seed)
    data, digest = padded.data, xxhash.xxh3_64_intdigest
    bounds = zip(starts[is_long].tolist(), lengths[is_long].tolist(), strict=True)
    hashes[is_long] = [digest(data[start : start + length]) for start, length in bounds]
    hashes[is_long] ^= seed
    return hashes


def _of_short(data: Bytes, starts: Ints, lengths: Ints, seed: np.uint64) -> ValueHashes:
    """Returns the hashes of short texts, which begin at `starts` in the bytes. It loops over their words, shortest
    texts first."""
    words = np.ndarray((len(data) - _WORD + 1,), np.dtype("<u8"), data, strides=(1,))
    sums = lengths.astype(np.uint64) * _SPREAD
    sums ^= seed
    if int(lengths.max(initial=0)) <= _WORD:
        return _with_word(sums, words[starts] & _MASKS[lengths])
    of_each = ((lengths + _WORD - 1) // _WORD).astype(np.uint8)
    order = np.argsort(of_each, kind="stable")
    starts, lengths, sums = starts[order], lengths[order], sums[order]
    upto = np.cumsum(np.bincount(of_each))
    """How many texts have at most so many words."""
    for word in range(len(upto) - 1):
        first, end = int(upto[word]) if word else 0, int(upto[word + 1])
        values = words[starts[first:] + _WORD * word]
        values[: end - first] &= _MASKS[lengths[first:end] - _WORD * word]
        _with_word(sums[first:], values)
    hashes = np.empty_like(sums)
    hashes[order] = sums
    return hashes


def _with_word(sums: ValueHashes, words: ValueHashes) -> ValueHashes:
    """Returns the hashes of texts after one more word of each; changes `sums`, the hashes so far."""
    sums ^= words
    sums *= _SPREAD
    sums ^= sums >> _FOLD
    return sums


def _of_clock(array: pa.Array, kind: str) -> ValueHashes:
    unit = array.type.unit
    ticks = _numpy(array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())).astype(np.int64)
    if unit == "ns":
        micros = ticks // 1_000
        rest = ticks - micros * 1_000
        return of_micros(micros, rest if rest.any() else None, kind)
    return of_micros(ticks * (TICKS["us"] // TICKS[unit]), None, kind)


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False))
