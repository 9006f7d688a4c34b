"""The bytes of a journal entry: four magic bytes, a checksum, MessagePack.

    "LKJ" 0x02 | CRC-32 of the rest, 4 bytes, big-endian | MessagePack of the entry
    "LKJ" 0x01 | MessagePack of the entry                                                 lakes of version 1

The fourth byte is the version of the framing and of the records; a reader that finds a higher one stops.  A
flipped bit may turn an entry into another valid one, which deletes other records: the checksum detects that
(decision 63).  The next entry of a journal names the same checksum, and so states which entry it follows
(decision 64).  Encoding is deterministic (fields in declared order, maps sorted, defaults left out), so the
same entry always has the same bytes; golden tests check them.
"""

from __future__ import annotations

import zlib
from typing import Any, Generic, TypeVar

import msgspec

from lake_core.errors import Corrupt, InvalidInput
from lake_core.records.decoders import MSGPACK
from lake_core.records.decoding import decoding

MAGIC = b"LKJ"
VERSION = 2
CHECKSUM = 4
"""Bytes of the checksum, from version 2 on."""

T = TypeVar("T")


class Codec(Generic[T]):
    """Encodes and decodes one kind of entry.  It encodes for lakes of one format version, and decodes entries
    of all versions.  Lakes of version 3 have the framing of version 2."""

    def __init__(self, kind: type[T], *, version: int = VERSION) -> None:
        self.version = min(version, VERSION)
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")
        self._decoder: msgspec.msgpack.Decoder[Any] = MSGPACK.of(kind)

    def encode(self, entry: T) -> bytes:
        """Returns the stored bytes of the entry.

        They are decoded once as a test: msgspec encodes values of wrong types too, and an entry that no reader
        accepts would close its journal to all readers.  Raises InvalidInput for such an entry, and for a text
        that is not UTF-8.
        """
        try:
            payload = self._encoder.encode(entry)
            self._decoder.decode(payload)
            return frame(payload, version=self.version)
        except (msgspec.ValidationError, TypeError) as error:
            raise InvalidInput(
                f"this cannot be stored, because no reader would accept it: {error}"
            ) from error
        except UnicodeEncodeError as error:  # a file name or an argument whose bytes are not UTF-8
            text = error.object if len(error.object) < 200 else f"{error.object[:200]}..."
            raise InvalidInput(f"{text!r} is not UTF-8; write it in UTF-8") from error

    def decode(self, data: bytes, *, name: str) -> T:
        """Returns the entry in these bytes; `name` is for the message.  Raises Corrupt."""
        payload = unframe(data, name=name)
        with decoding(name, f"damaged ({len(data)} bytes)"):
            try:
                entry: T = self._decoder.decode(payload)
            except msgspec.ValidationError as error:
                if "Invalid value" in str(error) and "type" in str(error):
                    raise Corrupt(
                        f"written by a newer version (unknown action: {error}); upgrade this program"
                    ) from error
                raise
        return entry


def frame(payload: bytes, *, version: int = VERSION) -> bytes:
    """Returns the stored bytes of an entry, given its MessagePack."""
    checksum = b"" if version < 2 else _checksum(payload)
    return MAGIC + bytes((version,)) + checksum + payload


def unframe(data: bytes, *, name: str) -> memoryview:
    """Returns the MessagePack of stored bytes.  Raises Corrupt."""
    if data[:3] != MAGIC or len(data) < 4:
        raise Corrupt(f"{name}: not a journal entry: begins with {data[:8]!r}")
    if data[3] > VERSION:
        raise Corrupt(f"{name}: written by a newer version (format {data[3]}); upgrade this program")
    if data[3] == 0:
        raise Corrupt(f"{name}: not a journal entry: there is no format 0")
    if data[3] < 2:
        return memoryview(data)[4:]
    payload = memoryview(data)[4 + CHECKSUM :]
    if data[4 : 4 + CHECKSUM] != _checksum(payload):
        raise Corrupt(f"{name}: its bytes do not have its checksum (read {len(data)} bytes)")
    return payload


def checksum_of(data: bytes) -> int:
    """Returns the CRC-32 of the MessagePack in stored bytes; `unframe` must have accepted these."""
    return zlib.crc32(memoryview(data)[4:]) if data[3] < 2 else int.from_bytes(data[4 : 4 + CHECKSUM], "big")


def _checksum(payload: bytes | memoryview) -> bytes:
    return zlib.crc32(payload).to_bytes(CHECKSUM, "big")
