"""How the command and the agents write numbers, times, choices, unknown names and any text for people."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence

MAX_NAMED = 10
"""Names that a message lists; it counts those beyond."""


def choices(words: Sequence[str], last: str = "or") -> str:
    """Returns words as alternatives: `append, upsert or aggregate`."""
    return f" {last} ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Returns the known name for which `word` is probably a typing error; None if none is similar."""
    import difflib  # only a mistake needs it

    by_small = {
        name.lower().lstrip("-"): name for name in names
    }  # the dashes of options make all of them near
    matches = difflib.get_close_matches(word.lower().lstrip("-"), by_small, n=1, cutoff=0.6)
    return by_small[matches[0]] if matches else None


def did_you_mean(word: str, allowed: Iterable[str], *, none: str = "none") -> str:
    """Returns the hint for an unknown name: a similar name, otherwise the first known ones; `none` if there are
    none."""
    names = sorted(allowed)
    near = nearest(word, names)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"there are: {listed(names) or none}"


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Returns a number with its noun: `1 object`, `1,000 objects`; `nouns` is the plural if it does not end
    in s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {nouns or noun + 's'}"


def listed(names: Sequence[str], most: int = MAX_NAMED) -> str:
    """Returns the first names, and how many more there are: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def human_size(size: int) -> str:
    """Returns a number of bytes with a decimal unit: `4.7 MB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def human_duration(seconds: float) -> str:
    """Returns a span of time in the largest unit that fits: `45 s`, `12 min`, `3 h`, `2 d`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"


def human_time(seconds: float) -> str:
    """Returns a time, in seconds since 1970, as `2026-11-20T12:00:00Z`; as a plain number if it is outside the
    years 1 to 9999.  A stored time may be any number."""
    try:
        return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s since 1970"


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor, end a line, turn the order of letters, or stand for bytes that are no text."""

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Returns the text on one line, with those characters escaped that would change how a terminal shows the
    rest."""
    return _UNPRINTABLE.sub(lambda match: _SHORT.get(match[0], f"\\u{ord(match[0]):04x}"), text)
