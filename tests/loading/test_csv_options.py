"""CSV as others write it: what is detected, what the options say."""

from __future__ import annotations

import codecs
import tempfile
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake.console.read_options import flag
from log_lake.loading.block import Reading
from log_lake.loading.csv_options import CsvOptions, csv_options
from log_lake.loading.formats.csv import read_csv
from log_lake.loading.formats.csv_dialect import values_of
from log_lake.loading.formats.csv_lines import Dialect, records_of
from log_lake.loading.formats.csv_text import parsed
from log_lake.loading.options import READ_OPTIONS
from log_lake.settings.settings import Settings
from tests.support.command import INVALID_INPUT, USAGE, Command

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
    ("an escape that is the quote", 'k,a\n1,"x ""y"""\n2,z\n', {"csv.escape": '"'},
     [{"k": 1, "a": 'x "y"'}, {"k": 2, "a": "z"}]),
    ("an escaped line end", "k,a\n1,x\\\ny\n2,z\\\\\n", {"csv.escape": "\\"},
     [{"k": 1, "a": "x\ny"}, {"k": 2, "a": "z\\"}]),
    ("an escaped line end at the end", "k,a\n1,x\\\n", {"csv.escape": "\\"}, [{"k": 1, "a": "x\n"}]),
    ("commas of numbers before others", "1,5;2,5\n3,5;4,5\n",
     {"csv.decimal": ",", "csv.header": "none", "csv.names": "k,a"}, [{"k": 1.5, "a": 2.5}, {"k": 3.5, "a": 4.5}]),
    ("commas of numbers alone", "k\n1,5\n", {"csv.decimal": ","}, [{"k": 1.5}]),
    ("commas for both, quoted", 'k,a\n1,"2,5"\n', {"csv.decimal": ",", "csv.delimiter": ","}, [{"k": 1, "a": 2.5}]),
    ("a comma for quotes", "k;a\n1;,x;y,\n", {"csv.quote": ","}, [{"k": 1, "a": "x;y"}]),
    ("times with a percent sign and z", "k,a\n1,2025-12-24 18:30 %z\n", {"csv.time_format": "%Y-%m-%d %H:%M %%z"},
     [{"k": 1, "a": "2025-12-24T18:30:00"}]),
    ("times of twelve hours", "k,a\n1,12/24/25 6:30 PM\n", {"csv.time_format": "%m/%d/%y %I:%M %p"},
     [{"k": 1, "a": "2025-12-24T18:30:00"}]),
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
        ("k,a,a\n1,2,3\n", {}, "field 'a' occurs more than once"),
        ('k,"a\0b"\n1,2\n', {}, "a name cannot have the character NUL"),
        ("k,a\n1,2\n", {"csv.names": "k"}, "csv.names has 1 names, but the line has 2 values"),
        (b"k,a\n1,\xff\n", {"csv.encoding": "ascii"}, "say another csv.encoding"),
        ("k,a\n1,x\n2,y\\", {"csv.escape": "\\"}, "line 3: it ends with an escape, and nothing behind it"),
        ("k,a\\", {"csv.escape": "\\"}, "line 1: malformed CSV header: it ends with an escape"),
        ('k,"a"b\n1,2\n', {}, "line 1: malformed CSV header: the value that a quote opens in line 1 goes on"),
        ("k,a\n1,5\n2,5\n", {"csv.decimal": ","}, "the delimiter cannot be told; say csv.delimiter"),
        ("k,a\n1,2\n", {"csv.quote": ",", "csv.escape": ";"}, "no record has the key field 'k'"),
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


EXCLUDING = [
    ({"csv.quote": ",", "csv.delimiter": ","}, "csv.delimiter and csv.quote are both ','"),
    ({"csv.escape": ",", "csv.delimiter": ","}, "csv.delimiter and csv.escape are both ','"),
    ({"csv.comment": "#", "csv.delimiter": "#"}, "csv.delimiter and csv.comment are both '#'"),
    ({"csv.comment": '"'}, "csv.quote and csv.comment are both '\"'"),
    ({"csv.comment": "\\", "csv.escape": "\\"}, "csv.escape and csv.comment are both"),
    ({"csv.decimal": ",", "csv.delimiter": ",", "csv.quote": "none"}, "numbers must be quoted (csv.quote)"),
    ({"csv.true": "x,y", "csv.false": "y"}, "csv.true and csv.false both have the word 'y'"),
    ({"csv.null": "y", "csv.true": "y"}, "csv.null and csv.true both have the word 'y'"),
    ({"csv.names": "a,a"}, "csv.names must name every field once: 'a' is there more than once"),
    ({"csv.names": "a,,b"}, "csv.names must name every field once: a name is empty"),
    ({"csv.names": "x" * 1025}, "a name may have at most 1,024 bytes"),
]


@pytest.mark.parametrize(("options", "says"), EXCLUDING, ids=[e[1] for e in EXCLUDING])
def test_options_that_exclude_one_another_are_refused_when_set_and_when_used(
    lake: Command, options: dict[str, str], says: str
) -> None:
    lake.pool("p")
    words = [word for name, text in options.items() for word in (flag(name), text)]
    assert says in lake.fails(INVALID_INPUT, "load", "p", lake.file("a.csv", "k,a\n1,2\n"), *words)
    *before, last = (f"{name}={text}" for name, text in options.items())
    if before:
        lake("set", "p", *before)
    assert says in lake.fails(INVALID_INPUT, "set", "p", last)
    lake("set", "p", *(f"{name}=" for name in options))


@pytest.mark.parametrize("delimiter", [",", " ", "|", "1", "x", "\\", "#", "\x01"])
@pytest.mark.parametrize("quote", ['"', "'", " ", "0", "none"])
@pytest.mark.parametrize("escape", ["none", "\\", '"', "n"])
def test_what_is_written_with_characters_that_are_accepted_is_read_back(
    delimiter: str, quote: str, escape: str
) -> None:
    settings = {"csv.delimiter": delimiter, "csv.quote": quote, "csv.escape": escape}
    try:
        options = csv_options(Settings(settings))
    except InvalidInput:
        assert len({delimiter, quote, escape}) < 3
        return
    values = [f"v{c}w" for c in dict.fromkeys(delimiter + quote + escape + '#"')] + ["plain"]
    if quote == "none":
        values = [v for v in values if escape != "none" or delimiter not in v]
        written = [escaped(v, options.escape, delimiter + options.escape) for v in values]
    elif options.escape:
        written = [quote + escaped(v, options.escape, quote + options.escape) + quote for v in values]
    else:
        written = [quote + v.replace(quote, 2 * quote) + quote for v in values]
    dialect = Dialect(delimiter, options.quote, options.escape)
    text = delimiter.join(written)
    assert values_of(text, dialect) == values
    data = (text + "\n").encode()
    assert [(line.raw(data).decode(), line.fault) for line in records_of(data, 1, dialect)] == [(text, "")]
    table = parsed(data, {str(n): pa.binary() for n in range(len(values))}, (), dialect, lambda row: "error")
    assert [column[0].as_py().decode() for column in table.columns] == values


def escaped(value: str, escape: str, characters: str) -> str:
    return "".join(escape + c if escape and c in characters else c for c in value)


def test_an_escaped_line_end_at_the_end_of_a_block_goes_on_in_the_next() -> None:
    reading = Reading("a.csv", csv=CsvOptions(escape="\\"), block_bytes=64)
    records = "".join(f"{n},x{'y' * (n % 7)}\\\n{n}\n" for n in range(200))
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(("k,a\n" + records).encode())
        file.flush()
        reading.path = file.name
        found = [row for block in read_csv(reading) for row in block.table.to_pylist()]
    assert found == [{"k": n, "a": f"x{'y' * (n % 7)}\n{n}"} for n in range(200)]
