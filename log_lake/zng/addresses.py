r"""Converts addresses, networks and bytes-as-text to Arrow strings and back, mostly without one Python object per
value.

| type | text |
|---|---|
| ip | `10.0.0.1`, `fe80::1`; a 16-byte address that embeds a 4-byte one is `::ffff:102:304` |
| net | address, `/`, bits of the mask; if the mask has gaps, its hexadecimal digits |
| bstring, error | UTF-8; any other byte becomes `\xff`, and so does a backslash before `x` and two digits |

Different values have different texts, so the bytes can be restored.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from log_lake.columns.arrays import Bytes
from log_lake.zng.slices import Pieces, Slices, binary_array, made

_HEX = re.compile(rb"\\x([0-9a-fA-F]{2})")


@cache
def _octets() -> pa.Array:
    """Returns the numbers 0 to 255 as text.  Not a constant: making it at import time would make Arrow import
    pandas."""
    return pa.array([str(octet) for octet in range(256)])


def ip_texts(slices: Slices) -> pa.Array:
    """Returns addresses as text.  Raises Corrupt for other lengths than 4 and 16 bytes."""
    _lengths(slices, (4, 16), "ip")
    short = slices.length == 4
    if short.any() and (short | ~slices.valid).all():
        return _v4(slices)
    return _each(binary_array(slices, pa.binary()), _ip_text, pa.string())


def net_texts(slices: Slices) -> pa.Array:
    """Returns networks as text.  Raises Corrupt for other lengths than 8 and 32 bytes."""
    _lengths(slices, (8, 32), "net")
    return _each(binary_array(slices, pa.binary()), _net_text, pa.string())


def bytes_texts(slices: Slices) -> pa.Array:
    """Returns bytes as text."""
    binaries = binary_array(slices, pa.binary())
    try:
        text = binaries.cast(pa.string())
    except pa.ArrowInvalid:
        return _each(binaries, _escaped, pa.string())
    ambiguous = pc.match_substring(text, "\\x")
    return _each(binaries, _escaped, pa.string()) if pc.any(ambiguous).as_py() else text


def _lengths(slices: Slices, allowed: tuple[int, int], what: str) -> None:
    wrong = slices.valid & (slices.length != allowed[0]) & (slices.length != allowed[1])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise slices.buffer.corrupt(slices.start[at], f"an {what} of {slices.length[at]:,} bytes")


def _v4(slices: Slices) -> pa.Array:
    words = slices.unsigned()
    mask = None if slices.valid.all() else ~slices.valid
    octets = [
        _octets().take(pa.array(((words >> np.uint64(8 * at)) & np.uint64(255)).astype(np.int16), mask=mask))
        for at in range(4)
    ]
    return pc.binary_join_element_wise(*octets, ".")


def _each(array: pa.Array, convert: Callable[[bytes], str], kind: pa.DataType) -> pa.Array:
    """Converts each distinct value once, in Python."""
    distinct = array.dictionary_encode()
    return pa.array([convert(value) for value in distinct.dictionary.to_pylist()], kind).take(
        distinct.indices
    )


def _ip_text(body: bytes) -> str:
    if len(body) == 4:
        return str(ipaddress.IPv4Address(body))
    high, low = int.from_bytes(body[:14], "big"), int.from_bytes(body[12:], "big")
    if high >> 16 == 0 and int.from_bytes(body[10:12], "big") == 0xFFFF:
        return f"::ffff:{low >> 16:x}:{low & 0xFFFF:x}"  # versions of Python differ
    return str(ipaddress.IPv6Address(body))


def _net_text(body: bytes) -> str:
    half = len(body) // 2
    bits = f"{int.from_bytes(body[half:], 'big'):0{8 * half}b}"
    ones = bits.count("1")
    return f"{_ip_text(body[:half])}/{ones if bits.startswith('1' * ones) else body[half:].hex()}"


def _escaped(body: bytes) -> str:
    quoted = _HEX.sub(lambda match: rb"\x5cx" + match[1], body)
    return "".join(
        f"\\x{ord(char) - 0xDC00:02x}" if 0xDC80 <= ord(char) <= 0xDCFF else char
        for char in quoted.decode(errors="surrogateescape")
    )


# --- and back


def ip_bodies(array: pa.Array) -> pa.Array:
    """Returns the bytes of addresses.  Raises InvalidInput if a text is not an address."""
    distinct = array.dictionary_encode()
    texts = distinct.dictionary
    bodies = _v4_bodies(texts)
    return (_back(texts, ip_body, "ip") if bodies is None else bodies).take(distinct.indices)


def _v4_bodies(texts: pa.Array) -> pa.Array | None:
    """Returns the bytes of addresses if all of them have four numbers, otherwise None.  `texts` must have no
    null."""
    parts = pc.split_pattern(texts, ".")
    if not len(texts) or not pc.all(pc.equal(pc.list_value_length(parts), 4)).as_py():
        return None
    try:
        octets = pc.list_flatten(parts).cast(pa.uint8())
    except pa.ArrowInvalid:
        return None
    fixed = pa.Array.from_buffers(pa.binary(4), len(texts), [None, octets.buffers()[1]])
    return fixed.cast(pa.binary())


def net_bodies(array: pa.Array) -> pa.Array:
    """Returns the bytes of networks.  Raises InvalidInput if a text is not a network."""
    return _back(array, net_body, "net")


def bytes_bodies(array: pa.Array) -> pa.Array:
    """Returns the bytes of text that `bytes_texts` made."""
    if not pc.any(pc.match_substring(array, "\\x")).as_py():
        return array.cast(pa.binary())
    return _back(
        array, lambda text: _HEX.sub(lambda match: bytes.fromhex(match[1].decode()), text.encode()), "bstring"
    )


def _back(array: pa.Array, convert: Callable[[str], bytes], what: str) -> pa.Array:
    distinct = array.dictionary_encode()
    bodies = []
    for text in distinct.dictionary.to_pylist():
        try:
            bodies.append(convert(text))
        except ValueError:
            raise InvalidInput(f"{text!r} is no {what}; write it as docs/zng-zst.md says") from None
    return pa.array(bodies, pa.binary()).take(distinct.indices)


def ip_body(text: str) -> bytes:
    """Returns the bytes of an address.  Raises ValueError for other text."""
    if "%" in text:  # the zone of an address is not part of it
        raise ValueError(text)
    return ipaddress.ip_address(text).packed


def net_body(text: str) -> bytes:
    """Returns the bytes of a network.  Raises ValueError for other text."""
    address, slash, mask = text.rpartition("/")
    body = ip_body(address)
    if len(mask) == 2 * len(body):
        return body + bytes.fromhex(mask)
    bits = int(mask) if mask.isascii() and mask.isdigit() else -1
    if not slash or not 0 <= bits <= 8 * len(body):
        raise ValueError(text)
    ones = ((1 << bits) - 1) << (8 * len(body) - bits)
    return body + ones.to_bytes(len(body), "big")


def pieces_of(array: pa.Array) -> Pieces:
    """Returns the bytes of an array of strings or bytes, as pieces for `slices.gather`; a null is an empty
    piece."""
    small = array.cast(pa.string() if pa.types.is_string(array.type) else pa.binary())
    _, offsets, data = small.buffers()
    rows = len(small)
    if not rows:
        return made(np.zeros(0, np.uint8)), np.zeros(0, np.int64), np.zeros(0, np.int64)
    bounds = np.frombuffer(offsets, np.int32, rows + 1, offset=4 * small.offset).astype(np.int64)
    begin, end = int(bounds[0]), int(bounds[-1])
    body: Bytes = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[begin:end]
    return made(body), bounds[:-1] - begin, np.diff(bounds)
