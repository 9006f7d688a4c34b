"""Turns a comparison with a value of one class into one for values of another class; pure.

Numbers (integers and doubles) compare with decimals by the shortest text of a double, which is also how it is
shown.  So `x > 0.1` means the same for a double 0.5, for a decimal 0.5, and for both once they are together in
one field.  Values of other classes do not compare with each other.  Called by `conditions.classwise` and
`texts.classes`.
"""

from __future__ import annotations

import decimal
import math
from typing import Literal

from lake_core.keys.encoding import DECIMAL_DIGITS, FRACTION_DIGITS, Value, class_of

Op = Literal["=", "!=", "<", "<=", ">", ">="]

_ABOVE_ALL = frozenset({"!=", "<", "<="})
"""The comparisons that are true for every value if the other side is greater than all values."""

_BELOW_ALL = frozenset({"!=", ">", ">="})
_WHOLE = 2**53
"""Doubles of at least this size are all whole."""


def as_class(op: Op, value: Value, kind: str) -> tuple[Op, Value] | bool | None:
    """Translates `x op value` for an x of the class `kind`: into a comparison with a value of that class, or into
    the answer that every such x gives.

    `value` must not be null.  Returns None if the classes do not compare.
    """
    own_class = class_of(value)
    if own_class == kind:
        return op, value
    if (own_class, kind) == ("decimal", "number"):
        return _decimal_among_numbers(op, value)
    if (own_class, kind) == ("number", "decimal"):
        return _number_among_decimals(op, value)
    return None


def shown_decimal(value: int | float) -> decimal.Decimal:
    """Returns the decimal as which a finite number is shown; whole numbers are exact."""
    whole = isinstance(value, int) or value.is_integer()
    return decimal.Decimal(value) if whole else decimal.Decimal(repr(value))


def _decimal_among_numbers(op: Op, value: decimal.Decimal) -> tuple[Op, Value] | bool:
    with decimal.localcontext(prec=2 * DECIMAL_DIGITS):
        whole = int(value.to_integral_value(decimal.ROUND_FLOOR))
    if -(2**63) <= whole < 2**64 and (value == whole or abs(whole) >= _WHOLE):
        return _floored(op, whole, exact=value == whole)
    nearest = float(value)
    if math.isinf(nearest):
        return op in (_ABOVE_ALL if nearest > 0 else _BELOW_ALL)
    shown = shown_decimal(nearest)
    if shown == value:
        return op, nearest
    if op in ("=", "!="):
        return op == "!="
    if shown < value:  # so is everything up to the nearest
        return ("<=" if op in ("<", "<=") else ">"), nearest
    return ("<" if op in ("<", "<=") else ">="), nearest


def _number_among_decimals(op: Op, value: int | float) -> tuple[Op, Value] | bool:
    if isinstance(value, float) and not math.isfinite(value):  # NaN comes after all numbers
        return op in (_BELOW_ALL if value == -math.inf else _ABOVE_ALL)
    exact = shown_decimal(value)
    if exact.adjusted() >= DECIMAL_DIGITS:
        return op in (_BELOW_ALL if value < 0 else _ABOVE_ALL)
    with decimal.localcontext(prec=2 * DECIMAL_DIGITS, rounding=decimal.ROUND_FLOOR):
        below = exact.quantize(decimal.Decimal(1).scaleb(-FRACTION_DIGITS))
    return _floored(op, below, exact=below == exact)


def _floored(op: Op, below: Value, *, exact: bool) -> tuple[Op, Value] | bool:
    """Returns the comparison with `below`, the greatest value of the other class that is not above the given
    one."""
    if exact:
        return op, below
    if op in ("=", "!="):
        return op == "!="
    return ("<=" if op in ("<", "<=") else ">"), below
