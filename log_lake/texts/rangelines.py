"""Reads a list of key ranges from a file with one JSON object per line.

`{"from": 5, "to": 9}` is a range from a key (inclusive) to a key (exclusive); either may be left out.  `{"key":
5}` is one key.  A key of several fields is a list, or a value of the first field.  Blank lines are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import AFTER
from log_lake.texts.keytext import check_range, encoded

MOST_RANGES = 1_000_000
"""The most ranges of a file.  Each takes about 300 bytes of memory."""

FORM = 'write {"from": K, "to": K} or {"key": K}'


_DECODER = msgspec.json.Decoder(float_hook=str)
"""Decodes JSON, but keeps numbers with a fraction as texts, which are read exactly once the class of their field
is known."""


def ranges_of_lines(
    lines: Iterable[str], key: PoolKey, classes: Mapping[str, str], *, name: str
) -> list[KeyRange]:
    """Returns the ranges of the lines of a file called `name`.  Raises InvalidInput, which names the line."""
    ranges: list[KeyRange] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(ranges) == MOST_RANGES:
            raise InvalidInput(f"{name}: more than {MOST_RANGES:,} ranges; split the file")
        try:
            ranges.append(_range(line, key, lambda values: encoded(values, key, classes)))
            check_range(ranges[-1], key)
        except InvalidInput as error:
            raise InvalidInput(f"{name}, line {number}: {error}") from error
    if not ranges:
        raise InvalidInput(f"{name}: no range; {FORM} a line")
    return ranges


def _range(line: str, key: PoolKey, bound: Callable[[list[Any]], bytes]) -> KeyRange:
    try:
        fields = _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:  # JSON may be too deep
        raise InvalidInput(f"{line.strip()[:60]!r} is not JSON; {FORM}") from error
    if not isinstance(fields, dict) or set(fields) not in ({"key"}, {"from"}, {"to"}, {"from", "to"}):
        raise InvalidInput(f"{line.strip()[:60]!r} is no range; {FORM}")
    for name, value in fields.items():
        if value == []:
            raise InvalidInput(f'"{name}" has no value; {FORM}')
        if value is None and name != "key":
            raise InvalidInput(f'"{name}" is null; leave it out, if the range is open there')
    values = {name: value if isinstance(value, list) else [value] for name, value in fields.items()}
    if "key" in values:
        prefix = bound(values["key"])
        return KeyRange(prefix, prefix + AFTER)
    return KeyRange(
        bound(values["from"]) if "from" in values else b"", bound(values["to"]) if "to" in values else None
    )
