"""The bytes of a journal entry: four magic bytes, a format version, MessagePack.

    "LKJ" 0x01 | MessagePack of the entry

The fourth byte is the version of the framing and of the records; a reader that meets a higher one stops.
Encoding is deterministic (fields in declared order, maps sorted, defaults left out), so the same entry is
the same bytes: golden tests hold them.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from lake_core.errors import Corrupt, InvalidInput, LakeError

MAGIC = b"LKJ"
VERSION = 1

T = TypeVar("T")


class Codec(Generic[T]):
    """Encodes and decodes one kind of entry."""

    def __init__(self, kind: type[T]) -> None:
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(kind)

    def encode(self, entry: T) -> bytes:
        """The stored bytes of the entry.  Raises InvalidInput if a text is not UTF-8."""
        try:
            return MAGIC + bytes((VERSION,)) + self._encoder.encode(entry)
        except UnicodeEncodeError as error:  # a file name or an argument whose bytes are not UTF-8
            text = error.object if len(error.object) < 200 else f"{error.object[:200]}..."
            raise InvalidInput(f"{text!r} is not UTF-8; write it in UTF-8") from error

    def decode(self, data: bytes, *, name: str) -> T:
        """The entry of these bytes; `name` is for the message.  Raises Corrupt."""
        if data[:3] != MAGIC or len(data) < 4:
            raise Corrupt(f"{name}: not a journal entry: begins with {data[:8]!r}")
        if data[3] > VERSION:
            raise Corrupt(f"{name}: written by a newer version (format {data[3]}); upgrade this program")
        try:
            entry: T = self._decoder.decode(memoryview(data)[4:])
        except msgspec.ValidationError as error:
            if "Invalid value" in str(error) and "type" in str(error):
                raise Corrupt(f"{name}: written by a newer version (unknown action: {error})") from error
            raise Corrupt(f"{name}: {error}") from error
        except LakeError as error:  # a record that breaks its guarantees
            raise Corrupt(f"{name}: {error}") from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise Corrupt(f"{name}: {error} (read {len(data)} bytes)") from error
        return entry
