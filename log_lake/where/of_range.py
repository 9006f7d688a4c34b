"""Turns a key range into a condition that selects the records with keys in the range, and no others.

A bound is the values of the first key fields, and whether it lies before or after the keys that begin with them.
Null comes first in either direction, and the leading field of a key is never null.  A condition gives booleans
no order (`check`), so here `f > false` becomes `f = true`, and `f >= false` becomes `f is not null`.
"""

from __future__ import annotations

from lake_core.keys import KeyField, KeyRange, PoolKey
from lake_core.keys.encoding import Value, decode_key, encode_value
from lake_core.records.conditions import OPS, And, Compare, Condition, IsNull, Not, Or
from lake_core.values.numbers import Op

_Truth = Condition | bool
"""A condition; or a boolean, if the answer is the same for every record."""


def of_range(key_range: KeyRange, key: PoolKey) -> Condition | None:
    """Returns the condition for the records with keys in the range; None if every key is in it."""
    truth: _Truth = True
    if key_range.low:
        values, is_after = _cut(key_range.low, key)
        truth = _above(key.fields, values, is_strict=is_after, leading=True)
    if key_range.high is not None:
        values, is_after = _cut(key_range.high, key)
        truth = _both(truth, _below(key.fields, values, is_strict=not is_after, leading=True))
    if truth is False:  # below null there is nothing
        return And((IsNull((key.names[0],)), Not(IsNull((key.names[0],)))))
    return None if truth is True else truth


def _cut(bound: bytes, key: PoolKey) -> tuple[tuple[Value, ...], bool]:
    """Returns the values of a bound, and whether it lies after the keys that begin with them."""
    values = tuple(decode_key(bound, key))
    parts = zip(values, key.fields, strict=False)
    return values, bound > b"".join(encode_value(v, descending=f.descending) for v, f in parts)


def _above(
    fields: tuple[KeyField, ...], values: tuple[Value, ...], *, is_strict: bool, leading: bool
) -> _Truth:
    """Returns the condition that the key is at or above the values, or above them if `is_strict`."""
    if not values:
        return not is_strict
    field, value = fields[0], values[0]
    is_value: _Truth = leading or Not(IsNull((field.name,)))
    rest = _above(fields[1:], values[1:], is_strict=is_strict, leading=False)
    if value is None:
        return True if rest is True else _either(is_value, _both(_equal(field, value), rest))
    if rest is True:
        from_here = _compared(field, "<=" if field.descending else ">=", value)
        return is_value if from_here is True else from_here
    beyond = _compared(field, "<" if field.descending else ">", value)
    return _either(beyond, _both(_equal(field, value), rest))


def _below(
    fields: tuple[KeyField, ...], values: tuple[Value, ...], *, is_strict: bool, leading: bool
) -> _Truth:
    """Returns the condition that the key is at or below the values, or below them if `is_strict`."""
    if not values:
        return not is_strict
    field, value = fields[0], values[0]
    null: _Truth = not leading and IsNull((field.name,))
    rest = _below(fields[1:], values[1:], is_strict=is_strict, leading=False)
    if value is None:
        return _both(null, rest)
    if rest is True:
        return _either(_compared(field, ">=" if field.descending else "<=", value), null)
    short = _either(_compared(field, ">" if field.descending else "<", value), null)
    return _either(short, _both(_equal(field, value), rest))


def _compared(field: KeyField, op: Op, value: Value) -> _Truth:
    """Returns the comparison of a field that may be null with a value that is not null."""
    if isinstance(value, bool):
        fulfil = [other for other in (False, True) if OPS[op](other, value)]
        return _equal(field, fulfil[0]) if len(fulfil) == 1 else bool(fulfil)
    return Compare((field.name,), op, encode_value(value))


def _equal(field: KeyField, value: Value) -> Condition:
    return IsNull((field.name,)) if value is None else Compare((field.name,), "=", encode_value(value))


def _both(a: _Truth, b: _Truth) -> _Truth:
    if isinstance(a, bool) or isinstance(b, bool):
        return (b if a else False) if isinstance(a, bool) else (a if b else False)
    return And((a, b))


def _either(a: _Truth, b: _Truth) -> _Truth:
    if isinstance(a, bool) or isinstance(b, bool):
        return (True if a else b) if isinstance(a, bool) else (True if b else a)
    return Or((a, b))
