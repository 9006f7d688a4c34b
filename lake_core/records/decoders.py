"""msgspec's decoders, one for each type, made by one thread at a time.

msgspec lists the fields of a type when the first decoder of it is made, and runs Python code meanwhile.  A
second thread that decodes the type then finds a list that is half filled, and the process ends with a
segmentation fault (seen with msgspec 0.22, when an agent read 16 pools at once on a busy machine).  So no code
here decodes with `type=`: either a module makes its decoder when it is imported, or it asks `JSON` or `MSGPACK`
for one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")
D = TypeVar("D")

_MAKING = threading.RLock()
"""Held while any decoder is made, because types share the decoders of their parts, as actions share columns."""


class Decoders(Generic[D]):
    """The decoders of one encoding (JSON or MessagePack), one for each type."""

    def __init__(self, make: Callable[[Any], D]) -> None:
        self._make: Callable[[Any], D] = make
        self._by_type: dict[Any, D] = {}

    def of(self, kind: Any) -> D:
        """Returns the decoder of a type; the first call makes it."""
        decoder = self._by_type.get(kind)
        if decoder is None:
            with _MAKING:
                decoder = self._by_type.get(kind)
                if decoder is None:
                    decoder = self._by_type[kind] = self._make(kind)
        return decoder


JSON: Decoders[msgspec.json.Decoder[Any]] = Decoders(msgspec.json.Decoder)
MSGPACK: Decoders[msgspec.msgpack.Decoder[Any]] = Decoders(msgspec.msgpack.Decoder)


def converted(values: Any, kind: type[T]) -> T:
    """Converts plain values to an instance of a type.  Raises msgspec.ValidationError."""
    MSGPACK.of(kind)  # lists its fields
    return msgspec.convert(values, kind)
