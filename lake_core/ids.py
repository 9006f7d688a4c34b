"""Ids: 27 characters that sort by time of creation, and need no coordination.

They are KSUIDs, a number in base 62: 32 bits of seconds, 16 bits of their fraction, 112 random bits. Pure: the
caller passes in the clock and the randomness of new ids (`IdSource`), so that simulations can be repeated.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from lake_core.errors import Corrupt, InvalidInput

ID_LENGTH = 27
_CHANCE_BYTES = 16
_CHANCE_BITS = 112
TICK = 2.0**-16
"""The resolution of the time in an id, in seconds (15 microseconds). Ids decide which of two writers began first
(decision 162)."""
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
EPOCH = 1_400_000_000
"""The time at which the seconds in an id begin, in seconds since 1970; these seconds have 32 bits."""


@dataclass(frozen=True)
class IdSource:
    """Makes new ids from a clock (seconds since 1970) and a source of random bytes."""

    clock: Callable[[], float] = time.time
    entropy: Callable[[int], bytes] = secrets.token_bytes

    def new(self) -> str:
        """Returns a new id; ids made at least `TICK` seconds apart by one clock sort by time.  Raises
        InvalidInput if the clock is outside the years that ids can hold."""
        seconds = self.clock()
        if not EPOCH <= seconds < EPOCH + 2**32:
            raise InvalidInput(
                f"the clock of this machine says {_date(seconds)}; ids hold times from {_date(EPOCH)} to "
                f"{_date(EPOCH + 2**32 - 1)}: set the clock"
            )
        chance = int.from_bytes(self.entropy(_CHANCE_BYTES), "big") % 2**_CHANCE_BITS
        return _spelled(int((seconds - EPOCH) / TICK) << _CHANCE_BITS | chance)


def _spelled(number: int) -> str:
    digits = ""
    for _ in range(ID_LENGTH):
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits


def _number(id: str) -> int:
    number = 0
    for digit in id:
        number = number * 62 + _DIGITS.index(digit)
    return number


def _date(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):  # outside the years 1 to 9999
        return f"{seconds:g} s since 1970"


def id_time(id: str) -> datetime:
    """Returns when the id was made, in UTC, to the second: the time from which the age of an object with this id
    counts."""
    return datetime.fromtimestamp(EPOCH + (_number(id[:ID_LENGTH]) >> 8 * _CHANCE_BYTES), UTC)


def id_seconds(id: str) -> float:
    """Returns when the id was made, in seconds since 1970; 0 if the text contains no time.  The age of an object
    with this id counts from then."""
    try:
        return id_time(id).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def is_id(text: str) -> bool:
    """Whether the text has the form of an id."""
    return len(text) == ID_LENGTH and text.isascii() and text.isalnum()


def check_id(id: str, *, what: str) -> None:
    """Raises Corrupt if a stored text does not have the form of an id."""
    if not is_id(id):
        raise Corrupt(f"{what} {id[:80]!r} is not an id")


_HOME = "@"
"""The character before the pool's id, in the name of an object that lies in the folder of another pool."""


def in_home(object_id: str, pool_id: str) -> str:
    """Returns the name by which a clone refers to an object in the folder of this pool, the object's home.  A
    name that already has a home is returned as it is."""
    return object_id if _HOME in object_id else f"{object_id}{_HOME}{pool_id}"


def home_of(object_id: str) -> str:
    """Returns the home of the object: the id of the other pool in whose folder it lies; "" if it lies in the
    folder of the own pool."""
    return object_id.partition(_HOME)[2]


def without_home(object_id: str) -> str:
    """Returns the object's name in the folder in which it lies."""
    return object_id.partition(_HOME)[0]


def first_id(seconds: float) -> str:
    """Returns the smallest id of a time, in seconds since 1970; for times before the range of ids, the smallest of
    all."""
    second = min(max(int(seconds), EPOCH), EPOCH + 2**32 - 1)
    return IdSource(clock=lambda: second, entropy=bytes).new()


def first_above(id: str, *, now: float) -> str:
    """Returns the smallest id of the time `now` (seconds since 1970), or of the second after `id` if that is
    later."""
    return first_id(max(now, id_seconds(id) + 1))


def not_below(id: str, first: str) -> str:
    """Returns the id.  If it is below `first`, because the clock that made it was behind, its time is moved to the
    second of `first`."""
    if id >= first:
        return id
    chance = _number(id) % (1 << 8 * _CHANCE_BYTES)
    return _spelled(_number(first) | chance)
