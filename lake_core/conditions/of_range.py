"""A key range as a condition: it holds for the records with keys in the range, and for no other.

A bound is the values of the first key fields, and whether it lies before or after the keys that begin with them.
Null comes first in either direction, and the leading field of a key is never null.
"""

from __future__ import annotations

from lake_core.keys import KeyField, KeyRange, PoolKey
from lake_core.keys.encoding import Value, decode_key, encode_value
from lake_core.records.conditions import And, Compare, Condition, IsNull, Not, Op, Or

_Truth = Condition | bool
"""A condition, or its answer for every record."""


def of_range(key_range: KeyRange, key: PoolKey) -> Condition | None:
    """The condition for the records with keys in the range; None if that is all of them."""
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
    """The values of a bound, and whether it lies after the keys that begin with them."""
    values = tuple(decode_key(bound, key))
    parts = zip(values, key.fields, strict=False)
    return values, bound > b"".join(encode_value(v, descending=f.descending) for v, f in parts)


def _above(
    fields: tuple[KeyField, ...], values: tuple[Value, ...], *, is_strict: bool, leading: bool
) -> _Truth:
    """The key is at or above the values; above them if `is_strict`."""
    if not values:
        return not is_strict
    field, value = fields[0], values[0]
    name = (field.name,)
    if value is None:
        beyond: _Truth = leading or Not(IsNull(name))
    else:
        beyond = _compared(field, "<" if field.descending else ">", value)
    rest = _above(fields[1:], values[1:], is_strict=is_strict, leading=False)
    if rest is True and value is None:
        return True
    if rest is True and value is not None:
        return _compared(field, "<=" if field.descending else ">=", value)
    return _either(beyond, _both(_equal(field, value), rest))


def _below(
    fields: tuple[KeyField, ...], values: tuple[Value, ...], *, is_strict: bool, leading: bool
) -> _Truth:
    """The key is at or below the values; below them if `is_strict`."""
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


def _compared(field: KeyField, op: Op, value: Value) -> Condition:
    return Compare((field.name,), op, encode_value(value))


def _equal(field: KeyField, value: Value) -> Condition:
    return IsNull((field.name,)) if value is None else _compared(field, "=", value)


def _both(a: _Truth, b: _Truth) -> _Truth:
    if isinstance(a, bool) or isinstance(b, bool):
        return (b if a else False) if isinstance(a, bool) else (a if b else False)
    return And((a, b))


def _either(a: _Truth, b: _Truth) -> _Truth:
    if isinstance(a, bool) or isinstance(b, bool):
        return (True if a else b) if isinstance(a, bool) else (True if b else a)
    return Or((a, b))
