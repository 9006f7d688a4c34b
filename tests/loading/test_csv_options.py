"""CSV as others write it: what is detected, what the options say."""

from __future__ import annotations

import codecs
from typing import Any

import pytest

from lake_core.catalog.settings import READ_OPTIONS
from lake_core.cli.options import flag
from tests.cli.command import INVALID_INPUT, USAGE, Command

GOOD: list[tuple[str, str | bytes, dict[str, str], list[dict[str, Any]]]] = [
    ("a semicolon", "k;a\n1;x,y\n2;z\n", {}, [{"k": 1, "a": "x,y"}, {"k": 2, "a": "z"}]),
    ("a tab", "k\ta\n1\tx\n", {}, [{"k": 1, "a": "x"}]),
    ("a bar", "k|a\n1|x\n", {}, [{"k": 1, "a": "x"}]),
    ("a comma beside semicolons", "k,a;b\n1,2;3\n", {}, [{"k": 1, "a;b": "2;3"}]),
    ("a record of another width", "k;a\n1;x\n2;y\n", {}, [{"k": 1, "a": "x"}, {"k": 2, "a": "y"}]),
    ("one field", "k\n1\n", {}, [{"k": 1}]),
    ("a delimiter in quotes", 'k;a\n1;"x;y"\n', {}, [{"k": 1, "a": "x;y"}]),
    ("another delimiter", "k:a\n1:x\n", {"csv.delimiter": ":"}, [{"k": 1, "a": "x"}]),
    ("a tab by name", "k\ta,b\n1\tx,y\n", {"csv.delimiter": "tab"}, [{"k": 1, "a,b": "x,y"}]),
    ("another quote", "k,a\n1,'x,''y'\n", {"csv.quote": "'"}, [{"k": 1, "a": "x,'y"}]),
    ("no quotes", 'k,a\n1,"x\n', {"csv.quote": "none"}, [{"k": 1, "a": '"x'}]),
    ("an escape", 'k,a\n1,"x\\"y"\n2,u\\,v\n', {"csv.escape": "\\"}, [{"k": 1, "a": 'x"y'}, {"k": 2, "a": "u,v"}]),
    ("latin-1", "k,a\n1,é\n".encode("latin-1"), {"csv.encoding": "latin-1"}, [{"k": 1, "a": "é"}]),
    ("cp1252", "k,a\n1,€\n".encode("cp1252"), {"csv.encoding": "cp1252"}, [{"k": 1, "a": "€"}]),
    ("utf-16 by its mark", "k,a\n1,é\n".encode("utf-16"), {}, [{"k": 1, "a": "é"}]),
    ("utf-16 be by its mark", codecs.BOM_UTF16_BE + "k,a\n1,é\n".encode("utf-16-be"), {}, [{"k": 1, "a": "é"}]),
    ("utf-32 by its mark", "k,a\n1,é\n".encode("utf-32"), {}, [{"k": 1, "a": "é"}]),
    ("a mark of utf-8 before the encoding", "﻿k,a\n1,é\n", {"csv.encoding": "latin-1"}, [{"k": 1, "a": "é"}]),
    ("names in the place of the header", "x,y\n1,2\n", {"csv.names": "k,a"}, [{"k": 1, "a": 2}]),
    (
        "names without a header",
        "1,2\n3,4\n",
        {"csv.header": "none", "csv.names": "k,a"},
        [{"k": 1, "a": 2}, {"k": 3, "a": 4}],
    ),
    ("equal and empty names", "k,a,,a,\n1,2,3,4,5\n", {"csv.bad_names": "number"},
     [{"k": 1, "a": 2, "column_3": 3, "a_2": 4, "column_5": 5}]),
    ("a name that a number would make", "k,a,a_2,a\n1,2,3,4\n", {"csv.bad_names": "number"},
     [{"k": 1, "a": 2, "a_2": 3, "a_3": 4}]),
    ("a line end in a name", 'k,"a\nb"\n1,2\n', {}, [{"k": 1, "a\nb": 2}]),
    ("null words", "k,a,b\n1,NA,-\n2,3,x\n", {"csv.null": "NA,-"}, [{"k": 1}, {"k": 2, "a": 3, "b": "x"}]),
    ("true and false words", "k,a,b\n1,yes,yes\n2,no,maybe\n", {"csv.true": "yes", "csv.false": "no"},
     [{"k": 1, "a": True, "b": "yes"}, {"k": 2, "a": False, "b": "maybe"}]),
    ("decimal commas", "k;a;b\n1;2,5;1.234\n2;3;5,5\n", {"csv.decimal": ","},
     [{"k": 1, "a": 2.5, "b": "1.234"}, {"k": 2, "a": 3.0, "b": "5,5"}]),
    ("dates", "k,a\n1,24.12.2025\n", {"csv.date_format": "%d.%m.%Y"}, [{"k": 1, "a": "2025-12-24"}]),
    ("dates and others", "k,a\n1,24.12.2025\n2,x\n", {"csv.date_format": "%d.%m.%Y"},
     [{"k": 1, "a": "24.12.2025"}, {"k": 2, "a": "x"}]),
    ("times", "k,a\n1,24/12/2025 18:30\n", {"csv.time_format": "%d/%m/%Y %H:%M"},
     [{"k": 1, "a": "2025-12-24T18:30:00"}]),
    ("times of a zone", "k,a\n1,24/12/2025 18:30 +0200\n", {"csv.time_format": "%d/%m/%Y %H:%M %z"},
     [{"k": 1, "a": "2025-12-24T16:30:00Z"}]),
    ("comments", '# a "quote\nk,a\n#1,2\n3,"x\n# no comment"\n', {"csv.comment": "#"},
     [{"k": 3, "a": "x\n# no comment"}]),
    ("comments without quotes", "#c\nk,a\n#1,2\n3,x#y\n#", {"csv.comment": "#"}, [{"k": 3, "a": "x#y"}]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options", "records"), [g[1:] for g in GOOD], ids=[g[0] for g in GOOD])
@pytest.mark.parametrize("where", ["options", "settings"])
def test_a_file_is_read_as_it_is_written(
    lake: Command, content: str | bytes, options: dict[str, str], records: list[dict[str, Any]], where: str
) -> None:
    lake.pool("p")
    words = [word for name, text in options.items() for word in (flag(name), text)]
    if where == "settings" and options:
        lake("set", "p", *(f"{name}={text}" for name, text in options.items()))
        words = []
    lake("load", "p", lake.file("a.csv", content), *words)
    assert lake.scan("p") == records


def test_what_was_detected_is_said(lake: Command) -> None:
    lake.pool("p")
    file = lake.file("a.csv", "k;a\n1;2\n".encode("utf-16"))
    done = lake(
        "load", "p", file, lake.file("b.csv", "k;a\n1;2\n"), lake.file("c.csv", "k,a\n1,2\n"), "--json"
    )
    assert done.records[0]["notes"] == [
        "a.csv: encoding utf-16-le, by its mark",
        "a.csv and 1 more file: delimiter ';', by the header",
    ]
    assert "delimiter ';', by the header" in lake("load", "p", file).err


def test_an_ending_says_the_delimiter_outright(lake: Command) -> None:
    lake.pool("p")
    lake("load", "p", lake.file("a.tsv", "k\ta,b\n1\t2,3\n"))
    assert lake.scan("p") == [{"k": 1, "a,b": "2,3"}]


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (
            "k,,a\n1,2,3\n",
            {},
            "line 1: the header must name every field once: a name is empty",
        ),
        ("k,a,a\n1,2,3\n", {}, "field 'a' is there more than once"),
        ('k,"a\0b"\n1,2\n', {}, "must not contain the character NUL"),
        ("k,a\n1,2\n", {"csv.names": "k"}, "csv.names has 1 names, but the line has 2 values"),
        (b"k,a\n1,\xff\n", {"csv.encoding": "ascii"}, "say another csv.encoding"),
        ('k,a\n1,"x\\"\n', {"csv.escape": "\\"}, "line 2: the quote that opens in this line is not closed"),
    ],
)
def test_what_cannot_be_read_so_is_named(
    lake: Command, content: str | bytes, options: dict[str, str], says: str
) -> None:
    lake.pool("p")
    words = [word for name, text in options.items() for word in (flag(name), text)]
    assert says in lake.fails(INVALID_INPUT, "load", "p", lake.file("a.csv", content), *words)


@pytest.mark.parametrize(
    ("types", "content", "options", "says"),
    [
        ({"a": "date"}, "k,a\n1,24.12.2025\n2,2025-12-24\n", {"csv.date_format": "%d.%m.%Y"}, "'2025-12-24'"),
        ({"a": "boolean"}, "k,a\n1,yes\n2,maybe\n", {"csv.true": "yes", "csv.false": "no"}, "'maybe'"),
        ({"a": "double"}, "k;a\n1;1,5\n2;1.5\n", {"csv.decimal": ","}, "'1.5'"),
    ],
)
def test_a_declared_field_must_be_spelled_as_the_options_say(
    lake: Command, types: dict[str, str], content: str, options: dict[str, str], says: str
) -> None:
    lake.pool("p", types=types)
    words = [word for name, text in options.items() for word in (flag(name), text)]
    message = lake.fails(INVALID_INPUT, "load", "p", lake.file("a.csv", content), *words)
    assert "line 3" in message
    assert says in message


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("csv.delimiter", ",,"),
        ("csv.delimiter", "é"),
        ("csv.quote", "ab"),
        ("csv.encoding", "klingon"),
        ("csv.header", "maybe"),
        ("csv.decimal", ";"),
        ("csv.date_format", "no codes"),
        ("bad_records.max", "101%"),
        ("bad_records.max", "some"),
        ("nokey", "perhaps"),
        ("partitions", "all"),
    ],
)
def test_an_option_that_cannot_be_is_refused_as_an_option_and_as_a_setting(
    lake: Command, option: str, text: str
) -> None:
    lake.pool("p")
    file = lake.file("a.csv", "k\n1\n")
    assert flag(option) in lake.fails(INVALID_INPUT, "load", "p", file, flag(option), text)
    assert option in lake.fails(INVALID_INPUT, "set", "p", f"{option}={text}")


def test_every_read_option_is_an_option_of_load_and_replace(lake: Command) -> None:
    for command in ("load", "replace"):
        helped = lake(command, "--help").out
        assert all(flag(name) in helped for name in READ_OPTIONS)
    assert lake.run("load", "p", "x", "--csv-nothing", "1").status == USAGE
