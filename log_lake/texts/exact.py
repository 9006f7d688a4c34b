"""Reads JSON numbers exactly: as the value that the writing program had.

Called by the readers of JSON, by typed JSON and by VARIANT.
"""

from __future__ import annotations

import contextlib
import decimal
import math

from log_lake.texts.value import LONGEST_NUMBER, WHOLE, read_decimal

_DOUBLE_DIGITS = 17
"""The most digits with which programs print a double.  A number with more digits, not counting zeros at its ends,
is a decimal."""


def exact_number(text: str) -> int | float | decimal.Decimal:
    """Returns a JSON number exactly: as an int of 64 bits; as a double if programs print doubles in this form;
    otherwise as a decimal.

    Programs print a double with the fewest digits that identify it, or with 16 or 17 digits: `0.1` and
    `0.10000000000000001` are the same double.  Raises NotReadable if a decimal has too few digits for the
    number.
    """
    if len(text) < 16 and "e" not in text and "E" not in text:  # so few digits are always given back
        return float(text) if "." in text else int(text)
    if WHOLE.fullmatch(text):
        if len(text) <= LONGEST_NUMBER and -(2**63) <= (whole := int(text)) < 2**64:
            return whole
        return read_decimal(text)
    double = float(text)
    if math.isfinite(double) and len(text) <= LONGEST_NUMBER:
        with contextlib.suppress(decimal.InvalidOperation):
            exact = decimal.Decimal(text)
            digits = len(exact.as_tuple().digits)
            printed = repr(double) if digits > _DOUBLE_DIGITS else f"{double:.{digits - 1}e}"
            if decimal.Decimal(printed) == exact:
                return double
    return read_decimal(text)
