"""The text form: what it means, how it is shown, and how errors point at the word.

That every condition is read back from its text is tests/properties/test_conditions.py.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from lake_core.conditions import And, Compare, Condition, In, IsNull, Not, Or
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Instant, encode_value
from lake_core.records.conditions import DEEPEST
from lake_core.values.numbers import Op
from log_lake.where import parse, show
from log_lake.where.parse import MOST_COMPARISONS
from log_lake.where.words import LONGEST


def compare(field: str, op: Op, value: Any) -> Compare:
    return Compare((field,), op, encode_value(value))


def among(field: str, *values: Any) -> In:
    return In((field,), tuple(sorted(encode_value(v) for v in values)))


A, B, C = compare("a", "=", 1), compare("b", "=", 2), compare("c", "=", 3)

# ---------------------------------------------------------------- what text means


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a = 1", A),
        ("a = 1 and b = 2 and c = 3", And((A, B, C))),
        ("a = 1 and (b = 2 and c = 3)", And((A, And((B, C))))),
        ("a = 1 or b = 2 and c = 3", Or((A, And((B, C))))),
        ("(a = 1 or b = 2) and c = 3", And((Or((A, B)), C))),
        ("not a = 1 and b = 2", And((Not(A), B))),
        ("not (a = 1 and b = 2)", Not(And((A, B)))),
        ("not not a = 1", Not(Not(A))),
        ("((a = 1))", A),
        ("a = 1 AND NOT b = 2 Or c IS NULL", Or((And((A, Not(B))), IsNull(("c",))))),
        ("a is not null", Not(IsNull(("a",)))),
        ("a in (3, 1, 2, 1)", among("a", 1, 2, 3)),
        ("a not in ('x', null)", Not(among("a", None, "x"))),
        ("a between 1 and 2", And((compare("a", ">=", 1), compare("a", "<=", 2)))),
        ("a not between 1 and 2", Not(And((compare("a", ">=", 1), compare("a", "<=", 2))))),
        ("a between 1 and 2 and b = 2", And((And((compare("a", ">=", 1), compare("a", "<=", 2))), B))),
        ("a<>1", compare("a", "!=", 1)),
        ("a!=1", compare("a", "!=", 1)),
        ("a>-1", compare("a", ">", -1)),
        ("\n a\t=\n1 ", A),
    ],
)
def test_text_is_read_by_the_rules_of_sql(text: str, condition: Condition) -> None:
    assert parse(text) == condition


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("Größe_2", ("Größe_2",)),
        ('"a b"', ("a b",)),
        ('"say ""a"""', ('say "a"',)),
        ('""', ("",)),
        ('"null"', ("null",)),
        ("date", ("date",)),
        ("x", ("x",)),
        ("id.orig_h", ("id.orig_h",)),
        ("a . in", ("a.in",)),
        ('"id.orig_h"', ("id.orig_h",)),
        ('a."b"', ("a", "b")),
        ('"a"."b.c".d', ("a", "b.c", "d")),
    ],
)
def test_fields_are_named_bare_or_in_double_quotes(text: str, path: tuple[str, ...]) -> None:
    assert parse(f"{text} is null") == IsNull(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("TRUE", True),
        ("false", False),
        ("12", 12),
        ("+12", 12),
        ("007", 7),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551616", Decimal(2**64)),
        ("1.50", Decimal("1.5")),
        (".5", Decimal("0.5")),
        ("1.", Decimal(1)),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("double 'nan'", math.nan),
        ("double '-inf'", -math.inf),
        ("double '1.5'", 1.5),
        ("'it''s'", "it's"),
        ("''", ""),
        ("'a\nb'", "a\nb"),
        ("x'00fF'", b"\x00\xff"),
        ("x''", b""),
        ("date '2026-01-31'", dt.date(2026, 1, 31)),
        ("timestamp '1970-01-01 00:00:01'", Instant((0x08, 1, 0))),
        ("timestamp '1970-01-01'", Instant((0x08, 0, 0))),
        ("timestamp '1970-01-01T00:00:00.5Z'", Instant((0x09, 0, 500_000_000))),
        ("timestamp '1969-12-31T23:59:59.123456789Z'", Instant((0x09, -1, 123_456_789))),
        ("timestamp '1970-01-01T01:00:00.000000001+01:00'", Instant((0x09, 0, 1))),
        ("timestamp '9999-12-31T23:59:59.999999999'", Instant((0x08, 253_402_300_799, 999_999_999))),
    ],
)
def test_a_literal_is_exactly_the_value_that_is_written(text: str, value: Any) -> None:
    assert parse(f"a = {text}") == compare("a", "=", value)


# ---------------------------------------------------------------- how it is shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tailnum='N14228'  AND dep_delay>15", "tailnum = 'N14228' and dep_delay > 15"),
        ("not a is null or not a in (2,1)", "a is not null or a not in (1, 2)"),
        ("a = 1 or b = 2 and c = 3", "a = 1 or (b = 2 and c = 3)"),
        ("not a = 1", "not (a = 1)"),
        ("a between 1 and 2", "a >= 1 and a <= 2"),
        ('"a b" = 1.50 and "or" = 1.5e0', '"a b" = 1.5 and "or" = 1.5e0'),
        ("id.orig_h = 'x'", "id.orig_h = 'x'"),
        ("r.\"x\" = X'AB'", '"r"."x" = x\'ab\''),
        ("a = 1e300 or a = -0.0", "a = 1e+300 or a = 0.0"),
        ("t < timestamp '2026-01-31 12:00:00.5+00:00'", "t < timestamp '2026-01-31T12:00:00.5Z'"),
    ],
)
def test_a_condition_is_shown_in_one_way(text: str, shown: str) -> None:
    assert show(parse(text)) == shown


# ---------------------------------------------------------------- errors point at the word


@pytest.mark.parametrize(
    ("text", "column", "word", "said"),
    [
        ("", 1, None, "expected a field"),
        ("   ", 4, None, "expected a field"),
        ("a = 1 an b = 2", 7, "an", "`and`, `or` or the end"),
        ("a = 1 and", 10, None, "expected a field"),
        ("a", 2, None, "expected a comparison"),
        ("a 1", 3, "1", "expected a comparison"),
        ("a == 1", 4, "=", "expected a value"),
        ("a = N14228", 5, "N14228", "single quotes"),
        ('a = "N14228"', 5, '"N14228"', "single quotes"),
        ("'x' = a", 1, "'x'", "expected a field"),
        ("null = a", 1, "null", "expected a field"),
        ("a.1 = 2", 2, ".1", "expected a comparison"),
        ("a. = 2", 4, "=", "expected a field"),
        ("(a = 1", 7, None, "`)`"),
        ("a = 1)", 6, ")", "the end"),
        ("a in 1", 6, "1", "expected ("),
        ("a in ()", 7, ")", "expected a value"),
        ("a in (1 2)", 9, "2", "`,` or `)`"),
        ("a is 1", 6, "1", "`null` or `not null`"),
        ("a is not 1", 6, "not", "`null` or `not null`"),
        ("a not = 1", 3, "not", "expected a comparison"),
        ("a between 1 or 2", 13, "or", "expected and"),
        ("a = 'x", 5, "'", "closing '"),
        ('"a = 1', 1, '"', 'closing "'),
        ("a = 1; drop", 6, ";", "no meaning"),
        ("a = x'0g'", 5, "x'0g'", "hexadecimal"),
        ("a = date '2026-02-30'", 5, "date '2026-02-30'", "not a date"),
        ("a = timestamp 'noon'", 5, "timestamp 'noon'", "not a timestamp"),
        ("a = timestamp '2026-01-01T00:00:00.1234567891'", 5, None, "not a timestamp"),
        ("a = timestamp '2026-01-01T00:00:00,5'", 5, None, "not a timestamp"),
        ("a = timestamp '9999-12-31T23:59:59-05:00'", 5, None, "of the years 1 to 9999"),
        ("a = timestamp '0001-01-01T00:00:00+05:00'", 5, None, "of the years 1 to 9999"),
        ("a = double 'x'", 5, "double 'x'", "not a number"),
        ("a = 1e999", 5, "1e999", "too large for a double"),
        (f"a = {'9' * 77}", 5, None, "more digits"),
        (f"a = 0.{'0' * 38}1", 5, None, "more digits"),
        (f"a = {'9' * 5000}", 5, None, "too long for a number"),
        ("a = '\ud800'", 5, None, "not UTF-8"),
    ],
)
def test_an_error_points_at_the_word(text: str, column: int, word: str | None, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    message = str(caught.value)
    assert f"column {column}, at " in message
    assert said in message
    assert "\n" not in message
    if word is not None:
        assert f"at `{word}`:" in message


def test_of_a_long_condition_the_error_quotes_what_stands_around_the_word() -> None:
    text = f"a = '{'x' * 500}' and\nb ? 1 and c = '{'y' * 500}'"
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    message = str(caught.value)
    assert "x' and b ? 1 and c = 'y" in message
    assert f"column {text.index('?') + 1}, at `?`" in message
    assert len(message) < 400


@pytest.mark.parametrize(
    "text", ["(" * 10_000, "not " * 10_000 + "a = 1", "(a = 1 and " * 60 + "a = 1" + ")" * 60]
)
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=f"nested more than {DEEPEST} levels"):
        parse(text)


def test_the_deepest_condition_is_read_back() -> None:
    for join in (Not, lambda inner: And((A, inner)), lambda inner: Not(Or((A, inner)))):
        condition: Condition = A
        try:
            for _ in range(DEEPEST):  # one more than there can be
                condition = join(condition)
        except InvalidInput:
            assert parse(show(condition)) == condition
        else:
            pytest.fail("not bounded")


def test_a_path_of_too_many_names_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nested more than"):
        parse(".".join(['"a"'] * (DEEPEST + 1)) + " is null")


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput, match="it may have at most 262,144"):
        parse("a = 1" + " " * LONGEST)


# ---------------------------------------------------------------- what bounds the time


@pytest.mark.parametrize(
    "text",
    [
        " or ".join(f"k = {n}" for n in range(20_000)),
        " and ".join(f"s != '{n}'" for n in range(MOST_COMPARISONS + 1)),
        " or ".join(f"k between {n} and {n}" for n in range(MOST_COMPARISONS // 2 + 1)),
        " or ".join(f"(not a is null and b in ({n}, 7))" for n in range(MOST_COMPARISONS // 2 + 1)),
    ],
)
def test_more_comparisons_than_a_scan_makes_in_short_time_are_refused(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"more than 1,000 comparisons; for many values .* write `in \(a, b\)`"
    ) as why:
        parse(text)
    assert len(str(why.value)) < 300
    assert "\n" not in str(why.value)


def test_one_comparison_may_have_many_values_and_a_condition_as_many_as_are_allowed() -> None:
    assert parse(f"k in ({', '.join(map(str, range(20_000)))})") == among("k", *range(20_000))
    made = parse(" or ".join(f"k > {n}" for n in range(MOST_COMPARISONS)))
    assert isinstance(made, Or)
    assert len(made.of) == MOST_COMPARISONS
