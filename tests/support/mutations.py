"""Changes stored values at random, by a seed, as a person could who may write an object."""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

INTEGERS = (0, 1, -1, 2, 255, 2**31, 2**32, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 10**12)
FLOATS = (0.0, -1.0, 1e308, -1e308, 1e18)
TEXTS = (
    *("", ".", "..", "../../x", "/etc/passwd", "a/b", "\0", "main", "nomain", "$nokey", "x" * 27),
    *("é" * 27, "0" * 27, "z" * 27, "9" * 27 + ".zst", "9" * 27 + ".exe", "x" * 5_000, "\u202e", "-1"),
)
BYTES = (b"", b"\0", b"\xff", b"\xc1" * 8, b"\x91" * 20_000, b"\x03" + b"\xff" * 10, b"x" * 5_000, b"../x")

Encode = Callable[[Any], bytes]


def mutated(value: Any, rng: random.Random) -> Any:
    """Returns the value with one to three parts changed, removed, doubled, or moved."""
    changed = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            changed = _mutated_once(changed, rng)
        except RecursionError:  # what is too deep to be copied stays as it is
            break
    return changed


def _mutated_once(value: Any, rng: random.Random) -> Any:
    places = list(_places(value))
    if not places:
        return _hostile(value, rng)
    holder, at = rng.choice(places)
    what = rng.random()
    if what < 0.1:
        del holder[at]
    elif what < 0.2 and isinstance(holder, list):
        holder.insert(at, copy.deepcopy(holder[at]))
    elif what < 0.3:
        other, elsewhere = rng.choice(places)
        holder[at] = copy.deepcopy(other[elsewhere])
    elif what < 0.35:
        holder[at] = _deep(rng.choice((10, 60, 5_000)))
    elif what < 0.4 and isinstance(holder, dict):
        holder[rng.choice(TEXTS)] = holder.pop(at)
    else:
        holder[at] = _hostile(holder[at], rng)
    return value


def _places(value: Any) -> Any:
    """Yields each part of the value, as the container that holds it and the part's place in it."""
    todo = [value]
    while todo:  # bounded by the parts of the value
        holder = todo.pop()
        keys = (
            list(holder)
            if isinstance(holder, dict)
            else range(len(holder))
            if isinstance(holder, list)
            else ()
        )
        for key in keys:
            yield holder, key
            todo.append(holder[key])


def _deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def _hostile(value: Any, rng: random.Random) -> Any:
    """Returns a value that is mostly of the same class, but perhaps not valid in this place."""
    if rng.random() < 0.15:
        return rng.choice((None, True, "x", b"x", 7, -1.5, [], {}, [[]]))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((*INTEGERS, value + 1, value - 1, -value))
    if isinstance(value, float):
        return rng.choice((*FLOATS, value + 1))
    if isinstance(value, str):
        return rng.choice((*TEXTS, value[:-1], value + "x", value[::-1], value.upper()))
    if isinstance(value, bytes):
        return rng.choice((*BYTES, value[:-1], value + b"\0", flipped(value, rng)))
    return rng.choice((None, 0, "x", b"x", [], {}))


def turned(data: bytes, rng: random.Random) -> bytes:
    """Returns the bytes (at least one) with one bit turned."""
    at = rng.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Returns the bytes with a bit turned, or some of them removed or doubled."""
    if not data:
        return b"\x01"
    what = rng.random()
    if what < 0.6:
        return turned(data, rng)
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randrange(1, 9) :] if what < 0.8 else data[:at] + data[at:] * 2


def changed_msgpack(data: bytes, rng: random.Random) -> bytes:
    """Returns MessagePack with a part changed, or with other bytes."""
    if rng.random() < 0.3:
        return flipped(data, rng)
    try:
        return msgspec.msgpack.encode(mutated(msgspec.msgpack.decode(data), rng))
    except (RecursionError, msgspec.MsgspecError):  # what is too deep for the encoder is none for the decoder
        return b"\x91" * 20_000


def changed_json(data: bytes, rng: random.Random) -> bytes:
    """Returns JSON with a part changed, or with other bytes."""
    if rng.random() < 0.3:
        return flipped(data, rng)
    try:
        return json.dumps(mutated(json.loads(data), rng), default=lambda one: one.decode("latin-1")).encode()
    except RecursionError:  # what is too deep for the encoder is none for the decoder
        return b"[" * 20_000


def changed_hint(data: bytes, rng: random.Random) -> bytes:
    """Returns a hint with other digits, or other bytes."""
    numbers = [str(n).encode() for n in (*INTEGERS, 10**30)]
    return rng.choice((*numbers, *BYTES, flipped(data, rng), "²".encode(), b" 7", b"1e9", b"0x10"))


def with_pairs(data: bytes, change: Callable[[bytes], bytes], *, checksum: bool = True) -> bytes:
    """Returns a Parquet file with another pair `lake`: with its checksum, or without one, as before there were
    checksums."""
    file = pq.ParquetFile(pa.BufferReader(data))
    footer = change((file.metadata.metadata or {})[b"lake"])
    pairs = {b"lake": footer} | ({b"lake.crc32": f"{zlib.crc32(footer):08x}".encode()} if checksum else {})
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, file.schema_arrow.remove_metadata(), write_page_checksum=True) as writer:
        for number in range(file.metadata.num_row_groups):
            writer.write_table(file.read_row_group(number))
        writer.add_key_value_metadata(pairs)
    written: bytes = sink.getvalue().to_pybytes()
    return written
