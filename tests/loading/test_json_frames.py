"""JSON that is not lines: arrays, documents, marks; and where its records are."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_lake.loading.block import Reading
from log_lake.loading.formats.json import read_ndjson
from log_lake.loading.formats.json_frames import frames
from log_lake.loading.formats.json_structure import LONGEST_DOCUMENT, structure
from tests.loading.test_values import VALUES
from tests.support.command import INVALID_INPUT, Command

RECORDS: list[dict[str, Any]] = [
    {"k": 1, "a": "x,y]}", "b": {"c": [1, 2]}},
    {"k": 2, "a": 'say "hi" \\', "b": {"c": []}},
    {"k": 3, "a": "{\\", "b": None},
]
TEXTS = {
    "an array": json.dumps(RECORDS),
    "a pretty array": json.dumps(RECORDS, indent=2),
    "an array with space around": f"\n \n{json.dumps(RECORDS, indent=1)}\n\n",
    "arrays": "".join(json.dumps([r]) + "\n" for r in RECORDS),
    "pretty documents": "\n".join(json.dumps(r, indent=2) for r in RECORDS),
    "documents without space": "".join(json.dumps(r, indent=2) for r in RECORDS),
    "documents with carriage returns": "\r\n".join(json.dumps(r, indent=2) for r in RECORDS).replace(
        "\n", "\r\n"
    ),
    "documents on one line": "".join(json.dumps(r) for r in RECORDS),
    "documents with spaces on one line": "  ".join(json.dumps(r) for r in RECORDS) + "\n",
    "two documents on a later line": "\n".join(
        [json.dumps(RECORDS[0]), json.dumps(RECORDS[1]) + json.dumps(RECORDS[2]), ""]
    ),
    "lines": "".join(json.dumps(r) + "\n" for r in RECORDS),
    "lines with a mark": "﻿" + "".join(json.dumps(r) + "\n" for r in RECORDS),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_records_come_back_however_they_are_framed(
    lake: Command, text: str, encoding: str, size: int
) -> None:
    data = text.lstrip("﻿").encode(encoding) if encoding != "utf-8" else text.encode()
    reading = Reading(lake.file("a.json", data), key=("k",), block_bytes=size)
    found = [r for block in read_ndjson(reading) for r in block.table.to_pylist()]
    assert [r["k"] for r in found] == [1, 2, 3]
    assert [r["a"] for r in found] == [r["a"] for r in RECORDS]


@pytest.mark.parametrize(
    ("opening", "between", "closing"), [("[", ",", "]"), ("", "", ""), ("[", " , ", "\n]\n")]
)
def test_an_array_and_documents_on_one_line_are_read_in_pieces(
    lake: Command, opening: str, between: str, closing: str
) -> None:
    """The memory holds a piece, whatever the length of the line: `json.dump` and Firehose write one line."""
    records = [{"k": number, "a": "} ,{"} for number in range(2000)]
    text = opening + between.join(map(json.dumps, records)) + closing
    reading = Reading(lake.file("a.json", text.encode()), key=("k",), block_bytes=1000)
    blocks = list(read_ndjson(reading))
    assert max(block.table.num_rows for block in blocks) < 100
    assert [r for block in blocks for r in block.table.to_pylist()] == records


@pytest.mark.slow
def test_a_line_beyond_what_a_document_may_have_holds_any_number_of_documents() -> None:
    record = b'{"k":1,"a":"' + b"x" * 1000 + b'"}'
    count = (LONGEST_DOCUMENT >> 10) + 5000
    for text in (b"[" + b",".join([record] * count) + b"]", record * count):
        assert len(text) > LONGEST_DOCUMENT
        found = frames(io.BytesIO(text), Reading("a.json", block_bytes=16 << 20))
        assert sum(len(frame.spans) for frame in found) == count


@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "ü"]), VALUES, max_size=3), max_size=5), st.booleans()
)
def test_the_depth_of_any_json_ends_at_nothing(records: list[dict[str, Any]], pretty: bool) -> None:
    text = json.dumps(records, indent=2 if pretty else None).encode()
    found = structure(text)
    assert found.depth[-1] == 0
    assert (found.depth[:-1] > 0).all()


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ('[\n{"k":1},\n{"k":\n2,"a":NaN}]', 3, "NaN is not JSON"),
        ('[\n{"k":1},\n\n 5]', 4, "must be a JSON object, not a number"),
        ('{\n"k":1}\n{"k":\n2,\n"a":1,"a":2}', 3, "more than once"),
        ('{\n"k":1}\n{"k":2,\n"a":"x\ny"}', 3, "Invalid control character"),
    ],
)
def test_a_bad_record_is_named_by_the_line_where_it_begins(
    lake: Command, content: str, line: int, says: str
) -> None:
    lake.pool("p")
    message = lake.refuses_records("p", content, "a.json")
    assert f"a.json, line {line}: " in message
    assert says in message
    lake("load", "p", str(lake.folder / "a.json"), "--bad-records", "quarantine")
    (rejected,) = lake.scan("p.$rejected")
    assert rejected["line"] == line
    assert rejected["raw"] in content


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[{"k":1},{"k":2}', "the file ends before the end of its JSON array"),
        ('[{"k":1},{"k":', "the file ends before the end of its JSON array"),
        ('{\n"k":1}\n{\n"k":2', "line 3: the file ends before the end of its JSON document"),
        ('[{"k":1},,{"k":2}]', "a JSON array has nothing before a comma"),
        ('[{"k":1}] x', "text behind the end of the array"),
        ('{\n"k":1}\n}\n', "closes what no bracket opened"),
    ],
)
@pytest.mark.parametrize("policy", ["fail", "quarantine"])
def test_a_damaged_array_or_document_is_refused_under_any_policy(
    lake: Command, content: str, says: str, policy: str
) -> None:
    lake.pool("p", bad_records=policy)
    assert says in lake.refuses_records("p", content, "a.json")


def test_lines_only_are_lines_whatever_they_look_like(lake: Command) -> None:
    lake.pool("p")
    file = lake.file("a.json", '[{"k":1}]\n')
    assert "must be a JSON object, not a list" in lake.fails(
        INVALID_INPUT, "load", "p", file, "--format", "ndjson"
    )


@pytest.mark.parametrize("content", ["[]", "[ ]\n", "\n[\n]\n"])
def test_an_empty_array_commits_nothing(lake: Command, content: str) -> None:
    lake.pool("p")
    assert "nothing to load" in lake("load", "p", lake.file("a.json", content)).err


def test_records_on_one_line_are_refused_where_lines_are_asked_for(lake: Command) -> None:
    lake.pool("p")
    file = lake.file("a.json", '{"k":1}{"k":2}\n')
    message = lake.fails(INVALID_INPUT, "load", "p", file, "--format", "ndjson")
    assert "line 1: 2 records where one should be; --format json reads them" in message
    assert lake.load("p", file)["records"] == 2


def test_a_cut_file_in_utf_16_is_called_cut(lake: Command) -> None:
    lake.pool("p")
    message = lake.refuses_records("p", '{"k":1}\n'.encode("utf-16")[:-1], "a.json")
    assert "the file is cut or damaged: its first bytes say that encoding" in message
    assert "csv" not in message
