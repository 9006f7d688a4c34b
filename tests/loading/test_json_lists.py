"""The option `records`: the records of a list inside of JSON documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from log_lake.lake import Lake
from log_lake.loading.block import Block, Reading
from log_lake.loading.detect import read_blocks
from log_lake.loading.formats import json_lists
from tests.loading.test_values import VALUES
from tests.support.command import Command

RECORDS: list[dict[str, Any]] = [
    {"k": 1, "a": "x,y]}", "b": {"Records": [1, 2]}},
    {"k": 2, "a": 'say "hi" \\', "b": {"Records": []}},
    {"k": 3, "a": "{\\", "b": None},
]
BESIDE = {
    "next": None,
    "count": 3.5,
    "ok": True,
    "text": 'a "b" ]}, \\',
    "o": {"Records": [[{"k": 9}]]},
    "l": [[{}], 1],
}
ONE = {**BESIDE, "Records": RECORDS, "e": {}, "n": [], "": "nameless"}

TEXTS = {
    "a document": json.dumps({"Records": RECORDS}),
    "fields beside it": json.dumps(ONE),
    "a pretty document": json.dumps(ONE, indent=2),
    "carriage returns": json.dumps(ONE, indent=1).replace("\n", "\r\n"),
    "space around": f"\n \n{json.dumps(ONE)}\n\n",
    "a mark": "\ufeff" + json.dumps(ONE),
    "lines": "".join(json.dumps({**BESIDE, "Records": [r]}) + "\n" for r in RECORDS),
    "documents on one line": "".join(json.dumps({"Records": [r], **BESIDE}) for r in RECORDS),
    "an array of documents": json.dumps(
        [{"Records": RECORDS[:1]}, {"Records": RECORDS[1:], "x": 1}], indent=1
    ),
    "arrays of documents": "[]" + "".join(json.dumps([{"Records": [r]}]) + "\n" for r in RECORDS),
    "empty lists among others": json.dumps({"Records": []})
    + json.dumps(ONE)
    + '{"Records":null} {"Records": [ ]}',
    "an escaped name": json.dumps({"Records": RECORDS}).replace('"Records"', '"Rec\\u006frds"', 1),
}


def read(
    lake: Command, text: str, *, records: str = "Records", size: int = 1 << 20, **given: Any
) -> list[Block]:
    reading = Reading(
        lake.file("a.json", text.encode()), key=("k",), records=records, block_bytes=size, **given
    )
    return list(read_blocks(reading))


def rows(blocks: list[Block]) -> list[dict[str, Any]]:
    return [row for block in blocks for row in block.table.to_pylist()]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_the_records_of_the_list_are_read_whatever_stands_beside_it(
    lake: Command, text: str, size: int
) -> None:
    found = rows(read(lake, text, size=size))
    assert [(r["k"], r["a"]) for r in found] == [(r["k"], r["a"]) for r in RECORDS]


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("data.items", {"items": [{"k": 9}], "data": {"x": {"items": [{"k": 9}]}, "items": RECORDS}}),
        ("a.b.c.d", {"a": {"b": {"c": {"d": RECORDS}, "d": [{"k": 9}]}}}),
        ("odata.value", {"odata": "a text", "odata.value": RECORDS}),
        ("a.b.c", {"a": {"b": {}, "b.c": RECORDS}}),
        ("a.b.c", {"a.b": {"c": RECORDS}, "a": [{"b": {"c": [{"k": 9}]}}]}),
        ("ü", {"ü": RECORDS}),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_path_leads_into_objects_and_a_name_may_have_dots(
    lake: Command, path: str, document: dict[str, Any], size: int
) -> None:
    found = rows(read(lake, json.dumps(document), records=path, size=size))
    assert [r["k"] for r in found] == [1, 2, 3]


MEMBERS = st.dictionaries(st.sampled_from(["a", "b", "ü", "l", 'q"\\']), VALUES, max_size=4)


@given(
    st.lists(st.tuples(MEMBERS, st.lists(MEMBERS, max_size=4), MEMBERS), max_size=4),
    st.sampled_from([None, 2]),
    st.sampled_from([3, 50, 1 << 20]),
)
def test_frames_hold_what_a_whole_parse_finds(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]],
    indent: int | None,
    size: int,
) -> None:
    text = "\n".join(json.dumps({**a, "R": records, **b}, indent=indent) for a, records, b in documents)
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(text)
    reading = Reading(str(path), records="R", block_bytes=size)
    with path.open("rb") as file:
        lines = b"\n".join(frame.lines for frame in json_lists.list_frames(file, reading)).split(b"\n")
    assert [json.loads(line) for line in lines if line] == [r for _, records, _ in documents for r in records]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"records": [{"k": 1}], "x": 1}',
            "line 1: the JSON object has no list 'Records' (option records); did you",
        ),
        ('{"items": [], "x": 1}', "no list 'Records' (option records); there are: items"),
        (
            '{"k": 1}\n{"k": 2}\n',
            "line 1: the JSON object has no list 'Records' (option records); there are: none",
        ),
        ('{"Records": []}\n{"x": {}}', "line 2: the JSON object has no list 'Records'"),
        ('{"Records": {"k": 1}}', "line 1: 'Records' is an object, not a list of records (option records)"),
        ('{"Records": "x"}', "'Records' is a string, not a list"),
        ('\n{"Records": -1.5e3}', "line 2: 'Records' is a number, not a list"),
        ('{"Records": false}', "'Records' is a boolean, not a list"),
        ('{"Records": [], "Records": []}', "the JSON object has 'Records' 2 times"),
        ('[{"k": 1}]', "line 1: the JSON object has no list 'Records'"),
        ("[[]]", "a list stands where a JSON object with 'Records' should"),
        ('{"Records": []}\n5', "line 2: a number stands where a JSON object with 'Records' should"),
        ('{"Records": [{"k": 1}]} x', "'x' stands where a JSON object with 'Records' should"),
        ('{"Records": [{"k": 1},]}', "a JSON array has nothing before a comma or its end"),
        ('{"Records": [,{"k": 1}]}', "a JSON array has nothing before a comma or its end"),
        ('{"Records" [{"k": 1}]}', "malformed JSON: '[' is not expected here"),
        ('{"Records": [{"k": 1}],}', "malformed JSON: '}' is not expected here"),
        ('{Records: [{"k": 1}]}', "malformed JSON: 'Records' is not expected here"),
        ('{"Records": [{"k": 1}]\n"x": 2}', "line 2: malformed JSON: '\"x\"' is not expected here"),
        ('{"x":, "Records": []}', "malformed JSON: ',' is not expected here"),
        ('{"Records": [{"k": 1}', "the file ends before the end of its JSON document"),
        ('{"Records": [{"k": 1}], "x": {"a": "', "the file ends before the end of its JSON document"),
        ('{"Records": [{"k": 1}], "x": "a', "the file ends before the end of its JSON document"),
        ('{"Records": [{"k": 1}]', "the file ends before the end of its JSON document"),
        ('[{"Records": [{"k": 1}]}', "the file ends before the end of its JSON document"),
        ('{"Records": [1]}', "line 1: a record must be a JSON object, not a number"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_file_without_the_list_is_refused_in_one_line(
    lake: Command, text: str, said: str, size: int
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(lake, text, size=size, bad_records="fail")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("size", [1, 16, 1 << 20])
def test_a_bad_element_is_a_bad_record_at_its_line(lake: Command, size: int) -> None:
    text = '{"x": [\n],\n"Records": [\n{"k": 1}, {"k": },\n{"k":\n 2}, 7]}\n{"Records": [{"k": {}}]}'
    blocks = read(lake, text, size=size, bad_records="quarantine")
    assert [r["k"] for r in rows(blocks)] == [1, 2]
    assert [(r.line, r.raw) for b in blocks for r in b.rejected] == [
        (4, '{"k": }'),
        (6, "7"),
        (7, '{"k": {}}'),
    ]


def test_a_large_list_is_read_in_pieces_and_short_lists_together(lake: Command) -> None:
    """The memory holds a piece, whatever the length of a list, of its line, or of what stands beside it."""
    record, piece = '{"k":1,"a":"some text"}', 1000
    beside = f'"x":[{",".join([record] * 1000)}]'
    large = f'{{{beside},"Records":[{",".join([record] * 1000)}],{beside.replace("x", "y")}}}'
    blocks = read(lake, large, size=piece)
    assert len(blocks) >= len(record) * 1000 // piece
    assert max(b.table.num_rows for b in blocks) <= 2 * piece // len(record)
    short = f'{{"Records":[{record}]}}\n' * 1000
    assert [b.table.num_rows for b in read(lake, short)] == [1000]


def test_an_element_or_a_text_beside_the_list_has_a_bounded_length(
    tmp_path: Path,
) -> None:
    def cut(text: str) -> list[bytes]:
        path = tmp_path / "a.json"
        path.write_text(text)
        reading = Reading(str(path), records="Records", block_bytes=100)
        with path.open("rb") as file:
            frames = json_lists.list_frames(file, reading, longest=1000)
            return [line for frame in frames for line in frame.lines.split(b"\n") if line]

    long = "x" * 3000
    for text in (
        f'{{"Records":[{{"k":1,"a":"{long}"}}]}}',
        f'{{"x":"{long}","Records":[]}}',
        f'{{"x":["{long}"]}}',
    ):
        with pytest.raises(InvalidInput, match="a JSON record or text is longer than"):
            cut(text)
    beside = ",".join('{"a":"x"}' for _ in range(1000))
    assert cut(f'{{"x":[{beside}],"Records":[{{"k":1}}]}}') == [b'{"k":1}']


def test_records_is_an_option_of_a_load_a_setting_and_an_argument(lake: Command) -> None:
    file = lake.file("trail.json.gz", json.dumps(ONE))
    for pool, settings, words in (("p", {}, ["--records", "Records"]), ("q", {"records": "Records"}, [])):
        lake.pool(pool, **settings)
        assert lake("load", pool, file, *words, "--json").records[0]["records"] == 3
        assert [r["k"] for r in lake.scan(pool)] == [1, 2, 3]
    lake.pool("r", records="other")
    Lake.open(lake.uri).pool("r").branch().load([file], options={"records": "Records"})
    assert [r["k"] for r in lake.scan("r")] == [1, 2, 3]
    assert "has no list 'other'" in lake.refuses("r", file)
    assert lake("load", "q", lake.file("a.csv", "k\n4\n"), "--json").records[0]["records"] == 1


def test_lists_without_a_record_are_as_a_file_without_one(lake: Command) -> None:
    lake.pool("p", records="Records")
    empty, full = (
        lake.file("empty.json", '{"Records": []}'),
        lake.file("full.json", '{"Records": [{"k": 1}]}'),
    )
    assert lake("load", "p", empty, full, "--json").records[0]["records"] == 1
