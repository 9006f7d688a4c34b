"""The units of sizes and durations, as people write them in settings, options of stores and environment variables.

Each reader of such a text decides which units it accepts, by a pattern of its own.  Called by the types of
settings and by the options of stores.
"""

from __future__ import annotations

_BYTES = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("kmgt", 1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("kmgt", 1)},
}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def unit_bytes(unit: str | None) -> int:
    """Returns the bytes of a unit such as `KiB`, `MB` or `g`, in any case; 1 for None and for `B`.  Raises
    KeyError."""
    return _BYTES[(unit or "").lower().removesuffix("b")]


def unit_seconds(unit: str | None) -> int:
    """Returns the seconds of `s`, `m`, `h` or `d`, in any case; 1 for None.  Raises KeyError."""
    return _SECONDS[(unit or "s").lower()]
