"""The ways in which a CSV column's values are written, so that two different texts never become one value.

`1` and `1.0` are one double, `true` and `TRUE` one boolean, `2026-01-31 00:00` and `2026-01-31T00:00` one
moment.  If a column has both, it stays text, because otherwise a scan could not give the two texts back.  If it
has only one way, its values are read as their type. A double `5` then comes back as `5.0`, and no other text of
the column has the same value.

`features` finds the ways in a block; `apart` checks that all blocks together have no two texts for one value.
Called by `csv_types`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_BARE, _POINT_ZERO = "5", "5.0"
_EXPONENT, _SMALL = "1e-05", "0.00001"
_DAY, _MIDNIGHT = "a day", "midnight"
_NO_FRACTION, _ZERO_FRACTION, _ZEROS_BEHIND = "12:00:00", "12:00:00.0", "12:00:00.10"
_FRACTION = "digits: "

_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_SHAPES = {  # patterns of parts of a timestamp, each in one way in a column
    "separator": ("[0-9]T", "[0-9] "),
    "precision": ("[0-9]:[0-9]{2}:", r"^[^:]*:[0-9]{2}($|[Z+])", r"[T ][0-9]{2}($|[Z+])"),
    "zone": ("Z$", r"\+00:00$", r"\+0000$", r"\+00$"),
}
_ONE_OF = (
    (_BARE, _POINT_ZERO),
    (_EXPONENT, _SMALL),
    (_DAY, _MIDNIGHT),
    (_NO_FRACTION, _ZERO_FRACTION),
    _TRUE,
    _FALSE,
)
_SMALLEST_PLAIN = 1e-4
"""A positive double below this is written with an exponent in its shortest text."""


def features(kind: pa.DataType, texts: pa.ChunkedArray, values: pa.ChunkedArray) -> set[str]:
    """Returns the ways in which the values of a block are written, such as with or without a point.  `texts` are
    the values as they were written, `values` the same in the type `kind`."""
    if pa.types.is_integer(kind):
        return {_BARE}
    if pa.types.is_floating(kind):
        return _of_doubles(texts, values)
    if pa.types.is_boolean(kind):
        return {word for word in (*_TRUE, *_FALSE) if _any(pc.equal(texts, word))}
    if pa.types.is_date(kind):
        return {_DAY}
    return _of_moments(texts, values) if pa.types.is_timestamp(kind) else set()


def apart(ways: set[str]) -> bool:
    """Whether two different texts are certainly different values, if the values are written in these ways."""
    if any(len(ways.intersection(one)) > 1 for one in _ONE_OF):
        return False
    for name, patterns in _SHAPES.items():
        if sum(f"{name} {pattern}" in ways for pattern in patterns) > 1:
            return False
    lengths = [feature for feature in ways if feature.startswith(_FRACTION)]
    return len(lengths) < 2 or _ZEROS_BEHIND not in ways


def _any(holds: pa.ChunkedArray) -> bool:
    return pc.any(holds).as_py() is True


def _of_doubles(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> set[str]:
    has_exponent = pc.match_substring(texts, "e", ignore_case=True)
    plain = pc.invert(has_exponent)
    small = pc.and_(pc.less(pc.abs(values), _SMALLEST_PLAIN), pc.not_equal(values, 0.0))
    ways = {
        _BARE: pc.and_(plain, pc.invert(pc.match_substring(texts, "."))),
        _POINT_ZERO: pc.ends_with(texts, ".0"),
        _EXPONENT: has_exponent,
        _SMALL: pc.and_(plain, small),
    }
    return {name for name, holds in ways.items() if _any(holds)}


def _of_moments(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> set[str]:
    days = pc.equal(pc.utf8_length(texts), len("2026-01-31"))
    timed = texts.filter(pc.fill_null(pc.invert(days), False))
    ways = {_DAY} if _any(days) else set()
    midnight = pc.equal(values.cast(pa.timestamp("us")), pc.floor_temporal(values.cast(pa.timestamp("us"))))
    if _any(pc.and_(midnight, pc.invert(days))):
        ways.add(_MIDNIGHT)
    for name, patterns in _SHAPES.items():
        ways |= {f"{name} {one}" for one in patterns if _any(pc.match_substring_regex(timed, one))}
    digits = pc.struct_field(pc.extract_regex(timed, r"\.(?P<digits>[0-9]+)"), "digits")
    if digits.null_count:
        ways.add(_NO_FRACTION)
    for length in pc.unique(pc.utf8_length(digits)).drop_null().to_pylist():
        ways.add(f"{_FRACTION}{length}")
    if _any(pc.match_substring_regex(digits, "^0+$")):
        ways.add(_ZERO_FRACTION)
    if _any(pc.ends_with(digits, "0")):
        ways.add(_ZEROS_BEHIND)
    return ways
