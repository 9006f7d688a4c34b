"""CSV: what a column's text is taken for, and what is left as it is written."""

from __future__ import annotations

import errno
import gzip
import os
import random
import shlex
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.values.types import declared_field, show_type
from log_lake.loading.block import READ_LIMITS, Block, Reading, ReadLimits
from log_lake.loading.csv_options import CsvOptions
from log_lake.loading.formats import csv_kept
from log_lake.loading.formats.csv import read_csv
from log_lake.objects.spool import Spool
from tests.support.command import INVALID_INPUT, Command

COLUMNS = [
    ("integers", ["1", "-5", "0", ""], pa.int64(), [1, -5, 0, None]),
    (
        "the whole of 64 bits",
        ["9223372036854775807", "-9223372036854775808"],
        pa.int64(),
        [2**63 - 1, -(2**63)],
    ),
    ("64 bits without sign", ["1", "18446744073709551615"], pa.uint64(), [1, 2**64 - 1]),
    ("no 64 bits hold both", ["-1", "18446744073709551615"], pa.string(), ["-1", "18446744073709551615"]),
    ("beyond 64 bits", ["1", "18446744073709551616"], pa.string(), ["1", "18446744073709551616"]),
    ("doubles", ["1", "2.5", "0.5", "-1000"], pa.float64(), [1.0, 2.5, 0.5, -1000.0]),
    ("small doubles", ["0.000012", "0.00000123456789012"], pa.float64(), [1.2e-05, 1.23456789012e-06]),
    ("doubles as they are shown", ["1e+20", "1e-07", "5.0"], pa.float64(), [1e20, 1e-7, 5.0]),
    ("doubles with all their digits", ["0.30000000000000004"], pa.float64(), [0.1 + 0.2]),
    ("money", ["1.10", "-2.50", "0.00"], pa.decimal128(18, 2), [*map(Decimal, ("1.10", "-2.50", "0.00"))]),
    (
        "more digits than a double has",
        ["0.1234567890123456789", "1.0000000000000000000"],
        pa.decimal128(38, 19),
        [Decimal("0.1234567890123456789"), Decimal("1.0000000000000000000")],
    ),
    ("versions", ["1.1", "1.10"], pa.string(), ["1.1", "1.10"]),
    ("no digit before the point", [".5", "0.5"], pa.string(), [".5", "0.5"]),
    ("exponents", ["1e5", "2.5"], pa.string(), ["1e5", "2.5"]),
    ("a negative zero", ["-0.00", "1.00"], pa.string(), ["-0.00", "1.00"]),
    ("more digits than anything has", ["1." + "1" * 40], pa.string(), ["1." + "1" * 40]),
    ("the last whole double", ["0.5", "9007199254740992"], pa.float64(), [0.5, 2.0**53]),
    ("a double would round", ["0.5", "9007199254740993"], pa.string(), ["0.5", "9007199254740993"]),
    (
        "a double would round below zero",
        ["0.5", "-9007199254740995"],
        pa.string(),
        ["0.5", "-9007199254740995"],
    ),
    ("beyond a double", ["0.5", "1e400"], pa.string(), ["0.5", "1e400"]),
    ("too small for a double", ["0.5", "1e-400"], pa.string(), ["0.5", "1e-400"]),
    ("words of floating point", ["0.5", "nan"], pa.string(), ["0.5", "nan"]),
    ("leading zeros", ["7", "007"], pa.string(), ["7", "007"]),
    ("leading zeros of doubles", ["7.5", "007"], pa.string(), ["7.5", "007"]),
    ("a plus", ["5", "+5"], pa.string(), ["5", "+5"]),
    ("a plus among doubles", ["5.5", "+5"], pa.string(), ["5.5", "+5"]),
    ("hexadecimal", ["5", "0x10"], pa.string(), ["5", "0x10"]),
    ("hexadecimal, as long as its value", ["5", "0x174876E800"], pa.string(), ["5", "0x174876E800"]),
    ("spaces", ["5", " 6"], pa.string(), ["5", " 6"]),
    ("booleans", ["true", "FALSE", ""], pa.bool_(), [True, False, None]),
    ("0 and 1 are numbers", ["0", "1"], pa.int64(), [0, 1]),
    ("1 and 1.0", ["1", "1.0", "1.5"], pa.string(), ["1", "1.0", "1.5"]),
    ("1.0 and 1.5", ["1.0", "1.5"], pa.float64(), [1.0, 1.5]),
    ("0 and -0.0", ["0", "-0.0"], pa.string(), ["0", "-0.0"]),
    ("a small number in two ways", ["1e-05", "0.00001"], pa.string(), ["1e-05", "0.00001"]),
    ("one truth in two ways", ["true", "TRUE"], pa.string(), ["true", "TRUE"]),
    ("a word and booleans", ["true", "yes"], pa.string(), ["true", "yes"]),
    ("nothing at all", ["", ""], pa.null(), [None, None]),
    ("money and an exponent", ["1.10000", "1.5e-07"], pa.string(), ["1.10000", "1.5e-07"]),
    (
        "many digits and an exponent",
        ["12345678901234567890.10000", "1.5e+16"],
        pa.string(),
        ["12345678901234567890.10000", "1.5e+16"],
    ),
    ("the year 0", ["2020-01-01", "0000-01-01"], pa.string(), ["2020-01-01", "0000-01-01"]),
    (
        "an instant of the year 0",
        ["0000-01-01T00:00:00Z", "2020-01-01T00:00:00Z"],
        pa.string(),
        ["0000-01-01T00:00:00Z", "2020-01-01T00:00:00Z"],
    ),
]


def read(
    lake: Command,
    content: str | bytes,
    *,
    declared: dict[str, str] | None = None,
    size: int = 1 << 20,
    options: CsvOptions | None = None,
    bad_records: str = "fail",
    limits: ReadLimits = READ_LIMITS,
) -> list[Block]:
    fields = {name: declared_field(name, kind) for name, kind in (declared or {}).items()}
    path = lake.file("data.csv", content)
    reading = Reading(
        path,
        declared=fields,
        key=("k",),
        block_bytes=size,
        bad_records=bad_records,
        csv=options or CsvOptions(),
        limits=limits,
    )
    return list(read_csv(reading))


def table(blocks: list[Block]) -> pa.Table:
    return pa.concat_tables(b.table for b in blocks)


def problems(blocks: list[Block]) -> list[tuple[int, str, str]]:
    return [(r.line, r.reason, r.raw) for b in blocks for r in b.rejected]


@pytest.mark.parametrize(("texts", "kind", "values"), [c[1:] for c in COLUMNS], ids=[c[0] for c in COLUMNS])
@pytest.mark.parametrize(
    ("size", "limits"),
    [(1, READ_LIMITS), (1, ReadLimits(kept_csv=0)), (1 << 20, READ_LIMITS)],
    ids=["a block a line", "a block a line, on disk", "one block"],
)
def test_a_column_has_the_narrowest_type_that_gives_its_text_back(
    lake: Command, texts: list[str], kind: pa.DataType, values: list[Any], size: int, limits: ReadLimits
) -> None:
    for ordered in (list(zip(texts, values, strict=True)), list(zip(texts, values, strict=True))[::-1]):
        content = "k,a\n" + "".join(f"x,{text}\n" for text, _ in ordered)
        found = table(read(lake, content, size=size, limits=limits))
        assert found.schema.field("a").type == kind
        assert found["a"].to_pylist() == [value for _, value in ordered]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2020-01-01", "2020-02-29"], pa.date32()),
        (["2020-01-01", "2020-01-01 10:00:00"], pa.timestamp("us")),
        (["2020-01-01T10:00:00.123456", "2020-01-01T10:00:00"], pa.timestamp("us")),
        (["2020-01-01", "2020-01-01 00:00:00"], pa.string()),
        (["2020-01-01T01:00", "2020-01-01 01:00"], pa.string()),
        (["2020-01-01 01:00", "2020-01-01 01:00:00"], pa.string()),
        (["2020-01-01 01:00:00", "2020-01-01 01:00:00.0"], pa.string()),
        (["2020-01-01 01:00:00.5", "2020-01-01 01:00:00.50"], pa.string()),
        (["2020-01-01 01:00:00.5", "2020-01-01 01:00:00.25"], pa.timestamp("us")),
        (["2020-01-01 01:00:00Z", "2020-01-01 01:00:00+00:00"], pa.string()),
        (["2020-01-01T10:00:00+00:00", "2020-01-01T10:00:01+00:00"], pa.timestamp("us", "UTC")),
        (["2020-01-01T10:00:00Z", "2020-01-01T10:00:00+02:00"], pa.string()),
        (["2020-01-01T10:00:00Z", "2020-01-01T10:00:00"], pa.string()),
        (["2020-01-01T10:00:00.123456789"], pa.string()),
        (["2020-02-30"], pa.string()),
        (["2020-01-01", "20"], pa.string()),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_column_of_times_has_the_class_that_all_its_texts_have(
    lake: Command, texts: list[str], kind: pa.DataType, size: int
) -> None:
    assert table(read(lake, "a\n" + "\n".join(texts), size=size)).schema.field("a").type == kind


def test_a_type_that_only_the_last_value_denies_is_denied(lake: Command) -> None:
    found = table(read(lake, "a,b\n" + "1,true\n" * 5000 + "x,7\n"))
    assert found.schema.types == [pa.string(), pa.string()]


def test_a_column_of_many_pieces_has_the_type_of_all_of_them(lake: Command) -> None:
    lines = "".join(f"{i},{i}.5,{i % 7}\n" for i in range(150_000))  # Arrow reads a megabyte at a time
    found = table(read(lake, "a,b,c\n" + lines, size=16 << 20))
    assert found.schema.types == [pa.int64(), pa.float64(), pa.int64()]
    assert found["a"].to_pylist() == list(range(150_000))


def test_a_column_that_begins_with_many_nulls_still_shows_its_type(lake: Command) -> None:
    found = table(read(lake, "a,b\n" + "1,\n" * 5000 + "2,3\n"))
    assert found.schema.types == [pa.int64(), pa.int64()]


ON_DISK = ReadLimits(kept_csv=100)
TWICE = ReadLimits(kept_csv=100, spooled_csv=0)


@pytest.mark.parametrize("limits", [ON_DISK, TWICE], ids=["on disk", "twice"])
def test_a_file_that_is_too_large_for_the_memory_gives_the_same_records(
    lake: Command, limits: ReadLimits
) -> None:
    content = "k,a\n" + "".join(f"{i},{i}\n" for i in range(50)) + "50,\n51,x,y\n52,0.5\n"
    kept = read(lake, content, size=16, bad_records="quarantine")
    again = read(lake, content, size=16, bad_records="quarantine", limits=limits)
    assert table(again).equals(table(kept))
    assert problems(again) == problems(kept) == [(53, "3 values where the header names 2 fields", "51,x,y")]


@pytest.mark.parametrize(
    ("lines", "why_twice"),
    [
        (["1"] * 50, ""),
        (["", *["1"] * 50], ""),
        (["1"] * 50 + ["0.5"], ""),
        (["1"] * 50 + ["18446744073709551615"], ""),
        (["2020-01-01"] * 50 + ["2020-01-01 10:00:00"], ""),
        (["1.10"] * 50 + ["12345678901234567.10"], ""),
        (["x"] * 50 + ["1"], ""),
        (["1"] * 50 + ["x"], "the values of field 'a' are of several types"),
        (["5.0"] * 50 + ["1.10"], "the values of field 'a' are of several types"),
        (["1"] * 50 + ["1,2,3"], "it has bad records"),
    ],
)
def test_values_on_disk_are_those_of_the_file_or_it_is_read_twice(
    lake: Command, caplog: pytest.LogCaptureFixture, lines: list[str], why_twice: str
) -> None:
    content = "k,a\n" + "".join(f"{i},{line}\n" for i, line in enumerate(lines))
    kept = read(lake, content, size=16, bad_records="quarantine")
    with caplog.at_level("INFO", logger="log_lake"):
        again = read(lake, content, size=16, bad_records="quarantine", limits=ON_DISK)
    assert table(again).equals(table(kept))
    assert problems(again) == problems(kept)
    assert ("is read twice: " + why_twice in caplog.text) if why_twice else ("wrote" in caplog.text)
    assert ("is read twice" in caplog.text) == bool(why_twice)


def test_a_file_is_read_twice_if_the_disk_has_no_room_for_its_values(
    lake: Command, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    content = "k,a\n" + "".join(f"{i},{i}\n" for i in range(50))
    monkeypatch.setattr(os, "pwrite", refuse)
    with caplog.at_level("INFO", logger="log_lake"):
        again = read(lake, content, size=16, limits=ON_DISK)
    assert table(again)["a"].to_pylist() == list(range(50))
    assert "is read twice" in caplog.text
    assert "No space left on device" in caplog.text


def test_a_record_whose_values_were_on_disk_is_shown_as_it_is_written(lake: Command) -> None:
    content = "k,a\n" + "".join(f"{i},{i}.50\n" for i in range(50))
    blocks = read(lake, content, size=16, limits=ON_DISK)
    assert len(blocks) > 5
    located = [block.locate(0) for block in (blocks[-1], blocks[1], blocks[2]) if block.locate]
    assert [(line, raw) for line, raw in located] == [
        (line, f"{line - 2},{line - 2}.50".encode()) for line, _ in located
    ]


LINES = 200_000
CHANGED = {
    "cut": "k,a\n",
    "cut within a line": "k,a\n" + "1,1\n" * (LINES - 9) + "1,",
    "gone": "",
    "another": "k,a\n" + "2,2\n" * LINES,
    "another name": "k,bb\n" + "1,1\n" * LINES,
    "more fields": "k,a,b\n" + "1,1,1\n" * LINES,
    "longer": "k,a\n" + "1,1\n" * (LINES + 9),
}


def shown(blocks: Iterator[Block]) -> None:
    for block in blocks:
        assert block.locate is not None
        assert block.locate(0)[1] == b"1,1"


@pytest.mark.parametrize("content", CHANGED.values(), ids=list(CHANGED))
@pytest.mark.parametrize("limits", [ON_DISK, TWICE], ids=["on disk", "twice"])
def test_a_file_that_changes_while_it_is_read_shows_no_other_records(
    lake: Command, content: str, limits: ReadLimits
) -> None:
    path = lake.file("data.csv", "k,a\n" + "1,1\n" * LINES)
    blocks = read_csv(Reading(path, block_bytes=16 << 10, limits=limits))
    shown(islice(blocks, 1))
    Path(path).write_text(content)
    with pytest.raises(InvalidInput, match=r"data.csv: the file changed while it was read; load it again"):
        shown(blocks)


@pytest.mark.parametrize("limits", [READ_LIMITS, ON_DISK, TWICE], ids=["in memory", "on disk", "twice"])
def test_a_bad_record_behind_an_empty_line_of_spaces_is_the_one_that_is_rejected(
    lake: Command, limits: ReadLimits
) -> None:
    content = "k,v\n   \n1,2\n2,BAD\n3,4\n" + "4,5\n" * 50
    found = read(lake, content, declared={"v": "int"}, size=16, bad_records="quarantine", limits=limits)
    assert [(line, raw) for line, _, raw in problems(found)] == [(4, "2,BAD")]
    assert table(found)["k"].to_pylist()[:3] == [1, 3, 4]


def test_a_record_of_another_width_that_is_not_utf8_is_a_bad_record(
    lake: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    content = b'a,b\n1,\xc3\xa9\n3,4,\xff\n5,\xff\n"x,\xfe"\n6,7\n'
    found = read(lake, content, bad_records="quarantine")
    assert [(line, reason) for line, reason, _ in problems(found)] == [
        (3, "3 values where the header names 2 fields"),
        (4, "field 'b': not UTF-8: byte 0xff"),
        (5, "1 value where the header names 2 fields"),
    ]
    assert [r.raw_bytes for b in found for r in b.rejected] == [b"3,4,\xff", b"5,\xff", b'"x,\xfe"']
    assert table(found).to_pydict() == {"a": [1, 6], "b": ["\xe9", "7"]}
    assert capfd.readouterr().err == ""


def test_a_last_empty_value_is_null_with_and_without_a_line_end(lake: Command) -> None:
    for content in ('a,b\nx,2\n"y",', 'a,b\nx,2\n"y",\n'):
        assert table(read(lake, content)).to_pydict() == {"a": ["x", "y"], "b": [2, None]}


def test_a_file_that_is_read_twice_after_all_gives_its_room_on_the_disk_back(
    lake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    spools: list[Spool] = []

    class Noted(Spool):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            spools.append(self)

    monkeypatch.setattr(csv_kept, "Spool", Noted)
    reading = Reading(lake.file("data.csv", "k,a\n" + "1,1\n" * 50 + "1,x\n"), block_bytes=16, limits=ON_DISK)
    next(read_csv(reading))
    assert [spool.used for spool in spools] == [False]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gzip"])
@pytest.mark.parametrize("limits", [READ_LIMITS, ON_DISK, TWICE], ids=["in memory", "on disk", "twice"])
def test_progress_counts_the_bytes_of_the_file(lake: Command, encoding: str, limits: ReadLimits) -> None:
    numbers = random.Random(1)
    text = "k,a\n" + "".join(f"{n},{numbers.randrange(1 << 60)}\n" for n in range(5_000))
    content = gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding)
    counted: list[float] = []
    reading = Reading(
        lake.file("data.csv", content),
        block_bytes=1 << 10,
        limits=limits,
        progress=lambda file, read: counted.append(read),
    )
    list(read_csv(reading))
    assert sum(counted) == pytest.approx(len(content), rel=0.02)


def test_the_second_reading_gives_every_type_and_names_the_same_bad_records(lake: Command) -> None:
    """It reads most types at once; a block with a bad record is read as text again."""
    content = b"i,u,d,b,s,t,z\n" + b"".join(
        b'%d,1844674407370955161%d,%d.5,%s,"x,%d",2020-01-01 00:00:0%d,2020-01-01T00:00:00Z\n,,,,"",,\n'
        % (n, n % 6, n, (b"TRUE", b"false")[n % 2], n, n % 10)
        for n in range(50)
    )
    content += b"1,2,3,true,\xff,2020-01-01 00:00:00,2020-01-01T00:00:00Z\n1,2\n"
    kept = read(lake, content, size=256, bad_records="quarantine")
    again = read(lake, content, size=256, bad_records="quarantine", limits=TWICE)
    assert table(again).equals(table(kept))
    assert problems(again) == problems(kept)
    assert [line for line, _, _ in problems(kept)] == [102, 103]
    kinds = [pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), pa.string()]
    assert table(kept).schema.types == [*kinds, pa.timestamp("us"), pa.timestamp("us", "UTC")]


def test_nothing_is_null_and_a_quoted_nothing_is_text(lake: Command) -> None:
    assert table(read(lake, 'a,b\nx,\n"",1\n'))["a"].to_pylist() == ["x", ""]


def test_a_word_may_stand_for_null(lake: Command) -> None:
    found = table(read(lake, 'a,b\nNA,NA\n5,"NA"\n,x\n', options=CsvOptions(null=("NA",))))
    assert found.to_pydict() == {"a": [None, 5, None], "b": [None, "NA", "x"]}


def test_quotes_hold_commas_line_ends_and_quotes(lake: Command) -> None:
    found = table(read(lake, 'a,b\n"x,y","1\n2\r\n3"\n"say ""hi""",5" pipe\n'))
    assert found.to_pydict() == {"a": ["x,y", 'say "hi"'], "b": ["1\n2\r\n3", '5" pipe']}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_are_of_any_kind(lake: Command, end: str) -> None:
    assert table(read(lake, end.join(["a,b", "1,2", "3,4"]))).to_pylist() == [
        {"a": 1, "b": 2},
        {"a": 3, "b": 4},
    ]


def test_empty_lines_are_passed_by_before_the_header_too(lake: Command) -> None:
    assert table(read(lake, "\n\r\n  \na,b\n\n1,2\n   \n\n3,4\n\n")).to_pydict() == {"a": [1, 3], "b": [2, 4]}


def test_a_byte_order_mark_is_no_part_of_the_first_name(lake: Command) -> None:
    assert table(read(lake, b"\xef\xbb\xbfa,b\n1,2\n")).schema.names == ["a", "b"]


def test_names_are_passed_through_untouched(lake: Command) -> None:
    names = ['"id.orig_h"', '"a,b"', '"say ""x"""', "ü", "a b", "$"]
    assert table(read(lake, ",".join(names) + "\n1,2,3,4,5,6\n")).schema.names == [
        "id.orig_h",
        "a,b",
        'say "x"',
        "ü",
        "a b",
        "$",
    ]


@pytest.mark.parametrize("content", ["", "\n\n", "a,b\n", "a,b", "a,b\n\n\n"])
def test_a_file_without_records_commits_nothing(lake: Command, content: str) -> None:
    lake.pool("p")
    assert lake.load_records("p", content, "data.csv")["version"] is None


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        ("bigint", ["007", "+5", "-3"], [7, 5, -3]),
        ("smallint", ["7", "-3"], [7, -3]),
        ("double", ["1e5", "007", "NaN", "inf"], ["100000.0", "7.0", "nan", "inf"]),
        ("boolean", ["true", "False", "0", "1"], [True, False, False, True]),
        ("string", ["007", "2020-01-01"], ["007", "2020-01-01"]),
        ("decimal(5,2)", ["1.25", "7"], ["1.25", "7.00"]),
        ("date", ["2020-02-29"], ["2020-02-29"]),
        ("timestamp", ["2020-01-01T10:00:00Z", "2020-01-01 10:00"], ["2020-01-01 10:00:00+00:00"] * 2),
        ("timestamp_ntz", ["2020-01-01T10:00:00", "2020-01-01T12:00:00+02:00"], ["2020-01-01 10:00:00"] * 2),
        ("binary", ["AQI="], [b"\x01\x02"]),
        ("json", ['"{""a"": [1, 1.10]}"', "5", '"""x"""', "null"], ['{"a":[1,1.10]}', "5", '"x"', None]),
    ],
)
def test_a_declared_field_is_read_as_the_pool_says(
    lake: Command, kind: str, texts: list[str], values: list[Any]
) -> None:
    found = table(read(lake, "a,k\n" + "".join(f"{t},1\n" for t in texts), declared={"a": kind}))
    assert found.schema.field("a") == declared_field("a", kind)
    shown = [v if isinstance(v, int | bytes | str | None) else str(v) for v in found["a"].to_pylist()]
    assert shown == values


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bigint", "x"),
        ("bigint", "1.5"),
        ("bigint", "0x10"),
        ("bigint", "9223372036854775808"),
        ("smallint", "32768"),
        ("double", "1e400"),
        ("json", "1e400"),
        ("double", "x"),
        ("boolean", "yes"),
        ("decimal(5,2)", "1.239"),
        ("decimal(5,2)", "12345"),
        ("date", "2020-02-30"),
        ("timestamp", "noon"),
        ("binary", "*"),
        ("json", "{a}"),
        ("json", "NaN"),
        ("json", '""'),
    ],
)
def test_text_that_is_not_of_the_declared_type_is_a_bad_record(lake: Command, kind: str, text: str) -> None:
    blocks = read(lake, f"a,k\n,1\n{text},2\n,3\n", declared={"a": kind}, bad_records="quarantine")
    assert table(blocks)["k"].to_pylist() == [1, 3]
    ((line, reason, raw),) = problems(blocks)
    assert (line, raw) == (3, f"{text},2")
    shown = text.strip('"')
    assert reason.startswith(f"field 'a': {shown!r} is not a {show_type(declared_field('a', kind))}")


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_bad_record_is_named_by_its_line_and_kept_as_it_was_written(lake: Command, size: int) -> None:
    records = [
        "a,b",
        '1,"two\r\nlines"',
        "",
        '2,x,"y\nz"',
        "   ",
        '3,"ok"',
        "4",
        '5,"v"w',
        '"6",7" pipe',
        "8,\xff",
    ]
    content = "".join(record + "\r\n" for record in records)
    blocks = read(lake, content.encode("latin-1"), size=size, bad_records="quarantine")
    assert table(blocks)["a"].to_pylist() == [1, 3, 6]
    assert problems(blocks) == [
        (5, "3 values where the header names 2 fields", '2,x,"y\nz"'),
        (9, "1 value where the header names 2 fields", "4"),
        (10, "the value that a quote opens in line 10 goes on behind its closing quote", '5,"v"w'),
        (12, "field 'b': not UTF-8: byte 0xff", "8,\ufffd"),
    ]


def test_bad_records_of_every_sort_are_told_apart_in_one_block(lake: Command) -> None:
    content = b'a,b\n1,\xff\nx,2\n1,2,3\n"1"0,4\n5,6\n'
    blocks = read(lake, content, declared={"a": "int"}, bad_records="quarantine")
    assert table(blocks).to_pylist() == [{"a": 5, "b": 6}]
    assert [line for line, _, _ in problems(blocks)] == [2, 3, 4, 5]


def test_a_long_record_is_no_bad_record(lake: Command) -> None:
    content = "a,b\n1,x\n2," + "y" * (3 << 20) + "\n3,z,\n"
    blocks = read(lake, content, size=1 << 22, bad_records="quarantine")
    assert [len(v) for v in table(blocks)["b"].to_pylist()] == [1, 3 << 20]
    assert [line for line, _, _ in problems(blocks)] == [4]


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ('a,b\n1,x\n\n2,"y\n3,z\n4,w\n', 4, "is not closed"),
        ('a,b\n1,"x"\n2,"y ""quoted"" z\n3,"v"\n', 3, "goes on behind its closing quote"),
        ('a,b\n1,x\n"', 3, "is not closed"),
        ('a,"b\n1,2\n', 1, "is not closed"),
        ("\n\na,a\n1,2\n", 3, "field 'a' occurs more than once"),
        ("a,,b\n1,2,3\n", 1, "must name every field"),
        (b"a,\xff\n1,2\n", 1, "the header is not UTF-8 .*; say how the file is encoded"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_file_that_cannot_be_trusted_is_refused(
    lake: Command, content: str | bytes, line: int, says: str, size: int
) -> None:
    with pytest.raises(Exception, match=rf"data\.csv, line {line}: .*{says}"):
        read(lake, content, size=size)


def test_a_quote_that_is_never_closed_is_refused_under_any_policy(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    assert "line 3: the quote that opens in this line is not closed" in lake.refuses_records(
        "p", 'k,a\n1,x\n2,"y\n3,z\n', "data.csv"
    )


def test_a_quote_that_is_not_closed_does_not_fill_the_memory(lake: Command) -> None:
    content = 'a,b\n1,"x\n' + "2,y\n" * 600_000 + '3,"z"\n'
    with pytest.raises(
        Exception, match="line 2: the quote that opens in this line is not closed within 1 MiB"
    ):
        read(lake, content, size=1 << 18, limits=ReadLimits(csv_record=1 << 20))


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_csv_comes_back_from_the_lake_in_key_order(lake: Command, name: str) -> None:
    lake.pool("p", key="k:desc")
    lake.load_records("p", "k,id.orig_h,n\n1,a,007\n3,,8\n2,c,\n", name)
    assert lake.scan("p") == [
        {"k": 3, "n": "8"},
        {"k": 2, "id.orig_h": "c"},
        {"k": 1, "id.orig_h": "a", "n": "007"},
    ]


def test_an_empty_column_takes_the_type_that_another_load_gives_it(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", "k,a\n1,\n", "a.csv")
    lake.load_records("p", "k,a\n2,5\n", "b.csv")
    assert lake("show", "p", "--json").records[0]["fields"] == {"k": "bigint", "a": "bigint"}
    assert lake.scan("p") == [{"k": 1}, {"k": 2, "a": 5}]


def test_what_the_lake_writes_as_csv_it_reads_again(lake: Command) -> None:
    lake.pool("p", types={"t": "timestamp", "b": "binary", "r": "json", "n": "decimal(6,2)"})
    lake.pool("q", types={"t": "timestamp", "b": "binary", "r": "json", "n": "decimal(6,2)"})
    records = [
        {"k": 1, "t": "2020-01-01T10:00:00.25Z", "b": "AQI=", "r": {"x": [1]}, "s": 'a"b,\nc', "n": 1.5},
        {"k": 2, "s": "", "f": 0.1},
    ]
    lake.load_records("p", records)
    written = lake.folder / "again.csv"
    lake("scan", "p", "-o", str(written))
    lake.load("q", str(written))
    assert (
        lake.scan("q")
        == lake.scan("p")
        == [
            {**records[0], "t": "2020-01-01T10:00:00.25Z"},
            records[1],
        ]
    )


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("other", ["1.5", "Infinity", "0x10"])
def test_a_negative_zero_of_a_declared_double_keeps_its_sign(lake: Command, kind: str, other: str) -> None:
    lake.pool("p", types={"a": kind}, bad_records="quarantine")
    lake.load_records("p", f"k,a\n1,-0\n2,{other}\n", "a.csv")
    assert str(lake.scan("p")[0]["a"]) == "-0.0"


def test_a_file_of_blanks_alone_has_its_records_as_beside_others(lake: Command) -> None:
    assert table(read(lake, "k\n \n \n"))["k"].to_pylist() == [" ", " "]
    assert table(read(lake, "k\n \nx\n"))["k"].to_pylist() == [" ", "x"]
    assert table(read(lake, "k,a\n  \n1,2\n \n")).to_pylist() == [{"k": 1, "a": 2}]


@pytest.mark.parametrize("line", ["sep=;\r\n", "sep=;\n", '"sep=;"\n', "SEP=;\n"])
def test_the_line_with_which_excel_names_the_delimiter_is_honoured(lake: Command, line: str) -> None:
    lake.pool("p")
    path = lake.file("a.csv", f"{line}k;v\n1;a,b\n2;c\nbad\n")
    assert "a.csv, line 5: " in lake.refuses("p", path), "lines keep their numbers"
    path = lake.file("b.csv", f"{line}k;v\n1;a,b\n2;c\n")
    assert "delimiter ';', by the line sep=" in lake("load", "p", path).err
    assert lake.scan("p") == [{"k": 1, "v": "a,b"}, {"k": 2, "v": "c"}]


@pytest.mark.parametrize("between", [" ", "\t"], ids=["IIS", "CloudFront"])
def test_a_w3c_log_says_how_it_is_loaded(lake: Command, between: str) -> None:
    requests = "2026-01-01 00:00:01 1 GET\n2026-01-01 00:00:02 2 -\n".replace(" ", between)
    log = (
        "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-01-01 00:00:00\n"
        f"#Fields: date time k cs-method\n{requests}"
    )
    lake.pool("p")
    for options in ([], ["--format", "csv"], ["--format", "csv", "--csv-comment", "#"]):
        said = lake.fails(INVALID_INPUT, "load", "p", lake.file("a.log", log), *options)
        assert (
            "a log in the W3C's extended format, whose header is a comment; load it with --format csv" in said
        )
        assert "--csv-names date,time,k,cs-method" in said
    advised = shlex.split(said.partition("load it with ")[2])
    lake("load", "p", lake.file("a.log", log), *advised)
    assert [(one["k"], one.get("cs-method")) for one in lake.scan("p")] == [(1, "GET"), (2, None)]


def test_a_log_of_iis_behind_a_byte_order_mark_is_named(lake: Command) -> None:
    lake.pool("p")
    data = "\ufeff#Software: IIS\n#Fields: k v\n1 2\n".encode()
    assert "W3C's extended format" in lake.refuses_records("p", data, "a.log")
