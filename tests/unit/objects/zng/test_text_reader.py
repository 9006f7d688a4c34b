"""Readable text as people and programs write it: what it means, and what it is not."""

from __future__ import annotations

import io

import pytest

from lake_core.errors import InvalidInput
from log_lake.zng.text_parser import Malformed, Names, ValueParser
from log_lake.zng.text_reader import read_text
from log_lake.zng.text_values import type_of
from tests.support.zng_files import lines_of, rows_of_text, zng_of


def shown(text: str) -> list[str]:
    """The values as the program writes them."""
    return lines_of(zng_of(rows_of_text(text)))


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ('{"a":1,"b":[true,null],"c":{"d e":"x"}}', '{a:1,b:[true,null(bool)],c:{"d e":"x"}}'),
        (' { a : 1 ( int32 ) , b : "x" } ', '{a:1(int32),b:"x"}'),
        ('{a:[1,"x",null]}', '{a:[1((int64,string)),"x"((int64,string)),null((int64,string))]}'),
        ("{a:[1,2]([int8])}", "{a:[1(int8),2(int8)]}"),
        ("{a:1,b:2}({a:int8,b:float64})", "{a:1(int8),b:2.}"),
        ('{a:"x"((int64,string)),b:1((int64,string))}', '{a:"x"((int64,string)),b:1((int64,string))}'),
        ("{a:|[3,1,3]|,b:|{2:1,1:2}|}", "{a:|[1,3]|,b:|{1:2,2:1}|}"),
        (
            "{a:|{2026-01-31T00:00:00Z:1}|,b:|{fe80::1 :2}|}",
            "{a:|{2026-01-31T00:00:00Z:1}|,b:|{fe80::1 :2}|}",
        ),
        ('{a:"\\u00e9\\u{1F600}\\ud83d\\ude00\\x41\\/\\n"}', '{a:"é😀😀A/\\n"}'),
        ("{a:2026-01-31T12:00:00+01:30,b:-1h30m,c:1.5µs}", "{a:2026-01-31T10:30:00Z,b:-1h30m,c:1.5us}"),
        ("{a:1e3,b:+Inf,c:NaN,d:-5,e:0x00FF}", "{a:1000.,b:+Inf,c:NaN,d:-5,e:0x00ff}"),
        ("{a:10.0.0.0/8,b:fe80::/10,c:::1}", "{a:10.0.0.0/8,b:fe80::/10,c:::1}"),
        ('{a:foo(<foo,"b r">),b:"b r"(<foo,"b r">)}', '{a:foo(<foo,"b r">),b:"b r"(<foo,"b r">)}'),
        ("{a:(int64),b:({x:[ip]})}", "{a:(int64),b:({x:[ip]})}"),
        ("{a:80(port=(uint16)),b:81(port)}", "{a:80(port=(uint16)),b:81(port)}"),
        ("null(string)", "null(string)"),
        ("{}", "{}"),
    ],
)
def test_text_means_a_value(text: str, means: str) -> None:
    assert rows_of_text(text)[0].text(0) == means


def test_names_last_to_the_end_and_may_be_defined_again() -> None:
    text = "{a:1}(=foo)\n{a:2}(foo)\n{a:1,b:2}(=foo)\n{a:3,b:4}(foo)"
    assert shown(text) == ["{a:1}(=foo)", "{a:2}(=foo)", "{a:1,b:2}(=foo)", "{a:3,b:4}(=foo)"]


def test_a_value_may_have_several_lines_and_a_line_several_values() -> None:
    assert shown("{\n  a: [\n    1\n  ]\n}(=x)\n\n1 2 3\n[\n{a:1},\n{a:2}\n]\n") == [
        "{a:[1]}(=x)", "1", "2", "3", "[{a:1},{a:2}]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{a:x}", "'x' is no value; write text in quotes"),
        ("{a:1", "',' is missing (or '}'), at the end"),
        ("{a:1,}", "a name is missing"),
        ("{a 1}", "':' is missing behind a field's name"),
        ("{a:1,a:2}", "a record has the field 'a' twice"),
        ("{a:256(uint8)}", "'256' is no <uint8>"),
        ("{a:-1(uint64)}", "'-1' is no <uint64>"),
        ("{a:9223372036854775808}", "'9223372036854775808' is no <int64>"),
        ("{a:1.5(int64)}", "'1.5' is no <int64>"),
        ('{a:"x"(int64)}', "a string is no <int64>"),
        ("{a:1(foo)}", "the type 'foo' is not defined"),
        ("{a:foo(<bar>)}", "'foo' is no symbol of <<bar>>"),
        ("{a:1.5((int64,string))}", "the value is none of"),
        ("{a:|{1:1,1:2}|}", "a map has the same key twice"),
        ('{a:"\\q"}', "\\q is no escape"),
        ('{a:"x}', "a string is not closed"),
        ("{a:10.0.0.0/33}", "is no value"),
        ("{a:2026-02-30T00:00:00Z}", "is no value"),
        ("{a:2300-01-01T00:00:00Z}", "is no value"),
        ("{a:1}}", "a value is missing"),
        ("[" * 200 + "]" * 200, "nested deeper than 100"),
        ("null(" + "[" * 200 + "int64" + "]" * 200 + ")", "nested deeper than 100"),
        ("{" + ",".join(f"f{n}:1" for n in range(100_001)) + "}", "made of more than 100,000 types"),
        ("1" * 100_000 + "x", "is no value"),
        ("{a:" * 99 + "1" + "}" * 99 + "x", "'x' is no value"),
        ("{a:1}({a:int64,b:int64})", "the fields a are not those of"),
        ("{a:1(float64)(string)}", "a value of type <float64>, where <string> is expected"),
    ],
)
def test_what_is_no_value_is_told_with_its_line(text: str, why: str) -> None:
    told: list[tuple[int, str, bytes]] = []
    lines = io.BytesIO(f"{{k:1}}\n{text}\n{{k:2}}\n".encode())
    groups = list(read_text(lines, name="test", bad=lambda *bad: told.append(bad)))
    (bad,) = told
    assert bad[0] == 2
    assert why in bad[1]
    assert [rows.text(row) for rows, _ in groups for row in range(len(rows))] == ["{k:1}", "{k:2}"]


def test_a_type_that_doubles_with_each_name_is_refused_before_it_fills_the_memory() -> None:
    names = ["1(t0=(int64))", *(f"null(t{n}=({{a:t{n - 1},b:t{n - 1}}}))" for n in range(1, 60))]
    told: list[str] = []
    lines = io.BytesIO("\n".join(names).encode())
    list(read_text(lines, name="test", bad=lambda line, why, text: told.append(why)))
    assert "a type is made of more than 100,000 types" in told[0]


def test_a_piece_of_text_has_no_more_values_than_memory_holds() -> None:
    with pytest.raises(Malformed, match="more than 3 values within one another, or in one line"):
        ValueParser("[1,[2]]", Names(), type_of, most=3).next()
    assert ValueParser("[1,2]", Names(), type_of, most=3).next() is not None


def test_what_is_never_closed_is_refused_where_it_begins() -> None:
    with pytest.raises(InvalidInput, match="test, line 2: what begins here is not closed"):
        list(read_text([b"1\n", b"{a:[\n", b"1,\n"], name="test", bad=lambda *_: None))
