"""The stored form of conditions: what cannot be made, and what is not read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lake_core.errors import Corrupt, InvalidInput
from lake_core.keys.encoding import Instant, encode_value
from lake_core.records import AddTombstone, PutTombstone
from lake_core.records.conditions import (
    DEEPEST,
    And,
    Called,
    Compare,
    Condition,
    In,
    IsNull,
    Not,
    Or,
    Unless,
)

A = IsNull(("a",))
ONE, TWO, NULL = encode_value(1), encode_value(2), encode_value(None)
DECODER = msgspec.msgpack.Decoder(Condition)


@pytest.mark.parametrize(
    "make",
    [
        lambda: And(()),
        lambda: And((A,)),
        lambda: Or((A,)),
        lambda: IsNull(()),
        lambda: IsNull(("a",) * (DEEPEST + 1)),
        lambda: Compare((), "=", ONE),
        lambda: Compare(("a",), "~", ONE),  # type: ignore[arg-type]
        lambda: Compare(("a",), "=", b""),
        lambda: Compare(("a",), "=", ONE + b"\0"),
        lambda: Compare(("a",), "=", ONE[:-1]),
        lambda: Compare(("a",), "=", b"\x06a"),
        lambda: Compare(("a",), "=", b"\x06\xff\0\0"),
        lambda: Compare(("a",), "=", b"\x20" + bytes(12)),
        lambda: Compare(("a",), "=", encode_value(Instant((0x08, 0, 10**9)))),
        lambda: Compare(("a",), "=", encode_value(Instant((0x0A, 86_400, 0)))),
        lambda: Compare(("a",), "=", encode_value(Instant((0x09, 253_402_300_800, 0)))),
        lambda: Compare(("a",), "=", encode_value(Instant((0x08, -62_135_596_801, 0)))),
        lambda: In(("a",), ()),
        lambda: In(("a",), (TWO, ONE)),
        lambda: In(("a",), (ONE, ONE)),
        lambda: In(("a",), (NULL, b"\x02\x02")),
    ],
)
def test_what_is_no_condition_cannot_be_made(make: Any) -> None:
    with pytest.raises(InvalidInput, match=r"condition|encoding of a value"):
        make()


def test_a_condition_has_a_greatest_depth() -> None:
    deepest: Condition = A
    for _ in range(DEEPEST - 1):
        deepest = Not(deepest)
    for make in (lambda: Not(deepest), lambda: And((A, deepest)), lambda: Or((deepest, A))):
        with pytest.raises(InvalidInput, match="nested"):
            make()


@pytest.mark.parametrize(
    "change",
    [{"type": "like"}, {"op": "~"}, {"field": "a"}, {"value": 1}, {"value": b"\x20"}, {"field": []}],
    ids=str,
)
def test_stored_bytes_that_are_no_condition_are_refused(change: dict[str, Any]) -> None:
    plain = {"type": "compare", "field": ["a"], "op": "=", "value": ONE}
    assert DECODER.decode(msgspec.msgpack.encode(plain)) == Compare(("a",), "=", ONE)
    with pytest.raises((msgspec.ValidationError, InvalidInput)):
        DECODER.decode(msgspec.msgpack.encode(plain | change))


@pytest.mark.parametrize(
    "make", [lambda c: AddTombstone("t", condition=c), lambda c: PutTombstone("t", 1, condition=c)]
)
@pytest.mark.parametrize("of_filter", [Unless(A), Called("f", 1, ("a",), ("a",), ("bigint",))])
def test_no_entry_holds_the_condition_of_a_filter(make: Any, of_filter: Condition) -> None:
    """A filter calls functions of installed packages, and whoever writes an entry must not choose them."""
    for condition in (of_filter, Not(of_filter), And((A, Or((of_filter, A))))):
        with pytest.raises(Corrupt, match="the condition of a filter"):
            make(condition)
        stored = msgspec.msgpack.encode(make(A)).replace(
            msgspec.msgpack.encode(A), msgspec.msgpack.encode(condition)
        )
        with pytest.raises((Corrupt, msgspec.ValidationError), match="the condition of a filter"):
            msgspec.msgpack.decode(stored, type=type(make(A)))
