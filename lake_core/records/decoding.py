"""The one place where stored things are decoded: a stored thing is right, or `Corrupt`, and the message names it.

A writer of one object of a pool may write any bytes there, with right checksums.  msgspec, Arrow, Python's own
conversions and the guarantees of types each raise classes of their own.  A caller that continues with the next
pool after a `LakeError` must get none of these (decision 170).  Within `decoding` all of them become `Corrupt`.

Called by `codec`, `checkpoints`, `history.checkpoint`, `catalog.checkpoint`, and each reader of JSON.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import msgspec

from lake_core.errors import Corrupt, InvalidInput, LakeError, Unavailable
from lake_core.records.decoders import JSON

MAX_INTEGER = 2**63 - 1
"""The greatest integer that is stored: signed, of 64 bits."""

FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds since 1970, inclusive: the years 1 to 9999, which every reader can show."""


class decoding:
    """Turns every failure within the block into `Corrupt`, in one line: name of the stored thing, and fault.

    `what` precedes a library's reason; it is left out if one of our types refused a value, because its message
    is complete.  `advice` ends the line.  Errors from reading the store pass unchanged: `Unavailable`,
    `CheckpointGone`, `CheckpointDamaged`.
    """

    __slots__ = ("_advice", "_name", "_what")

    def __init__(self, name: str, what: str = "cannot be decoded", *, advice: str = "") -> None:
        self._name, self._what, self._advice = name, what, f"; {advice}" if advice else ""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or not isinstance(error, Exception):
            return
        if isinstance(error, MemoryError):
            raise Unavailable(f"{self._name}: {self._what}: there is not enough memory to read it") from error
        if (
            isinstance(error, LakeError)
            and not isinstance(error, InvalidInput)
            and type(error) is not Corrupt
        ):
            return
        raise Corrupt(f"{self._name}: {_reason(error, self._name, self._what)}{self._advice}") from error


def decoded_json(
    data: bytes, kind: Any, *, name: str, what: str = "cannot be decoded", advice: str = ""
) -> Any:
    """Returns the value of a type that the JSON of a stored thing holds.  Raises Corrupt."""
    with decoding(name, what, advice=advice):
        return JSON.of(kind).decode(data)


def _reason(error: Exception, name: str, what: str) -> str:
    text = " ".join(str(error).split()).removeprefix(f"{name}: ")
    if isinstance(error, LakeError):  # a guarantee of a type, which says what is broken
        return text
    return f"{what}: {text if isinstance(error, msgspec.MsgspecError) else f'{type(error).__name__}: {text}'}"


def check_times(what: str, **times: int | None) -> None:
    """Raises Corrupt if one of these times, in microseconds since 1970, is outside of the years 1 to 9999."""
    for name, time in times.items():
        if time is not None and not FIRST_TIME <= time <= LAST_TIME:
            raise Corrupt(f"{what}: {name} is {time}, which is outside of the years 1 to 9999")


def check_counts(what: str, **counts: int | None) -> None:
    """Raises Corrupt if one of these versions, sequences, sizes, times or counts is negative or beyond 64 bits."""
    for name, count in counts.items():
        if count is not None and not 0 <= count <= MAX_INTEGER:
            raise Corrupt(f"{what}: {name} is {count}, which it cannot be")
